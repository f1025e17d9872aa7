"""The memory that an array views, as a whole."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..errors import ShapeError
from ..host.copying import copied
from ..types import layout
from .array import DeviceArray, out_of_bounds
from .copies import copy_across


def owner_of(data: np.ndarray) -> np.ndarray:
    """The outermost array of the memory that `data` views."""
    while True:
        base = data.base
        if base is not None and not isinstance(base, np.ndarray):
            base = getattr(base, "base", None)  # as_strided puts an object without elements in between
        if not isinstance(base, np.ndarray):
            return data
        data = base


def flat_bytes(owner: np.ndarray) -> np.ndarray | None:
    """All bytes of an array in the order of their addresses, or None if it has gaps."""
    order = np.argsort([-step for step in owner.strides], kind="stable")
    dense = owner.transpose(order)
    return dense.reshape(-1).view(np.uint8) if dense.flags.c_contiguous else None


def all_bytes(buffer: Any) -> DeviceArray:
    """All bytes of a buffer on a device."""
    return DeviceArray.over(buffer, (buffer.nbytes,), (1,), 0, np.dtype(np.uint8))


def strided_in_memory(data: np.ndarray, shape: tuple[int, ...], strides: tuple[int, ...], offset: int) -> np.ndarray:
    """A view of the memory that `data` views, `offset` elements after its first one; strides count elements.

    Raises:
        ShapeError: an element would lie outside of the memory.
    """
    size = data.itemsize
    steps = [step * size for step in strides]
    if data.flags.c_contiguous and offset >= 0 and data.size and 0 not in shape:
        try:
            return np.ndarray(shape, data.dtype, data, offset * size, steps)
        except (TypeError, ValueError):
            pass  # not all of it is within `data`
    owner = owner_of(data)
    memory = owner if owner.flags.c_contiguous else flat_bytes(owner)
    if memory is None:
        raise ShapeError(f"as_strided: the memory has gaps: strides {owner.strides} of {owner.shape}")
    start = data.__array_interface__["data"][0] - memory.__array_interface__["data"][0] + offset * size
    low, high = layout.span(shape, strides, start // size)
    if low < 0 or high * size > memory.nbytes:
        raise out_of_bounds(shape, strides, start // size, size, memory.nbytes)
    if 0 in shape:
        return np.empty(shape, data.dtype)
    return np.ndarray(shape, data.dtype, memory, start, steps)


def copy_with_storage(data: Any, memo: dict[Any, Any]) -> Any:
    """An array with the same offset and strides in a copy of all the memory that `data` views.

    Args:
        data: an array on the host or on a device.
        memo: `copy.deepcopy`'s. Arrays that share memory and are copied with one memo share its copy.
    """
    if data.__class__ is DeviceArray:
        buffer = _copy_once(data.buffer, lambda old: copy_across(all_bytes(old), old.device).buffer, memo)
        return DeviceArray.over(buffer, data.shape, data.strides, data.offset, data.dtype)
    owner = owner_of(data)
    old = flat_bytes(owner)
    if old is None or not data.size:
        return copied(data, "K")
    copy = _copy_once(owner, lambda old: copied(np.asarray(old), "K"), memo)
    if data is owner:
        return copy
    return np.ndarray(data.shape, data.dtype, flat_bytes(copy), data.ctypes.data - old.ctypes.data, data.strides)


def _copy_once(owner: Any, copy: Callable[[Any], Any], memo: dict[Any, Any]) -> Any:
    """The copy of an array's memory, kept with the owner: another one would get its id if it were deleted."""
    key = "storage", id(owner)
    if key not in memo:
        memo[key] = copy(owner), owner
    return memo[key][0]
