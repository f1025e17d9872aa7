"""The Tensor: an array on a device, with its autograd state.

On the CPU `_data` is a `numpy.ndarray`; on a CUDA device it is a `DeviceArray`; the result of an unfinished copy to the
host is a `PendingArray` until its first use, which waits for the copy.

Operators and functions become methods where they are declared (`tritensor/public.py`); this file defines the others.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable
from copy import deepcopy
from typing import TYPE_CHECKING, Any

import numpy as np

from . import autograd, devices, dtypes, formats
from .arguments import check_flag
from .autograd import leaves, tape
from .autograd.graph import GraphNode, shown
from .errors import ArgumentError, AutogradError, DtypeError, RangeError, explain
from .host_access import HostAccess
from .memory.array import DeviceArray
from .memory.pending import PendingArray
from .memory.storage import copy_with_storage
from .public import methods_of, public
from .size import Size

if TYPE_CHECKING:
    from .autograd.tape import Node

__all__ = ["Size", "Tensor", "is_tensor"]

ndarray = np.ndarray
_new = object.__new__


@public(functional=False)
class Tensor(HostAccess):
    """A multi-dimensional array of one dtype on one device, with PyTorch's methods.

    Made by the creation functions (`tritensor.tensor`, `zeros`, `randn`, ...); `Tensor([1, 2])` makes one of the
    default floating dtype, as in PyTorch.
    """

    # The five fields that every tensor has are slots (setting one costs 10 ns, an entry in `__dict__` 40); fields that
    # few tensors have are in `__dict__`, with a class-level default.
    __slots__ = ("__dict__", "__weakref__", "_counter", "_data", "_needs", "_node", "_origin")

    _data: Any
    _needs: bool  # whether a gradient is needed
    _node: Node | autograd.Slot | None  # the node that recorded the tensor, which gets its gradient; None for a leaf
    # [version], shared by all tensors on one storage. None until a view is made or the tensor is changed in place.
    _counter: list[int] | None
    # How a view was made, to make a new node for it after an in-place change: (parent, view operator, its arguments,
    # the version when the node was made; its complement for a view that was made without recording, and its views).
    _origin: tuple[Tensor, Any, tuple[Any, ...], int] | None
    _grad: Tensor | None = None
    _hooks: list[Any] | None = None
    _post_hooks: list[Any] | None = None
    _retains: bool = False
    _own: bool = False  # of a view: whether it was asked to require grad, and does not because its root does
    _pinned: bool = False
    _remembered: tuple[int, dict[str, Any]] | None = None  # the version and facts about its elements, see `_remember`

    # makes NumPy leave `array + tensor` to Tensor's own operator
    __array_priority__ = 1000

    # ---- attributes -------------------------------------------------------------------------------------------

    @property
    def shape(self) -> Size:
        """The extents of the dimensions."""
        return Size(self._data.shape)

    @property
    def ndim(self) -> int:
        """The number of dimensions."""
        return int(self._data.ndim)

    @property
    def dtype(self) -> dtypes.dtype:
        """The element type."""
        return dtypes.of(self._data.dtype)

    @property
    def device(self) -> devices.device:
        """The device that holds the elements; CUDA devices always carry their index."""
        data = self._data
        return data.device if data.__class__ is DeviceArray else devices.cpu

    @property
    def is_cuda(self) -> bool:
        """Whether the elements are on a CUDA device (real or simulated)."""
        return self._data.__class__ is DeviceArray

    @property
    def is_leaf(self) -> bool:
        """Whether the tensor was made by the user and not by a recorded operator."""
        return self._node is None

    @property
    def grad_fn(self) -> GraphNode | None:
        """The node that recorded how the tensor was made, None for a leaf."""
        edge = self._edge()
        return None if edge is self else shown(edge.node if isinstance(edge, autograd.Slot) else edge)

    @property
    def output_nr(self) -> int:
        """Which output of `grad_fn` the tensor is."""
        return self._node.index if isinstance(self._node, autograd.Slot) else 0

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
        """How often the storage was changed in place."""
        return 0 if self._counter is None else self._counter[0]

    def _remember(self, fact: str, value: Any) -> None:
        """Store a fact about the elements on the tensor, until they change.

        A fact belongs to this object and its version: views, copies and pickles do not have it, and a change in place
        drops it. Code that changes elements without counting a version must call `_forget`.
        """
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
        """Drop the stored facts, because the elements have changed or may have."""
        self._remembered = None

    def size(self, dim: int | None = None) -> Any:
        """The shape, or the extent of one dimension."""
        return self.shape if dim is None else self._data.shape[self._checked_dim(dim)]

    def _checked_dim(self, dim: int) -> int:
        rank = max(self.ndim, 1)
        if not -rank <= dim < rank:
            raise RangeError(
                explain(f"Dimension out of range (expected to be in range of [{-rank}, {rank - 1}], but got {dim})")
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
        if data.__class__ is DeviceArray:
            strides = tuple(data.strides)
        else:
            data = self._host_array()
            strides = tuple(step // data.itemsize for step in data.strides)
        return strides if dim is None else strides[self._checked_dim(dim)]

    def is_contiguous(self, *, memory_format: formats.memory_format = formats.contiguous_format) -> bool:
        """Whether the elements lie in memory in row-major order (or that of a memory format) without gaps."""
        data = self._data
        if memory_format is not formats.contiguous_format:
            formats.check("is_contiguous", memory_format)
            return formats.follows(data.shape, self.stride(), memory_format)
        if data.__class__ is DeviceArray:
            return bool(data.is_contiguous())
        return bool(data.is_contiguous() if data.__class__ is PendingArray else data.flags.c_contiguous)

    def is_floating_point(self) -> bool:
        """Whether the dtype is a floating one."""
        return self.dtype.is_floating_point

    def is_complex(self) -> bool:
        """Whether the dtype is a complex one."""
        return self.dtype.is_complex

    def is_signed(self) -> bool:
        """Whether the dtype can hold negative numbers."""
        return self.dtype.is_signed

    def is_pinned(self) -> bool:
        """Whether the elements are in page-locked host memory."""
        return self._pinned

    def get_device(self) -> int:
        """The CUDA ordinal, -1 on the CPU."""
        index = self.device.index
        return -1 if index is None else index

    def data_ptr(self) -> int:
        """The address of the first element in the memory of the tensor's device."""
        data = self._data
        return int(data.data_ptr() if data.__class__ is DeviceArray else self._host_array().ctypes.data)

    def storage_offset(self) -> int:
        """How many elements lie before the first one in the memory that the tensor views."""
        data = self._data
        if data.__class__ is DeviceArray:
            return int(data.offset)
        data = self._host_array()
        base = data
        while isinstance(base.base, ndarray):
            base = base.base
        return int(data.ctypes.data - base.ctypes.data) // max(data.itemsize, 1)

    # ---- gradient fields --------------------------------------------------------------------------------------

    @property
    def requires_grad(self) -> bool:
        """Whether operators on the tensor are recorded so that a gradient can be computed."""
        return self._needs

    @requires_grad.setter
    def requires_grad(self, value: bool) -> None:
        if not isinstance(value, bool):
            raise AutogradError(explain("requires_grad must be a bool", f"got {value!r}"))
        self._require(value, 5)

    def requires_grad_(self, requires_grad: bool = True) -> Tensor:
        """Set `requires_grad` and return the tensor."""
        check_flag("requires_grad_", "requires_grad", requires_grad, 1)
        self._require(requires_grad, 4)
        return self

    def _require(self, value: bool, references: int) -> None:
        if value and self.dtype.category < dtypes.FLOATING:
            raise DtypeError(
                explain(
                    "only Tensors of floating point and complex dtype can require gradients",
                    f"the tensor has dtype {self.dtype}",
                    remedy="convert it with .to(dtype)",
                )
            )
        if not value and self._node is not None:
            raise AutogradError(
                explain(
                    "you can only change requires_grad flags of leaf variables.",
                    remedy="take x.detach() for a tensor that is not part of the graph",
                )
            )
        if self._origin is not None:
            self._own = value
            value = value or self._root()._needs
        elif value and not self._needs and self._counter is not None and sys.getrefcount(self) > references:
            # a view refers to its root: there are more references than those of a caller that has no view
            for other in tape.views_on(self._counter):
                other._needs = other._needs or other._root() is self
        self._needs = value

    @property
    def grad(self) -> Tensor | None:
        """The gradient that `backward` accumulated; for a tensor that is not a leaf None, unless `retain_grad()` was
        called.
        """
        if self._node is not None and self._grad is None and not self._retains:
            warnings.warn(
                "The .grad attribute of a Tensor that is not a leaf Tensor is being accessed. Its .grad "
                "attribute won't be populated during autograd.backward(). Call .retain_grad() on it if you "
                "want it; note that x.to(device) of a leaf is not a leaf.",
                stacklevel=2,
            )
        return self._grad

    @grad.setter
    def grad(self, value: Tensor | None) -> None:
        if value is not None:
            if not isinstance(value, Tensor):
                raise ArgumentError(
                    f"assigned grad expected to be a Tensor or None but got grad of type {value.__class__.__name__}"
                )
            if value.device != self.device:
                raise AutogradError(
                    f"assigned grad has data located on a different device: {value.device}, the tensor "
                    f"is on {self.device}"
                )
            if value.shape != self.shape:
                raise AutogradError(
                    f"assigned grad has data of a different size: {list(value.shape)}, the tensor has "
                    f"{list(self.shape)}"
                )
            if value.dtype is not self.dtype:
                raise AutogradError(
                    f"assigned grad has data of a different type: {value.dtype}, the tensor has {self.dtype}"
                )
        self._grad = value

    @grad.deleter
    def grad(self) -> None:
        self._grad = None

    @property
    def data(self) -> Tensor:
        """The same memory without history; autograd does not notice changes to it."""
        return wrap(self._data)

    @data.setter
    def data(self, value: Tensor) -> None:
        if not isinstance(value, Tensor):
            raise ArgumentError(f"Variable data has to be a tensor, but got {value.__class__.__name__}")
        if self._needs and value.dtype.category < dtypes.FLOATING:
            raise DtypeError("data set to a tensor that requires gradients must be floating point or complex dtype")
        self._data = value._data
        self._forget()

    def backward(
        self,
        gradient: Tensor | None = None,
        retain_graph: bool | None = None,
        create_graph: bool = False,
        inputs: Any = None,
    ) -> None:
        """Add the gradient of the tensor to the `.grad` of the leaves that it was computed from."""
        autograd.backward(self, gradient, retain_graph, create_graph, inputs)

    def detach(self) -> Tensor:
        """The same memory without history; autograd notices in-place changes of either tensor."""
        other = wrap(self._data)
        if self._counter is None:
            self._counter = [0]
        other._counter = self._counter
        other._pinned = self._pinned
        return other

    def detach_(self) -> Tensor:
        """Drop the tensor's own history."""
        if self._origin is not None:
            raise AutogradError("Can't detach views in-place. Use detach() instead.")
        self._node, self._needs = None, False
        return self

    def register_hook(self, hook: Callable[[Tensor], Tensor | None]) -> autograd.Handle:
        """Call `hook(gradient)` with the tensor's gradient; a tensor that it returns replaces the gradient."""
        if not self._needs:
            raise AutogradError(explain("cannot register a hook on a tensor that doesn't require gradient"))
        edge = self._edge()
        if edge is self:
            if self._hooks is None:
                self._hooks = []
            hooks = self._hooks
        else:
            node = edge.node if isinstance(edge, autograd.Slot) else edge
            if node.hooks is None:
                node.hooks = {}
            hooks = node.hooks.setdefault(self.output_nr, [])
        hooks.append(hook)
        return autograd.Handle(hooks, hook)

    def register_post_accumulate_grad_hook(self, hook: Callable[[Tensor], None]) -> autograd.Handle:
        """Call `hook(tensor)` after a backward pass has added to the leaf's `.grad`."""
        if self._node is not None or not self._needs:
            raise AutogradError("post accumulate grad hooks cannot be registered on non-leaf tensors")
        if self._post_hooks is None:
            self._post_hooks = []
        self._post_hooks.append(hook)
        tape.leaves_are_watched = True
        return autograd.Handle(self._post_hooks, hook)

    def retain_grad(self) -> None:
        """Keep the gradient of a tensor that is not a leaf in `.grad`."""
        if not self._needs:
            raise AutogradError("can't retain_grad on Tensor that has requires_grad=False")
        if self._node is None or self._retains:
            return
        self._retains = True
        self.register_hook(self._keep_gradient)

    def _keep_gradient(self, gradient: Tensor) -> None:
        self._grad = gradient if self._grad is None else self._grad + gradient

    @property
    def retains_grad(self) -> bool:
        """Whether `retain_grad()` was called on a tensor that is not a leaf."""
        return self._retains

    def _root(self) -> Tensor:
        """The tensor that this one is a view of, not a view itself; or this one."""
        root = self
        while root._origin is not None:
            root = root._origin[0]
        return root

    def _edge(self) -> Any:
        """The edge for the tensor's gradient: its node, a `Slot` if that has several outputs, or the leaf itself."""
        if self._origin is not None:
            self._refresh(self._origin)
        return self._node or self

    def _refresh(self, origin: tuple[Tensor, Any, tuple[Any, ...], int]) -> None:
        """Make a new node for a view whose memory has been changed in place since its node was made."""
        parent, view, arguments, stamp = origin
        version = self._version
        if version in (stamp, ~stamp):
            return
        needed = self._root()._needs
        if stamp < 0 and needed:
            raise AutogradError(tape.unrecorded_view("its base or another view of its base has been modified inplace"))
        self._origin = (parent, view, arguments, version)
        if parent._origin is not None:
            parent._refresh(parent._origin)
        if not needed:
            # of a leaf that is a view itself: PyTorch passes no gradient on after a change
            self._node = None if self._node is None else tape.record(tape.NOWHERE, ())
        elif parent._needs:
            with autograd.enable_grad():
                again = view(parent, *arguments)
            self._node, self._needs = again._node, again._needs

    def __hash__(self) -> int:
        return id(self)

    def __format__(self, spec: str) -> str:
        # as in PyTorch a Parameter, like every other subclass, prints as a tensor
        return format(self.item(), spec) if self.ndim == 0 and type(self) is Tensor else object.__format__(self, spec)

    def __repr__(self) -> str:
        from .printing import format_tensor

        return format_tensor(self)

    def __reduce_ex__(self, protocol: Any) -> tuple[Any, ...]:
        return _rebuild, (self.__class__, self._to_host(), str(self.device), self._needs)

    def __deepcopy__(self, memo: dict[int, Any]) -> Tensor:
        if self._node is not None:
            raise AutogradError(
                explain(
                    "Only Tensors created explicitly by the user (graph leaves) support the deepcopy "
                    "protocol at the moment.",
                    remedy="copy x.detach().clone()",
                )
            )
        data = self._data if self.is_cuda else self._host_array()
        copied = memo[id(self)] = blank(self.__class__, copy_with_storage(data, memo))
        copied._needs, copied._counter = self._needs, deepcopy(self._counter, memo)
        kept = {name: value for name, value in self.__dict__.items() if name == "_grad" or name not in Tensor.__dict__}
        copied.__dict__.update(deepcopy(kept, memo))
        return copied


methods_of(Tensor)


def wrap(data: Any) -> Tensor:
    """A tensor over an array (`ndarray`, `DeviceArray` or `PendingArray`), which is not copied."""
    tensor: Tensor = _new(Tensor)
    tensor._data = data
    tensor._needs = False
    tensor._node = tensor._counter = tensor._origin = None
    return tensor


leaves.wrap = wrap


def blank(kind: type[Tensor], data: Any) -> Any:
    """Like `wrap`, for a subclass of Tensor."""
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


@public(functional=False)
def is_tensor(obj: Any) -> bool:
    """Whether `obj` is a Tensor."""
    return isinstance(obj, Tensor)
