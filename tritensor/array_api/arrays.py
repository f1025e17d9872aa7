"""The class of the arrays that the namespace makes, and which results are of it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ..ground.overriding import unasked
from ..tensors import Tensor


class Array(Tensor):
    """A tensor whose operators promote, and treat infinite numbers, as the array API standard says.

    In `x + y` of PyTorch's tensors, a `y` without dimensions does not count beside an `x` with some; here it does.
    """

    __slots__ = ()
    __module__ = "tritensor.array_api"
    __torch_function__ = unasked


def kept(found: Any, args: Iterable[Any]) -> Any:
    """The results of a function of `args`, as arrays where an argument is one, or none is a tensor."""
    tensors = []
    for value in args:
        if isinstance(value, Tensor):
            tensors.append(value)
        elif isinstance(value, (list, tuple)):
            tensors += [each for each in value if isinstance(each, Tensor)]
    if not tensors or Array in [value.__class__ for value in tensors]:
        for value in (found,) if isinstance(found, Tensor) else found if isinstance(found, (list, tuple)) else ():
            if value.__class__ is Tensor and not any(value is each for each in tensors):
                value.__class__ = Array
    return found


def _stay(name: str) -> None:
    """Let what a member of Tensor gives be arrays, of arrays."""
    member: Any = getattr(Tensor, name)
    compute: Any = member.fget if isinstance(member, property) else member

    def call(self: Any, *args: Any, **named: Any) -> Any:
        return kept(compute(self, *args, **named), (self,))

    call.__wrapped__ = compute  # type: ignore[attr-defined]  # its signature
    setattr(Array, name, property(call) if isinstance(member, property) else call)


for _name in ("__abs__", "__getitem__", "__invert__", "__neg__", "__pos__", "T", "mT", "to_device"):
    _stay(_name)
