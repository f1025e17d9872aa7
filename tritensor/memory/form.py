"""Forms: what a launch depends on of an array, its address apart."""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import layout
from ..drivers.allocator import round_size

if TYPE_CHECKING:
    from ..devices import device as Device
    from .buffer import DeviceArray

__all__ = ["Form", "form_of", "form_of_new"]


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


# Forms by what makes them up, and by (shape, dtype, ordinal) for new arrays. Shapes that change with every step must
# not pile up: a table that is full is emptied, after which equal arrays may have different forms, which costs time.
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
    shape = tuple(shape)  # a Size is one too, and would be every array's shape from here on
    key = (shape, layout.contiguous_strides(shape), dtype, device, True)
    found = _forms.get(key) or _forms.setdefault(key, Form(*key))
    if len(_new_forms) >= _MOST_FORMS:
        _new_forms.clear()
    return _new_forms.setdefault((shape, dtype, device.index), found)
