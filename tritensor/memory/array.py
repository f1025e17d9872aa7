"""Arrays in device memory, and their forms.

A CPU tensor holds a `numpy.ndarray`, a CUDA tensor a `DeviceArray`: a buffer, an offset in it, and a form (shape,
strides, dtype).
"""

from __future__ import annotations

from math import prod
from sys import getrefcount
from typing import TYPE_CHECKING, Any

import numpy as np

from ..drivers.allocator import round_size
from ..errors import ArgumentError, ShapeError
from ..types import devices, layout

if TYPE_CHECKING:
    from ..types.devices import device as Device


class DeviceArray:
    """An array in device memory, with `numpy.ndarray`'s names for its views; strides and offset count elements.

    Views share the buffer and cost no copy. The constructor checks nothing: it is on the path of every operator.

    Args:
        buffer: the memory, a `Buffer`.
        form: shape, strides, dtype, device and alignment.
        offset: of the first element, from the buffer's start.
    """

    __slots__ = ("buffer", "form", "offset")

    buffer: Any  # not annotated as Buffer, because `memory.buffer` imports this module
    form: Form

    def __init__(self, buffer: Any, form: Form, offset: int = 0) -> None:
        self.buffer = buffer
        self.form = form
        self.offset = offset

    @classmethod
    def over(
        cls, buffer: Any, shape: tuple[int, ...], strides: tuple[int, ...], offset: int, dtype: np.dtype[Any]
    ) -> DeviceArray:
        """An array over a buffer, from its fields; nothing is checked."""
        past = (buffer.address + offset * dtype.itemsize) & 15
        return cls(buffer, form_of(shape, strides, dtype, buffer.device, past), offset)

    @property
    def shape(self) -> tuple[int, ...]:
        """The extents of the dimensions."""
        return self.form.shape

    @property
    def strides(self) -> tuple[int, ...]:
        """The distances in memory between neighbours along each dimension."""
        return self.form.strides

    @property
    def dtype(self) -> np.dtype[Any]:
        """The element type."""
        return self.form.dtype

    @property
    def device(self) -> Device:
        """The device that holds the memory."""
        return self.form.device

    @property
    def ndim(self) -> int:
        """The number of dimensions."""
        return len(self.form.shape)

    @property
    def size(self) -> int:
        """The number of elements."""
        return prod(self.form.shape)

    @property
    def itemsize(self) -> int:
        """Bytes of one element."""
        return self.form.dtype.itemsize

    @property
    def nbytes(self) -> int:
        """Bytes of all elements, repeated ones counted each time."""
        return self.form.nbytes

    def data_ptr(self) -> int:
        """The address of the first element."""
        return self.buffer.address + self.offset * self.form.dtype.itemsize

    def is_contiguous(self) -> bool:
        """True if the elements lie in row-major order without gaps."""
        return layout.is_contiguous(self.form.shape, self.form.strides)

    def transpose(self, axes: tuple[int, ...]) -> DeviceArray:
        """The dimensions in another order; ValueError, as of NumPy's arrays, where they are not all of them."""
        form = self.form
        found = form.views.get(("transpose", axes))
        if found is None:
            if len(axes) != len(form.shape):
                raise ValueError("axes don't match array")
            found = form.view(("transpose", axes), *layout.permute(form.shape, form.strides, axes))
        return DeviceArray(self.buffer, found, self.offset)

    def reshape(self, shape: tuple[int, ...]) -> DeviceArray:
        """Another shape of the same elements in the same order; one size may be -1.

        Raises:
            layout.NotViewable: a copy is needed. ShapeError: another number of elements.
        """
        form = self.form
        found = form.views.get(("reshape", shape))
        if found is None:
            found = form.view(("reshape", shape), *layout.reshaped(form.shape, form.strides, shape))
        return DeviceArray(self.buffer, found, self.offset)

    def __getitem__(self, key: Any) -> DeviceArray:
        form = self.form
        return DeviceArray.over(self.buffer, *layout.index(form.shape, form.strides, self.offset, key), form.dtype)

    def broadcast_to(self, shape: tuple[int, ...]) -> DeviceArray:
        """The array repeated along new dimensions and those of size 1."""
        form = self.form
        found = form.views.get(("broadcast", shape))
        if found is None:
            strides = layout.broadcast_strides(form.shape, form.strides, shape)
            found = form.view(("broadcast", shape), tuple(shape), strides)
        return DeviceArray(self.buffer, found, self.offset)

    def as_strided(self, shape: tuple[int, ...], strides: tuple[int, ...], offset: int) -> DeviceArray:
        """Any shape and strides over the buffer; the offset counts from the buffer's start.

        Raises:
            ShapeError: an element would lie outside of the buffer.
        """
        low, high = layout.span(shape, strides, offset)
        if low < 0 or high * self.dtype.itemsize > self.buffer.nbytes:
            raise out_of_bounds(shape, strides, offset, self.dtype.itemsize, self.buffer.nbytes)
        return DeviceArray.over(self.buffer, shape, strides, offset, self.dtype)

    def __array__(self, *_: object, **__: object) -> np.ndarray:
        raise ArgumentError(
            f"can't convert {self.device} device type tensor to numpy. "
            "Use Tensor.cpu() to copy the tensor to host memory first."
        )

    def __len__(self) -> int:
        return self.form.shape[0]

    def __repr__(self) -> str:
        return f"<DeviceArray {self.dtype.name}{list(self.shape)} strides {list(self.strides)} on {self.device}>"


def out_of_bounds(
    shape: tuple[int, ...], strides: tuple[int, ...], offset: int, itemsize: int, nbytes: int
) -> ShapeError:
    """The error for a view beyond its memory."""
    return ShapeError(
        f"setStorage: sizes {list(shape)}, strides {list(strides)}, storage offset {offset}, and itemsize {itemsize} "
        f"requiring a storage size of {layout.span(shape, strides, offset)[1] * itemsize} are out of bounds for "
        f"storage of size {nbytes}"
    )


class Form:
    """Shape, strides, dtype, device and alignment of an array: all that a launch depends on, except its address.

    Arrays that agree in all of these share one form, so forms are compared by identity and are cheap keys.

    Attributes:
        past: bytes from a multiple of 16 to the first element.
        block_size: bytes of the block that the allocator takes for a new array of this form.
        views: the forms of views without an offset, by kind and arguments.
    """

    __slots__ = ("block_size", "device", "dtype", "nbytes", "past", "shape", "strides", "views")

    def __init__(
        self, shape: tuple[int, ...], strides: tuple[int, ...], dtype: np.dtype[Any], device: Device, past: int
    ) -> None:
        self.shape = shape
        self.strides = strides
        self.dtype = dtype
        self.device = device
        self.past = past
        self.nbytes = prod(shape) * dtype.itemsize
        self.block_size = round_size(self.nbytes)
        self.views: dict[tuple[str, tuple[int, ...]], Form] = {}

    def view(self, key: tuple[str, tuple[int, ...]], shape: tuple[int, ...], strides: tuple[int, ...]) -> Form:
        """The form of a view from the same first element, kept under a key; layouts take 1 to 3 us to compute."""
        if len(self.views) >= _MOST_VIEWS:
            self.views.clear()
        kind, arguments = key  # a `Size` would compare equal to the tuple, and is copied
        form = self.views[kind, tuple(arguments)] = form_of(shape, strides, self.dtype, self.device, self.past)
        return form

    def __repr__(self) -> str:
        aligned = "" if not self.past else ", not aligned"
        return f"<Form {self.dtype.name}{list(self.shape)} strides {list(self.strides)} on {self.device}{aligned}>"


# Forms by their fields, and those of new arrays by (shape, dtype, ordinal). A program whose shapes change at every step
# must not fill memory, so a full table is cleared. Equal arrays may then have different forms, which only costs time.
_forms: dict[tuple[Any, ...], Form] = {}
_new_forms: dict[tuple[Any, ...], Form] = {}
_MOST_FORMS, _MOST_VIEWS = 1 << 14, 1 << 8


def form_of(shape: tuple[int, ...], strides: tuple[int, ...], dtype: np.dtype[Any], device: Device, past: int) -> Form:
    """The form with these fields."""
    found = _forms.get((shape, strides, dtype, device.index, past))
    if found is None:
        if len(_forms) >= _MOST_FORMS:
            _forms.clear()
        shape, strides = (
            tuple(shape),
            tuple(strides),
        )  # a `Size` would compare equal and become that of every such array
        key = shape, strides, dtype, device.index, past
        where = devices.meta if device.index is None else devices.cuda(device.index)
        found = _forms.setdefault(key, Form(shape, strides, dtype, where, past))
    return found


def form_of_new(shape: tuple[int, ...], dtype: np.dtype[Any], device: Device) -> Form:
    """The form of a new array: row-major, and aligned as all memory from a driver is."""
    found = _new_forms.get((shape, dtype, device.index))
    if found is None:
        if len(_new_forms) >= _MOST_FORMS:
            _new_forms.clear()
        shape = tuple(shape)
        found = form_of(shape, layout.contiguous_strides(shape), dtype, device, 0)
        _new_forms[shape, dtype, device.index] = found
    return found


def owns_all(data: object, strides: tuple[int, ...] | None = None) -> bool:
    """True if an array covers all of its memory in row-major order, and no other array shares the memory.

    Args:
        strides: of an array on a device, in place of those of the row-major order; without gaps.
    """
    if data.__class__ is DeviceArray:
        if getrefcount(data.buffer) > 2 or data.nbytes != data.buffer.nbytes:
            return False
        return data.is_contiguous() if strides is None else data.strides == strides
    return data.__class__ is np.ndarray and data.base is None
