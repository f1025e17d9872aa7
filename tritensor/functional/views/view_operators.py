"""Views: other shapes and strides over the same memory, and the shape operators made from them.

A view operator is a gradient and a function from an array to a view of it, written once for `numpy.ndarray` and
`DeviceArray`, which have the same view methods. The result refers to its parent, the view operator and its arguments,
for in-place changes (see `tritensor/operators/inplace.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import copy
from typing import Any

import numpy as np

from ...autograd.gradients import called
from ...autograd.mode import recording
from ...autograd.names import node_name
from ...autograd.tape import Gradient, Node, Slot, record
from ...ground.index import Names
from ...host.copying import LARGE
from ...kernels.indexing.joining import cat
from ...memory.array import DeviceArray
from ...memory.deferred import Deferred
from ...memory.lifted import Lifted
from ...memory.storage import owner_of, strided_in_memory
from ...tensors import Tensor, wrap
from ...types import formats, layout
from ..creation import ranges
from ..indexing.quick_indexing import join

ndarray = np.ndarray
_new = object.__new__

view_registry = Names("view")


class View:
    """A view operator: `take(array, *arguments)` returns the view, `gradient(grad, shape, *arguments)` its gradient."""

    family = "view"
    registered = view_registry

    def __init__(self, take: Callable[..., Any]) -> None:
        self.take = take
        self.name = self.kind = take.__name__.strip("_")
        self.__doc__ = take.__doc__
        self.backward: Callable[..., Any] = lambda grad, shape: grad
        view_registry.declare(self.name, self)

    def gradient(self, function: Callable[..., Any]) -> View:
        """Declare the gradient: `(grad, shape of the input, *arguments)`."""
        self.backward = function
        return self

    def elsewhere_zeros(self) -> View:
        """Declare the gradient of a view that has no element twice: the view's, and zeros around it."""

        def gradient(grad: Tensor, shape: tuple[int, ...], *arguments: Any) -> Tensor:
            whole = grad.new_zeros(shape)
            self(whole, *arguments).copy_(grad)
            return whole

        return self.gradient(gradient)

    def named(self, name: str) -> View:
        """The same view operator under another name, which its nodes have."""
        other = copy(self)
        other.name = name
        return other

    def __call__(self, x: Tensor, *arguments: Any) -> Tensor:
        """The view of `x`; the caller has checked the arguments."""
        data = x._data
        if type(data) is not ndarray and type(data) is not DeviceArray:
            if not isinstance(data, Lifted):
                data = x._host_array()
            made = self.attach(x, data.shape, self.of_array(data, arguments), arguments)
            return Deferred.rules.keep(made) if Deferred.used else made
        return self.attach(x, data.shape, self.take(data, *arguments), arguments)

    def of_array(self, array: Any, arguments: tuple[Any, ...]) -> Any:
        """The view of any array, those inside of a transformation included."""
        return array.viewed(self, arguments) if isinstance(array, Lifted) else self.take(array, *arguments)

    def pieces(self, x: Tensor, keys: Sequence[tuple[Any, ...]], dim: int) -> tuple[Tensor, ...]:
        """The views at keys that cut `x` along a dimension: of one node, to which their gradients come together."""
        if not x._needs or not recording.enabled or len(keys) < 2:
            return tuple([self(x, key) for key in keys])
        data = x._data if type(x._data) is DeviceArray or isinstance(x._data, Lifted) else x._host_array()
        node = record(_PiecesGradient(self, data.shape, keys, dim), (x._edge(),), outputs=len(keys))
        return tuple(
            [
                _kept(self.attach(x, data.shape, self.of_array(data, (key,)), (key,), Slot(node, place)))
                for place, key in enumerate(keys)
            ]
        )

    def attach(
        self, x: Tensor, shape: tuple[int, ...], out: Any, arguments: tuple[Any, ...], edge: Slot | Node | None = None
    ) -> Tensor:
        """The tensor over `out`, a view of `x` (of that shape) that was made with these arguments.

        Args:
            edge: its edge, if it has no node of its own.
        """
        result: Tensor = _new(Tensor)
        result._data = out
        counter = x._counter
        if counter is None:
            counter = x._counter = [0]
        result._counter = counter
        version = counter[0]
        result._node = None
        result._needs = x._needs
        if x._needs:
            if recording.enabled:
                if edge is None:
                    edge = record(_ViewGradient(self, shape, arguments), (x._edge() if x._origin else x._node or x,))
                result._node = edge
                if x._origin is not None and x._origin[3] < 0:
                    version = ~version
            else:
                result._needs = x._root()._needs
                version = ~version
        result._origin = (x, self, arguments, version)
        return result

    def way(self, chain: list[tuple[View, tuple[Any, ...]]], root: Tensor, x: Tensor) -> Any:
        """A chain of view operators that leads from `root` to `x` as the given one does, shorter if that is long.

        A tensor that is changed in place through views of views of it has a node for each change, which follows this
        chain: 2,000 views, each changed, took 139 s.
        """
        if len(chain) < 8 or any(view.take is _expand.take for view, _ in chain):
            return chain
        whole: Any
        part: Any
        if isinstance(x._data, Lifted):
            return chain
        if x._data.__class__ is DeviceArray:
            whole, part = root._data, x._data
            if whole.__class__ is not DeviceArray or whole.buffer is not part.buffer or not whole.is_contiguous():
                return chain
            return [(_as_strided, (part.shape, part.strides, part.offset - whole.offset, whole.strides))]
        whole, part = root._host_array(), x._host_array()
        if owner_of(whole) is not owner_of(part) or not whole.flags.c_contiguous:
            return chain
        offset = (part.ctypes.data - whole.ctypes.data) // part.itemsize
        return [(_as_strided, (part.shape, _element_strides(part), offset, _element_strides(whole)))]

    def __repr__(self) -> str:
        return f"<view operator {self.name}>"


def _kept(x: Tensor) -> Tensor:
    return Deferred.rules.keep(x) if Deferred.used else x


class _ViewGradient(Gradient):
    __slots__ = ("arguments", "shape", "view")

    def __init__(self, view: View, shape: tuple[int, ...], arguments: tuple[Any, ...]) -> None:
        self.view, self.shape, self.arguments = view, shape, arguments

    def name_of(self, node: Node) -> str:
        if self.view is _slice:
            return _name_of_index(*self.arguments)
        return node_name(self.view.name)

    def run(self, node: Node, gradient: Any) -> tuple[Any, ...]:
        return (self.view.backward(gradient, self.shape, *self.arguments),)


class _PiecesGradient(_ViewGradient):
    """Joins the gradients of all pieces. Of each piece by itself it would be a fill, a copy and a sum."""

    __slots__ = ("dim",)

    def __init__(self, view: View, shape: tuple[int, ...], keys: Sequence[tuple[Any, ...]], dim: int) -> None:
        super().__init__(view, shape, tuple(keys))
        self.dim = dim

    def name_of(self, node: Node) -> str:
        return _name_of_index(self.arguments[0]) if self.view is _slice else node_name(self.view.name)

    def run(self, node: Node, gradient: Any) -> tuple[Any, ...]:
        known = [each for each in gradient if each is not None]
        if len(known) < len(gradient):
            plain = not recording.enabled and not any(isinstance(each._data, Lifted) for each in known)
            whole = known[0].new_zeros(self.shape)
            if plain:
                for key, part in zip(self.arguments, gradient, strict=True):
                    if part is not None:
                        self.view(whole, key).copy_(part)
                return (whole,)
            pairs = zip(self.arguments, gradient, strict=True)
            gradient = [self.view(whole, key) if part is None else part for key, part in pairs]
        bound = gradient[0].ndim < len(self.shape)
        sizes = [*self.shape[: self.dim], 1, *self.shape[self.dim + 1 :]]
        whole = join("CatBackward0", gradient, self.dim, (lambda array: array.reshape(sizes)) if bound else None)
        if whole is None:
            whole = cat(*[part.unsqueeze(self.dim) if bound else part for part in gradient], dim=self.dim)
        return (whole,)


def _strided(array: Any, shape: tuple[int, ...], strides: tuple[int, ...]) -> Any:
    """An array with other strides (in elements) from the same first element; `layout` has checked that they fit."""
    if array.__class__ is DeviceArray:
        return array.as_strided(shape, strides, array.offset)
    if array.flags.c_contiguous and array.size:  # 1 us, where as_strided takes 6
        return ndarray(shape, array.dtype, array, 0, [step * array.itemsize for step in strides])
    if array.itemsize == 1:  # float8_e5m2 describes itself as "<f1", which NumPy does not understand
        return np.lib.stride_tricks.as_strided(array.view(np.uint8), shape, strides).view(array.dtype)
    return np.lib.stride_tricks.as_strided(array, shape, [step * array.itemsize for step in strides])


def standing_alone(x: Tensor, name: str) -> Tensor:
    """A view of a new copy as a tensor of its own, whose node has the name of the operator that was called."""
    made = wrap(x._data)
    made._needs, made._node, made._counter = x._needs, x._node, x._counter
    if Deferred.used:
        Deferred.rules.keep(made)
    return renamed(made, lambda view: name)


def renamed(x: Tensor, name: Callable[[str], str]) -> Tensor:
    """A view whose node has another name, made from the view operator's."""
    backward = getattr(_node_of(x), "backward", None)
    if isinstance(backward, _ViewGradient):
        backward.view = backward.view.named(name(backward.view.name))
    return x


def copy_of(view: Tensor) -> Tensor:
    """A row-major copy of a view, as a function of the view's name with `_copy` makes it."""
    made = view.clone(memory_format=formats.contiguous_format)
    node = _node_of(view)
    backward = getattr(node, "backward", None)
    if isinstance(backward, _ViewGradient) and recording.enabled:
        made = called(f"{backward.name_of(node)}_copy", made)
    return made


def _node_of(x: Tensor) -> Any:
    return x._node.node if isinstance(x._node, Slot) else x._node


# ---- the view operators ---------------------------------------------------------------------------------------


@View
def _view(array: Any, shape: tuple[int, ...]) -> Any:
    """The same elements, in the same order, in another shape."""
    if array.__class__ is DeviceArray or array.flags.c_contiguous:
        return array.reshape(shape)
    if array.size < LARGE:  # 1 us, or 5 less than the strides take; larger ones are not copied to find out
        out = array.reshape(shape)
        if out.base is array or (out.base is not None and out.base is array.base):
            return out
    return _strided(array, shape, layout.reshape_strides(array.shape, _element_strides(array), shape))


@_view.gradient
def _(grad: Tensor, shape: tuple[int, ...], target: tuple[int, ...]) -> Tensor:
    return grad.reshape(shape)


@View
def _permute(array: Any, order: tuple[int, ...]) -> Any:
    """The dimensions in another order."""
    return array.transpose(order)


@_permute.gradient
def _(grad: Tensor, shape: tuple[int, ...], order: tuple[int, ...]) -> Tensor:
    return _permute(grad, layout.invert(order))


_reshape_alias = _view.named("reshape_alias")
_unsafe_view = _view.named("unsafe_view")
_transpose = _permute.named("transpose")
_t = _permute.named("t")
_squeeze, _squeeze_dim, _squeeze_dims = (_view.named(f"squeeze.{number}") for number in range(3))
_unsqueeze = _view.named("unsqueeze")


@View
def _expand(array: Any, shape: tuple[int, ...]) -> Any:
    """Dimensions of size 1 repeated, new ones in front."""
    if array.__class__ is DeviceArray:
        return array.broadcast_to(shape)
    return _strided(array, shape, layout.broadcast_strides(array.shape, _element_strides(array), shape))


@_expand.gradient
def _(grad: Tensor, shape: tuple[int, ...], target: tuple[int, ...]) -> Tensor:
    return grad.sum_to_size(shape)


@View
def _slice(array: Any, key: tuple[Any, ...]) -> Any:
    """Basic indexing: integers, slices, None and Ellipsis."""
    return array[key]


_slice.elsewhere_zeros()
_split, _split_with_sizes, _unbind = map(_slice.named, ("split", "split_with_sizes", "unbind"))


def _name_of_index(key: tuple[Any, ...]) -> str:
    """PyTorch indexes by one part of the key after the other; the result has the node of the last."""
    parts = [part for part in key if part is not Ellipsis and part != slice(None)]
    last = parts[-1] if parts else slice(None)
    return node_name("slice" if isinstance(last, slice) else "unsqueeze" if last is None else "select")


@View
def _alias(array: Any) -> Any:
    """The same view again."""
    return array[...]


@View
def _diagonal(array: Any, offset: int, dim1: int, dim2: int) -> Any:
    """The diagonal of two dimensions (counted from the back, so that a batch may stand in front) as the last one."""
    if array.__class__ is ndarray:
        found = array.diagonal(offset, dim1, dim2)
        found.flags.writeable = array.flags.writeable
        return found
    rows, cols = array.shape[dim1], array.shape[dim2]
    size = max(0, min(rows + min(offset, 0), cols - max(offset, 0)))
    starts = {dim1 + array.ndim: max(0, -offset), dim2 + array.ndim: max(0, offset)}
    corner = array[(*[slice(starts.get(dim, 0) if size else 0, None) for dim in range(array.ndim)], Ellipsis)]
    strides = _element_strides(array)
    rest = [dim for dim in range(array.ndim) if dim not in starts]
    shape = (*[array.shape[dim] for dim in rest], size)
    return _strided(corner, shape, (*[strides[dim] for dim in rest], strides[dim1] + strides[dim2]))


_diagonal.elsewhere_zeros()


@View
def _unfold(array: Any, dim: int, size: int, step: int) -> Any:
    """All windows along a dimension (counted from the back), each `step` after the other, as the last dimension."""
    shape, strides = list(array.shape), list(_element_strides(array))
    shape[dim], strides[dim], stride = (shape[dim] - size) // step + 1, strides[dim] * step, strides[dim]
    return _strided(array, (*shape, size), (*strides, stride))


@_unfold.gradient
def _(grad: Tensor, shape: tuple[int, ...], dim: int, size: int, step: int) -> Tensor:
    windows = ranges.arange(grad._data.shape[dim - 1], device=grad.device) * step
    places = windows.unsqueeze(1) + ranges.arange(size, device=grad.device)
    parts = grad.movedim(-1, dim).flatten(grad.ndim + dim - 1, grad.ndim + dim)
    return grad.new_zeros(shape).index_add(dim, places.flatten(), parts)


@View
def _as_strided(array: Any, shape: tuple[int, ...], strides: tuple[int, ...], offset: int, own: tuple[int, ...]) -> Any:
    """Elements of the memory of an array of strides `own`, from `offset` elements after its first one."""
    if array.__class__ is DeviceArray:
        return array.as_strided(shape, strides, array.offset + offset)
    return strided_in_memory(array, shape, strides, offset)


@_as_strided.gradient
def _(grad: Tensor, size: tuple[int, ...], shape: tuple[int, ...], strides: Any, offset: int, own: Any) -> Tensor:
    """Through the memory: what the view read is added up there, and what several elements share is shared out.

    The formula is as_strided_backward in PyTorch's torch/csrc/autograd/FunctionsManual.cpp.
    """
    (first, last), (low, high) = layout.span(size, own, 0), layout.span(shape, strides, offset)
    dense = layout.is_contiguous(size, own)
    if dense and first <= low and high <= last and not formats.overlaps(shape, strides):
        whole = grad.new_zeros(size)
        _as_strided(whole, shape, strides, offset, own).copy_(grad)
        return whole
    start = min(first, low)
    read, mine = (_places(grad, *each) for each in ((shape, strides, offset - start), (size, own, first - start)))
    memory = grad.new_zeros(max(last, high) - start)
    found = memory.index_add(0, read.flatten(), grad.flatten()).index_select(0, mine.flatten())
    if formats.overlaps(size, own):
        ones = found.new_ones(found.shape)
        found = found / memory.index_add(0, mine.flatten(), ones).index_select(0, mine.flatten())
    return found.reshape(size)


def _places(like: Tensor, shape: tuple[int, ...], strides: tuple[int, ...], offset: int) -> Tensor:
    """The place in memory of each element of a view."""
    places = ranges.arange(1, device=like.device).reshape(()) + offset
    for size, stride in zip(shape, strides, strict=True):
        places = places.unsqueeze(-1) + ranges.arange(size, device=like.device) * stride
    return places


def _element_strides(array: Any) -> tuple[int, ...]:
    if array.__class__ is DeviceArray:
        return array.strides
    return tuple([step // array.itemsize for step in array.strides])
