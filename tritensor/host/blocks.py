"""Blocks of large arrays: parts that fit the level-2 cache, and that the CPU's threads share.

    in_blocks(run, out, x, y)

calls `run(out_block, x_block, y_block)` for blocks that together cover arrays of one shape. How arrays are cut depends
on their shapes and strides alone, so results have the same bits for every number of threads.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any

import numpy as np

from ..types import layout
from .threads import in_pieces

# Elements of a block: gelu of 4 M float32 takes 19.6, 13.7, 9.7, 6.2, 6.4 and 8.4 ms on two threads with blocks of
# 2^15 to 2^20, since threads take the interpreter's lock from each other between two passes; 9 to 11 on one.
_SIZE = 1 << 18

# Elements along each dimension of a block of arrays in different orders, of which one is read across its rows.
_SIDE = 128

# Elements along a dimension from which reading across it counts: fewer rows stay in the cache while they are read.
_MANY = 16


def in_blocks(run: Callable[..., Any], *arrays: np.ndarray, size: int = _SIZE) -> None:
    """Call `run` with a block of each array, for blocks of about `size` elements that cover the arrays.

    The arrays have one shape. Dimensions of a block are in the order of the first array's memory, neighbours that need
    not be apart are merged, and those of size 1 are left out.
    """
    first = arrays[0]
    if all(array.flags.c_contiguous for array in arrays):
        shape: tuple[int, ...] = (first.size,)
        flat = [array.reshape(-1) for array in arrays]
    else:
        order = sorted(range(first.ndim), key=lambda dim: (-abs(first.strides[dim]), -first.shape[dim]))
        turned = [array.transpose(order) for array in arrays]
        shape = layout.collapse(turned[0].shape, *[array.strides for array in turned])[0]
        flat = [array.reshape(shape) for array in turned]
    extents = _extents(shape, flat, size)
    counts = [-(-whole // extent) for whole, extent in zip(shape, extents, strict=True)]

    def piece(start: int, stop: int) -> None:
        for index in range(start, stop):
            key = []
            for extent, count in zip(reversed(extents), reversed(counts), strict=True):
                index, place = divmod(index, count)
                key.append(slice(place * extent, (place + 1) * extent))
            block = tuple(reversed(key))
            run(*[array[block] for array in flat])

    in_pieces(piece, prod(counts), 1)


def is_turned(array: np.ndarray) -> bool:
    """True if neighbours in the last dimension are far apart in memory, and those of another are not."""
    return _nearest(array) != array.ndim - 1


def _nearest(array: np.ndarray) -> int:
    """The dimension whose neighbours are closest in memory; the last one unless another has many elements."""
    last = array.ndim - 1
    if array.ndim < 2 or array.shape[last] < _MANY:
        return last
    strides = array.strides
    best = last
    for dim in range(last):
        if array.shape[dim] >= _MANY and 0 < abs(strides[dim]) < abs(strides[best]):
            best = dim
    return best


def _extents(shape: Sequence[int], arrays: Sequence[np.ndarray], size: int) -> list[int]:
    """The shape of a block: whole inner dimensions and a part of the next, or for arrays in different orders about as
    many elements along the dimensions in which they are contiguous."""
    ndim = len(shape)
    extents = [1] * ndim
    room = size
    inner = sorted({_nearest(array) for array in arrays}, reverse=True) if ndim > 1 else []
    if len(inner) > 1:
        for dim in inner:
            extents[dim] = _share(shape[dim], min(_SIDE, room))
            room //= extents[dim]
        for dim in inner[::-1]:
            more = _share(shape[dim], max(1, room) * extents[dim])
            room = room * extents[dim] // more
            extents[dim] = more
    for dim in range(ndim - 1, -1, -1):
        if extents[dim] == 1 and room > 1:
            extents[dim] = _share(shape[dim], room)
            room //= extents[dim]
            if extents[dim] < shape[dim]:
                break
    return extents


def _share(whole: int, most: int) -> int:
    """A part of at most `most`, such that all parts are about equal."""
    return -(-whole // -(-whole // max(1, most)))
