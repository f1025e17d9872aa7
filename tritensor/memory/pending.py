"""Host memory with an unfinished copy from or to a device."""

from __future__ import annotations

import sys
from contextlib import nullcontext, suppress
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from ..drivers import ledger
from ..errors import ArgumentError, DeviceError

if TYPE_CHECKING:
    from ..drivers import Stream
    from ..drivers.allocator import PinnedBlock
    from ..drivers.protocol import AbstractDriver


class PinnedSource:
    """Pinned memory that copies to devices read. It is kept until they are done, even after its last user is gone."""

    __slots__ = ("block", "marks")

    def __init__(self, block: PinnedBlock, marks: dict[Stream, Any]) -> None:
        self.block = block
        self.marks = marks

    def __del__(self) -> None:
        if not sys.is_finalizing():
            for mark in self.marks.values():
                self.block.pool.hold_until(self.block, mark, counted=False)


class PendingArray:
    """The host array of copies that may be unfinished. Before `wait`, the target of a copy from a device must not be
    read, and the source of copies to devices must not be written.

    Args:
        raw: the array.
        driver: the driver of the marks.
        marks: for each stream with a copy, the mark behind its last one.
        source: for a source of copies, the object that keeps its memory; None for a target.
    """

    __slots__ = ("_driver", "_has_gaps", "_marks", "dtype", "raw", "shape", "source")

    def __init__(
        self, raw: np.ndarray, driver: AbstractDriver, marks: dict[Stream, Any], source: PinnedSource | None = None
    ) -> None:
        self.raw = raw
        self._driver = driver
        self._marks = marks
        self.source = source
        self.shape = raw.shape
        self.dtype = raw.dtype
        self._has_gaps = not raw.flags.c_contiguous

    @property
    def ndim(self) -> int:
        """The number of dimensions."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """The number of elements."""
        return prod(self.shape)

    @property
    def nbytes(self) -> int:
        """Bytes of all elements."""
        return prod(self.shape) * self.dtype.itemsize

    def is_contiguous(self) -> bool:
        """True if the array that `wait` returns is in row-major order."""
        return self._has_gaps or bool(self.raw.flags.c_contiguous)

    def restrided(self, shape: tuple[int, ...], strides: tuple[int, ...]) -> PendingArray:
        """The same memory (of a contiguous array) in other dimensions; `wait` returns it with these strides."""
        self.raw = np.ndarray(shape, self.dtype, self.raw, 0, strides)
        self.shape = shape
        return self

    def done(self) -> bool:
        """True if `wait` would return at once."""
        return all(self._driver.mark_done(mark) for mark in self._marks.values())

    def also(self, stream: Stream, mark: Any) -> None:
        """Add the mark of another copy that reads the memory."""
        self._marks[stream] = mark

    @property
    def is_being_sent(self) -> bool:
        """True if this is the source of copies that have not been waited for."""
        return self.source is not None and bool(self._marks)

    def wait(self) -> np.ndarray:
        """The array, without gaps, after waiting for its copies (and for nothing else)."""
        if self._marks:
            ledger.note("sync")
            for mark in self._marks.values():
                # after the loss of a device a source is still intact; the error is raised for the copies' targets
                with suppress(DeviceError) if self.source is not None else nullcontext():
                    self._driver.mark_synchronize(mark)
            self._marks.clear()  # `PinnedSource` has the same dictionary
            if self._has_gaps:
                self.raw = np.ascontiguousarray(self.raw)
        return self.raw

    def __array__(self, *_: object, **__: object) -> np.ndarray:
        raise ArgumentError("a copy that is still under way cannot become a NumPy array: wait() for it first")
