"""The memory of tensors as objects, which libraries compare to find tensors that share it, and read files into."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from ...errors import UnsupportedError
from ...ground.public import method, public
from ...memory.array import DeviceArray
from ...memory.storage import all_bytes, flat_bytes, owner_of
from ...tensors import Tensor, wrap
from ...types import Device, dtypes
from .creation import empty


@public(functional=False)
class UntypedStorage:
    """The bytes of memory that tensors are views of.

    >>> import tritensor as torch
    >>> x = torch.zeros(4)
    >>> x.untyped_storage().nbytes(), x[2:].untyped_storage().data_ptr() == x.untyped_storage().data_ptr()
    (16, True)

    Args:
        size: a number of bytes, whose values are whatever the memory held, or the bytes themselves.
    """

    __module__ = "tritensor"

    def __init__(self, size: Any = 0, *, device: Device = None) -> None:
        if isinstance(size, int):
            self._bytes = empty(size, dtype=dtypes.uint8, device=device)
        else:
            self._bytes = wrap(np.array(size, np.uint8)).to(device or "cpu")

    @classmethod
    def _of(cls, held: Tensor) -> UntypedStorage:
        made = cls.__new__(cls)
        made._bytes = held
        return made

    @staticmethod
    def from_file(filename: str, shared: bool = False, nbytes: int = 0) -> UntypedStorage:
        """The bytes of a file, which are read when they are used; what is written goes to the file if it is shared.

        Args:
            nbytes: how many; a shared file that is shorter gets longer.
        """
        if shared:
            with open(filename, "ab") as file:
                if file.tell() < nbytes:
                    file.truncate(nbytes)
        data = np.memmap(filename, np.uint8, "r+" if shared else "c", 0, (nbytes,)) if nbytes else np.empty(0, np.uint8)
        return UntypedStorage._of(wrap(data.view(np.ndarray)))

    @property
    def device(self) -> Any:
        """The device of the memory."""
        return self._bytes.device

    @property
    def is_cuda(self) -> bool:
        """True on a CUDA device."""
        return self._bytes.is_cuda

    @property
    def _cdata(self) -> int:
        return self.data_ptr()

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        return np.array(self._bytes.numpy(), dtype, copy=copy)

    def data_ptr(self) -> int:
        """The address of the first byte."""
        return self._bytes.data_ptr()

    def nbytes(self) -> int:
        """The number of bytes."""
        return self._bytes.numel()

    size = __len__ = nbytes

    def __sizeof__(self) -> int:
        return 32 + self.nbytes()  # as PyTorch's, by which summaries count

    def element_size(self) -> int:
        """1: the elements are bytes."""
        return 1

    def get_device(self) -> int:
        """The index of the tensor's CUDA device, -1 on the CPU."""
        return self._bytes.get_device()

    def is_shared(self) -> bool:
        """False: memory is not shared with other processes."""
        return False

    def is_pinned(self) -> bool:
        """True if the memory is pinned."""
        return bool(self._bytes.is_pinned())

    def untyped(self) -> UntypedStorage:
        """The storage itself."""
        return self

    def resize_(self, size: int) -> UntypedStorage:
        """The storage itself, whose size stays.

        Raises:
            UnsupportedError: another size.
        """
        if size != self.nbytes():
            raise UnsupportedError("the memory of tensors cannot be resized", remedy="make another tensor")
        return self

    def clone(self) -> UntypedStorage:
        """A copy."""
        return UntypedStorage._of(self._bytes.clone())

    def cpu(self) -> UntypedStorage:
        """The bytes on the CPU; the storage itself if it is there."""
        return self.to(device="cpu")

    def cuda(self, device: Device = "cuda") -> UntypedStorage:
        """The bytes on a CUDA device."""
        return self.to(device=device)

    def to(self, *, device: Device, non_blocking: bool = False) -> UntypedStorage:
        """The bytes on a device; the storage itself if it is there."""
        moved = self._bytes.to(device, non_blocking=non_blocking)
        return self if moved is self._bytes else UntypedStorage._of(moved)

    def copy_(self, source: UntypedStorage, non_blocking: bool = False) -> UntypedStorage:
        """Write another storage's bytes."""
        self._bytes.copy_(source._bytes, non_blocking)
        return self

    def fill_(self, value: int) -> UntypedStorage:
        """Write one number to all bytes."""
        self._bytes.fill_(value)
        return self

    def tolist(self) -> list[int]:
        """The bytes as numbers."""
        return list(self._bytes.tolist())

    def __iter__(self) -> Iterator[int]:
        return iter(self.tolist())

    def __getitem__(self, place: int | slice) -> Any:
        if isinstance(place, slice):
            return UntypedStorage._of(self._bytes[place])
        return self._bytes[place].item()

    def __setitem__(self, place: int | slice, value: int) -> None:
        self._bytes[place] = value

    def __repr__(self) -> str:
        shown = "..." if self._bytes.is_meta else self.tolist()
        return f"{shown}\n[torch.storage.UntypedStorage(device={self.device}) of size {self.nbytes()}]"


class TypedStorage:
    """The elements of memory in one dtype: what `Tensor.storage` returns."""

    def __init__(self, held: UntypedStorage, dtype: dtypes.dtype) -> None:
        self._untyped_storage, self.dtype, self.device = held, dtype, held.device

    def untyped(self) -> UntypedStorage:
        """The bytes."""
        return self._untyped_storage

    def data_ptr(self) -> int:
        """The address of the first element."""
        return self._untyped_storage.data_ptr()

    def nbytes(self) -> int:
        """The number of bytes."""
        return self._untyped_storage.nbytes()

    def element_size(self) -> int:
        """The bytes of an element."""
        return self.dtype.itemsize

    def size(self) -> int:
        """The number of elements."""
        return self.nbytes() // self.dtype.itemsize

    __len__ = size

    def __sizeof__(self) -> int:
        return 32 + self.nbytes()  # as PyTorch's, by which summaries count

    def tolist(self) -> list[Any]:
        """The elements as numbers."""
        return list(self._untyped_storage._bytes.view(self.dtype).tolist())

    def __iter__(self) -> Iterator[Any]:
        return iter(self.tolist())

    def __getitem__(self, place: int | slice) -> Any:
        return self.tolist()[place]


@method()
def untyped_storage(self: Tensor) -> UntypedStorage:
    """The storage of the tensor: the memory that it is a view of, as bytes.

    Raises:
        UnsupportedError: a tensor within a transformation has none.
    """
    data = self._data
    if data.__class__ is DeviceArray:
        return UntypedStorage._of(wrap(all_bytes(data.buffer)))
    held = flat_bytes(owner_of(self._host_array()))
    if held is None:
        raise UnsupportedError("the memory of this tensor has gaps", remedy="pass a clone()")
    return UntypedStorage._of(wrap(held))


@method()
def storage(self: Tensor) -> TypedStorage:
    """The storage of the tensor: the memory that it is a view of, as elements of its dtype."""
    return TypedStorage(untyped_storage(self), self.dtype)
