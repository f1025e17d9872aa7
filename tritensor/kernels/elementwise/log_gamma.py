"""The logarithm of the magnitude of the gamma function, which NumPy does not have.

The reference is that of the Cephes Mathematical Library (S. L. Moshier, 1989): a rational approximation around 2.5,
from which the recurrence leads to smaller and larger numbers; Stirling's series from 7 on, the reflection below 0. Its
error is some 1e-16, and relative to the result near its roots at 1 and 2.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from ...operators import registry
from ...operators.rules import REAL_FLOAT
from .coefficients import tables
from .error_function import in_pieces
from .family import FUNCTIONS, elementwise

if TYPE_CHECKING:
    from triton.language.extra import libdevice

# log(gamma(2 + x)) = x * p(x) / q(x) for x from 0 to 1, and log(gamma(x)) = (x - 1/2) * log(x) - x + log(2 pi) / 2 +
# STIRLING(1 / x^2) / x: nine terms leave 1e-16 at 7
_P, _Q, STIRLING = tables("log gamma")


def lgamma_array(x: np.ndarray) -> np.ndarray:
    """The logarithm for an array, in float64."""
    x = np.asarray(x, np.float64)
    size = np.abs(x)
    low, high = np.minimum(size, 7.0), np.maximum(size, 7.0)
    whole = np.floor(low + 0.1)  # the approximation is as good a little below 2, where a root is
    part = low - whole
    product = np.where(whole == 1, low, np.where(whole == 0, low * (low + 1), 1.0))
    for step in range(2, 7):
        product = product * np.where(whole > step, part + step, 1.0)
    result = np.log(product)
    result = np.where(whole < 2, -result, result) + part * np.polyval(_P, part) / np.polyval(_Q, part)
    far = (high - 0.5) * np.log(high) - high + (0.5 * math.log(2 * math.pi))
    result = np.where(size < 7, result, far + np.polyval(STIRLING, 1 / (high * high)) / high)
    negative = x < 0
    if negative.any():
        sine = np.sin(np.pi * np.abs(size - np.rint(size)))
        result = np.where(negative, math.log(math.pi) - np.log(size * sine) - result, result)
    return np.where(np.isinf(x) | (size > 1e306), np.inf, result)


@elementwise(REAL_FLOAT, in_place_functions=(), native=FUNCTIONS)
def lgamma(x: np.ndarray):
    """The logarithm of the absolute value of the gamma function."""
    return in_pieces(lgamma_array, x).astype(x.dtype, copy=False)


lgamma.kernel(lambda x: libdevice.lgamma(x))


lgamma.gradient(lambda grad, x: grad * registry["digamma"](x))
lgamma.domain, lgamma.gradient_domain = (-3.5, 20), (0.5, 20)
