"""Build tensors while a checkpoint is read: memory is allocated on the target device and filled directly from the
file."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .. import drivers
from ..errors import TritensorError
from ..functional.sparse.rules import sparse_coo_tensor
from ..memory import buffer, copies
from ..memory.array import DeviceArray
from ..nn.parameter import Parameter
from ..tensors import Tensor, wrap
from ..types import devices
from ..types.devices import device
from ..types.dtypes import int64
from .builder import Builder, StorageRecord, StoredTensor
from .checkpoint import Checkpoint
from .malformed import Malformed

U1 = np.dtype(np.uint8)
STAGING = 16 * 2**20  # bytes of pinned host memory through which a storage goes to a device


class TensorBuilder(Builder):
    """Builds tensors on the devices that `restore` returns; call `fill` when the object is complete.

    Args:
        checkpoint: the file.
        restore: returns the device for a storage record.
        mapped: the file as pages of memory, to be viewed instead of read; or None.
    """

    def __init__(
        self, checkpoint: Checkpoint, restore: Callable[[StorageRecord], device], mapped: Any | None = None
    ) -> None:
        super().__init__(checkpoint)
        self._checkpoint = checkpoint
        self._restore = restore
        self._mapped = mapped
        self._lazy: list[tuple[Tensor, StoredTensor]] = []
        self._sources: dict[int, StoredTensor] = {}

    def place(self, storage: StorageRecord) -> None:
        """Choose the storage's device and allocate memory there."""
        where = self._restore(storage)
        if where.type != "cpu":
            storage.memory = buffer.empty((storage.nbytes,), U1, where)
        elif self._mapped is None or not storage.nbytes:
            storage.memory = np.empty(storage.nbytes, np.uint8)
        else:
            offset, _ = self._checkpoint.locate(storage)
            # One array for each storage, over the map itself: saving a tensor again then saves its storage only.
            storage.memory = np.frombuffer(self._mapped, np.uint8, storage.nbytes, offset)

    def make(self, stored: StoredTensor) -> Tensor:
        """A tensor over its storage's memory, which may not be filled yet."""
        tensor = wrap(view_of(stored, stored.storage.memory))
        tensor.requires_grad = stored.requires_grad
        if (stored.conjugate or stored.negative) and not tensor.is_meta:
            self._lazy.append((tensor, stored))
        return tensor

    def parameter(self, tensor: Any, requires_grad: bool) -> Any:
        """A parameter over the tensor's memory."""
        if not isinstance(tensor, Tensor):
            return None
        if requires_grad and not (tensor.dtype.is_floating_point or tensor.dtype.is_complex):
            raise Malformed("only Tensors of floating point and complex dtype can require gradients")
        made = Parameter(tensor, requires_grad)
        self._lazy += [(made, stored) for known, stored in self._lazy if known is tensor]
        return made

    def sparse(self, indices: object, values: object, size: tuple[int, ...], coalesced: bool) -> Any:
        """A sparse tensor over the memory of both."""
        if not isinstance(indices, Tensor) or indices.dtype is not int64 or min(size, default=0) < 0:
            return None
        if not isinstance(values, Tensor):
            return None
        if any(known is values for known, _ in self._lazy):
            raise Malformed("a sparse tensor has values that are to be conjugated or negated")
        try:
            return sparse_coo_tensor(indices, values, size, is_coalesced=coalesced)
        except TritensorError as error:
            raise Malformed(str(error).split("\n", 1)[0]) from None

    def fill(self) -> None:
        """Read every storage into its memory."""
        unread = [
            storage
            for storage in self.storages.values()
            if self._mapped is None or not isinstance(storage.memory, np.ndarray)
        ]
        with self._checkpoint.source.showing(sum(storage.nbytes for storage in unread)):
            for storage in unread:
                read_storage(self._checkpoint, storage, storage.memory)
        resolved: dict[Any, StorageRecord] = {}
        for tensor, stored in self._lazy:
            # The whole storage, and once for all tensors that need it converted: an expanded view of it may be far
            # larger.
            key = (stored.storage.key, stored.dtype, stored.conjugate, stored.negative)
            if key not in resolved:
                resolved[key] = resolve(stored)
            tensor._data = view_of(stored, resolved[key])


def view_of(stored: StoredTensor, memory: Any) -> Any:
    """The array that a record describes, over flat memory of bytes on either kind of device."""
    dtype = stored.dtype.numpy
    if isinstance(memory, DeviceArray):
        return DeviceArray.over(memory.buffer, stored.size, stored.stride, stored.offset, dtype)
    if 0 in stored.size:
        try:
            return np.empty(stored.size, dtype)
        except ValueError as error:  # the other dimensions are so large that NumPy cannot count them
            raise Malformed(f"a tensor cannot exist: {error}") from None
    strides = tuple(step * dtype.itemsize for step in stored.stride)
    return np.ndarray(stored.size, dtype, memory, stored.offset * dtype.itemsize, strides)


def read_storage(checkpoint: Checkpoint, storage: StorageRecord, memory: Any) -> None:
    """Read a storage into flat memory of bytes: at once on the host, through pinned memory to a device, not to meta."""
    if memory.__class__ is DeviceArray and memory.device is devices.meta:
        return
    reader = checkpoint.open_storage(storage)
    if isinstance(memory, np.ndarray):
        if memory.size:
            reader.read_into(memory)
        return
    staging = drivers.require().pinned.take(min(STAGING, max(reader.left, 1))).array((min(STAGING, reader.left),), U1)
    start = 0
    while reader.left:
        piece = staging[: min(staging.size, reader.left)]
        reader.read_into(piece)
        copies.copy_into(memory[start : start + piece.size], piece)
        start += piece.size


def resolve(stored: StoredTensor) -> Any:
    """The bytes of a storage after the conjugation or negation that PyTorch had put off."""
    memory = stored.storage.memory
    host = memory if isinstance(memory, np.ndarray) else copies.to_host(memory)
    whole = host[: host.size // stored.dtype.itemsize * stored.dtype.itemsize].view(stored.dtype.numpy)
    whole = np.conj(whole) if stored.conjugate else whole
    whole = np.negative(whole) if stored.negative else whole
    resolved = np.ascontiguousarray(whole).view(np.uint8)
    return resolved if isinstance(memory, np.ndarray) else copies.from_host(resolved, memory.device)
