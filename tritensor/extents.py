"""How many dimensions and elements a tensor may have: as many as NumPy, which computes on the CPU, allows."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from .errors import ArgumentError, ShapeError, explain

__all__ = ["MOST_DIMS", "check_extents", "check_rank"]

MOST_DIMS = 64


def check_rank(rank: int) -> None:
    """Raise unless a tensor may have so many dimensions.

    Raises:
        ShapeError: more than 64. PyTorch has no such limit.
    """
    if rank > MOST_DIMS:
        raise ShapeError(
            explain(
                f"a tensor has at most {MOST_DIMS} dimensions, got {rank}",
                "NumPy, which computes on the CPU, has this limit, and tensors on devices are copied to it",
                remedy="merge dimensions with flatten(), or drop those of size 1 with squeeze()",
            )
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
                explain(
                    f"argument 'size' failed to unpack the object at pos {position + 1} with error \"Overflow when "
                    'unpacking long long"',
                    f"the sizes are {list(shape)}",
                )
            )
    count = prod([size for size in shape if size])
    if count * itemsize >= 1 << 63:
        raise ShapeError(
            explain(
                words or f"Storage size calculation overflowed with sizes={list(shape)}",
                f"a tensor of shape {list(shape)} would have {count:.2g} elements; it has fewer than 2**63 bytes",
            )
        )
