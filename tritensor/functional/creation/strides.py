"""New tensors with the strides of another tensor, or of a memory format."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...memory.array import DeviceArray
from ...memory.lifted import Lifted
from ...memory.pending import PendingArray
from ...tensors import Tensor
from ...types import formats, layout


def new_strides(x: Tensor, call: str, format: Any) -> tuple[int, ...] | None:
    """The strides of a new tensor like `x` in a memory format (None preserves them); None for the row-major order.

    Raises:
        ArgumentError: no memory format. ShapeError: a format of tensors of another rank.
    """
    if (format is None or format is formats.preserve_format) and x.is_contiguous():
        return None
    if isinstance(x._data, Lifted) and x._data.level is not None:
        return None
    shape = tuple(x._data.shape)
    strides = formats.strides_of(call, format, shape, x.stride())
    return None if strides == layout.contiguous_strides(shape) else strides


def turned(shape: tuple[int, ...], strides: tuple[int, ...]) -> tuple[int, ...]:
    """A shape with its dimensions in the order of dense strides, in which they are contiguous."""
    return tuple([shape[dim] for dim in formats.memory_order(shape, strides)])


def restrided(array: Any, shape: tuple[int, ...], strides: tuple[int, ...]) -> Any:
    """An array over the memory of a contiguous one, with another shape and dense strides (in elements)."""
    if array.__class__ is DeviceArray:
        return array.as_strided(shape, strides, array.offset)
    steps = tuple([step * array.dtype.itemsize for step in strides])
    if array.__class__ is PendingArray:
        return array.restrided(shape, steps)
    return np.ndarray(shape, array.dtype, array, 0, steps)
