"""Rounding, and tests for NaN and infinities."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from ...operators.rules import FLOATING, LOGIC, Rule
from ...runtime.source import device_function
from ...types import dtypes
from .arithmetic import where, zeros
from .family import Elementwise, elementwise

if TYPE_CHECKING:
    import triton.language as tl
    from triton.language.extra import libdevice

REAL_NUMERIC = Rule("real numeric", dtypes.INTEGER, dtypes.FLOATING)


def _whole(name: str, ufunc: np.ufunc, doc: str, methods: Sequence[str] | None = None) -> Elementwise:
    """Declare a rounding that leaves integers as they are; before NumPy 2.1 the ufuncs convert them to floats."""

    def reference(x: np.ndarray):
        return x.copy() if x.dtype.kind in "iu" else ufunc(x)

    operator: Elementwise = elementwise(REAL_NUMERIC, reference, doc, name=name, methods=methods)
    operator.gradient(zeros)
    return operator


floor = _whole("floor", np.floor, "Rounds down: the largest integer that is not above x.")
floor.kernel(lambda x: libdevice.floor(x) if x.dtype.is_floating() else x)

ceil = _whole("ceil", np.ceil, "Rounds up: the smallest integer that is not below x.")
ceil.kernel(lambda x: libdevice.ceil(x) if x.dtype.is_floating() else x)

trunc = _whole("trunc", np.trunc, "Truncates toward zero: x without its fraction.", methods=["trunc", "fix"])
trunc.kernel(lambda x: libdevice.trunc(x) if x.dtype.is_floating() else x)

rint = _whole("rint", np.rint, "The integer nearest to x; of two, the even one.", methods=())
rint.node = "round"
rint.kernel(lambda x: libdevice.nearbyint(x) if x.dtype.is_floating() else x)


@elementwise(FLOATING)
def frac(x):
    """The fractional part of x, with its sign."""
    return x - np.trunc(x)


frac.gradient(lambda grad: grad)
frac.kernel(lambda x: x - libdevice.trunc(x))

isnan = elementwise(LOGIC, np.isnan, "Tests each element: True where x is NaN.")
isnan.kernel(lambda x: x != x)

isinf = elementwise(LOGIC, np.isinf, "Tests each element: True where x is infinite.")
isinf.kernel(lambda x: (x == float("inf")) | (x == -float("inf")))

isfinite = elementwise(LOGIC, np.isfinite, "Tests each element: True where x is neither infinite nor NaN.")
isnan.float8 = isinf.float8 = isfinite.float8 = "computed"
isfinite.kernel(lambda x: (x == x) & (x != float("inf")) & (x != -float("inf")))


@elementwise(Rule("floating", dtypes.FLOATING), methods=())
def replace_nonfinite(x: np.ndarray, *, nan, posinf, neginf):
    """x with numbers in place of NaN and the infinities."""
    return np.nan_to_num(x, nan=nan, posinf=posinf, neginf=neginf)


replace_nonfinite.node = "nan_to_num"
replace_nonfinite.example = {"nan": 0.5, "posinf": 100.0, "neginf": -100.0}
replace_nonfinite.gradient(lambda grad, x: grad * where(x.isfinite(), 1, 0))


@replace_nonfinite.kernel
def _(x, nan, posinf, neginf):
    x = tl.where(x != x, nan, x)
    return tl.where(x == float("inf"), posinf, tl.where(x == -float("inf"), neginf, x))


# ---- complex numbers -----------------------------------------------------------------------------------------------

isnan.complex_kernel(lambda xr, xi: (xr != xr) | (xi != xi))
isinf.complex_kernel(lambda xr, xi: (tl.abs(xr) == float("inf")) | (tl.abs(xi) == float("inf")))
isfinite.complex_kernel(lambda xr, xi: (xr - xr == 0) & (xi - xi == 0))


@device_function
def _finite(x, nan, high, low):
    return tl.where(x != x, nan, tl.where(x == float("inf"), high, tl.where(x == float("-inf"), low, x)))


@replace_nonfinite.complex_kernel
def _(xr, xi, nan, _nan, high, _high, low, _low):
    return _finite(xr, nan, high, low), _finite(xi, nan, high, low)
