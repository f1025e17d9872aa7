"""Copies on a device, by the operator `copy`."""

from __future__ import annotations

from ..memory.array import DeviceArray
from ..runtime.call import Call
from ..types import dtypes
from .operator import registry

__all__ = ["copy_into"]


def copy_into(out: DeviceArray, x: DeviceArray | complex) -> None:
    """Copy `x` into `out`: an array of one shape and device, any strides and dtypes; or a number into each element."""
    copy, kind = registry["copy"], dtypes.of(out.dtype)

    def prepared() -> Call:
        call = Call(copy, (x,), {}, out.device, kind, (kind,))
        call.arrays = (x,)
        return call

    copy.compute_into(out, (x,), {}, prepared)
