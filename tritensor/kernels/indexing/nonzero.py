"""The places of the elements that are not zero: a result whose size depends on the values."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...memory.buffer import DeviceArray
from ...tensor import Tensor

__all__ = ["nonzero_positions"]


def nonzero_positions(x: Tensor) -> Any:
    """Coordinates of the nonzero elements in row-major order: an int64 array of shape (n, rank) on the same device."""
    data = x._data
    if data.__class__ is DeviceArray:
        from .kernel import device_nonzero

        return device_nonzero(data)
    host = x._host_array()
    if host.ndim == 0:
        return np.empty((int(bool(host)), 0), np.int64)
    return np.argwhere(host)
