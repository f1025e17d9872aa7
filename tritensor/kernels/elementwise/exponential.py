"""Exponentials, logarithms and roots.

The bodies call the device's mathematics library: Triton's own `tl.exp` rounds the product of its argument and log2(e)
to float32, which gives an error of 40 units in the last place at x = 80, where the library's is at most 2.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from ...operators.rules import FLOAT, REAL_FLOAT
from ...runtime.source import device_function
from ..exact import root
from .arithmetic import complex_reciprocal
from .family import FUNCTIONS, LIBRARY, elementwise

if TYPE_CHECKING:
    import triton.language as tl
    from triton.language.extra import libdevice

exp = elementwise(FLOAT, np.exp, "The exponential of each element: e to the power x.", autocast={"cuda": "float32"})
exp.gradient(lambda grad, out: grad * out)
exp.kernel(lambda x: libdevice.exp(x))

exp2 = elementwise(FLOAT, np.exp2, "The base-2 exponential: 2 to the power x.")
exp2.gradient(lambda grad, out: grad * out * math.log(2))
exp2.kernel(lambda x: libdevice.exp2(x))

expm1 = elementwise(FLOAT, np.expm1, "exp(x) - 1, exact near 0.", autocast={"cuda": "float32"}, native=LIBRARY)
expm1.gradient(lambda grad, out: grad * (out + 1))
expm1.kernel(lambda x: libdevice.expm1(x))

log = elementwise(FLOAT, np.log, "The natural logarithm of x.", autocast={"cuda": "float32"})
log.gradient(lambda grad, x: grad / x)
log.kernel(lambda x: libdevice.log(x))

log2 = elementwise(FLOAT, np.log2, "The logarithm of x to base 2.", autocast={"cuda": "float32"}, native=LIBRARY)
log2.gradient(lambda grad, x: grad / (x * math.log(2)))
log2.kernel(lambda x: libdevice.log2(x))

log10 = elementwise(FLOAT, np.log10, "The logarithm of x to base 10.", autocast={"cuda": "float32"}, native=LIBRARY)
log10.gradient(lambda grad, x: grad / (x * math.log(10)))
log10.kernel(lambda x: libdevice.log10(x))

log1p = elementwise(
    FLOAT, np.log1p, "The natural logarithm of 1 + x, exact near 0.", autocast={"cuda": "float32"}, native=LIBRARY
)
log1p.gradient(lambda grad, x: grad / (x + 1))
log1p.kernel(lambda x: libdevice.log1p(x))

logaddexp = elementwise(
    REAL_FLOAT,
    np.logaddexp,
    "The logarithm of the sum of exponentials: log(exp(x) + exp(y)), without overflow.",
    native=FUNCTIONS,
)
logaddexp.gradients(x=lambda grad, x, y: grad / (1 + (y - x).exp()), y=lambda grad, x, y: grad / (1 + (x - y).exp()))


@logaddexp.kernel
def _(x, y):
    high = tl.where(x > y, x, y)
    low = tl.where(x > y, y, x)
    return tl.where(x == y, x + 0.6931471805599453, high + libdevice.log1p(libdevice.exp(low - high)))


sqrt = elementwise(FLOAT, np.sqrt, "The square root of x.")
sqrt.gradient(lambda grad, out: grad / (2 * out))
sqrt.kernel(lambda x: root(x))


@elementwise(FLOAT, autocast={"cuda": "float32"}, native=FUNCTIONS)
def rsqrt(x: np.ndarray):
    """The reciprocal of the square root of each element: 1 / sqrt(x)."""
    return 1 / np.sqrt(x)


rsqrt.gradient(lambda grad, out: -0.5 * grad * out * out * out)
rsqrt.kernel(lambda x: libdevice.rsqrt(x))

for _operator in (log, log2, log10, sqrt, rsqrt):
    _operator.domain = (0, 50)
log1p.domain = (-1, 50)


# ---- complex numbers -----------------------------------------------------------------------------------------------


# Of what is not finite it is what C's standard says. Formulas for inverse functions and roots, here and of angles, are
# those of W. Kahan, "Branch cuts for complex elementary functions" (1987).


@exp.complex_kernel
@device_function
def complex_exp(xr, xi):
    """In two factors, so that it overflows only where the result does."""
    half = libdevice.exp(xr * 0.5)
    cosine, sine = libdevice.cos(xi), libdevice.sin(xi)
    re = tl.where((tl.abs(xr) == float("inf")) & (cosine != cosine), half, half * cosine * half)
    im = tl.where((xr == float("-inf")) & (sine != sine), half, half * sine * half)
    return re, tl.where(xi == 0, xi, im)


exp2.complex_kernel(lambda xr, xi: complex_exp(xr * 0.6931471805599453, xi * 0.6931471805599453))


@expm1.complex_kernel
def _(xr, xi):
    half = libdevice.sin(xi * 0.5)
    return libdevice.expm1(xr) * libdevice.cos(xi) - 2 * half * half, libdevice.exp(xr) * libdevice.sin(xi)


@log.complex_kernel
@device_function
def complex_log(xr, xi):
    """Near the unit circle by what the square of the size differs from 1, where the logarithm of the size cancels."""
    size = libdevice.hypot(xr, xi)
    big = tl.maximum(tl.abs(xr), tl.abs(xi))
    small = tl.minimum(tl.abs(xr), tl.abs(xi))
    near = libdevice.log1p((big - 1) * (big + 1) + small * small) * 0.5
    return tl.where((size > 0.7) & (size < 1.4), near, libdevice.log(size)), libdevice.atan2(xi, xr)


@log2.complex_kernel
def _(xr, xi):
    re, im = complex_log(xr, xi)
    return re * 1.4426950408889634, im * 1.4426950408889634


@log10.complex_kernel
def _(xr, xi):
    re, im = complex_log(xr, xi)
    return re * 0.4342944819032518, im * 0.4342944819032518


log1p.complex_kernel(lambda xr, xi: complex_log(1 + xr, xi))


@sqrt.complex_kernel
@device_function
def complex_sqrt(xr, xi):
    """The root with a real part that is not negative."""
    large = libdevice.sqrt(tl.abs(xr) * 0.5 + libdevice.hypot(xr * 0.5, xi * 0.5))
    small = tl.where(large == 0, large, tl.abs(xi) / (2 * large))
    re = tl.where(xr >= 0, large, small)
    im = libdevice.copysign(tl.where(xr >= 0, small, large), xi)
    endless = tl.abs(xi) == float("inf")
    return tl.where(endless, tl.abs(xi), re), tl.where(endless, xi, im)


@rsqrt.complex_kernel
def _(xr, xi):
    re, im = complex_sqrt(xr, xi)
    return complex_reciprocal(re, im)
