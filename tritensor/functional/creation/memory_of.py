"""Tensors over memory: new memory with strides, the bytes of a buffer, and a tensor that gets another one's memory."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...autograd.mode import recording
from ...errors import AutogradError, DtypeError, ShapeError, require, warn
from ...ground.arguments import check_tensor
from ...ground.public import PACKAGE, method, public
from ...tensors import Tensor, wrap
from ...types import Device, Dtype, formats, layout
from ...types.layout import check_shape, integers
from ..views.parts import as_strided
from .creation import creates, empty, finish, numpy_dtype


@creates()
def empty_strided(
    size: Sequence[int], stride: Sequence[int], *, dtype: Dtype = None, device: Device = None, pin_memory: bool = False
) -> Tensor:
    """An uninitialised tensor with these sizes and strides.

    >>> import tritensor as torch
    >>> torch.empty_strided((2, 3), (1, 2)).stride()
    (1, 2)

    Raises:
        ShapeError: negative sizes or strides, or not as many of both.
    """
    shape, strides = integers("empty_strided", "size", (size,)), integers("empty_strided", "stride", (stride,))
    words = "dimensionality of sizes ({}) must match dimensionality of strides ({})"
    require(len(shape) == len(strides), ShapeError, words, len(shape), len(strides))
    check_shape("empty_strided", "size", (shape,))
    words = "Storage size calculation overflowed with sizes={} and strides={}"
    require(min(strides, default=0) >= 0, ShapeError, words, list(shape), list(strides))
    made = empty(layout.span(shape, strides, 0)[1], dtype=dtype, device=device, pin_memory=pin_memory)
    return wrap(as_strided(made, shape, strides)._data)


@method()
def new_empty_strided(
    self: Tensor, size: Sequence[int], stride: Sequence[int], dtype: Dtype = None, device: Device = None, **options: Any
) -> Tensor:
    """An uninitialised tensor of these sizes and strides, with the tensor's dtype and device; see `empty_strided`."""
    kind, where = self.dtype if dtype is None else dtype, self.device if device is None else device
    return PACKAGE["empty_strided"](size, stride, dtype=kind, device=where, **options)


@creates()
def empty_permuted(
    size: Sequence[int],
    physical_layout: Sequence[int],
    *,
    dtype: Dtype = None,
    device: Device = None,
    pin_memory: bool = False,
) -> Tensor:
    """An uninitialised tensor whose dimensions lie in memory in the order `physical_layout`, the outermost first.

    Raises:
        ShapeError: the order has not each dimension once.
    """
    shape = check_shape("empty_permuted", "size", (size,))
    order = integers("empty_permuted", "dims", (physical_layout,))
    words = "Number of dimensions in size does not match the length of the physical_layout; i.e. len(size) = {} is not "
    words += "equal to len(physical_layout) = {}"
    require(len(shape) == len(order), ShapeError, words, len(shape), len(order))
    for place, dim in enumerate(order):
        if not 0 <= dim < len(shape):
            raise ShapeError(
                f"Dimension out of range (expected to be between 0 and {len(shape) - 1}, but got {dim} at index "
                f"{place})",
                "the dims of physical_layout are not counted from the end" if dim < 0 else "",
                remedy=f"name each dim from 0 to {len(shape) - 1} once",
            )
        require(dim not in order[:place], ShapeError, "Duplicate dim not allowed")
    return empty_strided(shape, formats.packed(shape, order), dtype=dtype, device=device, pin_memory=pin_memory)


@public(functional=False)
def frombuffer(buffer: Any, *, dtype: Dtype, count: int = -1, offset: int = 0, requires_grad: bool = False) -> Tensor:
    """A vector that shares the memory of an object with Python's buffer protocol.

    >>> import tritensor as torch
    >>> torch.frombuffer(bytearray([1, 0, 2, 0]), dtype=torch.int16)
    tensor([1, 2], dtype=tritensor.int16)

    Args:
        count: how many elements; as many as there are if negative.
        offset: how many bytes to leave out.

    Raises:
        ValueError: no buffer, an empty one, or not whole elements in it.
    """
    kind = numpy_dtype(dtype)
    try:
        view = memoryview(buffer)
    except TypeError:
        raise ValueError("object does not implement Python buffer protocol.") from None
    length = view.nbytes
    require(length and count, ValueError, "both buffer length ({}) and count ({}) must not be 0", length, count)
    words = "offset ({} bytes) must be non-negative and no greater than buffer length ({} bytes) minus 1"
    require(0 <= offset < length, ValueError, words, offset, length)
    left, one = length - offset, kind.itemsize
    words = "buffer length ({} bytes) after offset ({} bytes) must be a multiple of element size ({})"
    require(count >= 0 or not left % one, ValueError, words, left, offset, one)
    words = "requested buffer length ({} * {} bytes) after offset ({} bytes) must not be greater than actual buffer "
    require(count * one <= left, ValueError, words + "length ({} bytes)", count, one, offset, length)
    if view.readonly:
        warn("The given buffer is not writable, so the tensor cannot be changed in place.")
    return finish(wrap(np.frombuffer(buffer, kind, count, offset)), requires_grad)


@method(function=True)
def resize_as_(self: Tensor, other: Tensor, *, memory_format: Any = formats.contiguous_format) -> Tensor:
    """Resize in place to the size of another tensor; see `resize_`."""
    check_tensor("resize_as_", "other", 1, other)
    return self.resize_(other.shape, memory_format=memory_format)


@method()
def set_(
    self: Tensor,
    source: Tensor | None = None,
    storage_offset: int = 0,
    size: Sequence[int] | None = None,
    stride: Sequence[int] | None = None,
) -> Tensor:
    """Give the tensor the memory of another one, with that one's shape unless given; without `source` none.

    Raises:
        AutogradError: one of the two requires a gradient. DtypeError: their dtypes differ.
    """
    if source is None:
        source = self.new_empty(0)
    check_tensor("set_", "source", 1, source)
    if source.dtype is not self.dtype:
        raise DtypeError(f"Could not set tensor of type {source.dtype} to a tensor of type {self.dtype}")
    if (self._needs or source._needs) and recording.enabled:
        raise AutogradError(
            "a leaf Variable that requires grad is being used in an in-place operation.",
            "no gradient passes through a change of memory",
            remedy="do it under no_grad(), or on x.detach()",
        )
    if size is not None:
        strides = layout.contiguous_strides(integers("set_", "size", (size,))) if stride is None else stride
        source = as_strided(source, size, strides, storage_offset)
    source._counter = source._counter or [0]
    self._data, self._counter, self._origin = source._data, source._counter, None
    self._count_change()
    self._forget()
    return self
