"""The host result of a copy from a device that may still be under way."""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from .drivers import ledger
from .errors import ArgumentError

if TYPE_CHECKING:
    from .drivers import Driver

__all__ = ["PendingArray"]


class PendingArray:
    """The host result of a device-to-host copy that may still be under way; nothing in it may be read before `wait`."""

    __slots__ = ("_driver", "_mark", "_raw", "dtype", "shape")

    def __init__(self, raw: np.ndarray, driver: Driver, mark: Any) -> None:
        self._raw = raw
        self._driver = driver
        self._mark = mark
        self.shape = raw.shape
        self.dtype = raw.dtype

    @property
    def ndim(self) -> int:
        """How many dimensions there are."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """How many elements there are."""
        return prod(self.shape)

    @property
    def nbytes(self) -> int:
        """Bytes of all elements."""
        return prod(self.shape) * self.dtype.itemsize

    def done(self) -> bool:
        """Whether `wait` would return at once."""
        return self._mark is None or self._driver.mark_done(self._mark)

    def wait(self) -> np.ndarray:
        """The finished array, contiguous; the host waits for this copy and for nothing else."""
        if self._mark is not None:
            ledger.note("sync")
            self._driver.mark_synchronize(self._mark)
            self._mark = None
            self._raw = np.asarray(self._raw, order="C")
        return self._raw

    def __array__(self, *_: object, **__: object) -> np.ndarray:
        raise ArgumentError("a copy that is still under way cannot become a NumPy array: wait() for it first")
