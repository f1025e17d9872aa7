"""Bessel functions, modified ones too, and the Airy function, by the approximations of the Cephes Mathematical Library.

S. L. Moshier, "Methods and Programs for Mathematical Functions", 1989: rational approximations between roots and of
modulus and phase (j0, j1, y0, y1, airy), Chebyshev series (i0, i1, k0, k1). Relative errors are some 1e-15, absolute
ones where a function has roots. PyTorch leaves out the leading 1 of some denominators, which makes errors of 1e-6.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...runtime.source import device_function
from ...tensors import Tensor
from .arithmetic import where
from .coefficients import tables
from .one_text import clenshaw, one_text, polynomial, ratio, special

if TYPE_CHECKING:
    import triton.language as tl
    from triton.language.extra import libdevice

I0_NEAR, I0_FAR, I1_NEAR, I1_FAR, K0_NEAR, K0_FAR, K1_NEAR, K1_FAR = tables("modified Bessel")
J0_PP, J0_PQ, J0_QP, J0_QQ, J0_RP, J0_RQ, Y0_P, Y0_Q = tables("Bessel 0")
J1_PP, J1_PQ, J1_QP, J1_QQ, J1_RP, J1_RQ, Y1_P, Y1_Q = tables("Bessel 1")
AN, AD, AFN, AFD, AGN, AGD = tables("Airy")
_SPHERICAL = (1 / 6227020800, -1 / 39916800, 1 / 362880, -1 / 5040, 1 / 120, -1 / 6, 1.0)

# ---- modified Bessel functions -------------------------------------------------------------------------------------


@device_function
def _ie(x, NEAR: tl.constexpr, FAR: tl.constexpr):
    """exp(-|x|) times i0, or of i1, which is odd; its series is that of i1 / x."""
    size = tl.abs(x)
    high = tl.where(size > 8.0, size, 8.0)
    far = clenshaw(32.0 / high - 2.0, FAR) / libdevice.sqrt(high)
    return clenshaw(0.5 * size - 2.0, NEAR), far, size > 8.0


@device_function
def _i0e(x):
    near, far, high = _ie(x, I0_NEAR, I0_FAR)
    return tl.where(high, far, near)


@device_function
def _i1e(x):
    near, far, high = _ie(x, I1_NEAR, I1_FAR)
    return tl.where(high, libdevice.copysign(far, x), x * near)


@one_text()
def i0(x):
    """The modified Bessel function of the first kind and order 0."""
    return libdevice.exp(tl.abs(x)) * _i0e(x)


@special
def i0e(x):
    """The exponentially scaled modified Bessel function of the first kind and order 0: exp(-|x|) * i0(x)."""
    return _i0e(x)


@special
def i1(x):
    """The modified Bessel function of the first kind and order 1."""
    return libdevice.exp(tl.abs(x)) * _i1e(x)


@special
def i1e(x):
    """The exponentially scaled modified Bessel function of the first kind and order 1: exp(-|x|) * i1(x)."""
    return _i1e(x)


def _odd_slope(grad: Tensor, x: Tensor, even: Tensor, quotient: Tensor):
    """That of i1 is 1/2 at 0."""
    return grad * where(x.abs() <= 1e-15, 0.5, even - quotient)


i0.gradient(lambda grad, x: grad * i1(x))
i0e.gradient(lambda grad, out, x: grad * (i1e(x) - x.sgn() * out))
i1.gradient(lambda grad, out, x: _odd_slope(grad, x, i0(x), out / where(x == 0, 1, x)))
i1e.gradient(lambda grad, out, x: _odd_slope(grad, x, i0e(x), out / where(x == 0, 1, x) + x.sgn() * out))


@device_function
def _ke(x, FAR: tl.constexpr):
    """exp(x) times k0 or k1 above 2; and x up to 2, its logarithm and its exponential."""
    high = tl.where(x > 2.0, x, 2.0)
    low = tl.where(x > 2.0, 2.0, x)
    far = clenshaw(8.0 / high - 2.0, FAR) / libdevice.sqrt(high)
    return far, low, libdevice.log(0.5 * low), libdevice.exp(low)


@device_function
def _k0e(x):
    far, low, logarithm, scale = _ke(x, K0_FAR)
    near = clenshaw(low * low - 2.0, K0_NEAR) - logarithm * scale * _i0e(low)
    return tl.where(x > 2.0, far, near * scale)


@device_function
def _k1e(x):
    far, low, logarithm, scale = _ke(x, K1_FAR)
    near = logarithm * scale * _i1e(low) + clenshaw(low * low - 2.0, K1_NEAR) / low
    return tl.where(x == 0.0, float("inf"), tl.where(x > 2.0, far, near * scale))


@special
def scaled_modified_bessel_k0(x):
    """The scaled modified Bessel function of the second kind and order 0: exp(x) * k0(x); infinite at 0, NaN below."""
    return _k0e(x)


@special
def scaled_modified_bessel_k1(x):
    """The scaled modified Bessel function of the second kind and order 1: exp(x) * k1(x); infinite at 0, NaN below."""
    return _k1e(x)


@special
def modified_bessel_k0(x):
    """The modified Bessel function of the second kind and order 0; infinite at 0, NaN below."""
    return libdevice.exp(-x) * _k0e(x)


@special
def modified_bessel_k1(x):
    """The modified Bessel function of the second kind and order 1; infinite at 0, NaN below."""
    return libdevice.exp(-x) * _k1e(x)


# ---- Bessel functions ----------------------------------------------------------------------------------------------


@device_function
def _wave(x, turn, PP: tl.constexpr, PQ: tl.constexpr, QP: tl.constexpr, QQ: tl.constexpr):
    """The functions of the first and of the second kind at x above 5: modulus and phase."""
    high = tl.where(x > 5.0, x, 5.0)
    square = 25.0 / (high * high)
    size = ratio(square, PP, PQ)
    rest = 5.0 / high * ratio(square, QP, QQ)
    sine = libdevice.sin(high - turn)
    cosine = libdevice.cos(high - turn)
    scale = 0.7978845608028654 / libdevice.sqrt(high)
    return (size * cosine - rest * sine) * scale, (size * sine + rest * cosine) * scale


_wave0 = device_function(lambda x: _wave(x, 0.7853981633974483, J0_PP, J0_PQ, J0_QP, J0_QQ))
_wave1 = device_function(lambda x: _wave(x, 2.356194490192345, J1_PP, J1_PQ, J1_QP, J1_QQ))


@device_function
def _j0(x):
    """Up to 5, where it has two roots."""
    square = x * x
    return (square - 5.783185962946784) * (square - 30.471262343662087) * ratio(square, J0_RP, J0_RQ)


@device_function
def _j1(x):
    square = x * x
    return ratio(square, J1_RP, J1_RQ) * x * (square - 14.681970642123893) * (square - 49.2184563216946)


@special
def bessel_j0(x):
    """The Bessel function of the first kind and order 0."""
    size = tl.abs(x)
    wave, _other = _wave0(size)
    return tl.where(size > 5.0, wave, _j0(tl.where(size > 5.0, 5.0, size)))


@special
def bessel_j1(x):
    """The Bessel function of the first kind and order 1."""
    size = tl.abs(x)
    wave, _other = _wave1(size)
    return tl.where(size > 5.0, tl.where(x < 0, -wave, wave), _j1(tl.where(size > 5.0, 5.0, x)))


@special
def bessel_y0(x):
    """The Bessel function of the second kind and order 0; -infinity at 0, NaN below."""
    _other, wave = _wave0(x)
    low = tl.where(x > 5.0, 5.0, x)
    near = ratio(low * low, Y0_P, Y0_Q) + 0.6366197723675814 * libdevice.log(low) * _j0(low)
    return tl.where(x > 5.0, wave, near)


@special
def bessel_y1(x):
    """The Bessel function of the second kind and order 1; -infinity at 0, NaN below."""
    _other, wave = _wave1(x)
    low = tl.where(x > 5.0, 5.0, x)
    near = low * ratio(low * low, Y1_P, Y1_Q) + 0.6366197723675814 * (_j1(low) * libdevice.log(low) - 1.0 / low)
    return tl.where(x == 0.0, float("-inf"), tl.where(x > 5.0, wave, near))


@special
def spherical_bessel_j0(x):
    """The spherical Bessel function of the first kind and order 0: sin(x) / x."""
    square = x * x
    near = polynomial(tl.where(square < 0.25, square, 0.0), _SPHERICAL)
    far = tl.where(square < 0.25, 1.0, x)
    return tl.where(tl.abs(x) == float("inf"), 0.0, tl.where(square < 0.25, near, libdevice.sin(far) / far))


@special
def airy_ai(x):
    """The Airy function of the first kind; NaN at the infinities, as in PyTorch."""
    size = tl.where(tl.abs(x) > 2.09, tl.abs(x), 2.09)
    size = tl.where(size > 1e20, 1e20, size)  # the phase has lost its digits long before
    zeta = 2.0 / 3.0 * size * libdevice.sqrt(size)
    inverse = 1.0 / zeta
    square = inverse * inverse
    scale = 0.5641895835477563 / libdevice.sqrt(libdevice.sqrt(size))
    right = 0.5 * scale * ratio(inverse, AN, AD) * libdevice.exp(-zeta)
    sine = libdevice.sin(zeta + 0.7853981633974483) * (1.0 + square * ratio(square, AFN, AFD))
    cosine = libdevice.cos(zeta + 0.7853981633974483) * inverse * ratio(square, AGN, AGD)
    left = scale * (sine - cosine)
    middle = tl.where(tl.abs(x) <= 2.09, x, 0.0)
    cube = middle * middle * middle
    even = tl.zeros_like(x) + 1.0
    odd = tl.zeros_like(x) + 1.0
    for step in tl.static_range(13, 0, -1):  # Maclaurin's series, of which so many terms reach 1e-17
        even = 1.0 + even * cube / ((3.0 * step - 1.0) * (3.0 * step))
        odd = 1.0 + odd * cube / ((3.0 * step) * (3.0 * step + 1.0))
    series = 0.3550280538878172 * even - 0.2588194037928068 * middle * odd
    result = tl.where(x >= 2.09, right, tl.where(x < -2.09, left, series))
    return tl.where((tl.abs(x) == float("inf")) | (x != x), float("nan"), tl.where(x > 103.892, 0.0, result))


for _operator in (scaled_modified_bessel_k0, scaled_modified_bessel_k1, modified_bessel_k0, modified_bessel_k1):
    _operator.domain = (0, 20)
    _operator.constant = True  # as all without a gradient: in PyTorch none of their results requires grad
bessel_y0.domain = bessel_y1.domain = (0, 20)
for _operator in (bessel_j0, bessel_j1, bessel_y0, bessel_y1, spherical_bessel_j0, airy_ai):
    _operator.constant = True
