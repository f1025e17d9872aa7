"""The error function and its complement, which NumPy does not have.

The reference is W. J. Cody's rational approximation ("Rational Chebyshev approximations for the error function",
Mathematics of Computation 23, 1969): three ranges, relative error below 1e-15 in float64. All but erf of
float32 is computed in float64 and rounded once.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from ...operators.rules import REAL_FLOAT
from ...runtime.source import device_function
from .coefficients import tables
from .family import FUNCTIONS, elementwise

if TYPE_CHECKING:
    from triton.language.extra import libdevice

# erf(x) = x * p(x^2) / q(x^2) up to 0.46875; erfc(x) = exp(-x^2) * p(x) / q(x) up to 4; above 4 it is
# exp(-x^2) / x * (1 / sqrt(pi) - p(1 / x^2) / (x^2 * q(1 / x^2)))
SMALL_P, SMALL_Q, MIDDLE_P, MIDDLE_Q, LARGE_P, LARGE_Q = tables("error function")


def _ratio(p: tuple[float, ...], q: tuple[float, ...], x: np.ndarray) -> np.ndarray:
    above, below = np.full_like(x, p[0]), np.full_like(x, q[0])
    for coefficient in p[1:]:
        above *= x
        above += coefficient
    for coefficient in q[1:]:
        below *= x
        below += coefficient
    above /= below
    return above


def erfc_tail(x: np.ndarray) -> np.ndarray:
    """erfc of float64 numbers above 0.46875 (or NaN)."""
    x = np.minimum(x, 30.0)  # beyond 27.3 the result is 0
    # the square is split into an exact part and a small rest, so that its exponential is accurate in the last digits
    near = np.trunc(x * 16) / 16
    scale = np.exp(-near * near) * np.exp(-(x - near) * (x + near))
    large = x > 4
    result = _ratio(MIDDLE_P, MIDDLE_Q, np.where(large, 4.0, x)) * scale
    if large.any():
        y = x[large]
        inverse = 1 / (y * y)
        tail = (1 / math.sqrt(math.pi) - inverse * _ratio(LARGE_P, LARGE_Q, inverse)) / y
        result[large] = tail * scale[large]
    return result


# For float32, minimax polynomials of x^2, fitted to 40-digit values up to |x| = 6. They cost half of a rational
# approximation, because NumPy vectorises exp and tanh. erf(x) = tanh(x * p(x^2)), relative error 7e-8:
_TANH = (
    5.4217023e-09,
    2.75735964e-08,
    -4.79458237e-06,
    8.45964866e-05,
    -0.00061483804,
    -0.000195288359,
    0.102769864,
    1.12837925,
)
# 1 / F(x) = 1 + exp(x * p(x^2)), where F is the distribution function of the normal distribution; beyond |x| = 6 the
# polynomial grows on, so that x * F(x) goes to x or 0. The error of x * F(x) is below 4e-8, relative above x = 0.
_LOGIT = (-3.40395423e-09, 2.60499463e-07, -7.8764846e-06, 0.000110305767, 6.5974684e-05, -0.0726669486, -1.59576968)


def _odd_polynomial(coefficients: tuple[float, ...], x: np.ndarray) -> np.ndarray:
    """x times the polynomial of x^2, in a new array."""
    square = np.square(x, out=np.empty_like(x))
    result = np.multiply(square, coefficients[0], out=np.empty_like(x))
    result += coefficients[1]
    for coefficient in coefficients[2:]:
        result *= square
        result += coefficient
    result *= x
    return result


# Elements per piece of the thirty passes of a rational approximation: their arrays stay in a level-2 cache.
_PIECE = 1 << 15


def in_pieces(function: Callable[..., np.ndarray], *arrays: np.ndarray, size: int = _PIECE) -> np.ndarray:
    """`function(*arrays)` for an elementwise function of many passes; large arrays of one shape are processed in
    pieces."""
    x = arrays[0]
    if x.size <= size or any(each.shape != x.shape or not each.flags.c_contiguous for each in arrays):
        return function(*arrays)
    out, flat = np.empty(x.size, x.dtype), [each.reshape(-1) for each in arrays]
    for start in range(0, x.size, size):
        out[start : start + size] = function(*[each[start : start + size] for each in flat])
    return out.reshape(x.shape)


def erf_array(x: np.ndarray) -> np.ndarray:
    """erf of a float32 or float64 array, in a new array."""
    if x.dtype == np.float32:
        result = _odd_polynomial(_TANH, x)
        return np.tanh(result, out=result)
    flat = x.reshape(-1)
    small = np.minimum(np.abs(flat), 0.46875)
    result = small * _ratio(SMALL_P, SMALL_Q, small * small)
    outside = ~(np.abs(flat) <= 0.46875)
    result[outside] = 1 - erfc_tail(np.abs(flat[outside]))
    return np.copysign(result, flat, out=result).reshape(x.shape)


def normal_reciprocal(x: np.ndarray) -> np.ndarray:
    """1 / F(x) for a float32 array, where F is the distribution function of the normal distribution."""
    result = _odd_polynomial(_LOGIT, x)
    np.exp(result, out=result)
    result += 1
    return result


@device_function
def normal_reciprocal_of_halves(x):
    """1 / F(x) in float32 for results of 16 bits, where F is the distribution function of the normal distribution.

    log2(1 / F(x) - 1) = x * p(x^2), a minimax polynomial by linear programming at 3,000 points up to |x| = 5.75. The
    error of x * F(x) is below 2**-14 of it and 6.5e-9 together, for every float16 and bfloat16: an eighth of the unit
    of float16. 10 instructions, where erfc takes 52.
    """
    square = x * x
    logit = square * -2.48680809e-09 + 2.22483337e-07
    logit = logit * square - 7.79741094e-06
    logit = logit * square + 0.000120532037
    logit = logit * square + 0.000295052654
    logit = logit * square - 0.105280794
    logit = logit * square - 2.30191374
    return 1.0 + libdevice.exp2(logit * x)


@device_function
def normal_reciprocal_of_singles(x):
    """The same in float32, by `_LOGIT` for powers of 2: a third of the instructions of erfc."""
    square = x * x
    logit = square * -4.91086789e-09 + 3.75821283e-07
    logit = logit * square - 1.13633653e-05
    logit = logit * square + 0.000159137583
    logit = logit * square + 9.51813494e-05
    logit = logit * square - 0.104836246
    logit = logit * square - 2.302209
    return 1.0 + libdevice.exp2(logit * x)


def erfc_array(x: np.ndarray) -> np.ndarray:
    """erfc of an array, in float64."""
    flat = np.asarray(x, np.float64).reshape(-1)
    small = np.clip(flat, -0.46875, 0.46875)
    result = 1 - small * _ratio(SMALL_P, SMALL_Q, small * small)
    outside = ~(np.abs(flat) <= 0.46875)
    far = flat[outside]
    tail = erfc_tail(np.abs(far))
    result[outside] = np.where(far < 0, 2 - tail, tail)
    return result.reshape(x.shape)


@elementwise(REAL_FLOAT, native=FUNCTIONS)
def erf(x: np.ndarray):
    """The error function: 2 / sqrt(pi) times the integral of exp(-t * t) from 0 to x."""
    return in_pieces(erf_array, x)


erf.gradient(lambda grad, x: grad * (x * x).neg().exp() * (2 / math.sqrt(math.pi)))
erf.kernel(lambda x: libdevice.erf(x))


@elementwise(REAL_FLOAT, native=FUNCTIONS)
def erfc(x: np.ndarray):
    """The complementary error function: 1 - erf(x), exact where erf(x) is close to 1."""
    return in_pieces(erfc_array, x).astype(x.dtype, copy=False)


erfc.gradient(lambda grad, x: grad * (x * x).neg().exp() * (-2 / math.sqrt(math.pi)))
erfc.kernel(lambda x: libdevice.erfc(x))
