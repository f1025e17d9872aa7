"""The bodies for complex numbers: each takes and returns real and imaginary parts, see `Elementwise.complex_kernel`.

The function `complex_` and an operator's name is its body. (In Triton's language no function may have the name of one
of the device's library.)

Formulas for inverse functions and roots are those of W. Kahan, "Branch cuts for complex elementary functions" (1987),
the quotient is that of R. L. Smith (CACM 5, 1962), which does not overflow where its result does not.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ...operators import registry
from ...runtime.source import device_function
from . import activations, arithmetic, comparison, exponential, rounding, trigonometric  # noqa: F401, the operators

if TYPE_CHECKING:
    import triton.language as tl
    from triton.language.extra import libdevice

__all__: list[str] = []


# ---- arithmetic -----------------------------------------------------------------------------------------------


@device_function
def complex_mul(xr, xi, yr, yi):
    """Multiplies x and y element by element."""
    return xr * yr - xi * yi, xr * yi + xi * yr


@device_function
def complex_div(xr, xi, yr, yi):
    """x / y; by the ratio of the divisor's smaller part to its larger one. Infinite or NaN for a divisor of 0."""
    real = tl.abs(yr) >= tl.abs(yi)
    big = tl.where(real, yr, yi)
    small = tl.where(real, yi, yr)
    ratio = tl.where(big == 0, small, small / big)
    scale = 1.0 / (big + small * ratio)
    re = tl.where(real, xr + xi * ratio, xr * ratio + xi) * scale
    return re, tl.where(real, xi - xr * ratio, xi * ratio - xr) * scale


@device_function
def complex_reciprocal(xr, xi):
    """The reciprocal of each element: 1 / x."""
    return complex_div(xr * 0 + 1, xr * 0, xr, xi)


@device_function
def complex_square(xr, xi):
    """The square of each element: x * x."""
    return complex_mul(xr, xi, xr, xi)


def complex_add(xr, xi, yr, yi):
    return xr + yr, xi + yi


def complex_sub(xr, xi, yr, yi):
    return xr - yr, xi - yi


def complex_neg(xr, xi):
    return -xr, -xi


def complex_copy(xr, xi):
    return xr, xi


def complex_conj(xr, xi):
    return xr, -xi


def complex_where(condition, xr, xi, yr, yi):
    return tl.where(condition, xr, yr), tl.where(condition, xi, yi)


def complex_add_scaled(xr, xi, yr, yi, ar, ai):
    re, im = complex_mul(yr, yi, ar, ai)
    return xr + re, xi + im


def complex_addcmul(xr, xi, ar, ai, br, bi, vr, vi):
    sr, si = complex_mul(vr, vi, ar, ai)
    re, im = complex_mul(sr, si, br, bi)
    return xr + re, xi + im


def complex_addcdiv(xr, xi, ar, ai, br, bi, vr, vi):
    sr, si = complex_mul(vr, vi, ar, ai)
    re, im = complex_div(sr, si, br, bi)
    return xr + re, xi + im


def complex_lerp(xr, xi, er, ei, wr, wi):
    near = libdevice.hypot(wr, wi) < 0.5
    ar, ai = complex_mul(wr, wi, er - xr, ei - xi)
    br, bi = complex_mul(1 - wr, -wi, er - xr, ei - xi)
    return tl.where(near, xr + ar, er - br), tl.where(near, xi + ai, ei - bi)


def complex_abs(xr, xi):
    return libdevice.hypot(xr, xi)


def complex_sgn(xr, xi):
    size = libdevice.hypot(xr, xi)
    size = tl.where(size == 0, 1.0, size)
    return xr / size, xi / size


# ---- comparisons ----------------------------------------------------------------------------------------------


@device_function
def truth(xr, xi):
    """True if a number is not zero."""
    return (xr != 0) | (xi != 0)


def complex_eq(xr, xi, yr, yi):
    return (xr == yr) & (xi == yi)


def complex_ne(xr, xi, yr, yi):
    return (xr != yr) | (xi != yi)


def complex_logical_and(xr, xi, yr, yi):
    return truth(xr, xi) & truth(yr, yi)


def complex_logical_or(xr, xi, yr, yi):
    return truth(xr, xi) | truth(yr, yi)


def complex_logical_xor(xr, xi, yr, yi):
    return truth(xr, xi) != truth(yr, yi)


def complex_logical_not(xr, xi):
    return (xr == 0) & (xi == 0)


def complex_isnan(xr, xi):
    return (xr != xr) | (xi != xi)


def complex_isinf(xr, xi):
    return (tl.abs(xr) == float("inf")) | (tl.abs(xi) == float("inf"))


def complex_isfinite(xr, xi):
    return (xr - xr == 0) & (xi - xi == 0)


@device_function
def _finite(x, nan, high, low):
    return tl.where(x != x, nan, tl.where(x == float("inf"), high, tl.where(x == float("-inf"), low, x)))


def complex_replace_nonfinite(xr, xi, nan, _nan, high, _high, low, _low):
    return _finite(xr, nan, high, low), _finite(xi, nan, high, low)


# ---- exponentials, logarithms and roots; of what is not finite what C's standard says -----------------------------


@device_function
def _zeros(x, y):
    """x * y, 0 where either is."""
    return tl.where(y == 0, y, tl.where((x == 0) & (y != y), x, x * y))


@device_function
def _endless(x, y, real):
    """x * y, 0 where either is, and infinite where a real part is."""
    return tl.where((tl.abs(real) == float("inf")) & (y != y), x, _zeros(x, y))


@device_function
def complex_exp(xr, xi):
    """In two factors, so that it overflows only where the result does."""
    half = libdevice.exp(xr * 0.5)
    cosine, sine = libdevice.cos(xi), libdevice.sin(xi)
    re = tl.where((tl.abs(xr) == float("inf")) & (cosine != cosine), half, half * cosine * half)
    im = tl.where((xr == float("-inf")) & (sine != sine), half, half * sine * half)
    return re, tl.where(xi == 0, xi, im)


def complex_exp2(xr, xi):
    return complex_exp(xr * 0.6931471805599453, xi * 0.6931471805599453)


def complex_expm1(xr, xi):
    half = libdevice.sin(xi * 0.5)
    return libdevice.expm1(xr) * libdevice.cos(xi) - 2 * half * half, libdevice.exp(xr) * libdevice.sin(xi)


@device_function
def complex_log(xr, xi):
    """Near the unit circle by what the square of the size differs from 1, where the logarithm of the size cancels."""
    size = libdevice.hypot(xr, xi)
    big = tl.maximum(tl.abs(xr), tl.abs(xi))
    small = tl.minimum(tl.abs(xr), tl.abs(xi))
    near = libdevice.log1p((big - 1) * (big + 1) + small * small) * 0.5
    return tl.where((size > 0.7) & (size < 1.4), near, libdevice.log(size)), libdevice.atan2(xi, xr)


def complex_log2(xr, xi):
    re, im = complex_log(xr, xi)
    return re * 1.4426950408889634, im * 1.4426950408889634


def complex_log10(xr, xi):
    re, im = complex_log(xr, xi)
    return re * 0.4342944819032518, im * 0.4342944819032518


def complex_log1p(xr, xi):
    return complex_log(1 + xr, xi)


@device_function
def complex_sqrt(xr, xi):
    """The root with a real part that is not negative."""
    large = libdevice.sqrt(tl.abs(xr) * 0.5 + libdevice.hypot(xr * 0.5, xi * 0.5))
    small = tl.where(large == 0, large, tl.abs(xi) / (2 * large))
    re = tl.where(xr >= 0, large, small)
    im = libdevice.copysign(tl.where(xr >= 0, small, large), xi)
    endless = tl.abs(xi) == float("inf")
    return tl.where(endless, tl.abs(xi), re), tl.where(endless, xi, im)


def complex_rsqrt(xr, xi):
    re, im = complex_sqrt(xr, xi)
    return complex_reciprocal(re, im)


def complex_sigmoid(xr, xi):
    er, ei = complex_exp(-xr, -xi)
    return complex_reciprocal(1 + er, ei)


def complex_pow(xr, xi, yr, yi):
    lr, li = complex_log(xr, xi)
    pr, pi = complex_mul(lr, li, yr, yi)
    re, im = complex_exp(pr, pi)
    zero = (xr == 0) & (xi == 0)
    at_zero = tl.where((yr > 0) & (yi == 0), xr * 0, float("nan"))
    re = tl.where(zero, at_zero, re)
    im = tl.where(zero, at_zero, im)
    if len(yr.shape) == 0:  # a number: 1 for 0, and the square without a logarithm
        one = (yr == 0) & (yi == 0)
        two = (yr == 2) & (yi == 0)
        sr, si = complex_mul(xr, xi, xr, xi)
        re = tl.where(one, 1.0, tl.where(two, sr, re))
        im = tl.where(one, 0.0, tl.where(two, si, im))
    return re, im


# ---- trigonometric and hyperbolic functions -------------------------------------------------------------------


@device_function
def complex_sinh(xr, xi):
    """sinh(xr) complex_cos(xi) + i complex_cosh(xr) sin(xi)."""
    return _endless(libdevice.sinh(xr), libdevice.cos(xi), xr), _zeros(libdevice.cosh(xr), libdevice.sin(xi))


@device_function
def complex_cosh(xr, xi):
    """cosh(xr) complex_cos(xi) + i complex_sinh(xr) sin(xi)."""
    return _endless(libdevice.cosh(xr), libdevice.cos(xi), xr), _zeros(libdevice.sinh(xr), libdevice.sin(xi))


def complex_cos(xr, xi):
    return complex_cosh(-xi, xr)


@device_function
def _signed(size, x):
    """A number with the sign and of the dtype of x."""
    return libdevice.copysign(tl.minimum(tl.maximum(tl.abs(x), size), size), x)


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


@device_function
def complex_asin(xr, xi):
    """Of both roots' product, and of one times the other's conjugate."""
    ar, ai = complex_sqrt(1 - xr, -xi)
    br, bi = complex_sqrt(1 + xr, xi)
    re, im = libdevice.atan2(xr, ar * br - ai * bi), libdevice.asinh(ar * bi - ai * br)
    return _special(xr, xi, re, im, libdevice.atan2(xr, tl.abs(xi)), _signed(float("inf"), xi), xr)


def complex_acos(xr, xi):
    ar, ai = complex_sqrt(1 - xr, -xi)
    br, bi = complex_sqrt(1 + xr, xi)
    re, im = 2 * libdevice.atan2(ar, br), libdevice.asinh(br * ai - bi * ar)
    return _special(xr, xi, re, im, libdevice.atan2(tl.abs(xi), xr), -_signed(float("inf"), xi), 1.5707963267948966)


def complex_acosh(xr, xi):
    ar, ai = complex_sqrt(xr - 1, xi)
    br, bi = complex_sqrt(xr + 1, xi)
    re, im = libdevice.asinh(ar * br + ai * bi), 2 * libdevice.atan2(ai, br)
    im, re = _special(xr, xi, im, re, libdevice.atan2(xi, xr), float("inf"), 1.5707963267948966)
    return re, im


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


complex_sin, complex_asinh = _turned(complex_sinh), _turned(complex_asin)
complex_tan, complex_atan = _turned(complex_tanh), _turned(complex_atanh)

for _name, _body in list(globals().items()):
    if _name.startswith("complex_"):
        _operator: Any = registry[_name.removeprefix("complex_")]
        _operator.complex_kernel(_body)
for _operator in (arithmetic.add, arithmetic.sub, arithmetic.neg, arithmetic.copy, arithmetic.where):
    _operator.by_parts = True
