"""Logarithms, odds, angles: xlogy, logaddexp2, logit, sinc and angle."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from ...operators.rules import FLOAT, REAL_FLOAT, Magnitude
from ...tensors import Tensor
from ..exact import quotient
from .arithmetic import where, zeros
from .family import FUNCTIONS, elementwise

if TYPE_CHECKING:
    import triton.language as tl
    from triton.language.extra import libdevice


@elementwise(REAL_FLOAT, in_place_functions=["xlogy_"])
def xlogy(x: np.ndarray, y: np.ndarray):
    """x * log(y), and 0 where x is 0, unless y is NaN."""
    product = np.multiply(x, np.log(y), dtype=np.result_type(x, y))  # the logarithm of a number is float64
    return np.where(np.isnan(y), np.nan, np.where(np.equal(x, 0), 0, product))


xlogy.domain = {"y": (0, 50)}


def _overload(saved: dict[Any, Any]) -> int:
    return 1 if not hasattr(saved.get("x"), "_node") else 2 * (not hasattr(saved.get("y"), "_node"))


xlogy.overload = _overload
xlogy.gradients(x=lambda grad, x, y: where((x == 0) & (y <= 0), 0, xlogy(grad, y)), y=lambda grad, x, y: grad * (x / y))
xlogy.kernel(lambda x, y: tl.where(y != y, y, tl.where(x == 0, 0.0, x * libdevice.log(y))))

logaddexp2 = elementwise(REAL_FLOAT, np.logaddexp2, "`logaddexp` to base 2: log2(2**x + 2**y).", native=FUNCTIONS)
logaddexp2.gradients(x=lambda grad, x, y: grad / (1 + (y - x).exp2()), y=lambda grad, x, y: grad / (1 + (x - y).exp2()))


@logaddexp2.kernel
def _(x, y):
    high = tl.where(x > y, x, y)
    low = tl.where(x > y, y, x)
    sum = high + libdevice.log1p(libdevice.exp2(low - high)) * 1.4426950408889634
    return tl.where(x == y, x + 1.0, tl.where((x != x) | (y != y), x + y, sum))


@elementwise(REAL_FLOAT, methods=())
def logit(x: np.ndarray, *, eps=None):
    """log(x / (1 - x)), with `eps` of x kept from eps to 1 - eps."""
    if eps is not None:  # not np.clip, of which the other bound wins where eps is above 0.5
        x = np.where(x < eps, np.asarray(eps, x.dtype), np.minimum(x, np.asarray(1 - eps, x.dtype)))
    return np.log(x / (1 - x))


def _odds(grad: Tensor, x: Tensor, eps: float | None) -> Any:
    slope = grad / (x * (1 - x) + 0.0)  # of -0.0 it is inf, as of 0.0
    if eps is None:
        return where((x >= 0) & (x <= 1), slope, math.nan)
    return where((x >= eps) & (x <= 1 - eps), slope, 0)


logit.domain = (0, 1)
logit.gradient(_odds)


@logit.kernel
def _(x, eps):
    if eps is not None:
        x = tl.where(x < eps, eps, tl.where(x > 1 - eps, 1 - eps, x))
    return libdevice.log(quotient(x, 1 - x))


@elementwise(FLOAT)
def sinc(x: np.ndarray):
    """The normalised sinc function: sin(pi * x) / (pi * x), and 1 where x is 0."""
    scaled = x * math.pi
    return np.where(x == 0, 1, np.sin(scaled) / np.where(x == 0, 1, scaled)).astype(x.dtype)


def _slope_of_sinc(grad: Tensor, x: Tensor) -> Any:
    scaled, square = x * math.pi, x * x * math.pi
    slope = (scaled * scaled.cos() - scaled.sin()) / where(square == 0, 1, square)
    return grad * where(square == 0, x * (-(math.pi**2) / 3), slope)  # of which the slope at 0 is right, too


sinc.gradient(_slope_of_sinc)


@sinc.kernel
def _(x):
    scaled = x * 3.141592653589793
    return tl.where(x == 0, 1.0, quotient(libdevice.sin(scaled), scaled))


class Angles(Magnitude):
    """Real and floating, for complex operands too."""

    def __init__(self) -> None:
        super().__init__("angle", floating=True)


@elementwise(Angles(), in_place=False)
def angle(x):
    """The angle of a complex number, in (-pi, pi]; of a real one pi where it is negative, else 0."""
    if x.dtype.kind == "c":
        return np.angle(x)
    return np.where(np.isnan(x), x, np.where(x < 0, math.pi, 0)).astype(x.dtype)


def _turn(grad: Tensor, x: Any) -> Any:
    if not x.dtype.is_complex:
        return zeros(grad)
    return where(x == 0, 0, grad * x / (x.abs() ** 2) * 1j)


angle.gradient(_turn)
angle.kernel(lambda x: tl.where(x != x, x, (x < 0).to(x.dtype) * 3.141592653589793))
