"""Pinned memory that a device reads while the host goes on.

What `x.to("cuda", non_blocking=True)` copies may not change with `x` afterwards. Memory that only `x` has a way to is
read in place, and `x` holds a `PendingArray` until somebody wants to know what is in it, and waits. Any other memory is
copied to pinned memory of our own first (`copies.from_host`), which takes the host 100 us a MiB.
"""

from __future__ import annotations

from functools import cache
from sys import getrefcount
from types import SimpleNamespace
from typing import Any

import numpy as np

from ..drivers import ledger
from ..drivers.allocator import DIRECT, PinnedBlock, is_pinned
from .array import DeviceArray
from .copies import ready
from .pending import PendingArray, PinnedSource

__all__ = ["can_be_sent", "send"]


def can_be_sent(x: Any) -> bool:
    """Whether the memory of the tensor `x` is pinned, large enough for this to pay, and nobody else's: there is no view
    of it, no NumPy array, no other tensor.

    Every array over a block of pinned memory has the block's first array for its base, so references tell.
    """
    data = x._data
    if data.__class__ is PendingArray:
        return data.is_being_sent  # and who shares it waits for whatever leaves by it
    large = data.__class__ is np.ndarray and data.nbytes > DIRECT and data.flags.c_contiguous
    del data
    return large and is_pinned(x._data) and _references(x) == _alone()


def _references(x: Any) -> tuple[int, int, int]:
    return getrefcount(x._data), getrefcount(x._data.base), getrefcount(x._data.base.base)


@cache
def _alone() -> tuple[int, int, int]:
    """The references to pinned memory that one tensor has; how many they are differs between Python's versions."""
    memory = np.empty(1, np.uint8)
    return _references(SimpleNamespace(_data=PinnedBlock(_Nowhere(), memory).array((1,), memory.dtype)))  # type: ignore[arg-type]


class _Nowhere:
    """The pool of memory that is only looked at."""

    def give(self, memory: np.ndarray) -> None:
        """Let it go."""


def send(target: DeviceArray, x: Any) -> bool:
    """Have a contiguous device array read the memory of a tensor of its shape and dtype that `can_be_sent`.

    False where the current stream is being captured, and nothing was done.
    """
    driver, stream = ready(target)
    if id(stream.handle) in driver.captures:
        return False
    target.buffer.record_stream(stream)
    data = x._data
    again = data.__class__ is PendingArray
    raw = data.raw if again else data
    ledger.note("h2d", raw.nbytes, pinned=True)
    driver.copy_h2d(target.data_ptr(), raw.reshape(-1).view(np.uint8), stream.handle)
    mark = driver.mark(stream.handle)
    if again:
        data.also(stream, mark)
    else:
        marks = {stream: mark}
        x._data = PendingArray(raw, driver, marks, PinnedSource(raw.base.base, marks))
    return True
