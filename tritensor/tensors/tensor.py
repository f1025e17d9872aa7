"""The Tensor: an array on a device, with its autograd state.

On the CPU `_data` is a `numpy.ndarray`; on a CUDA device it is a `DeviceArray`; the result of an unfinished copy to the
host is a `PendingArray` until its first use, which waits for the copy.

Operators and functions become methods where they are declared (`ground/public.py`); this file defines the others.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from copy import deepcopy
from typing import Any

import numpy as np

from ..autograd import leaves
from ..errors import AutogradError, RangeError
from ..ground.public import methods_of, public
from ..memory.array import DeviceArray, form_of
from ..memory.buffer import meta
from ..memory.deferred import Deferred
from ..memory.foreign import shared
from ..memory.lifted import Lifted, device_of
from ..memory.sparse import Sparse
from ..memory.storage import copy_with_storage
from ..types import devices, dtypes, formats
from ..types.size import Size
from .history import History
from .host_access import HostAccess

__all__ = ["Size", "Tensor", "is_tensor", "tensors_in"]

ndarray = np.ndarray
_new = object.__new__


@public(functional=False)
class Tensor(HostAccess, History):
    """A multi-dimensional array of one dtype on one device, with PyTorch's methods.

    Made by the creation functions (`tritensor.tensor`, `zeros`, `randn`, ...); `Tensor([1, 2])` makes one of the
    default floating dtype, as in PyTorch.
    """

    __module__ = "tritensor"  # where a pickle and a reader of a message look for it

    # The five fields that every tensor has are slots (setting one costs 10 ns, an entry in `__dict__` 40); fields that
    # few tensors have are in `__dict__`, with a class-level default.
    __slots__ = ("__dict__", "__weakref__", "_counter", "_data", "_needs", "_node", "_origin")

    _data: Any
    _pinned: bool = False
    _remembered: tuple[int, dict[str, Any]] | None = None  # the version and facts about its elements, see `_remember`

    # makes NumPy leave `array + tensor` to Tensor's own operator
    __array_priority__ = 1000

    @classmethod
    def __torch_function__(
        cls,
        func: Callable[..., Any],
        types: Iterable[type],
        args: tuple[object, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        """What a function called with the subclass returns: its result for plain tensors, as the subclass.

        A subclass that overrides it is asked in place of every public function and member of Tensor, `func`; the
        function itself goes on with `super().__torch_function__(func, types, args, kwargs)`.
        """
        from ..ground import overriding

        return overriding.by_default(Tensor, cls, func, types, args, kwargs)

    # ---- attributes -------------------------------------------------------------------------------------------

    @property
    def shape(self) -> Size:
        """The shape: the sizes of the dimensions."""
        return Size(self._data.shape)

    @property
    def ndim(self) -> int:
        """The number of dimensions."""
        return int(self._data.ndim)

    @property
    def dtype(self) -> dtypes.dtype:
        """The data type of the elements."""
        return dtypes.of(self._data.dtype)

    @property
    def device(self) -> devices.device:
        """The device that holds the elements; CUDA devices always carry their index."""
        data = self._data
        return devices.cpu if data.__class__ is ndarray else device_of(data)

    @property
    def is_cuda(self) -> bool:
        """True if the elements are on a CUDA device (real or simulated)."""
        data = self._data
        return data.__class__ is not ndarray and device_of(data).type == "cuda"

    @property
    def is_meta(self) -> bool:
        """True on the device `meta`: there are a shape, strides and a dtype, but no elements."""
        return self.device is devices.meta

    @property
    def _off_host(self) -> bool:
        """True if the elements are not in the host's memory."""
        data = self._data
        return data.__class__ is DeviceArray or (isinstance(data, Lifted) and data.device is not devices.cpu)

    @property
    def itemsize(self) -> int:
        """The size of an element in bytes."""
        return int(self._data.dtype.itemsize)

    element_size = itemsize.fget

    @property
    def nbytes(self) -> int:
        """The size of all elements in bytes."""
        return self.numel() * self.itemsize

    @property
    def _version(self) -> int:
        """The number of times that the storage was changed in place."""
        return 0 if self._counter is None else self._counter[0]

    def _remember(self, fact: str, value: tuple[int, ...] | bool) -> None:
        """Store a fact about the elements on the tensor, until they change.

        A fact belongs to this object and its version: views, copies and pickles do not have it, and a change in place
        drops it. Code that changes elements without counting a version must call `_forget`.
        """
        if self._data.__class__ is DeviceArray and self._data.buffer in shared:  # another library may write to it
            return
        version = 0 if self._counter is None else self._counter[0]
        known = self._remembered
        if known is None or known[0] != version:
            self._remembered = version, {fact: value}
        else:
            known[1][fact] = value

    def _recall(self, fact: str) -> Any:
        """The fact that `_remember` stored for the present elements, or None."""
        known = self._remembered
        return known[1].get(fact) if known is not None and known[0] == self._version else None

    def _forget(self) -> None:
        """Drop the facts stored on the tensor and what it is a view of: the elements have changed or may have."""
        view: Any = self
        while view is not None:
            view._remembered = None
            view = view._origin and view._origin[0]

    def size(self, dim: int | None = None) -> Any:
        """The shape, or the extent of one dimension."""
        return self.shape if dim is None else self._data.shape[self._checked_dim(dim)]

    def _checked_dim(self, dim: int) -> int:
        rank = max(self.ndim, 1)
        if not -rank <= dim < rank:
            raise RangeError(
                f"Dimension out of range (expected to be in range of [{-rank}, {rank - 1}], but got {dim})"
            )
        return dim % rank

    def dim(self) -> int:
        """The number of dimensions."""
        return int(self._data.ndim)

    ndimension = dim

    def numel(self) -> int:
        """The number of elements."""
        return int(self._data.size)

    nelement = numel

    def stride(self, dim: int | None = None) -> Any:
        """The distance in memory, in elements, between neighbours along each dimension (or along one)."""
        data = self._data
        if data.__class__ is DeviceArray or isinstance(data, Lifted):
            strides = tuple(data.strides)
        else:
            data = self._host_array()
            strides = formats.reported_strides(data.shape, tuple([step // data.itemsize for step in data.strides]))
        return strides if dim is None else strides[self._checked_dim(dim)]

    def is_contiguous(self, *, memory_format: formats.memory_format = formats.contiguous_format) -> bool:
        """True if the elements lie in memory in row-major order (or that of a memory format) without gaps."""
        data = self._data
        if memory_format is not formats.contiguous_format:
            formats.check("is_contiguous", memory_format)
            return formats.follows(data.shape, self.stride(), memory_format)
        return bool(data.flags.c_contiguous if data.__class__ is ndarray else data.is_contiguous())

    def is_floating_point(self) -> bool:
        """True if the dtype is a floating one."""
        return self.dtype.is_floating_point

    def is_complex(self) -> bool:
        """True if the dtype is a complex one."""
        return self.dtype.is_complex

    def is_signed(self) -> bool:
        """True if the dtype can hold negative numbers."""
        return self.dtype.is_signed

    def is_pinned(self) -> bool:
        """True if the elements are in page-locked host memory."""
        return self._pinned

    def get_device(self) -> int:
        """The index of the tensor's CUDA device, -1 on the CPU."""
        index = self.device.index
        return -1 if index is None else index

    def data_ptr(self) -> int:
        """The address of the first element in the memory of the tensor's device."""
        data = self._data.settled() if self._data.__class__ is Deferred else self._data
        return int(data.data_ptr() if data.__class__ is DeviceArray else self._host_array().ctypes.data)

    def storage_offset(self) -> int:
        """The offset of the first element in the memory that the tensor views, in elements."""
        data = self._data.settled() if self._data.__class__ is Deferred else self._data
        if data.__class__ is DeviceArray:
            return int(data.offset)
        data = self._host_array()
        base = data
        while isinstance(base.base, ndarray):
            base = base.base
        return int(data.ctypes.data - base.ctypes.data) // max(data.itemsize, 1)

    def __hash__(self) -> int:
        return id(self)

    def __format__(self, spec: str) -> str:
        # as in PyTorch a Parameter, like every other subclass, prints as a tensor
        number = self.ndim == 0 and type(self) is Tensor and not self.is_meta
        return format(self.item(), spec) if number else object.__format__(self, spec)

    def __repr__(self) -> str:
        from ..ground.overriding import unasked
        from .printing import format_tensor

        kind = type(self)
        plain = kind is Tensor or kind.__torch_function__ is unasked
        return format_tensor(self, "tensor(" if plain else f"{kind.__name__}(")

    def _repr_html_(self) -> str:
        from .notebook import tensor_html

        return tensor_html(self)

    def __reduce_ex__(self, protocol: Any) -> tuple[Any, ...]:
        made: tuple[Any, ...]
        if self.is_meta:
            made = _rebuild_meta, (self.__class__, tuple(self._data.shape), self.stride(), self.dtype, self._needs)
        else:
            data = self.detach().cpu()._data if self._data.__class__ is Sparse else self._to_host()
            made = _rebuild, (self.__class__, data, str(self.device), self._needs)
        kept = {name: value for name, value in self.__dict__.items() if not hasattr(Tensor, name)}
        return (*made, kept) if kept else made

    def __deepcopy__(self, memo: dict[int, Any]) -> Tensor:
        if self._node is not None:
            raise AutogradError(
                "Only Tensors created explicitly by the user (graph leaves) support the deepcopy "
                "protocol at the moment.",
                remedy="copy x.detach().clone()",
            )
        sparse = self._data.__class__ is Sparse
        data = self.detach().clone()._data if sparse else self._data if self._off_host else self._host_array()
        copied = memo[id(self)] = blank(self.__class__, data if sparse else copy_with_storage(data, memo))
        copied._needs, copied._counter = self._needs, deepcopy(self._counter, memo)
        kept = {name: value for name, value in self.__dict__.items() if name == "_grad" or not hasattr(Tensor, name)}
        copied.__dict__.update(deepcopy(kept, memo))
        return copied


methods_of(Tensor)


def wrap(data: object) -> Tensor:
    """A tensor over an array (`ndarray`, `DeviceArray` or `PendingArray`), which is not copied."""
    tensor: Tensor = _new(Tensor)
    tensor._data = data
    tensor._needs = False
    tensor._node = tensor._counter = tensor._origin = None
    return tensor


leaves.wrap = wrap


_kinds: set[type] = {Tensor}  # of which there are tensors


def blank(kind: type[Tensor], data: object) -> Any:
    """Like `wrap`, for a subclass of Tensor."""
    if kind not in _kinds:
        from ..ground import overriding

        _kinds.add(kind)
        overriding.defined(kind)
    tensor = _new(kind)
    tensor._data = data
    tensor._needs = False
    tensor._node = tensor._counter = tensor._origin = None
    return tensor


def _rebuild(kind: type[Tensor], array: np.ndarray, place: str, needs: bool) -> Tensor:
    """Make a tensor from its pickled form."""
    tensor: Tensor = blank(kind, wrap(array).to(place)._data)
    tensor._needs = needs
    return tensor


def _rebuild_meta(
    kind: type[Tensor], shape: tuple[int, ...], strides: tuple[int, ...], dtype: dtypes.dtype, needs: bool
) -> Tensor:
    """Make a meta tensor from its pickled form."""
    tensor: Tensor = blank(kind, meta(form_of(shape, strides, dtype.numpy, devices.meta, 0)))
    tensor._needs = needs
    return tensor


def tensors_in(value: object) -> Iterator[Tensor]:
    """The tensors in nested tuples, lists and dicts."""
    if isinstance(value, Tensor):
        yield value
    elif isinstance(value, (tuple, list, dict)):
        for each in value.values() if isinstance(value, dict) else value:
            yield from tensors_in(each)


@public(functional=False)
def is_tensor(obj: object) -> bool:
    """True if `obj` is a Tensor."""
    return isinstance(obj, Tensor)
