"""Trigonometric and hyperbolic functions and their inverses."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ...operators.rules import FLOAT, FLOATING, REAL_FLOAT
from ...runtime.source import device_function
from .arithmetic import where
from .exponential import complex_sqrt
from .family import FUNCTIONS, LIBRARY, elementwise

if TYPE_CHECKING:
    import triton.language as tl
    from triton.language.extra import libdevice

sin = elementwise(FLOAT, np.sin, "The sine of x.")
sin.gradient(lambda grad, x: grad * x.cos())
sin.kernel(lambda x: libdevice.sin(x))

cos = elementwise(FLOAT, np.cos, "The cosine of x.")
cos.gradient(lambda grad, x: -grad * x.sin())
cos.kernel(lambda x: libdevice.cos(x))

tan = elementwise(FLOAT, np.tan, "The tangent of x.", autocast={"cuda": "float32"}, native=LIBRARY)
tan.gradient(lambda grad, out: grad * (1 + out * out))
tan.kernel(lambda x: libdevice.tan(x))

asin = elementwise(
    FLOAT,
    np.arcsin,
    "The arcsine (inverse sine) of x, in [-pi/2, pi/2].",
    methods=["asin", "arcsin"],
    autocast={"cuda": "float32"},
    native=LIBRARY,
)
asin.gradient(lambda grad, x: grad * (1 - x * x).rsqrt())
asin.domain = (-1, 1)
asin.kernel(lambda x: libdevice.asin(x))

acos = elementwise(
    FLOAT,
    np.arccos,
    "The arccosine (inverse cosine) of x, in [0, pi].",
    methods=["acos", "arccos"],
    autocast={"cuda": "float32"},
    native=LIBRARY,
)
acos.gradient(lambda grad, x: -grad * (1 - x * x).rsqrt())
acos.domain = (-1, 1)
acos.kernel(lambda x: libdevice.acos(x))

atan = elementwise(
    FLOAT,
    np.arctan,
    "The arctangent (inverse tangent) of x, in [-pi/2, pi/2].",
    methods=["atan", "arctan"],
    native=LIBRARY,
)
atan.gradient(lambda grad, x: grad / (1 + x * x))
atan.kernel(lambda x: libdevice.atan(x))

atan2 = elementwise(
    REAL_FLOAT,
    np.arctan2,
    "The arctangent of y / x in the quadrant of the point (y, x); the first operand is the height.",
    methods=["atan2", "arctan2"],
    autocast={"cuda": "widest"},
    native=LIBRARY,
)


def _per_square(x: Any, y: Any) -> Any:
    """1 / (x * x + y * y); 0 at the origin, where there is no slope."""
    square = x * x + y * y
    return where(square == 0, 0, square.reciprocal())


atan2.gradients(
    x=lambda grad, x, y: grad * (y * _per_square(x, y)), y=lambda grad, x, y: -grad * (x * _per_square(x, y))
)
atan2.kernel(lambda x, y: libdevice.atan2(x, y))

hypot = elementwise(
    REAL_FLOAT, np.hypot, "The hypotenuse of a right triangle: sqrt(x * x + y * y), without overflow.", native=FUNCTIONS
)
hypot.gradients(x=lambda grad, out, x: grad * x / out, y=lambda grad, out, y: grad * y / out)
hypot.kernel(lambda x, y: libdevice.hypot(x, y))

sinh = elementwise(FLOAT, np.sinh, "The hyperbolic sine of x.", autocast={"cuda": "float32"}, native=LIBRARY)
sinh.gradient(lambda grad, x: grad * x.cosh())
sinh.kernel(lambda x: libdevice.sinh(x))

cosh = elementwise(FLOAT, np.cosh, "The hyperbolic cosine of x.", autocast={"cuda": "float32"}, native=LIBRARY)
cosh.gradient(lambda grad, x: grad * x.sinh())
cosh.kernel(lambda x: libdevice.cosh(x))

tanh = elementwise(FLOAT, np.tanh, "The hyperbolic tangent of x.")
tanh.kernel(lambda x: libdevice.tanh(x))
# with an error below 2**-15 of the result, an eighth of the unit of float16
tanh.half_kernel(
    lambda x: tl.where(
        tl.abs(x) < 0.00390625,
        x,
        libdevice.copysign(1.0 - libdevice.fast_dividef(2.0, 1.0 + libdevice.exp2(tl.abs(x) * 2.8853900817779268)), x),
    )
)


@elementwise(FLOATING, methods=())
def tanh_gradient(grad, result):
    """grad times the slope of tanh where its result was `result`."""
    return grad * (1 - result * result)


tanh.gradient(lambda grad, out: grad * (1 - out * out), on_device=tanh_gradient)
tanh_gradient.gradients(
    grad=lambda again, result: again * (1 - result * result),
    result=lambda again, grad, result: again * grad * result * -2,
)
tanh_gradient.kernel(lambda grad, result: grad * (1.0 - result * result))

asinh = elementwise(FLOAT, np.arcsinh, "The inverse hyperbolic sine of x.", methods=["asinh", "arcsinh"], native=None)
asinh.gradient(lambda grad, x: grad * (x * x + 1).rsqrt())
asinh.kernel(lambda x: libdevice.asinh(x))


def _inverse_root(x: Any) -> Any:
    """1 / sqrt(x * x - 1), for complex numbers on the branch of acosh's derivative."""
    return (x - 1).rsqrt() * (x + 1).rsqrt() if x.dtype.is_complex else (x * x - 1).rsqrt()


acosh = elementwise(
    FLOAT,
    np.arccosh,
    "The inverse hyperbolic cosine of x, which is not negative.",
    methods=["acosh", "arccosh"],
    native=None,
)
acosh.gradient(lambda grad, x: grad * _inverse_root(x))
acosh.domain = (1, 100)
acosh.kernel(lambda x: libdevice.acosh(x))

atanh = elementwise(
    FLOAT, np.arctanh, "The inverse hyperbolic tangent of x.", methods=["atanh", "arctanh"], native=None
)
atanh.gradient(lambda grad, x: grad / (1 - x * x))
atanh.domain = (-1, 1)
atanh.kernel(lambda x: libdevice.atanh(x))


# ---- complex numbers -----------------------------------------------------------------------------------------------


@device_function
def _zeros(x, y):
    """x * y, 0 where either is."""
    return tl.where(y == 0, y, tl.where((x == 0) & (y != y), x, x * y))


@device_function
def _endless(x, y, real):
    """x * y, 0 where either is, and infinite where a real part is."""
    return tl.where((tl.abs(real) == float("inf")) & (y != y), x, _zeros(x, y))


@sinh.complex_kernel
@device_function
def complex_sinh(xr, xi):
    """sinh(xr) complex_cos(xi) + i complex_cosh(xr) sin(xi)."""
    return _endless(libdevice.sinh(xr), libdevice.cos(xi), xr), _zeros(libdevice.cosh(xr), libdevice.sin(xi))


@cosh.complex_kernel
@device_function
def complex_cosh(xr, xi):
    """cosh(xr) complex_cos(xi) + i complex_sinh(xr) sin(xi)."""
    return _endless(libdevice.cosh(xr), libdevice.cos(xi), xr), _zeros(libdevice.sinh(xr), libdevice.sin(xi))


cos.complex_kernel(lambda xr, xi: complex_cosh(-xi, xr))


@device_function
def _signed(size, x):
    """A number with the sign and of the dtype of x."""
    return libdevice.copysign(tl.minimum(tl.maximum(tl.abs(x), size), size), x)


@tanh.complex_kernel
@device_function
def complex_tanh(xr, xi):
    """Beyond 20 it is 1 or -1 in every dtype, and squares would overflow."""
    inside = tl.minimum(tl.maximum(xr, -20.0), 20.0)
    tangent = libdevice.tan(xi)
    sine = libdevice.sinh(inside)
    beta = 1 + tangent * tangent
    below = 1 + beta * sine * sine
    re = beta * libdevice.sqrt(1 + sine * sine) * sine / below
    endless = tl.abs(xr) == float("inf")
    re = tl.where((inside == xr) | (xr != xr), re + xr * 0, inside / 20 + tl.where(endless, 0.0, tangent * 0))
    im = tl.where(xi == 0, xi, tangent / below + xr * 0)
    return tl.where(xr == 0, xr, re), tl.where(endless, _signed(0.0, xi), im)


@device_function
def _special(xr, xi, re, im, at_infinity_re, at_infinity_im, beside_nan):
    """The result, its values where a part is infinite, and its real part for a real part of 0 beside NaN."""
    endless = (tl.abs(xr) == float("inf")) | (tl.abs(xi) == float("inf"))
    re = tl.where((xr == 0) & (xi != xi), beside_nan, re)
    return tl.where(endless, at_infinity_re, re), tl.where(endless, at_infinity_im, im)


@asin.complex_kernel
@device_function
def complex_asin(xr, xi):
    """Of both roots' product, and of one times the other's conjugate."""
    ar, ai = complex_sqrt(1 - xr, -xi)
    br, bi = complex_sqrt(1 + xr, xi)
    re, im = libdevice.atan2(xr, ar * br - ai * bi), libdevice.asinh(ar * bi - ai * br)
    return _special(xr, xi, re, im, libdevice.atan2(xr, tl.abs(xi)), _signed(float("inf"), xi), xr)


@acos.complex_kernel
def _(xr, xi):
    ar, ai = complex_sqrt(1 - xr, -xi)
    br, bi = complex_sqrt(1 + xr, xi)
    re, im = 2 * libdevice.atan2(ar, br), libdevice.asinh(br * ai - bi * ar)
    return _special(xr, xi, re, im, libdevice.atan2(tl.abs(xi), xr), -_signed(float("inf"), xi), 1.5707963267948966)


@acosh.complex_kernel
def _(xr, xi):
    ar, ai = complex_sqrt(xr - 1, xi)
    br, bi = complex_sqrt(xr + 1, xi)
    re, im = libdevice.asinh(ar * br + ai * bi), 2 * libdevice.atan2(ai, br)
    im, re = _special(xr, xi, im, re, libdevice.atan2(xi, xr), float("inf"), 1.5707963267948966)
    return re, im


@atanh.complex_kernel
@device_function
def complex_atanh(xr, xi):
    """The logarithm's real part without cancellation."""
    square = xi * xi
    re = 0.25 * libdevice.log1p(4 * xr / ((1 - xr) * (1 - xr) + square))
    im = 0.5 * libdevice.atan2(2 * xi, (1 - xr) * (1 + xr) - square)
    return _special(xr, xi, re, im, _signed(0.0, xr), tl.where(xi != xi, xi, _signed(1.5707963267948966, xi)), xr)


def _turned(function: Any) -> Any:
    """-i f(i x), which makes a circular function of a hyperbolic one, and the reverse."""

    @device_function
    def turned(xr, xi):
        re, im = function(-xi, xr)
        return im, -re

    return turned


for _operator, _body in ((sin, complex_sinh), (asinh, complex_asin), (tan, complex_tanh), (atan, complex_atanh)):
    _operator.complex_kernel(_turned(_body))
