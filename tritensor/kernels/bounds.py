"""Bounds of the elements of index tensors on a device that are known without reading them, so that no host waits.

They are known of integers that come from the host, that count, or that were drawn or found within bounds, and of views
of these; they are facts about one version of a tensor (`Tensor._remember`).
"""

from __future__ import annotations

from typing import Any, TypeVar

import numpy as np

from ..memory.array import DeviceArray
from ..tensor import Tensor

__all__ = ["Bounds", "alike", "bounds_at_host", "bounds_of", "places_along", "within"]

Bounds = tuple[int, int]
T = TypeVar("T", bound=Tensor)
# The host reads this many in 0.4 ms, which is half of what it takes to copy them.
_MOST = 1 << 20


def within(x: T, bounds: Bounds | None) -> T:
    """`x`, of which is noted that no element is outside of the bounds; nothing is known if they are None."""
    data = x._data
    # a replay of a graph may write others into what was made in its capture
    if bounds is not None and data.__class__ is DeviceArray and not data.buffer.driver.captures:
        x._remember("within", bounds)
    return x


def bounds_of(x: Tensor) -> Bounds | None:
    """Bounds that are known of a tensor on a device, its own or of what it is a view of. There may be closer ones."""
    view: Any = x
    while getattr(view._data, "buffer", None) is x._data.buffer:
        known: Bounds | None = view._recall("range") or view._recall("within")
        if known is not None or view._origin is None or view._origin[1].kind == "as_strided":  # which may leave it
            return known
        view = view._origin[0]
    return None


def places_along(x: Tensor, dim: int | None) -> Bounds:
    """Those of places along a dimension; of places among all elements for None."""
    return 0, (x._data.size if dim is None or not x.ndim else x._data.shape[dim]) - 1


def alike(copy: T, x: Tensor) -> T:
    """`copy`, of which is known what is known of `x`: it has its elements."""
    data = x._data
    return within(copy, bounds_of(x)) if data.__class__ is DeviceArray and data.dtype.kind == "i" else copy


def bounds_at_host(x: Any, kind: np.dtype) -> Bounds | None:
    """Those of an array or tensor whose elements are copied to a device as elements of a dtype, if that may index.

    Indices are seldom of less than 32 bits, and pictures always.
    """
    data = getattr(x, "_data", x)
    if kind.kind != "i" or kind.itemsize < 4:
        return None
    if data.__class__ is DeviceArray:
        return bounds_of(x) if np.can_cast(data.dtype, kind) else None
    if type(data) is not np.ndarray or not 0 < data.size <= _MOST or not np.can_cast(data.dtype, kind):
        return None
    return int(data.min()), int(data.max())
