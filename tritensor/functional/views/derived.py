"""Derived functions: copies of views (permute_copy), changes of shape in place (squeeze_), functions of methods.

Each has the parameters of what it is made of, and its documentation begins there.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable
from typing import Any

from ...autograd.gradients import underived
from ...autograd.mode import recording
from ...autograd.tape import views_on
from ...errors import ArgumentError
from ...ground.arguments import check_tensor
from ...ground.composing import shown_as
from ...ground.public import PACKAGE, method, public, publish
from ...operators.inplace import check_history
from ...operators.outputs import takes_out
from ...tensors import Tensor, blank, wrap
from . import complex_views, diagonals, parts, views
from .view_operators import copy_of, renamed, standing_alone, view_registry


def _derived(name: str, function: Callable[..., Any], documentation: str, first: str = "input") -> Callable[[Any], Any]:
    """A decorator for a function with the parameters of another one, the first of which may have another name."""

    def declare(call: Any) -> Any:
        shown = inspect.signature(function)
        tensor, *rest = shown.parameters.values()
        parameters = [tensor.replace(name=first, annotation="Tensor"), *rest]
        return shown_as(call, name, documentation, shown.replace(parameters=parameters))

    return declare


# ---- copies of views --------------------------------------------------------------------------------------------


def _alias(input: Tensor) -> Tensor:
    return view_registry["alias"](input)


@method()
def as_subclass(self: Tensor, cls: type[Tensor]) -> Tensor:
    """Make a tensor of a subclass of Tensor with the same memory and history; `__init__` is not called.

    >>> import tritensor as torch
    >>> class Kept(torch.Tensor): pass
    >>> torch.tensor([1.0, 2.0]).as_subclass(Kept) * 2
    Kept([2., 4.])

    Raises:
        ArgumentError: the class is no subclass of Tensor.
    """
    if not (isinstance(cls, type) and issubclass(cls, Tensor)):
        words = "Creating a Tensor subclass from a class that does not inherit from Tensor is not possible."
        raise ArgumentError(f"{words} Make sure your class inherits from Tensor.")
    alias = _alias(self)
    made: Tensor = blank(cls, alias._data)
    made._needs, made._node, made._counter, made._origin = alias._needs, alias._node, alias._counter, alias._origin
    return made


def make_subclass(cls: type[Tensor], data: Tensor, require_grad: bool = False) -> Tensor:
    """A leaf on the memory of `data` of a subclass of Tensor, whose `__init__` is not called."""
    detached = Tensor.detach(data)
    made: Tensor = blank(cls, detached._data)
    made._counter = detached._counter
    if detached._pinned:
        made._pinned = True
    made.requires_grad = require_grad
    return made


method("_make_subclass")(staticmethod(make_subclass))


def _copying(name: str, function: Callable[..., Any]) -> None:
    """Declare the function of a view's name with `_copy`."""

    @_derived(name, function, f"The result of `{name.removesuffix('_copy')}` as a copy, which shares no memory.")
    def call(input: Tensor, *args: Any, **named: Any) -> Any:
        check_tensor(name, "input", 1, input)
        found = function(input, *args, **named)
        made = tuple(map(copy_of, found)) if isinstance(found, tuple) else copy_of(found)
        return underived(name, made, input) if name == "detach_copy" else made

    public(functional=False, out=takes_out())(call)


for _name, _function in {
    **{name: getattr(views, name) for name in ("permute", "select", "split", "squeeze", "t", "transpose", "unbind")},
    **{name: getattr(views, name) for name in ("expand", "unsqueeze", "view", "narrow")},
    **{name: getattr(parts, name) for name in ("as_strided", "split_with_sizes", "unfold")},
    "alias": _alias,
    "detach": Tensor.detach,
    "diagonal": diagonals.diagonal,
    "slice": parts.slice_,
    "view_as_complex": complex_views.view_as_complex,
    "view_as_real": complex_views.view_as_real,
}.items():
    _copying(f"{_name}_copy", _function)
method("narrow_copy")(PACKAGE["narrow_copy"])


# ---- pieces that are no views -----------------------------------------------------------------------------------


def _apart(name: str, function: Callable[..., Any], node: str) -> None:
    """Declare a function whose pieces are no views for autograd, so that a change of one in place is not followed."""

    @_derived(
        name,
        function,
        f"`{function.__name__}` into pieces that are no views for autograd: do not change them.",
    )
    def call(input: Tensor, *args: Any, **named: Any) -> Any:
        check_tensor(name, "tensor", 1, input)
        return tuple([standing_alone(piece, node) for piece in function(input, *args, **named)])

    public(functional=False, method=True)(call)


_apart("unsafe_split", views.split, "unsafe_split")
_apart("unsafe_split_with_sizes", parts.split_with_sizes, "unsafe_split_with_sizes")
_apart("unsafe_chunk", views.chunk, "unsafe_split")


# ---- changes of shape in place ----------------------------------------------------------------------------------


def _numbered(name: str) -> str:
    """PyTorch numbers a node made in place after those that are not: TBackward1, SqueezeBackward3."""
    base, _, number = name.partition(".")
    return f"{base}.{int(number or 0) + (3 if base == 'squeeze' else 1)}"


def _changing_shape(name: str, function: Callable[..., Any], is_function: bool = False) -> None:
    """Declare the method that makes a tensor a view of what it was."""

    @_derived(name, function, f"In-place version of `{name.removesuffix('_')}`: the tensor keeps its memory.", "self")
    def call(self: Tensor, *args: Any, **named: Any) -> Tensor:
        check_history(self)
        before = wrap(self._data)
        before._needs, before._node, before._origin = self._needs, self._node, self._origin
        counter = before._counter = self._counter = self._counter or [0]
        is_leaf = self._needs and self._origin is None and self._node is None
        shared = sys.getrefcount(counter) - _OWN > len(self._chain())
        result = renamed(function(before, *args, **named), _numbered)
        viewed = [each for each in views_on(counter) if each._origin[0] is self] if shared and not is_leaf else []
        for each in viewed:
            each._origin = (before, *each._origin[1:])
        self._data = result._data
        counter[0] += 1
        if not is_leaf:
            self._replace_node(result._node if recording.enabled or result._node else before._node)
            self._needs = result._needs
            if (before._origin is not None or viewed) and result._origin is not None:
                stamp = before._origin[3] if before._origin is not None else counter[0] - 1
                if recording.enabled and stamp >= 0:
                    stamp = counter[0]  # else the node is made again at the next use
                self._origin = (*result._origin[:3], stamp)
        return self

    method(function=is_function)(call)


def _own_references() -> int:
    x = wrap(None)
    before = wrap(None)
    counter = before._counter = x._counter = [0]
    return sys.getrefcount(counter)


_OWN = _own_references()  # those of a tensor that nothing views, of its copy, and of the code that counts

for _name in ("squeeze", "swapaxes", "swapdims", "t", "transpose", "unsqueeze"):
    _changing_shape(f"{_name}_", getattr(views, _name))
_changing_shape("as_strided_", parts.as_strided, is_function=True)


# ---- functions of methods ---------------------------------------------------------------------------------------

# Methods of Tensor's own module that PyTorch has as functions, too
_FUNCTIONS = """
    detach_ get_device is_distributed is_inference is_nonzero is_same_size is_signed
    """


def _function_of(name: str, member: Any) -> Any:
    @_derived(name, member, member.__doc__)
    def call(input: Tensor, *args: Any, **named: Any) -> Any:
        check_tensor(name, "input", 1, input)
        return member(input, *args, **named)

    return call


for _name in _FUNCTIONS.split():
    publish(_name, _function_of(_name, getattr(Tensor, _name)), functional=False)
