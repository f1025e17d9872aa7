"""The class of the arrays that the namespace makes, and how its functions are declared: by tables of short ones."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from ..arguments import check_tensor
from ..tensor import Tensor

__all__ = ["Array", "declared", "kept", "operator"]


class Array(Tensor):
    """A tensor whose operators promote, and treat infinite numbers, as the array API standard says.

    In `x + y` of PyTorch's tensors, a `y` without dimensions does not count beside an `x` with some; here it does.
    """

    __slots__ = ()
    __module__ = "tritensor.array_api"


_ANNOTATIONS = {
    "x": "Tensor",
    "arrays": "Sequence[Tensor]",
    "axis": "int | tuple[int, ...] | None",
    "axes": "Sequence[int] | None",
    "device": "device | str | None",
    "dtype": "dtype | None",
    "keepdims": "bool",
    "n": "int | None",
    "norm": "str",
    "offset": "int",
    "shape": "int | Sequence[int]",
    "x1": "Tensor | complex",
    "x2": "Tensor | complex",
}


def kept(found: Any, *args: Any) -> Any:
    """The results of a function of `args`, as arrays where an argument is one, or none is a tensor."""
    tensors = [value for each in args for value in (each if isinstance(each, (list, tuple)) else (each,))]
    tensors = [value for value in tensors if isinstance(value, Tensor)]
    if not tensors or any(isinstance(value, Array) for value in tensors):
        for value in found if isinstance(found, (list, tuple)) else (found,):
            if type(value) is Tensor and not any(value is each for each in tensors):
                value.__class__ = Array
    return found


def declared(module: str, functions: dict[str, Callable[..., Any]], texts: str = "") -> dict[str, Any]:
    """The public functions of a module by name, from short ones, and from their documentation: a line `name: text` each."""
    documented = dict(line.split(": ", 1) for line in texts.strip().splitlines())
    return {name: _public(module, name, compute, documented.get(name)) for name, compute in functions.items()}


def _public(module: str, name: str, compute: Callable[..., Any], text: str | None) -> Callable[..., Any]:
    shown = inspect.signature(compute)
    parameters = list(shown.parameters.values())
    of_one = bool(parameters) and parameters[0].name == "x"

    def call(*args: Any, **named: Any) -> Any:
        if of_one and args:
            check_tensor(name, "x", 1, args[0])
        return kept(compute(*args, **named), *args)

    if text is not None:
        described = [each.replace(annotation=_ANNOTATIONS.get(each.name, "Any")) for each in parameters]
        shown = shown.replace(parameters=described, return_annotation="Tensor")
    call.__signature__ = shown  # type: ignore[attr-defined]
    call.__name__ = call.__qualname__ = compute.__name__ = compute.__qualname__ = name
    call.__module__, call.__doc__ = module, text or compute.__doc__
    return call


def operator(name: str, function: Callable[..., Any]) -> None:
    """Let a function compute an operator of arrays, its reflected form and, where a result differs, the in-place one."""
    plain = getattr(Tensor, f"__{name}__")

    def call(self: Any, other: Any) -> Any:
        usual = isinstance(other, (Tensor, bool, int, float, complex))
        return function(self, other) if usual else plain(self, other)

    def reflected(self: Any, other: Any) -> Any:
        usual = isinstance(other, (Tensor, bool, int, float, complex))
        return function(other, self) if usual else getattr(Tensor, f"__r{name}__")(self, other)

    def in_place(self: Any, other: Any) -> Any:
        return self.copy_(function(self, other))

    setattr(Array, f"__{name}__", call)
    if hasattr(Tensor, f"__r{name}__"):
        setattr(Array, f"__r{name}__", reflected)
    if name in ("floordiv", "mod"):
        setattr(Array, f"__i{name}__", in_place)


def _stay(name: str) -> None:
    """Let what a member of Tensor gives be arrays, of arrays."""
    member = getattr(Tensor, name)
    compute = member.fget if isinstance(member, property) else member

    def call(self: Any, *args: Any, **named: Any) -> Any:
        return kept(compute(self, *args, **named), self)

    setattr(Array, name, property(call) if isinstance(member, property) else call)


for _name in "__abs__ __getitem__ __invert__ __neg__ __pos__ T mT to_device".split():
    _stay(_name)
