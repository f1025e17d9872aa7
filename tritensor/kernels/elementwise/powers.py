"""Powers."""

from __future__ import annotations

import cmath
import math
from typing import TYPE_CHECKING, Any

import numpy as np

from ...operators.rules import Power
from ...tensors import Tensor
from ...types import dtypes
from ..exact import quotient, root
from .arithmetic import complex_mul, dtype_of, where, zeros
from .exponential import complex_exp, complex_log
from .family import LIBRARY, elementwise

if TYPE_CHECKING:
    import triton.language as tl
    from triton.language.extra import libdevice


@elementwise(Power("power", dtypes.INTEGER), methods=["__pow__", "pow"], autocast={"cuda": "float32"}, native=LIBRARY)
def pow(x, y):
    """Raises x to the power y; integers stay integers, and a negative power of one is 0 (of 1 and -1: 1 or -1)."""
    if dtype_of(x, y).kind in "fc":
        return _float_power(x, y)
    if dtype_of(x, y).kind == "b":
        return x | ~np.bool_(y)
    x, y = np.asarray(x), np.asarray(y)
    whole = np.power(x, np.maximum(y, 0))
    return np.where(y >= 0, whole, np.where(np.abs(x) == 1, np.where(y % 2 == 0, 1, x), 0))


def _float_power(x: Any, y: Any) -> np.ndarray:
    if not isinstance(x, np.ndarray):
        x = np.asarray(x, y.dtype)
    if dtype_of(x, y).kind == "c":
        result = np.asarray(x**y)
        if isinstance(y, np.ndarray):  # a number as the exponent, 0, gives 1
            np.copyto(result, complex(math.nan, math.nan), where=(x == 0) & (y == 0))
        return result
    if not isinstance(y, np.ndarray):
        if y in (0.5, -0.5):
            root = np.sqrt(x)
            return root if y > 0 else 1 / root
        if y in (2, 3):  # NumPy's own square of 2.0 takes four times as long
            square = np.multiply(x, x, out=np.empty_like(x))
            return np.multiply(square, x, out=square) if y == 3 else square
        y = float(y)  # as a kernel takes it: beyond 2**53 integers are even
        if y.is_integer():
            # np.power takes 60 ns for a negative base, 2 ns for a positive one
            size = np.abs(x) ** y
            return np.copysign(size, x) if y % 2 else size
    result = np.asarray(x**y)
    if isinstance(y, np.ndarray):
        # C's pow says infinity; where NumPy sees one exponent of 1/2 for many numbers, it takes the square root
        np.copyto(result, np.inf, where=(x == -np.inf) & (y == 0.5))
    return result


def _power_of_base(grad: Tensor, x: Tensor, y: Tensor | float) -> Any:
    if isinstance(y, Tensor):
        return where(y == 0, 0, grad * (y * x ** (y - 1)))
    exponent = y if isinstance(y, complex) else float(y)  # of the smallest integer there is none below
    return grad * (y * x ** (exponent - 1)) if y != 0 else zeros(grad)


def _power_of_exponent(grad: Tensor, out: Any, x: Any, y: Any) -> Any:
    complex_ = y.dtype.is_complex if isinstance(y, Tensor) else isinstance(y, complex)
    return grad * where((x == 0) if complex_ else (x == 0) & (y >= 0), 0, out * _log(x, out.dtype))


def _overload(saved: dict[Any, Any]) -> int:
    return 2 if not hasattr(saved.get("x"), "_node") else int(hasattr(saved.get("y"), "_node"))


pow.overload = _overload
pow.gradients(x=_power_of_base, y=_power_of_exponent)


pow.gradient_domain = {"x": (0.2, 3.0), "y": (-2.0, 2.0)}


def _log(x: Any, kind: dtypes.dtype) -> Any:
    """The logarithm of a base; of integers in the dtype of the power."""
    if isinstance(x, Tensor):
        return (x.to(kind) if x.dtype.category < dtypes.FLOATING else x).log()
    if isinstance(x, complex):
        return cmath.log(x) if x else -math.inf
    return math.log(x) if x > 0 else math.nan if x < 0 else -math.inf


@pow.kernel
def _(x, y):
    if x.dtype.is_floating():
        power = libdevice.pow(x, y)
        if len(y.shape) == 0:
            # A number: of a root, -inf has none and -0 has -0; and a GPU's power of 7 to 1 is not 7.
            size = tl.abs(y)
            exact = tl.where(size == 2.0, x * x, tl.where(size == 1.0, x, root(x)))
            exact = tl.where(y < 0, quotient(1.0, exact), tl.where(y == 3.0, x * x * x, exact))
            known = (size == 0.5) | (size == 1.0) | (size == 2.0) | (y == 3.0)
            power = tl.where(known, exact, power)
        return power
    elif x.dtype == tl.int1:
        return x | (y == 0)
    else:
        result = x * 0 + 1
        base = x
        rest = tl.where(y < 0, y * 0, y)
        for _step in range(x.dtype.primitive_bitwidth):
            result = tl.where((rest & 1) != 0, result * base, result)
            base = base * base
            rest = rest >> 1
        odd = (y & 1) != 0
        inverse = tl.where(x == 1, x, tl.where(x + 1 == 0, tl.where(odd, x, -x), x * 0))
        return tl.where(y < 0, inverse, result)


@pow.complex_kernel
def _(xr, xi, yr, yi):
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
