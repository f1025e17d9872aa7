"""The data of a tensor that is noted and not computed yet: see `tritensor.operators.deferring`.

Whatever takes a plain array refuses it, like the arrays of `lifted`: operators hand their calls over, views come to
`viewed`, and what reads elements on the host to `refuse`, which computes them.
"""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any, NamedTuple

import numpy as np

from ..errors import UnsupportedError
from ..types import devices, formats, layout
from .array import DeviceArray
from .lifted import Lifted


class Form(NamedTuple):
    """What is known of an array before it is computed; strides count elements."""

    shape: tuple[int, ...]
    strides: tuple[int, ...]
    dtype: np.dtype[Any]
    device: devices.device
    ndim: int
    size: int

    @classmethod
    def of(cls, shape: tuple[int, ...], strides: tuple[int, ...], dtype: np.dtype[Any], device: devices.device) -> Form:
        """The form of these facts."""
        return cls(shape, strides, dtype, device, len(shape), prod(shape))

    @classmethod
    def of_array(cls, array: np.ndarray | DeviceArray) -> Form:
        """The form of an array that is there."""
        strides = array.strides
        if array.__class__ is DeviceArray:
            return cls.of(array.shape, strides, array.dtype, array.device)
        strides = formats.reported_strides(array.shape, tuple([step // array.itemsize for step in strides]))
        return cls.of(array.shape, strides, array.dtype, devices.cpu)


class Deferred(Lifted):
    """An array of which only the form is known; `value` is the array once there is one.

    Attributes:
        region: what noted it; index: its place among the values that the region has noted since it last computed.
        shared: other tensors view this memory, so a change in place must be seen by them.
        used: how many compiled functions run; what comes often looks at that first.
        rules: the module `tritensor.operators.deferring`.
    """

    __slots__ = ("form", "index", "region", "shared", "value")
    used = 0
    rules: Any = None
    array = None
    level: Any = None  # it is of none
    has_tangents = False
    shape = property(lambda self: self.form.shape)
    strides = property(lambda self: self.form.strides)
    dtype = property(lambda self: self.form.dtype)
    device = property(lambda self: self.form.device)
    ndim = property(lambda self: self.form.ndim)
    size = property(lambda self: self.form.size)

    def __init__(self, region: object, index: int, form: Form, value: np.ndarray | DeviceArray | None = None) -> None:
        self.region: Any
        self.value: Any
        self.region, self.index, self.form, self.value, self.shared = region, index, form, value, False

    def is_contiguous(self) -> bool:
        """True if the elements will lie in row-major order without gaps."""
        return layout.is_contiguous(self.form.shape, self.form.strides)

    def settled(self) -> Any:
        """The array, for what is not noted: computed now, if it was not."""
        if self.region.trace is not None:
            self.region.trace.stop("an array is used by what is not noted")
        return self.computed()

    def computed(self) -> Any:
        """The array: computed now, if it was not."""
        if self.value is None:
            self.region.run()
        return self.value

    refuse = settled

    def host(self) -> Any:
        """The elements, to be read by the program.

        Raises:
            UnsupportedError: the function was compiled with `fullgraph=True`.
        """
        if self.value is None and self.region.whole:
            raise UnsupportedError(
                "Data-dependent control flow is not supported inside of a function that is compiled with "
                "fullgraph=True.",
                f"the elements of a tensor of shape {self.form.shape} are read on the host",
                remedy="use torch.where in place of the branch, or compile without fullgraph=True",
            )
        return self.settled()

    def parts(self) -> tuple[Any, ...]:
        """None: it is of no level."""
        return ()

    def mapped(self, function: Callable[[Any], Any]) -> Any:
        """What a function makes of the array."""
        return function(self.settled())

    def viewed(self, view: object, arguments: tuple[Any, ...]) -> Any:
        """The view, noted."""
        return Deferred.rules.view(self, view, arguments)

    def constant(self) -> Deferred:
        """Itself, for another tensor."""
        self.shared = True
        return self

    def __reduce__(self) -> Any:
        return _itself, (self.settled(),)


def _itself(array: np.ndarray | DeviceArray) -> np.ndarray | DeviceArray:
    return array
