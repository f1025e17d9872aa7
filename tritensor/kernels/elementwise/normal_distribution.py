"""Functions of the normal distribution and of entropies, and the scaled and the inverse error function.

`ndtri` and `erfinv` are the rational approximations of the Cephes Mathematical Library (S. L. Moshier, 1989), with
relative errors of some 1e-15; `erfcx` is W. J. Cody's (see `error_function`).
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from ...runtime.source import device_function
from .arithmetic import where
from .coefficients import tables
from .error_function import LARGE_P, LARGE_Q, MIDDLE_P, MIDDLE_Q, SMALL_P, SMALL_Q
from .one_text import one_text, ratio, special

if TYPE_CHECKING:
    import triton.language as tl
    from triton.language.extra import libdevice

# ndtri up to 3 / 8 from the middle, and by z = sqrt(-2 log(y)) from 2 to 8 and above 8
_P0, _Q0, _P1, _Q1, _P2, _Q2 = tables("quantiles")


@device_function
def _quantile(offset, tail):
    """Where the normal distribution has the probability 1/2 + offset, with `tail` beyond it."""
    square = offset * offset
    middle = 2.5066282746310002 * (offset + offset * square * ratio(square, _P0, _Q0))
    z = libdevice.sqrt(-2.0 * libdevice.log(tl.where(tail == 0.0, 0.1, tail)))
    inverse = 1.0 / z
    rest = tl.where(z < 8.0, ratio(inverse, _P1, _Q1), ratio(inverse, _P2, _Q2))
    far = z - libdevice.log(z) * inverse - inverse * rest
    far = libdevice.copysign(tl.where(tail == 0.0, float("inf"), far), offset)
    return tl.where(tail > 0.1353352832366127, middle, far)


@special
def ndtri(x):
    """The inverse of the standard normal CDF (the quantile function): the number whose `ndtr` is x."""
    return _quantile(x - 0.5, tl.where(x > 0.5, 1.0 - x, x))


@one_text(autocast={"cuda": "float32"}, in_place_functions=())
def erfinv(x):
    """The inverse error function: the number whose error function is x."""
    return 0.7071067811865476 * _quantile(0.5 * x, 0.5 - 0.5 * tl.abs(x))


_TURN = math.sqrt(math.pi) / 2

ndtri.gradient(lambda grad, out: grad * (out * out * 0.5).exp() * math.sqrt(2 * math.pi))
erfinv.gradient(lambda grad, out: grad * (out * out).exp() * _TURN)
ndtri.domain, erfinv.domain = (0, 1), (-1, 1)


@device_function
def _erfcx(x):
    size = tl.abs(x)
    square = x * x
    near = libdevice.exp(square) * (1.0 - size * ratio(square, SMALL_P, SMALL_Q))
    middle = ratio(tl.where(size > 4.0, 4.0, size), MIDDLE_P, MIDDLE_Q)
    far = tl.where(size > 4.0, size, 4.0)
    inverse = 1.0 / far / far
    far = (0.5641895835477563 - inverse * ratio(inverse, LARGE_P, LARGE_Q)) / far
    return tl.where(size < 0.46875, near, tl.where(size > 4.0, far, middle))


@special
def erfcx(x):
    """The scaled complementary error function: exp(x * x) * erfc(x), without overflow."""
    result = _erfcx(x)
    return tl.where(x < 0, 2.0 * libdevice.exp(x * x) - result, result)


erfcx.gradient(lambda grad, out, x: grad * (2 * x * out - 1 / _TURN))


@special
def ndtr(x):
    """The standard normal CDF: the probability of a value below x."""
    return 0.5 * libdevice.erfc(-0.7071067811865476 * x)


@special
def log_ndtr(x):
    """The logarithm of the standard normal CDF, `ndtr`, exact far below 0."""
    scaled = 0.7071067811865476 * x
    low = libdevice.log(0.5 * _erfcx(tl.where(x < -1.0, scaled, -1.0))) - scaled * scaled
    high = libdevice.log1p(-0.5 * libdevice.erfc(tl.where(x < -1.0, 0.0, scaled)))
    return tl.where(x < -1.0, low, high)


ndtr.node, ndtr.overload = "mul", lambda saved: 1
ndtr.gradient(lambda grad, x: grad * (x * x * -0.5).exp() / math.sqrt(2 * math.pi))
log_ndtr.gradient(lambda grad, x: grad / erfcx(x * -math.sqrt(0.5)) * math.sqrt(2 / math.pi))


@special
def entr(x):
    """The entropy of each element: -x * log(x); 0 at 0, -infinity below."""
    result = -x * libdevice.log(tl.where(x > 0, x, 1.0))
    return tl.where(x > 0, result, tl.where(x == 0.0, 0.0, tl.where(x < 0, float("-inf"), x)))


entr.gradient(lambda grad, x: grad * (-x.log() - 1))
entr.gradient_domain = (0.1, 3)


@special
def xlog1py(x, y):
    """x * log(1 + y), and 0 where x is 0 and y is not NaN."""
    return tl.where((x == 0.0) & (y == y), 0.0, x * libdevice.log1p(y))


xlog1py.gradients(
    x=lambda grad, x, y: where((x == 0) & (y <= -1), 0, xlog1py(grad, y)),
    y=lambda grad, x, y: grad * x / (y + 1),
)
xlog1py.domain = {"y": (-0.9, 5)}
