"""The nonlinearities of neural networks, each with its gradient.

The gradients are operators too: each is one launch and rounds half precision once. It takes the gradient of the result
and either the activation's input, `x`, or its `result`. It is linear in `grad`, so its gradient with respect to `grad`
is itself; the one with respect to `x` is composed of other operators, because second derivatives are rarely needed.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from ...operators.rules import FLOAT, FLOATING, Rectified, Rule
from ...tensors import Tensor
from ...types import dtypes
from ..exact import quotient
from .arithmetic import complex_reciprocal, where
from .error_function import (
    erf_array,
    in_pieces,
    normal_reciprocal,
    normal_reciprocal_of_halves,
    normal_reciprocal_of_singles,
)
from .exponential import complex_exp
from .family import FUNCTIONS, elementwise
from .select import masked, select

if TYPE_CHECKING:
    import triton.language as tl
    from triton.language.extra import libdevice


SHAPED = Rule(
    "real floating",
    dtypes.FLOATING,
    dtypes.FLOATING,
    held=("alpha", "beta", "input_scale", "negative_slope", "scale", "slope", "threshold"),
    widely=True,
)


# ---- piecewise ---------------------------------------------------------------------------------------------------


@elementwise(Rectified("rectified", dtypes.INTEGER, dtypes.FLOATING), function=False)
def relu(x: np.ndarray):
    """The rectified linear unit: x where it is positive, else 0; NaN stays NaN."""
    if x.dtype == np.float32 and x.flags.c_contiguous:
        # NumPy vectorises neither's comparison with a number: 4,096 elements take 2.2 us, against zeros 1.1
        return np.maximum(_ZEROS[: x.size].reshape(x.shape), x) if x.size <= _ZEROS.size else np.clip(x, 0, np.inf)
    return np.maximum(0, x)  # the second of equal ones: -0.0 stays, as in the kernel


_ZEROS = np.zeros(1 << 14, np.float32)
relu.kernel(lambda x: tl.where(x < 0, 0, x))


@elementwise(FLOATING, methods=())
def relu_gradient(grad: np.ndarray, result: np.ndarray):
    """grad where the result of relu is not 0."""
    return masked(~(result <= 0), grad)


relu.gradient(lambda grad, out: relu_gradient.method(grad, out))
relu_gradient.gradients(grad=lambda again, result: relu_gradient.method(again, result))
relu_gradient.constant = ("result",)
relu_gradient.kernel(lambda grad, result: tl.where(result <= 0, 0.0, grad))


@elementwise(SHAPED, methods=())
def leaky_relu(x: np.ndarray, *, negative_slope=0.01):
    """x where it is positive, else negative_slope * x."""
    scaled = x * negative_slope
    # 0 times infinity is nan, which would win the maximum
    return np.maximum(x, scaled) if 0 < negative_slope <= 1 else np.where(x > 0, x, scaled)


leaky_relu.kernel(lambda x, negative_slope: tl.where(x > 0, x, x * negative_slope))


@elementwise(SHAPED, methods=())
def leaky_relu_gradient(grad: np.ndarray, x: np.ndarray, slope: np.ndarray | float):
    """grad where x is positive, else slope * grad; the slope is a number, or one for each element."""
    return select(x > 0, grad, grad * slope)


leaky_relu.gradient(lambda grad, x, negative_slope: leaky_relu_gradient(grad, x, negative_slope))
leaky_relu_gradient.gradients(
    grad=lambda again, x, slope: leaky_relu_gradient(again, x, slope),
    slope=lambda again, grad, x: where(x > 0, 0, again * grad),
)
leaky_relu_gradient.constant = ("x",)
leaky_relu_gradient.kernel(lambda grad, x, slope: tl.where(x > 0, grad, grad * slope))


@elementwise(SHAPED, methods=(), native=FUNCTIONS)
def elu(x: np.ndarray, *, alpha=1.0, scale=1.0, input_scale=1.0):
    """scale times x where it is positive, else scale * alpha * (exp(x * input_scale) - 1)."""
    out = np.minimum(x, 0, out=np.empty_like(x))
    if input_scale != 1:
        out *= input_scale
    np.expm1(out, out=out)
    out *= alpha
    out = select(x >= 0, x, out)
    if scale != 1:
        out *= scale
    return out


elu.kernel(lambda x, alpha, scale, input_scale: scale * tl.where(x >= 0, x, alpha * libdevice.expm1(x * input_scale)))


@elementwise(SHAPED, methods=(), native=FUNCTIONS)
def elu_gradient(grad, x, *, alpha=1.0, scale=1.0, input_scale=1.0):
    """scale * grad where x is positive, else times alpha * input_scale * exp(x * input_scale)."""
    bent = np.exp(np.minimum(x, 0) * input_scale)
    bent *= scale * alpha * input_scale
    return select(x > 0, grad * scale if scale != 1 else grad, grad * bent)


def _elu_bend(again, grad: Tensor, x, alpha, scale, input_scale):
    bent = (x.clamp_max(0) * input_scale).exp()
    return where(x > 0, 0, again * grad * (scale * alpha * input_scale**2) * bent)


def _elu_slope(grad: Tensor, x, alpha, scale, input_scale):
    return elu_gradient(grad, x, alpha=alpha, scale=scale, input_scale=input_scale)


elu.gradient(_elu_slope)
elu_gradient.gradients(grad=_elu_slope, x=_elu_bend)


@elu_gradient.kernel
def _(grad, x, alpha, scale, input_scale):
    return scale * tl.where(x > 0, grad, grad * (alpha * input_scale) * libdevice.exp(x * input_scale))


# ---- from the logistic function ----------------------------------------------------------------------------------


@elementwise(FLOAT, native=FUNCTIONS)
def sigmoid(x: np.ndarray):
    """The logistic sigmoid: 1 / (1 + exp(-x))."""
    out = _one_more_than_exp(x)
    return np.reciprocal(out, out=out)


def _one_more_than_exp(x: np.ndarray):
    """1 + exp(-x), step by step in one array."""
    out = np.negative(x, out=np.empty_like(x))
    out = np.exp(out, out=out)
    out += 1
    return out


sigmoid.kernel(lambda x: quotient(1.0, 1.0 + libdevice.exp(-x)))


@elementwise(FLOATING, methods=(), native=FUNCTIONS)
def sigmoid_gradient(grad, result):
    """grad times the slope of sigmoid where its result was `result`."""
    return grad * (result * (1 - result))


sigmoid.gradient(lambda grad, out: grad * (out * (1 - out)), on_device=sigmoid_gradient)
sigmoid_gradient.gradients(
    grad=lambda again, result: again * (result * (1 - result)),
    result=lambda again, grad, result: again * grad * (1 - 2 * result),
)
sigmoid_gradient.kernel(lambda grad, result: grad * (result * (1.0 - result)))


@elementwise(FLOATING, methods=(), native=FUNCTIONS)
def silu(x: np.ndarray):
    """x * sigmoid(x)."""
    out = _one_more_than_exp(x)
    return np.divide(x, out, out=out)


silu.kernel(lambda x: quotient(x, 1.0 + libdevice.exp(-x)))


@elementwise(FLOATING, methods=(), native=FUNCTIONS)
def silu_gradient(grad, x):
    """grad times the slope of silu at x."""
    share = 1 / (1 + np.exp(-x))
    return grad * (share * (1 + x * (1 - share)))


def _silu_bend(again, grad: Tensor, x):
    share = x.sigmoid()
    return again * grad * share * (1 - share) * (2 + x * (1 - 2 * share))


silu.gradient(lambda grad, x: silu_gradient.method(grad, x))
silu_gradient.gradients(grad=lambda again, x: silu_gradient.method(again, x), x=_silu_bend)


@silu_gradient.kernel
def _(grad, x):
    share = quotient(1.0, 1.0 + libdevice.exp(-x))
    return grad * (share * (1.0 + x * (1.0 - share)))


@elementwise(SHAPED, methods=(), autocast={"cuda": "float32"}, native=FUNCTIONS)
def softplus(x: np.ndarray, *, beta=1.0, threshold=20.0):
    """log(1 + exp(beta * x)) / beta, and x itself where beta * x is above threshold."""
    out = np.multiply(x, beta, out=np.empty_like(x))
    large = out > threshold
    np.exp(out, out=out)
    np.log1p(out, out=out)
    out /= beta
    np.copyto(out, x, where=large)
    return out


@softplus.kernel
def _(x, beta, threshold):
    scaled = x * beta
    return tl.where(scaled > threshold, x, quotient(libdevice.log1p(libdevice.exp(scaled)), beta))


@elementwise(SHAPED, methods=(), native=FUNCTIONS)
def softplus_gradient(grad: np.ndarray, x: np.ndarray, *, beta=1.0, threshold=20.0):
    """grad times the slope of softplus at x: sigmoid(beta * x), or 1 where beta * x is above threshold."""
    scaled = x * beta
    return np.where(scaled > threshold, grad, grad / (1 + np.exp(-scaled)))


softplus.gradient(lambda grad, x, beta, threshold: softplus_gradient(grad, x, beta=beta, threshold=threshold))
softplus_gradient.gradients(
    grad=lambda again, x, beta, threshold: softplus_gradient(again, x, beta=beta, threshold=threshold),
    x=lambda again, grad, x, beta, threshold: where(
        x * beta > threshold, 0, again * grad * beta * (x * beta).sigmoid() * (1 - (x * beta).sigmoid())
    ),
)


@softplus_gradient.kernel
def _(grad, x, beta, threshold):
    scaled = x * beta
    return tl.where(scaled > threshold, grad, quotient(grad, 1.0 + libdevice.exp(-scaled)))


# ---- from the normal distribution --------------------------------------------------------------------------------


_DENSITY = 1 / math.sqrt(2 * math.pi)
_SLOPE = math.sqrt(2 / math.pi)


@elementwise(FLOATING, methods=(), native=FUNCTIONS)
def gelu(x: np.ndarray):
    """x times the cumulative distribution function of the normal distribution at x."""
    if x.dtype == np.float32:
        out = normal_reciprocal(x)
        return np.divide(x, out, out=out)
    return in_pieces(_gelu, x)


def _gelu(x: np.ndarray) -> np.ndarray:
    out = erf_array(x * math.sqrt(0.5))
    out += 1
    out *= 0.5
    out *= x
    return out


@gelu.kernel
def _(x):
    if x.dtype == tl.float64:
        return 0.5 * x * libdevice.erfc(x * -0.7071067811865476)
    else:
        return x / normal_reciprocal_of_singles(x)


gelu.half_kernel(lambda x: libdevice.fast_dividef(x, normal_reciprocal_of_halves(x)))


@elementwise(FLOATING, methods=(), native=FUNCTIONS)
def gelu_gradient(grad, x):
    """grad times the slope of gelu at x: the normal distribution function at x plus x times the density at x."""
    return in_pieces(_gelu_gradient, grad, x)


def _gelu_gradient(grad: np.ndarray, x: np.ndarray) -> np.ndarray:
    density = np.square(x, out=np.empty_like(x))
    density *= -0.5
    np.exp(density, out=density)
    density *= x
    density *= _DENSITY
    if x.dtype == np.float32:
        share = normal_reciprocal(x)
        np.reciprocal(share, out=share)
    else:
        share = erf_array(x * math.sqrt(0.5))
        share += 1
        share *= 0.5
    share += density
    return grad * share


gelu.gradient(lambda grad, x: gelu_gradient.method(grad, x))
gelu_gradient.gradients(
    grad=lambda again, x: gelu_gradient.method(again, x),
    x=lambda again, grad, x: again * grad * (x * x * -0.5).exp() * _DENSITY * (2 - x * x),
)


@gelu_gradient.kernel
def _(grad, x):
    if x.dtype == tl.float64:
        share = 0.5 * libdevice.erfc(x * -0.7071067811865476)
    else:
        share = 1.0 / normal_reciprocal_of_singles(x)
    return grad * (share + x * libdevice.exp(x * x * -0.5) * 0.3989422804014327)


@gelu_gradient.half_kernel
def _gelu_gradient_of_halves(grad, x):
    share = libdevice.fast_dividef(1.0, normal_reciprocal_of_halves(x))
    return grad * (share + x * libdevice.exp2(x * x * -0.7213475204444817) * 0.3989422804014327)


@elementwise(FLOATING, methods=(), native=FUNCTIONS)
def gelu_tanh(x: np.ndarray):
    """The approximation of gelu by tanh: x / 2 * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 * x ** 3)))."""
    out = np.square(x, out=np.empty_like(x))
    out *= math.sqrt(2 / math.pi) * 0.044715
    out += math.sqrt(2 / math.pi)
    out *= x
    np.tanh(out, out=out)
    out += 1
    out *= 0.5
    out *= x
    return out


gelu_tanh.node = "gelu"
gelu_tanh.kernel(lambda x: 0.5 * x * (1 + libdevice.tanh(0.7978845608028654 * (x + 0.044715 * x * x * x))))


@elementwise(FLOATING, methods=(), native=FUNCTIONS)
def gelu_tanh_gradient(grad, x):
    """grad times the slope of gelu_tanh at x."""
    slope = np.square(x, out=np.empty_like(x))
    bent = np.multiply(slope, 0.044715 * _SLOPE, out=np.empty_like(x))
    bent += _SLOPE
    bent *= x
    np.tanh(bent, out=bent)
    slope *= 1.5 * 0.044715 * _SLOPE
    slope += 0.5 * _SLOPE
    slope *= x
    part = np.square(bent, out=np.empty_like(x))
    slope *= np.subtract(1, part, out=part)
    bent += 1
    bent *= 0.5
    slope += bent
    return np.multiply(grad, slope, out=slope if grad.shape == slope.shape else None)


def _gelu_tanh_bend(again, grad: Tensor, x):
    """By the second derivative, where u is the argument of tanh."""
    square = x * x
    bent = (_SLOPE * x * (1 + 0.044715 * square)).tanh()
    once, twice = _SLOPE * (1 + 3 * 0.044715 * square), 6 * 0.044715 * _SLOPE * x  # u' and u''
    return again * grad * (1 - bent * bent) * (once - x * bent * once * once + 0.5 * x * twice)


gelu_tanh.gradient(lambda grad, x: gelu_tanh_gradient.method(grad, x))
gelu_tanh_gradient.gradients(grad=lambda again, x: gelu_tanh_gradient.method(again, x), x=_gelu_tanh_bend)


@gelu_tanh_gradient.kernel
def _(grad, x):
    square = x * x
    bent = libdevice.tanh(0.7978845608028654 * x * (1.0 + 0.044715 * square))
    slope = 0.7978845608028654 * (1.0 + 0.134145 * square)
    return grad * (0.5 * (1.0 + bent) + 0.5 * x * (1.0 - bent * bent) * slope)


# ---- complex numbers -----------------------------------------------------------------------------------------------


@sigmoid.complex_kernel
def _(xr, xi):
    er, ei = complex_exp(-xr, -xi)
    return complex_reciprocal(1 + er, ei)
