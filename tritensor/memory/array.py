"""Arrays in device memory, and their forms: the properties of an array that a launch depends on, except its address.

A CPU tensor holds a `numpy.ndarray`, a CUDA tensor a `DeviceArray`: shape, strides, offset and dtype over a buffer.
"""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import layout
from ..drivers.allocator import round_size
from ..errors import ArgumentError, ShapeError, explain

if TYPE_CHECKING:
    from ..devices import device as Device

__all__ = ["DeviceArray", "Form", "form_of", "form_of_new"]


class DeviceArray:
    """An array in device memory, with `numpy.ndarray`'s names for its views; strides and offset count elements.

    Views share the buffer and cost no copy. The constructor checks nothing: it is on the path of every operator.
    """

    __slots__ = ("_form", "buffer", "device", "dtype", "offset", "shape", "strides")

    buffer: Any  # a `Buffer`; not imported, because `memory.buffer` imports this module
    _form: Form | None  # None until `form` is first read

    def __init__(
        self,
        buffer: Any,
        shape: tuple[int, ...],
        strides: tuple[int, ...],
        offset: int,
        dtype: np.dtype[Any],
        device: Device,
    ) -> None:
        self.buffer = buffer
        self.shape = shape
        self.strides = strides
        self.offset = offset
        self.dtype = dtype
        self.device = device
        self._form = None

    @property
    def form(self) -> Form:
        """The array's form, one object for all arrays with the same properties."""
        found = self._form
        if found is None:
            found = self._form = form_of(self)
        return found

    @property
    def ndim(self) -> int:
        """How many dimensions there are."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """How many elements there are."""
        return prod(self.shape)

    @property
    def itemsize(self) -> int:
        """Bytes of one element."""
        return self.dtype.itemsize

    @property
    def nbytes(self) -> int:
        """Bytes of all elements, repeated ones counted each time."""
        return prod(self.shape) * self.dtype.itemsize

    def data_ptr(self) -> int:
        """The address of the first element."""
        return self.buffer.address + self.offset * self.dtype.itemsize

    def is_contiguous(self) -> bool:
        """Whether the elements lie in row-major order without gaps."""
        return layout.is_contiguous(self.shape, self.strides)

    def transpose(self, axes: tuple[int, ...]) -> DeviceArray:
        """The dimensions in another order."""
        shape, strides = layout.permute(self.shape, self.strides, axes)
        return DeviceArray(self.buffer, shape, strides, self.offset, self.dtype, self.device)

    def reshape(self, shape: tuple[int, ...]) -> DeviceArray:
        """Another shape of the same elements in the same order; one size may be -1.

        Raises:
            layout.NotViewable: a copy is needed. ShapeError: another number of elements.
        """
        shape, strides = layout.reshaped(self.shape, self.strides, shape)
        return DeviceArray(self.buffer, shape, strides, self.offset, self.dtype, self.device)

    def __getitem__(self, key: Any) -> DeviceArray:
        shape, strides, offset = layout.index(self.shape, self.strides, self.offset, key)
        return DeviceArray(self.buffer, shape, strides, offset, self.dtype, self.device)

    def broadcast_to(self, shape: tuple[int, ...]) -> DeviceArray:
        """The array repeated along new dimensions and those of size 1."""
        strides = layout.broadcast_strides(self.shape, self.strides, shape)
        return DeviceArray(self.buffer, shape, strides, self.offset, self.dtype, self.device)

    def as_strided(self, shape: tuple[int, ...], strides: tuple[int, ...], offset: int) -> DeviceArray:
        """Any shape and strides over the buffer; the offset counts from the buffer's start.

        Raises:
            ShapeError: an element would lie outside of the buffer.
        """
        low, high = layout.span(shape, strides, offset)
        if low < 0 or high * self.dtype.itemsize > self.buffer.nbytes:
            raise ShapeError(
                f"setStorage: sizes {list(shape)}, strides {list(strides)}, storage offset {offset}, and itemsize "
                f"{self.dtype.itemsize} requiring a storage size of {high * self.dtype.itemsize} are out of bounds for "
                f"storage of size {self.buffer.nbytes}"
            )
        return DeviceArray(self.buffer, shape, strides, offset, self.dtype, self.device)

    def view_dtype(self, dtype: np.dtype[Any]) -> DeviceArray:
        """The same bits as another type of the same size."""
        if dtype.itemsize != self.dtype.itemsize:
            raise ShapeError(
                explain(f"view: {self.dtype.name} and {dtype.name} differ in size", remedy="convert with .to() instead")
            )
        return DeviceArray(self.buffer, self.shape, self.strides, self.offset, dtype, self.device)

    def __array__(self, *_: object, **__: object) -> np.ndarray:
        raise ArgumentError(
            f"can't convert {self.device} device type tensor to numpy. "
            "Use Tensor.cpu() to copy the tensor to host memory first."
        )

    def __len__(self) -> int:
        return self.shape[0]

    def __repr__(self) -> str:
        return f"<DeviceArray {self.dtype.name}{list(self.shape)} strides {list(self.strides)} on {self.device}>"


class Form:
    """Shape, strides, dtype, device and alignment of an array on a device.

    Arrays that agree in all of these share one form, so forms are compared by identity and are cheap keys.
    """

    __slots__ = ("aligned", "block_size", "device", "dtype", "nbytes", "shape", "strides")

    def __init__(
        self, shape: tuple[int, ...], strides: tuple[int, ...], dtype: np.dtype[Any], device: Device, aligned: bool
    ) -> None:
        self.shape = shape
        self.strides = strides
        self.dtype = dtype
        self.device = device
        self.aligned = aligned  # to 16 bytes
        self.nbytes = prod(shape) * dtype.itemsize
        self.block_size = round_size(self.nbytes)

    def __repr__(self) -> str:
        aligned = "" if self.aligned else ", not aligned"
        return f"<Form {self.dtype.name}{list(self.shape)} strides {list(self.strides)} on {self.device}{aligned}>"


# Forms by their fields, and those of new arrays by (shape, dtype, ordinal). A program whose shapes change at every step
# must not fill memory, so a full table is cleared. Equal arrays may then have different forms, which only costs time.
_forms: dict[tuple[Any, ...], Form] = {}
_new_forms: dict[tuple[Any, ...], Form] = {}
_MOST_FORMS = 1 << 14


def form_of(array: DeviceArray) -> Form:
    """The form of an array."""
    key = (array.shape, array.strides, array.dtype, array.device, array.data_ptr() & 15 == 0)
    found = _forms.get(key)
    if found is None:
        if len(_forms) >= _MOST_FORMS:
            _forms.clear()
        found = _forms.setdefault(key, Form(*key))
    return found


def form_of_new(shape: tuple[int, ...], dtype: np.dtype[Any], device: Device) -> Form:
    """The form of a new array: row-major, and aligned as all memory from a driver is."""
    found = _new_forms.get((shape, dtype, device.index))
    if found is not None:
        return found
    shape = tuple(shape)  # a `Size` would compare equal and become the shape of every array with this form
    key = (shape, layout.contiguous_strides(shape), dtype, device, True)
    found = _forms.get(key) or _forms.setdefault(key, Form(*key))
    if len(_new_forms) >= _MOST_FORMS:
        _new_forms.clear()
    return _new_forms.setdefault((shape, dtype, device.index), found)
