"""Addresses of elements: merging dimensions on the host, computing offsets in kernels, and divisibility hints."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from ..runtime.source import device_function

if TYPE_CHECKING:
    import triton.language as tl


def collapse_dims(
    shape: Sequence[int], strides_list: Sequence[Sequence[int]]
) -> tuple[tuple[int, ...], tuple[tuple[int, ...], ...]]:
    """Merge neighbouring dimensions that every operand can traverse as one; drop those of size 1.

    Args:
        shape: the result's shape, without a zero in it.
        strides_list: one tuple of strides (in elements, 0 where broadcast) per operand, all of the shape's rank.

    Returns:
        the shape, of rank 1 or more, and the strides per operand.

    >>> collapse_dims((2, 3, 4), [(12, 4, 1), (12, 4, 1)])
    ((24,), ((1,), (1,)))
    >>> collapse_dims((2, 3, 4), [(12, 4, 1), (0, 0, 1)])  # the second is a row, broadcast
    ((6, 4), ((4, 1), (0, 1)))
    """
    kept: list[tuple[int, list[int]]] = []
    for dim, size in enumerate(shape):
        if size == 1:
            continue
        inner = [strides[dim] for strides in strides_list]
        if kept:
            outer_size, outer = kept[-1]
            if all(far == near * size for far, near in zip(outer, inner, strict=True)):
                kept[-1] = (outer_size * size, inner)
                continue
        kept.append((size, inner))
    if not kept:
        kept.append((1, [1] * len(strides_list)))
    return tuple(size for size, _ in kept), tuple(zip(*[strides for _, strides in kept], strict=True))


def unit_of(values: Iterable[int]) -> int:
    """The largest power of two, 16 at most, that divides every value: the UNIT to pass to `in_units`.

    >>> unit_of([1000, 3000]), unit_of([0]), unit_of([1001])
    (8, 16, 1)
    """
    together = 16
    for value in values:
        together |= value
    return together & -together


@device_function
def block_index(BLOCK: tl.constexpr, WIDE: tl.constexpr):
    """The numbers of a program's elements; WIDE: in 64 bits."""
    start = tl.program_id(0)
    if WIDE:
        start = start.to(tl.int64)
    return start * BLOCK + tl.arange(0, BLOCK)


@device_function
def in_units(value, UNIT: tl.constexpr):
    """A multiple of UNIT, written so that the compiler can see it: of a parameter it only knows divisibility by 16.

    Rows of 1000 elements begin at multiples of 8, so they are loaded in vectors of 16 bytes once that is known.
    """
    return value // UNIT * UNIT


@device_function
def offset_of(index, strides, shape, RANK: tl.constexpr, UNIT: tl.constexpr = 1):
    """The offset of element `index` (counted in the result's order) of one operand.

    The outermost dimension uses the remaining quotient without a modulo: the compiler then sees that contiguous
    elements are contiguous, on which 128-bit loads depend. UNIT divides the innermost size and the other dimensions'
    strides, where there are several.
    """
    if RANK == 0:
        offset = index * 0
    elif RANK == 1:
        offset = index * strides[0]
    else:
        rest = index
        offset = tl.zeros_like(index)
        for step in tl.static_range(RANK - 1):
            if step == 0:
                size = in_units(shape[RANK - 1 - step], UNIT)
                offset += rest % size * strides[RANK - 1 - step]
            else:
                size = shape[RANK - 1 - step]
                offset += in_units(rest % size * strides[RANK - 1 - step], UNIT)
            rest = rest // size
        offset += in_units(rest * strides[0], UNIT)
    return offset
