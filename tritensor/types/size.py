"""The Size: a shape, as tensors show it."""

from __future__ import annotations

from operator import index
from typing import Any, SupportsIndex, overload

from ..errors import ArgumentError
from ..ground.public import public

__all__ = ["Size"]


@public(functional=False)
class Size(tuple[int, ...]):
    """A shape; a tuple of integers that prints as PyTorch's does and counts elements. Joined with a tuple it stays one.

    >>> Size((2, 3)), Size((2, 3)).numel(), Size((2, 3)) + (4,)
    (tritensor.Size([2, 3]), 6, tritensor.Size([2, 3, 4]))
    """

    __module__ = "tritensor"

    # There is no constructor that looks at the entries: `x.shape` makes a Size each time, which takes 0.2 us without.
    __slots__ = ()

    def numel(self) -> int:
        """The number of elements of a tensor of this shape."""
        total = 1
        for extent in self:
            total *= extent
        return total

    def __repr__(self) -> str:
        return f"tritensor.Size({list(self)})"

    @overload
    def __getitem__(self, index: SupportsIndex) -> int: ...
    @overload
    def __getitem__(self, index: slice) -> Size: ...
    def __getitem__(self, index: Any) -> Any:
        picked = tuple.__getitem__(self, index)
        return Size(picked) if isinstance(index, slice) else picked

    def __add__(self, other: Any) -> Any:
        if isinstance(other, tuple):
            return _checked(tuple.__add__(self, other))
        if hasattr(other, "__array__"):  # `size + array` is an array
            return NotImplemented
        raise ArgumentError(f"can only concatenate tuple (not {type(other).__name__}) to torch.Size")

    def __radd__(self, other: Any) -> Any:
        return _checked(tuple.__add__(other, self)) if isinstance(other, tuple) else NotImplemented

    def __mul__(self, count: Any) -> Any:
        try:
            return Size(tuple.__mul__(self, count))
        except TypeError:
            if hasattr(count, "__array__"):
                return NotImplemented
            name = type(count).__name__
            raise ArgumentError(f"can't multiply sequence by non-int of type '{name}'") from None

    __rmul__ = __mul__


def _checked(sizes: tuple[Any, ...]) -> Size:
    for position, extent in enumerate(sizes):
        if not hasattr(extent, "__index__"):
            name = type(extent).__name__
            raise ArgumentError(f"torch.Size() takes an iterable of 'int' (item {position} is '{name}')")
    return Size(map(index, sizes))
