"""The base of the classes that build tensors for the unpickler, and the records by which a file describes them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Protocol

from ..types.dtypes import dtype
from .geometry import LARGEST, check_geometry
from .malformed import Malformed


@dataclass(frozen=True, slots=True)
class StorageType:
    """A storage class of PyTorch's, such as `torch.FloatStorage`; only its dtype is used."""

    name: str
    dtype: dtype
    typed: bool


@dataclass(slots=True)
class StorageRecord:
    """One storage of a file: key, size, the device that it was on, the type that it was saved as; `memory` once it is
    allocated."""

    key: str
    nbytes: int
    location: str
    type: StorageType
    memory: Any = None


@dataclass(frozen=True, slots=True)
class StorageView:
    """A storage with the dtype of one of its tensors."""

    record: StorageRecord
    dtype: dtype


@dataclass(frozen=True, slots=True)
class StoredTensor:
    """One tensor of a file: a view of a storage, offset and strides in elements."""

    storage: StorageRecord
    dtype: dtype
    offset: int
    size: tuple[int, ...]
    stride: tuple[int, ...]
    requires_grad: bool = False
    conjugate: bool = False
    negative: bool = False
    is_parameter: bool = False

    @property
    def nbytes(self) -> int:
        """The bytes of all elements."""
        total = self.dtype.itemsize
        for length in self.size:
            total *= length
        return total


class Claims(Protocol):
    """The part of a checkpoint file that lists its storages."""

    file_size: int

    def claim(self, key: str, nbytes: int, itemsize: int) -> int:
        """The real size of storage `key`, which the pickle says has `nbytes`; `Malformed` if that cannot be."""


class Builder:
    """Builds the records of a file, without reading any storage; subclasses build real tensors.

    Args:
        claims: which storages the file has.
    """

    objects: Any = None  # what may be named besides data (`serialization.objects`), if anything may

    def __init__(self, claims: Claims) -> None:
        self._claims = claims
        self.file_size = claims.file_size
        self.storages: dict[str, StorageRecord] = {}

    def storage(self, identity: Any) -> StorageView:
        """The storage that `('storage', type, key, location, number of elements)` describes."""
        word = identity[0] if type(identity) is tuple and identity and type(identity[0]) is str else ""
        if word == "module":
            raise Malformed(
                "Weights only load failed. The file holds a whole module with its source code",
                remedy="save its state_dict() instead, where the file was written",
            )
        if word != "storage" or len(identity) not in (5, 6):
            raise Malformed("the pickle refers to something outside of it that is no storage")
        kind, key, location, count = identity[1:5]
        if (
            type(kind) is not StorageType
            or type(key) is not str
            or type(location) is not str
            or type(count) is not int
            or not 0 <= count <= LARGEST
        ):
            raise Malformed("the pickle refers to a storage in a way that PyTorch does not")
        if len(identity) == 6 and identity[5] is not None:
            raise Malformed(
                "the file shares storages in the way of PyTorch 0.3",
                remedy="load it with a PyTorch of today and save it again",
            )
        itemsize = kind.dtype.itemsize
        known = self.storages.get(key)
        if known is None:
            nbytes = self._claims.claim(key, count * itemsize, itemsize)
            known = self.storages[key] = StorageRecord(key, nbytes, location, kind)
            self.place(known)
        elif not known.nbytes - itemsize < count * itemsize <= known.nbytes:
            raise Malformed(f"storage {key} is said to have {known.nbytes} bytes, and {count * itemsize}")
        return StorageView(known, kind.dtype)

    def tensor(self, stored: StoredTensor) -> Any:
        """The tensor that a record describes, after checking that it lies inside its storage."""
        check_geometry(stored.storage.nbytes, stored.dtype.itemsize, stored.offset, stored.size, stored.stride)
        if stored.requires_grad and not (stored.dtype.is_floating_point or stored.dtype.is_complex):
            raise Malformed("only Tensors of floating point and complex dtype can require gradients")
        if stored.conjugate and not stored.dtype.is_complex:
            raise Malformed(f"a tensor of {stored.dtype} is said to be conjugated")
        if stored.negative and stored.dtype.name == "bool":
            raise Malformed(f"a tensor of {stored.dtype} is said to be negated")
        return self.make(stored)

    def parameter(self, tensor: Any, requires_grad: bool) -> Any:
        """The parameter made from `tensor`, or None if that is not a tensor."""
        if not isinstance(tensor, StoredTensor):
            return None
        return replace(tensor, requires_grad=requires_grad, is_parameter=True)

    def sparse(self, indices: object, values: object, size: tuple[int, ...], coalesced: bool) -> Any:
        """The sparse tensor of coordinates and values, None if they are no tensors; here the record of its values."""
        return values if isinstance(indices, StoredTensor) and isinstance(values, StoredTensor) else None

    # What subclasses change --------------------------------------------------------------------------------------

    def place(self, storage: StorageRecord) -> None:
        """Called once for each storage, before any tensor on it is made."""

    def make(self, stored: StoredTensor) -> Any:
        """The tensor for a record that was checked."""
        return stored
