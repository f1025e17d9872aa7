"""Arithmetic: sums, products, powers, magnitudes; the copy, and the choice between two tensors.

A body handles every dtype that the operator's rule accepts; an `if` on a dtype is decided at compile time.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ...autograd.names import of_tensors
from ...errors import DtypeError
from ...ground.public import method
from ...host.copying import copied
from ...operators.rules import ANY, CHOSEN, FLOAT, NoBooleans, Rule, Scaled, Square, one_dtype
from ...runtime.source import device_function
from ...tensors import Tensor
from ...types import dtypes
from ..exact import quotient
from .family import elementwise
from .methods import OPERANDS
from .select import select

if TYPE_CHECKING:
    import triton.language as tl
    from triton.language.extra import libdevice

BOTH = ("x", "y")


def zeros(grad: Tensor) -> Any:
    """The gradient of a step function."""
    return grad.new_zeros(grad.shape)


# ---- sums and products ----------------------------------------------------------------------------------------

add = elementwise(ANY, np.add, "x + y.", methods=["__add__"])
add.gradients(x=lambda grad: grad, y=lambda grad: grad)
add.kernel(lambda x, y: x | y if x.dtype == tl.int1 else x + y)

sub = elementwise(
    NoBooleans("difference", "Subtraction, the `-` operator, with a bool tensor is not supported."),
    np.subtract,
    "x - y.",
    name="sub",
    methods=["__sub__"],
)
sub.gradients(x=lambda grad: grad, y=lambda grad: -grad)
sub.kernel(lambda x, y: x - y)

mul = elementwise(
    Rule("any", unrounded=BOTH),
    np.multiply,
    "Multiplies x and y element by element.",
    methods=["__mul__", "mul", "multiply"],
)
mul.float8 = "paired"
mul.gradients(x=lambda grad, y: grad * y, y=lambda grad, x: grad * x)
mul.kernel(lambda x, y: x & y if x.dtype == tl.int1 else x * y)

div = elementwise(
    Rule("float", floating=True, unrounded=BOTH),
    np.true_divide,
    "Divides x by y element by element; the result is floating.",
    name="div",
    methods=["__truediv__", "true_divide"],
)
# of the operands, as PyTorch's: the quotient may be changed in place afterwards
div.gradients(x=lambda grad, y: grad / y, y=lambda grad, x, y: -grad * (x / y / y))
div.kernel(lambda x, y: quotient(x, y))


def dtype_of(*operands: Any) -> np.dtype:
    """The dtype of the first array among a reference's operands; they share one, apart from numbers."""
    return next(value.dtype for value in operands if isinstance(value, np.ndarray))


def _scaled(x: Any, factor: Any, *others: Any) -> Any:
    """x times a number; a number in place of x is an element of the operands' dtype first."""
    if not isinstance(x, np.ndarray):
        x = np.asarray(x, dtype_of(*others))
    return x if factor == 1 else x * factor


@elementwise(Scaled("any"), methods=())
def add_scaled(x: np.ndarray | int, y: np.ndarray, *, alpha=1):
    """x + alpha * y."""
    return x + _scaled(y, alpha, x)


add_scaled.node = "add"
add_scaled.gradients(x=lambda grad: grad, y=lambda grad, alpha: grad * alpha)
add_scaled.kernel(lambda x, y, alpha: x | (y & (alpha != 0)) if x.dtype == tl.int1 else x + y * alpha)


def _factor(grad: Tensor, value: complex):
    """A number that a result was computed with: 1+0j is 1 for real tensors."""
    return value.real if isinstance(value, complex) and not grad.is_complex() else value


@elementwise(Rule("any", dtypes.INTEGER, held=("value",), widely=True), autocast={"cuda": "widest"})
def addcmul(x: np.ndarray, tensor1: np.ndarray, tensor2: np.ndarray, *, value: float = 1):
    """Adds a scaled elementwise product: x + value * tensor1 * tensor2."""
    return x + _scaled(tensor1, value, x, tensor2) * tensor2


addcmul.gradients(
    x=lambda grad: grad,
    tensor1=lambda grad, tensor2, value: grad * tensor2 * _factor(grad, value),
    tensor2=lambda grad, tensor1, value: grad * tensor1 * _factor(grad, value),
)
addcmul.kernel(lambda x, tensor1, tensor2, value: x + value * tensor1 * tensor2)


class Ratio(Rule):
    """Floating results; the quotient of two integers is refused, because its meaning has changed in PyTorch."""

    def __call__(self, operator: str, operands: Sequence[Any]) -> tuple[dtypes.dtype, dtypes.dtype]:
        """See the base class."""
        if all(isinstance(value, Tensor) and value.dtype.category < dtypes.FLOATING for value in operands[1:]):
            raise DtypeError(
                "Integer division with addcdiv is no longer supported",
                remedy="convert one of the two tensors with .float(), or divide and add: input + value * (a // b)",
            )
        return super().__call__(operator, operands)


@elementwise(Ratio("floating", dtypes.FLOATING, held=("value",), widely=True), autocast={"cuda": "widest"})
def addcdiv(x: np.ndarray, tensor1: np.ndarray, tensor2: np.ndarray, *, value: float = 1):
    """Adds a scaled elementwise quotient: x + value * tensor1 / tensor2."""
    return x + _scaled(tensor1, value, x, tensor2) / tensor2


addcdiv.gradients(
    x=lambda grad: grad,
    tensor1=lambda grad, tensor2, value: grad * _factor(grad, value) / tensor2,
    tensor2=lambda grad, tensor1, tensor2, value: -grad * _factor(grad, value) * tensor1 / tensor2.square(),
)
addcdiv.kernel(lambda x, tensor1, tensor2, value: x + quotient(value * tensor1, tensor2))


class Interpolation(Rule):
    """Floating operands of one dtype; only a weight without dimensions may have another one, and promotes them."""

    def __call__(self, operator: str, operands: Sequence[Any]) -> tuple[dtypes.dtype, dtypes.dtype]:
        """See the base class."""
        weight = operands[2]
        if isinstance(weight, complex) and not any(isinstance(x, Tensor) and x.dtype.is_complex for x in operands):
            raise DtypeError(
                "value cannot be converted to type float without overflow",
                f"{operator}(): the weight is {weight}, and the tensors are real",
                remedy="pass a real weight",
            )
        one_dtype(operator, operands[:2] if isinstance(weight, Tensor) and not weight.ndim else operands)
        return super().__call__(operator, operands)


WEIGHTED = Interpolation(
    "floating of one dtype", dtypes.FLOATING, held=("weight",), widely=True, unrounded=("end", "weight")
)


@elementwise(WEIGHTED)
def lerp(x: np.ndarray, end: np.ndarray, weight: np.ndarray | float):
    """Linear interpolation: x + weight * (end - x), computed from the nearer end: weight 1 gives `end` itself."""
    return np.where(np.abs(weight) < 0.5, x + weight * (end - x), end - (end - x) * (1 - weight))


lerp.overload = of_tensors("weight")
lerp.gradients(
    x=lambda grad, weight: grad * (1 - weight),
    end=lambda grad, weight: grad * weight,
    weight=lambda grad, x, end: grad * (end - x),
)


@lerp.kernel
def _(x, end, weight):
    return tl.where(tl.abs(weight) < 0.5, x + weight * (end - x), end - (end - x) * (1 - weight))


neg = elementwise(
    NoBooleans("negation", "Negation, the `-` operator, on a bool tensor is not supported."),
    np.negative,
    "The negative of each element: -x.",
    methods=["__neg__", "neg", "negative"],
)
neg.gradient(lambda grad: -grad)
neg.linear = "first"
neg.kernel(lambda x: -x)

square = elementwise(
    Square("square", dtypes.INTEGER),
    np.square,
    "The square of each element: x * x.",
    out="cast",
    autocast={"cuda": "float32"},
)
square.node = "pow"
square.gradient(lambda grad, x: grad * (2 * x))
square.kernel(lambda x: x * x)


@elementwise(FLOAT, autocast={"cuda": "float32"})
def reciprocal(x: np.ndarray):
    """The reciprocal of each element: 1 / x."""
    return 1 / x


reciprocal.gradient(lambda grad, out: -grad * out * out)
reciprocal.kernel(lambda x: quotient(1.0, x))


@method("__rtruediv__")
def _divide_number(self: Tensor, other: Tensor | complex) -> Tensor:
    """other / self: the reciprocal times the number, with PyTorch's roundings; both can be changed in place later."""
    if not isinstance(other, OPERANDS):
        return NotImplemented
    inverse = reciprocal.method(self)
    return inverse if other.__class__ is int and other == 1 and not inverse._needs else inverse * other


# ---- conj, copy and where -------------------------------------------------------------------------------------------


@elementwise(ANY, methods=())
def conj(x: np.ndarray):
    """x with its imaginary part negated; real numbers as they are."""
    return np.conjugate(x) if x.dtype.kind == "c" else x.copy()


conj.gradient(lambda grad: conj(grad))
conj.kernel(lambda x: x)


@elementwise(ANY, methods=(), native=None)
def copy(x: np.ndarray):
    """x, in new memory."""
    return copied(x) if isinstance(x, np.ndarray) else x


copy.node = "clone"
copy.linear = "first"
copy.whole = True
copy.ordered = False
copy.float8 = "moved"
copy.gradient(lambda grad: grad)
copy.kernel(lambda x: x)


@elementwise(CHOSEN, kinds={"condition": dtypes.bool_}, methods=())
def where(condition: np.ndarray, x: np.ndarray | float, y: np.ndarray | float):
    """x where condition holds, else y."""
    return select(condition, x, y)


where.gradients(
    x=lambda grad, condition: where(condition, grad, 0), y=lambda grad, condition: where(condition, 0, grad)
)
where.float8 = "moved"
where.kernel(lambda condition, x, y: tl.where(condition, x, y))


# ---- complex numbers -----------------------------------------------------------------------------------------------


# The quotient is that of R. L. Smith (CACM 5, 1962), which does not overflow where its result does not.


@mul.complex_kernel
@device_function
def complex_mul(xr, xi, yr, yi):
    """x * y."""
    return xr * yr - xi * yi, xr * yi + xi * yr


@div.complex_kernel
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


@reciprocal.complex_kernel
@device_function
def complex_reciprocal(xr, xi):
    """1 / x."""
    return complex_div(xr * 0 + 1, xr * 0, xr, xi)


@square.complex_kernel
def _(xr, xi):
    """x * x."""
    return complex_mul(xr, xi, xr, xi)


add.complex_kernel(lambda xr, xi, yr, yi: (xr + yr, xi + yi))
sub.complex_kernel(lambda xr, xi, yr, yi: (xr - yr, xi - yi))
neg.complex_kernel(lambda xr, xi: (-xr, -xi))
copy.complex_kernel(lambda xr, xi: (xr, xi))
conj.complex_kernel(lambda xr, xi: (xr, -xi))
where.complex_kernel(lambda condition, xr, xi, yr, yi: (tl.where(condition, xr, yr), tl.where(condition, xi, yi)))


@add_scaled.complex_kernel
def _(xr, xi, yr, yi, ar, ai):
    re, im = complex_mul(yr, yi, ar, ai)
    return xr + re, xi + im


@addcmul.complex_kernel
def _(xr, xi, ar, ai, br, bi, vr, vi):
    sr, si = complex_mul(vr, vi, ar, ai)
    re, im = complex_mul(sr, si, br, bi)
    return xr + re, xi + im


@addcdiv.complex_kernel
def _(xr, xi, ar, ai, br, bi, vr, vi):
    sr, si = complex_mul(vr, vi, ar, ai)
    re, im = complex_div(sr, si, br, bi)
    return xr + re, xi + im


@lerp.complex_kernel
def _(xr, xi, er, ei, wr, wi):
    near = libdevice.hypot(wr, wi) < 0.5
    ar, ai = complex_mul(wr, wi, er - xr, ei - xi)
    br, bi = complex_mul(1 - wr, -wi, er - xr, ei - xi)
    return tl.where(near, xr + ar, er - br), tl.where(near, xi + ai, ei - bi)


for _operator in (add, sub, neg, copy, where):
    _operator.by_parts = True
