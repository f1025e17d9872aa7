"""Find the storage of a tensor, so that tensors that share memory are saved, and loaded again, sharing it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..memory import copies
from ..memory.storage import all_bytes, flat_bytes, owner_of
from ..nn.parameter import Parameter
from ..tensors import Tensor
from ..types import dtypes

STAGING = 16 * 2**20  # bytes on the host at a time while a storage comes from a device


@dataclass(slots=True)
class SavedStorage:
    """Memory that is saved once: `key` identifies it, `memory` is a flat array of uint8 on its device."""

    key: Any
    memory: Any
    nbytes: int
    location: str
    owner: Any  # keeps the memory alive, so that the key stays unique
    type_name: str = ""

    def chunks(self) -> Iterator[Any]:
        """The bytes in order, on the host, in pieces."""
        for start in range(0, self.nbytes, STAGING):
            piece = self.memory[start : start + STAGING]
            yield piece.data if isinstance(piece, np.ndarray) else copies.to_host(piece).data


@dataclass(frozen=True, slots=True)
class SavedTensor:
    """A tensor as a view of a storage, offset and strides in elements."""

    storage: SavedStorage
    dtype: dtypes.dtype
    offset: int
    size: tuple[int, ...]
    stride: tuple[int, ...]
    requires_grad: bool
    is_parameter: bool


def view_storage(tensor: Tensor) -> SavedTensor:
    """The tensor as a view of the memory that holds it."""
    data = tensor._data if tensor._off_host else np.asarray(tensor._host_array())
    storage, offset, stride = _device_view(data) if tensor._off_host else _host_view(data)
    return SavedTensor(
        storage, tensor.dtype, offset, tuple(data.shape), stride, tensor.requires_grad, isinstance(tensor, Parameter)
    )


def contiguous_host(tensor: Tensor) -> np.ndarray:
    """The elements in row-major order on the host: the tensor's own memory if it has that order."""
    return np.ascontiguousarray(tensor._to_host()).reshape(tensor.shape)


def _device_view(data: Any) -> tuple[SavedStorage, int, tuple[int, ...]]:
    storage = SavedStorage(
        ("cuda", id(data.buffer)), all_bytes(data.buffer), data.buffer.nbytes, str(data.device), data.buffer
    )
    return storage, data.offset, tuple(data.strides)


def _host_view(data: np.ndarray) -> tuple[SavedStorage, int, tuple[int, ...]]:
    base = owner_of(data)
    flat = flat_bytes(base)
    if flat is not None and data.size:
        offset, rest = divmod(data.ctypes.data - flat.ctypes.data, data.itemsize)
        stride = _strides(data)
        if not rest and offset >= 0 and stride is not None:
            last = offset + sum((length - 1) * step for length, step in zip(data.shape, stride, strict=True))
            if (last + 1) * data.itemsize <= flat.size:
                return SavedStorage(("cpu", flat.ctypes.data), flat, flat.size, "cpu", base), offset, stride
    # PyTorch has no negative strides and no offsets of half an element: such a view is saved as a separate copy.
    own = np.ascontiguousarray(data).reshape(data.shape)
    return (
        SavedStorage(("copy", id(own)), own.reshape(-1).view(np.uint8), own.nbytes, "cpu", own),
        0,
        _strides(own) or (),
    )


def _strides(data: np.ndarray) -> tuple[int, ...] | None:
    """The strides in elements, or None if one is negative or not a whole number; a dimension of one element may have
    any stride."""
    steps = []
    dense = 1
    for length, step in zip(reversed(data.shape), reversed(data.strides), strict=True):
        if step < 0 or step % data.itemsize:
            if length > 1:
                return None
            step = dense * data.itemsize
        steps.append(step // data.itemsize)
        dense *= length
    return tuple(reversed(steps))
