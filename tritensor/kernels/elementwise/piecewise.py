"""Piecewise-linear activations, and gates; public functions call them.

As in `activations`, the gradients that are not arithmetic are operators of their own, one launch each.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from ...operators.rules import FLOATING, Rule
from ...types import dtypes
from ..exact import quotient
from .activations import leaky_relu_gradient, sigmoid, sigmoid_gradient
from .arithmetic import where
from .family import elementwise
from .maximum import larger, smaller
from .select import masked, select

if TYPE_CHECKING:
    import triton.language as tl
    from triton.language.extra import libdevice


@elementwise(FLOATING, methods=())
def hardshrink(x: np.ndarray, at: np.ndarray, *, low=-math.inf, high=0.5):
    """x, and 0 where `at` lies between low and high, or on one of them: also the gradient, with x for grad."""
    return masked(~((at >= low) & (at <= high)) if low > -math.inf else ~(at <= high), x)


hardshrink.gradients(x=lambda grad, at, low, high: hardshrink(grad, at, low=low, high=high))
hardshrink.kernel(lambda x, at, low, high: tl.where((at >= low) & (at <= high), 0.0, x))


@elementwise(Rule("integer, real floating", dtypes.INTEGER, dtypes.FLOATING, held=("threshold", "value")), methods=())
def threshold(x: np.ndarray, *, threshold, value):
    """x where it is above `threshold`, else `value`."""
    return select(x <= threshold, np.full_like(x, value), x)


threshold.example = {"threshold": 1, "value": 2}
threshold.gradient(lambda grad, x, threshold: hardshrink(grad, x, high=threshold))
threshold.kernel(lambda x, threshold, value: tl.where(x <= threshold, value, x))


@elementwise(FLOATING, methods=())
def softshrink(x: np.ndarray, *, lambd=0.5):
    """x, closer to 0 by lambd, and a zero of its sign where it would pass it."""
    out = np.empty_like(x)
    np.clip(x, -lambd, lambd, out=out)
    np.subtract(x, out, out=out)
    return np.copysign(out, x, out=out)


softshrink.gradient(lambda grad, x, lambd: hardshrink(grad, x, low=-lambd, high=lambd))
softshrink.kernel(lambda x, lambd: tl.where(x > lambd, x - lambd, tl.where(x < -lambd, x + lambd, x * 0.0)))


@elementwise(FLOATING, methods=())
def hardsigmoid(x: np.ndarray):
    """x / 6 + 1 / 2, held between 0 and 1."""
    return np.clip(x + 3, 0, 6) / 6


hardsigmoid.kernel(lambda x: quotient(smaller(larger(x + 3.0, 0.0), 6.0), tl.zeros_like(x) + 6.0))

_SIXTH = 0.1666666716337204  # PyTorch's, which is rounded to float32 in float64, too


@elementwise(FLOATING, methods=())
def hardsigmoid_gradient(grad: np.ndarray, x: np.ndarray):
    """grad / 6 where x lies between -3 and 3, else 0."""
    return masked((x > -3) & (x < 3), grad * _SIXTH)


hardsigmoid.gradient(lambda grad, x: hardsigmoid_gradient.method(grad, x))
hardsigmoid_gradient.gradients(grad=lambda again, x: hardsigmoid_gradient.method(again, x))
hardsigmoid_gradient.constant = ("x",)
hardsigmoid_gradient.kernel(lambda grad, x: tl.where((x > -3.0) & (x < 3.0), grad * 0.1666666716337204, 0.0))


@elementwise(FLOATING, methods=())
def hardswish(x: np.ndarray):
    """x * hardsigmoid(x)."""
    out = np.clip(x + 3, 0, 6)
    out *= x
    out /= 6
    return out


hardswish.kernel(lambda x: quotient(x * smaller(larger(x + 3.0, 0.0), 6.0), tl.zeros_like(x) + 6.0))


@elementwise(FLOATING, methods=())
def hardswish_gradient(grad: np.ndarray, x: np.ndarray):
    """grad * (x / 3 + 1 / 2) where x lies between -3 and 3, 0 below and grad above."""
    return select(x <= -3, grad.dtype.type(0), select(x < 3, grad * (x / 3 + 0.5), grad))


hardswish.gradient(lambda grad, x: hardswish_gradient.method(grad, x))
hardswish_gradient.gradients(
    grad=lambda again, x: hardswish_gradient.method(again, x),
    x=lambda again, grad, x: where((x > -3) & (x < 3), again * grad / 3, 0),
)


@hardswish_gradient.kernel
def _(grad, x):
    return tl.where(x <= -3.0, 0.0, tl.where(x < 3.0, grad * (quotient(x, tl.zeros_like(x) + 3.0) + 0.5), grad))


@elementwise(Rule("real floating", dtypes.FLOATING, dtypes.FLOATING, promote=False), methods=())
def prelu_kernel(x: np.ndarray, weight: np.ndarray):
    """x where it is positive, else weight * x."""
    return select(x > 0, x, x * weight)


prelu_kernel.kernel(lambda x, weight: tl.where(x > 0, x, x * weight))
prelu_kernel.gradients(
    x=lambda grad, x, weight: leaky_relu_gradient(grad, x, weight), weight=lambda grad, x: grad * x.clamp_max(0)
)


@elementwise(FLOATING, methods=())
def glu(x, gate):
    """x * sigmoid(gate)."""
    return x / (1 + np.exp(-gate))


glu.gradients(
    x=lambda grad, gate: glu(grad, gate), gate=lambda grad, x, gate: sigmoid_gradient(grad * x, sigmoid(gate))
)
glu.kernel(lambda x, gate: quotient(x, 1.0 + libdevice.exp(-gate)))
