"""Copies to a device straight from the user's pinned memory, while the host goes on.

A later change of `x` must not affect the result of `x.to("cuda", non_blocking=True)`. Pinned memory that no other
object references is therefore read in place, and `x` holds a `PendingArray` until its elements are next used, which
waits for the copy. Any other memory is first copied to pinned memory of our own (`memory.copies.from_host`), which
takes the host 100 us per MiB.
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


def can_be_sent(x: Any) -> bool:
    """True if the memory of the tensor `x` is pinned, large enough for this to pay, and referenced by no other object:
    no view, no NumPy array, no other tensor.

    Every array over a pinned block has the block's first array as its base, so reference counts show other users.
    """
    data = x._data
    if data.__class__ is PendingArray:
        return data.is_being_sent  # other tensors on it share the `PendingArray`, and so wait for this copy too
    large = data.__class__ is np.ndarray and data.nbytes > DIRECT and data.flags.c_contiguous
    del data
    return large and is_pinned(x._data) and _references(x) == _alone()


def _references(x: Any) -> tuple[int, int, int]:
    return getrefcount(x._data), getrefcount(x._data.base), getrefcount(x._data.base.base)


@cache
def _alone() -> tuple[int, int, int]:
    """The reference counts for pinned memory of a single tensor, measured: they differ between Python's versions."""
    memory = np.empty(1, np.uint8)
    return _references(SimpleNamespace(_data=PinnedBlock(_Nowhere(), memory).array((1,), memory.dtype)))  # type: ignore[arg-type]


class _Nowhere:
    """A stand-in for the pool of a block that did not come from one."""

    def give(self, memory: np.ndarray) -> None:
        """Drop the memory."""


def send(target: DeviceArray, x: Any) -> bool:
    """Copy to a contiguous device array from a tensor of its shape and dtype for which `can_be_sent` is true.

    Does nothing and returns False while the current stream is captured.
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
