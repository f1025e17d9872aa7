"""Checks that a tensor that a file describes lies inside its storage."""

from __future__ import annotations

from typing import Any

from .malformed import Malformed

MOST_DIMENSIONS = 64  # as many as NumPy has
LARGEST = 2**63 - 1


def check_geometry(nbytes: int, itemsize: int, offset: Any, size: Any, stride: Any) -> None:
    """Raise `Malformed` unless `size` elements with `stride` from `offset` lie within `nbytes` bytes.

    Python's integers do not overflow, so the check is exact.
    """
    for name, numbers in (("offset", (offset,)), ("size", size), ("stride", stride)):
        if not isinstance(numbers, tuple) or len(numbers) > MOST_DIMENSIONS:
            raise Malformed(f"a tensor's {name} is not a tuple of at most {MOST_DIMENSIONS} integers")
        for number in numbers:
            if type(number) is not int:
                raise Malformed(f"a tensor's {name} is not made of integers", f"it holds a {type(number).__name__}")
            if number < 0 or number > (LARGEST if name == "size" else LARGEST // itemsize):
                raise Malformed(f"a tensor's {name} is negative or too large", f"it holds {hex(number)[:24]}")
    if len(size) != len(stride):
        raise Malformed(f"a tensor has {len(size)} sizes and {len(stride)} strides")
    elements = 1
    for length in size:
        elements *= max(length, 1)  # NumPy counts the other dimensions of an empty array, too
    if elements * itemsize > LARGEST:
        raise Malformed("a tensor has more bytes than can be addressed", f"size {size}")
    last = offset + sum((length - 1) * step for length, step in zip(size, stride))
    if 0 not in size and (last + 1) * itemsize > nbytes:
        raise Malformed(
            "a tensor reaches beyond its storage",
            f"offset {offset}, size {size}, stride {stride} need {(last + 1) * itemsize} bytes of {nbytes}",
        )
