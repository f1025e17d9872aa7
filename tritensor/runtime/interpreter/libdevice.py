"""`libdevice` in simulated kernels: the device's mathematics library, implemented in NumPy. Imports Triton.

Triton's interpreter does not implement this library. These are functions of the same names for float32 and float64
values. A kernel that calls a function that is missing here fails in simulation; a line below adds one.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import triton.language as tl

from .builder import block, numpy_dtype, semantic


def _function(compute: Callable[..., Any], result: Any = None) -> Callable[..., Any]:
    def call(*args: Any) -> Any:
        values = [semantic.to_tensor(value) for value in args]
        if not values[0].dtype.is_floating() or values[0].dtype.primitive_bitwidth < 32:
            raise TypeError(f"libdevice takes float32 and float64, not {values[0].dtype}; convert with .to(tl.float32)")
        dtype = result or values[0].dtype
        data = np.asarray(compute(*[value.handle.data for value in values])).astype(numpy_dtype(dtype), copy=False)
        return block(data if any(value.type.is_block() for value in values) else data.reshape(()), dtype)

    return call


def _of_python(function: Callable[[float], float]) -> Callable[..., Any]:
    """A function that NumPy lacks, from Python's `math`: 0.1 us per element."""

    def total(value: float) -> float:
        try:
            return function(value)
        except (OverflowError, ValueError):  # where Python raises, a device returns infinity or NaN
            return math.inf if value >= 0 or function is math.lgamma else math.nan

    return _function(np.vectorize(total, otypes=[np.float64]))


def _round_half_away(value: np.ndarray) -> np.ndarray:
    return np.copysign(np.floor(np.abs(value) + value.dtype.type(0.5)), value)


def _towards_zero(value: np.ndarray, by: np.ndarray) -> np.ndarray:
    """Quotients, cut where the nearest float32 is farther from zero; those of float64 are the nearest."""
    exact = value.astype(np.float64) / by
    nearest = exact.astype(value.dtype)
    return np.where(np.abs(nearest) > np.abs(exact), np.nextafter(nearest, value.dtype.type(0)), nearest)


acos, acosh, asin, asinh = map(_function, (np.arccos, np.arccosh, np.arcsin, np.arcsinh))
atan, atan2, atanh = map(_function, (np.arctan, np.arctan2, np.arctanh))
sin, cos, tan, sinh, cosh, tanh = map(_function, (np.sin, np.cos, np.tan, np.sinh, np.cosh, np.tanh))
exp, exp2, expm1, log, log2, log10, log1p = map(
    _function, (np.exp, np.exp2, np.expm1, np.log, np.log2, np.log10, np.log1p)
)
exp10 = _function(lambda x: np.power(x.dtype.type(10), x))
sqrt, cbrt, hypot = map(_function, (np.sqrt, np.cbrt, np.hypot))
# the exponent is broadcast first: for a single exponent of 1/2 NumPy calls sqrt, which differs at minus infinity
pow = _function(lambda x, y: np.power(x, np.array(np.broadcast_to(y, np.broadcast_shapes(x.shape, y.shape)))))
rsqrt = _function(lambda x: 1 / np.sqrt(x))
floor, ceil, trunc, rint, nearbyint = map(_function, (np.floor, np.ceil, np.trunc, np.rint, np.rint))
round = _function(_round_half_away)
llrint = _function(np.rint, tl.int64)
fmod, copysign, nextafter = map(_function, (np.fmod, np.copysign, np.nextafter))
remainder = _function(lambda x, y: x - np.rint(x / y) * y)  # IEEE remainder: the quotient is rounded to even
ldexp = _function(np.ldexp)
fma = _function(lambda x, y, z: x.astype(np.float64) * y + z)
div_rn = fast_dividef = _function(np.divide)
div_rz = _function(_towards_zero)
isnan, isinf, finitef, isfinited = (_function(test, tl.int1) for test in (np.isnan, np.isinf, np.isfinite, np.isfinite))
signbit = _function(np.signbit, tl.int32)
fast_expf, fast_logf, fast_powf, fast_tanhf, fast_sinf, fast_cosf = exp, log, pow, tanh, sin, cos
erf, erfc, lgamma, tgamma = map(_of_python, (math.erf, math.erfc, math.lgamma, math.gamma))
