"""Scratch memory of the CPU, for the intermediate results of a piece of work.

NumPy returns arrays of 128 KB and more to the operating system, and a new one costs a page fault for each 4 KB: a
variance of 4 M elements took 17 ms with new arrays for each piece, and 3 ms with these.
"""

from __future__ import annotations

import threading
from functools import lru_cache
from math import prod
from typing import Any

import numpy as np

# Larger arrays are not kept; those of a piece are smaller, unless its only row is longer.
_MOST = 4 << 20


class _Blocks:
    """Arrays of one thread, handed out one after the other."""

    __slots__ = ("blocks", "used")

    def __init__(self) -> None:
        self.blocks: list[np.ndarray] = []
        self.used = 0

    def __call__(self, shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
        """An array, whose elements are not defined, for as long as the context lasts."""
        size = prod(shape) * dtype.itemsize
        if size > _MOST:
            return np.empty(shape, dtype)
        if self.used == len(self.blocks):
            self.blocks.append(np.empty(0, np.uint8))
        if self.blocks[self.used].nbytes < size:
            memory = np.empty(size + 64, np.uint8)
            start = -memory.ctypes.data % 64  # vectors that do not cross a cache line
            self.blocks[self.used] = memory[start : start + size]
        block = self.blocks[self.used]
        self.used += 1
        return block[:size].view(dtype).reshape(shape)


class _Kept(threading.local):
    blocks: _Blocks | None = None


_kept = _Kept()


class scratch:
    """A context with a function `(shape, dtype) -> array`, whose arrays the thread's next context uses again.

    A context within a context, as in a signal's handler, has arrays of its own.
    """

    __slots__ = ("blocks",)

    def __enter__(self) -> _Blocks:
        blocks = _kept.blocks
        _kept.blocks = None
        self.blocks = blocks or _Blocks()
        self.blocks.used = 0
        return self.blocks

    def __exit__(self, *_: Any) -> None:
        _kept.blocks = self.blocks


@lru_cache(maxsize=256)
def ones(shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
    """An array of ones, to add up rows or columns by a matrix product; it is not to be written."""
    return np.ones(shape, dtype)
