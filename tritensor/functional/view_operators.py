"""Views: other shapes and strides over the same memory, and the shape operators made from them.

A view operator is a gradient and a function from an array to a view of it, written once for `numpy.ndarray` and
`DeviceArray`, which have the same view methods. The result refers to its parent, the view operator and its arguments,
for in-place changes (see `tritensor/inplace.py`).
"""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from typing import Any

import numpy as np

from .. import layout
from ..autograd.mode import recording
from ..autograd.names import node_name
from ..autograd.tape import Gradient, Node, record
from ..memory.array import DeviceArray
from ..memory.lifted import Lifted
from ..memory.storage import owner_of
from ..tensor import Tensor, wrap

__all__ = ["View", "standing_alone", "view_registry"]
ndarray = np.ndarray
_new = object.__new__

view_registry: dict[str, View] = {}


class View:
    """A view operator: `take(array, *arguments)` returns the view, `gradient(grad, shape, *arguments)` its gradient."""

    family = "view"
    registered = view_registry

    def __init__(self, take: Callable[..., Any]) -> None:
        self.take = take
        self.name = self.kind = take.__name__.strip("_")
        self.__doc__ = take.__doc__
        self.backward: Callable[..., Any] = lambda grad, shape: grad
        view_registry[self.name] = self

    def gradient(self, function: Callable[..., Any]) -> View:
        """Declare the gradient: `(grad, shape of the input, *arguments)`."""
        self.backward = function
        return self

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
            return self.attach(x, data.shape, self.of_array(data, arguments), arguments)
        return self.attach(x, data.shape, self.take(data, *arguments), arguments)

    def of_array(self, array: Any, arguments: tuple[Any, ...]) -> Any:
        """The view of any array, those inside of a transformation included."""
        return array.viewed(self, arguments) if isinstance(array, Lifted) else self.take(array, *arguments)

    def attach(self, x: Tensor, shape: tuple[int, ...], out: Any, arguments: tuple[Any, ...]) -> Tensor:
        """The tensor over `out`, a view of `x` (of that shape) that was made with these arguments."""
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
                result._node = record(_ViewGradient(self, shape, arguments), (x._edge(),))
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
            return [(_as_strided, (part.shape, part.strides, part.offset - whole.offset))]
        whole, part = root._host_array(), x._host_array()
        if owner_of(whole) is not owner_of(part) or not whole.flags.c_contiguous:
            return chain
        offset = (part.ctypes.data - whole.ctypes.data) // part.itemsize
        return [(_as_strided, (part.shape, _element_strides(part), offset))]

    def __repr__(self) -> str:
        return f"<view operator {self.name}>"


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


def _strided(array: Any, shape: tuple[int, ...], strides: tuple[int, ...]) -> Any:
    """An array with other strides (in elements) from the same first element; `layout` has checked that they fit."""
    if array.__class__ is DeviceArray:
        return array.as_strided(shape, strides, array.offset)
    return np.lib.stride_tricks.as_strided(array, shape, [step * array.itemsize for step in strides])


def standing_alone(x: Tensor, name: str) -> Tensor:
    """A view of a new copy as a tensor of its own, whose node has the name of the operator that was called."""
    made = wrap(x._data)
    made._needs, made._node = x._needs, x._node
    backward = getattr(x._node, "backward", None)
    if isinstance(backward, _ViewGradient):
        backward.view = backward.view.named(name)
    return made


# ---- the view operators ---------------------------------------------------------------------------------------


@View
def _view(array: Any, shape: tuple[int, ...]) -> Any:
    """The same elements, in the same order, in another shape."""
    if array.__class__ is ndarray and array.flags.c_contiguous:
        return array.reshape(shape)
    if array.__class__ is DeviceArray:
        return array.reshape(shape)
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


@_slice.gradient
def _(grad: Tensor, shape: tuple[int, ...], key: tuple[Any, ...]) -> Tensor:
    whole = grad.new_zeros(shape)
    _slice(whole, key).copy_(grad)
    return whole


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
def _as_strided(array: Any, shape: tuple[int, ...], strides: tuple[int, ...], offset: int) -> Any:
    """Elements of a contiguous array, none of them twice."""
    if array.__class__ is DeviceArray:
        return array.as_strided(shape, strides, array.offset + offset)
    return _strided(array.reshape(-1)[offset:], shape, strides)


@_as_strided.gradient
def _(grad: Tensor, size: tuple[int, ...], shape: tuple[int, ...], strides: tuple[int, ...], offset: int) -> Tensor:
    whole = grad.new_zeros(size)
    _as_strided(whole, shape, strides, offset).copy_(grad)
    return whole


def _element_strides(array: np.ndarray) -> tuple[int, ...]:
    return tuple([step // array.itemsize for step in array.strides])
