"""Comparisons, logic, and operators on bits."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ...operators.rules import COMPARISON, INTEGRAL, LOGIC, ORDER, Rule
from ...runtime.source import device_function
from ...types import dtypes
from .family import elementwise

if TYPE_CHECKING:
    import triton.language as tl

BITS = Rule("bits", dtypes.INTEGER, dtypes.INTEGER)

eq = elementwise(COMPARISON, np.equal, "Elementwise equal to: x == y.", methods=["__eq__", "eq"])
eq.kernel(lambda x, y: x == y)

ne = elementwise(COMPARISON, np.not_equal, "Elementwise not equal to: x != y.", methods=["__ne__", "ne", "not_equal"])
ne.kernel(lambda x, y: x != y)
eq.float8 = ne.float8 = "computed"

lt = elementwise(ORDER, np.less, "Elementwise less than: x < y.", methods=["__lt__", "lt", "less"])
lt.kernel(lambda x, y: x < y)

le = elementwise(ORDER, np.less_equal, "Elementwise less or equal: x <= y.", methods=["__le__", "le", "less_equal"])
le.kernel(lambda x, y: x <= y)

gt = elementwise(ORDER, np.greater, "Elementwise greater than: x > y.", methods=["__gt__", "gt", "greater"])
gt.kernel(lambda x, y: x > y)

ge = elementwise(
    ORDER, np.greater_equal, "Elementwise greater or equal: x >= y.", methods=["__ge__", "ge", "greater_equal"]
)
ge.kernel(lambda x, y: x >= y)

logical_and = elementwise(LOGIC, np.logical_and, "The logical AND: True where x and y both differ from 0.")
logical_and.kernel(lambda x, y: (x != 0) & (y != 0))

logical_or = elementwise(LOGIC, np.logical_or, "The logical OR: True where x or y differs from 0.")
logical_or.kernel(lambda x, y: (x != 0) | (y != 0))

logical_xor = elementwise(
    LOGIC, np.logical_xor, "The logical XOR: True where one of x and y differs from 0, and one does not."
)
logical_xor.kernel(lambda x, y: (x != 0) != (y != 0))

logical_not = elementwise(
    LOGIC, np.logical_not, "The logical NOT: True where x is 0.", in_place=True, in_place_functions=()
)
logical_not.kernel(lambda x: x == 0)

bitwise_and = elementwise(
    INTEGRAL, np.bitwise_and, "The bitwise AND: the bits that x and y both have.", methods=["__and__", "bitwise_and"]
)
bitwise_and.kernel(lambda x, y: x & y)

bitwise_or = elementwise(
    INTEGRAL, np.bitwise_or, "The bitwise OR: the bits that x or y has.", methods=["__or__", "bitwise_or"]
)
bitwise_or.kernel(lambda x, y: x | y)

bitwise_xor = elementwise(
    INTEGRAL, np.bitwise_xor, "The bitwise XOR: the bits that one of x and y has.", methods=["__xor__", "bitwise_xor"]
)
bitwise_xor.kernel(lambda x, y: x ^ y)

bitwise_not = elementwise(
    INTEGRAL,
    np.invert,
    "The bitwise NOT: the bits that x does not have; for booleans, not x.",
    name="bitwise_not",
    in_place_functions=(),
)


@bitwise_not.kernel
def _(x):
    if x.dtype == tl.int1:
        return x == 0
    else:
        return (x * 0 - 1) - x  # all ones minus x; Triton 3.6 cannot invert unsigned blocks in simulation


# A shift by a negative number, or by at least as many bits as the dtype has, keeps only the sign.
bitwise_left_shift = elementwise(
    BITS, np.left_shift, "The left shift of the bits of x by y places.", methods=["__lshift__", "bitwise_left_shift"]
)


@bitwise_left_shift.kernel
def _(x, y):
    fits = (y >= 0) & (y < x.dtype.primitive_bitwidth)
    return tl.where(fits, x << tl.where(fits, y, y * 0), x * 0)


bitwise_right_shift = elementwise(
    BITS,
    np.right_shift,
    "The arithmetic right shift of the bits of x by y places.",
    methods=["__rshift__", "bitwise_right_shift"],
)


@bitwise_right_shift.kernel
def _(x, y):
    fits = (y >= 0) & (y < x.dtype.primitive_bitwidth)
    return tl.where(fits, x >> tl.where(fits, y, y * 0), tl.where(x < 0, x * 0 - 1, x * 0))


# ---- complex numbers -----------------------------------------------------------------------------------------------


@device_function
def truth(xr, xi):
    """Whether a number is not zero."""
    return (xr != 0) | (xi != 0)


eq.complex_kernel(lambda xr, xi, yr, yi: (xr == yr) & (xi == yi))
ne.complex_kernel(lambda xr, xi, yr, yi: (xr != yr) | (xi != yi))
logical_and.complex_kernel(lambda xr, xi, yr, yi: truth(xr, xi) & truth(yr, yi))
logical_or.complex_kernel(lambda xr, xi, yr, yi: truth(xr, xi) | truth(yr, yi))
logical_xor.complex_kernel(lambda xr, xi, yr, yi: truth(xr, xi) != truth(yr, yi))
logical_not.complex_kernel(lambda xr, xi: (xr == 0) & (xi == 0))
