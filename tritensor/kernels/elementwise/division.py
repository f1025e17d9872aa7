"""Integer division (floor and trunc) and remainders.

Floats give the same bits as C's `fmod` and Python's floor division, infinities included. Integers divided by zero raise
on the CPU. A device is not waited for: there an integer divided by a zero in a tensor is 0, by the number 0 it raises.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ...operators.rules import Quotient
from ...runtime.source import device_function
from ...types import dtypes
from ..exact import quotient
from .arithmetic import dtype_of, zeros
from .family import FUNCTIONS, elementwise

if TYPE_CHECKING:
    import triton.language as tl
    from triton.language.extra import libdevice


QUOTIENT = Quotient("quotient", dtypes.INTEGER, dtypes.FLOATING, unrounded=("y",))
REMAINDER = Quotient("quotient", dtypes.INTEGER, dtypes.FLOATING)

floor_divide = elementwise(
    QUOTIENT,
    np.floor_divide,
    "Divides and rounds down: the largest integer that is not above x / y.",
    methods=["__floordiv__", "floor_divide"],
    native=FUNCTIONS,
)
floor_divide.gradients(x=zeros, y=zeros)


@device_function
def floored(x, y):
    """Python's floor division of floats: the quotient of x minus its remainder, rounded to the nearest integer."""
    left = libdevice.fmod(x, y)
    whole = quotient(x - left, y)
    share = quotient(x, y)
    whole = tl.where((left != 0) & ((y < 0) != (left < 0)), whole - 1, whole)
    below = libdevice.floor(whole)
    below = tl.where(whole - below > 0.5, below + 1, below)
    below = tl.where(whole == 0, share * 0, below)  # a zero has the sign of the quotient
    return tl.where(y == 0, share, below)


@floor_divide.kernel
def _(x, y):
    if x.dtype.is_floating():
        return floored(x, y)
    else:
        divisor = tl.where(y == 0, y + 1, y)
        quotient = x // divisor
        below = (x % divisor != 0) & ((x < 0) != (divisor < 0))
        return tl.where(y == 0, x * 0, tl.where(below, quotient - 1, quotient))


@elementwise(QUOTIENT, methods=())
def trunc_divide(x, y):
    """x / y without its fraction; integers stay integers."""
    if dtype_of(x, y).kind == "f":
        return np.trunc(np.true_divide(x, y))
    return np.floor_divide(x - np.fmod(x, y), y)


trunc_divide.gradients(x=zeros, y=zeros)


@trunc_divide.kernel
def _(x, y):
    if x.dtype.is_floating():
        return libdevice.trunc(quotient(x, y))
    else:
        return tl.where(y == 0, x * 0, x // tl.where(y == 0, y + 1, y))


@elementwise(REMAINDER, methods=["__mod__", "remainder"])
def remainder(x: np.ndarray, y: np.ndarray | int):
    """The remainder of x divided by y, with the sign of y (Python's modulus)."""
    left = np.asarray(np.remainder(x, y))
    # a zero has the sign of x, as C's fmod gives it; NumPy's that of y
    return np.copysign(left, x, out=left, where=left == 0) if left.dtype.kind == "f" else left


remainder.gradients(x=lambda grad: grad, y=lambda grad, x, y: -grad * floor_divide(x, y))


@remainder.kernel
def _(x, y):
    if x.dtype.is_floating():
        left = libdevice.fmod(x, y)
        return tl.where((left != 0) & ((y < 0) != (left < 0)), left + y, left)
    else:
        divisor = tl.where(y == 0, y + 1, y)
        left = x % divisor
        return tl.where((left != 0) & ((divisor < 0) != (left < 0)), left + divisor, left)


fmod = elementwise(
    REMAINDER, np.fmod, "The remainder of x divided by y, with the sign of x (C's fmod).", native=FUNCTIONS
)
fmod.gradients(x=lambda grad: grad, y=lambda grad, x, y: -grad * trunc_divide(x, y))
fmod.kernel(lambda x, y: libdevice.fmod(x, y) if x.dtype.is_floating() else x % tl.where(y == 0, y + 1, y))

for _operator in (floor_divide, trunc_divide, remainder, fmod):
    _operator.gradient_domain = {"x": (2.1, 2.9), "y": (1.0, 1.02)}  # x / y is between 2 and 3, away from the jumps
