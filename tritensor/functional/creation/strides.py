"""New tensors with the strides of another tensor, or of a memory format."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ...errors import ArgumentError
from ...memory.array import DeviceArray
from ...memory.lifted import Lifted
from ...memory.pending import PendingArray
from ...operators import lifting
from ...tensors import Tensor
from ...types import formats, layout

PLAIN = frozenset((np.ndarray, DeviceArray))


def new_strides(x: Tensor, call: str, format: Any) -> tuple[int, ...] | None:
    """The strides of a new tensor like `x` in a memory format (None preserves them); None for the row-major order.

    Raises:
        ArgumentError: no memory format. ShapeError: a format of tensors of another rank.
    """
    if (format is None or format is formats.preserve_format) and x.is_contiguous():
        return None
    if isinstance(x._data, Lifted):
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


def made_like(
    call: str, make: Callable[..., Tensor], x: Any, dtype: Any, device: Any, format: Any, **options: Any
) -> Tensor:
    """`make(shape, dtype=, device=, ...)` with the shape of `x`, its dtype and device unless given, in a memory format.

    Raises:
        ArgumentError: `x` is no tensor, or `format` no memory format.
    """
    options.update(options_like(call, x, dtype, device))
    make = getattr(make, "plain", make)
    strides = new_strides(x, call, format)
    if strides is None:
        made = make(x._data.shape, **options)
        return made if x._data.__class__ in PLAIN else lifted_as(x, made)
    made = make(turned(x.shape, strides), **options)
    made._data = restrided(made._data, x._data.shape, strides)
    return made


def lifted_as(x: Tensor, made: Tensor) -> Tensor:
    """A new tensor; inside of a transformation one that results of `x` can be written to."""
    data = x._data
    return lifting.like(made, data) if isinstance(data, Lifted) and not isinstance(made._data, Lifted) else made


def options_like(call: str, x: Any, dtype: Any, device: Any) -> dict[str, Any]:
    """The dtype and the device of a new tensor: those of `x` unless given.

    Raises:
        ArgumentError: `x` is no tensor.
    """
    if not isinstance(x, Tensor):
        raise ArgumentError(f"{call}(): argument 'input' (position 1) must be Tensor, not {type(x).__name__}")
    return {"dtype": x.dtype if dtype is None else dtype, "device": x.device if device is None else device}
