"""The Size: a shape, as tensors show it; and how many dimensions and elements there may be.

As many as NumPy, which computes on the CPU, allows.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from operator import index
from typing import Any, SupportsIndex, overload

from ..errors import ArgumentError, ShapeError
from ..ground.public import ROOT, public


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
        return f"{ROOT[0]}.Size({list(self)})"

    @overload
    def __getitem__(self, index: SupportsIndex) -> int: ...
    @overload
    def __getitem__(self, index: slice) -> Size: ...
    def __getitem__(self, index: Any) -> Any:
        picked = tuple.__getitem__(self, index)
        return Size(picked) if isinstance(index, slice) else picked

    def __add__(self, other: object) -> Any:
        if isinstance(other, tuple):
            return _checked(tuple.__add__(self, other))
        if hasattr(other, "__array__"):  # `size + array` is an array
            return NotImplemented
        raise ArgumentError(f"can only concatenate tuple (not {type(other).__name__}) to torch.Size")

    def __radd__(self, other: object) -> Any:
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


MOST_DIMS = 64


def check_rank(rank: int) -> None:
    """Raise unless a tensor may have so many dimensions.

    Raises:
        ShapeError: more than 64. PyTorch has no such limit.
    """
    if rank > MOST_DIMS:
        raise ShapeError(
            f"a tensor has at most {MOST_DIMS} dimensions, got {rank}",
            "NumPy, which computes on the CPU, has this limit, and tensors on devices are copied to it",
            remedy="merge dimensions with flatten(), or drop those of size 1 with squeeze()",
        )


def check_extents(shape: Sequence[int], itemsize: int = 16, words: str = "") -> None:
    """Raise unless there can be a tensor of this shape.

    Args:
        itemsize: bytes of an element. That of the largest dtype unless given: no memory has 2**59 elements of any.
        words: the first line for too many elements, where PyTorch does not say that of a new tensor's memory.

    Raises:
        ShapeError: too many dimensions, or 2**63 bytes or more; sizes of 0 do not count. ArgumentError: a size that no
            64-bit integer holds.
    """
    if len(shape) <= 4 and max(shape, default=0) < 4096:
        return  # most calls; a third of the time that what follows takes
    check_rank(len(shape))
    for position, size in enumerate(shape):
        if size >= 1 << 63 and not words:
            raise ArgumentError(
                f"argument 'size' failed to unpack the object at pos {position + 1} with error \"Overflow when "
                'unpacking long long"',
                f"the sizes are {list(shape)}",
            )
    count = prod([size for size in shape if size])
    if count * itemsize >= 1 << 63:
        raise ShapeError(
            words or f"Storage size calculation overflowed with sizes={list(shape)}",
            f"a tensor of shape {list(shape)} would have {count:.2g} elements; it has fewer than 2**63 bytes",
        )
