"""Bounds of the elements of index tensors on a device that are known without reading them, so that no host waits.

They are known of integers that come from the host, that count, or that were drawn or found within bounds, and of views
of these; they are facts about one version of a tensor (`Tensor._remember`).
"""

from __future__ import annotations

from sys import _getframe
from typing import Any, TypeVar

import numpy as np

from ..errors import explain
from ..ground.public import FUNCTIONAL, PACKAGE
from ..memory.array import DeviceArray
from ..memory.lifted import Batched
from ..tensors import Tensor, wrap

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
    """The bounds of places along a dimension; of places among all elements for None."""
    return 0, (x._data.size if dim is None or not x.ndim else x._data.shape[dim]) - 1


def alike(copy: T, x: Tensor) -> T:
    """`copy`, of which is known what is known of `x`: it has its elements."""
    data = x._data
    return within(copy, bounds_of(x)) if data.__class__ is DeviceArray and data.dtype.kind == "i" else copy


def bounds_at_host(x: Any, kind: np.dtype) -> Bounds | None:
    """The bounds of an array or tensor whose elements are copied to a device as elements of a dtype, if that may index.

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


def beyond(where: Tensor, low: int, high: int, words: str, **facts: Any) -> str:
    """The message about the first element of `where` that is not from `low` to `high`: operator, position, value.

    Args:
        words: the first line, with the names of facts and `{wrong}` for the element, `{place}` for its number.
    """
    while isinstance(where._data, Batched):
        where = wrap(where._data.array)
    host = where.cpu()._host_array()
    wrong = np.argwhere((host < low) | (host > high))
    place = tuple(wrong[0].tolist())
    facts |= {"wrong": host[place], "place": np.ravel_multi_index(place, host.shape) if place else 0}
    at = list(place) if host.ndim > 1 else facts["place"]
    others = f"; so are {len(wrong) - 1} more" if len(wrong) > 1 else ""
    found = f"element {at} is {host[place]}, " + (f"not from {low} to {high}" if low <= high else "of no elements")
    return explain(words.format(**facts), f"{operator()}: {found}{others}")


def operator() -> str:
    """The innermost public function that is running, for a message."""
    frame = _getframe(1)
    while frame is not None and frame.f_globals.get("__name__", "").startswith("tritensor."):
        name = frame.f_code.co_name.removesuffix("_")
        if name in PACKAGE or name in FUNCTIONAL:
            return name
        frame = frame.f_back  # type: ignore[assignment]
    return "indexing"
