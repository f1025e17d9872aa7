"""Arithmetic: sums, products, powers, magnitudes; the copy, and the choice between two tensors.

A body handles every dtype that the operator's rule accepts; an `if` on a dtype is decided at compile time.
"""

from __future__ import annotations

import cmath
import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ...autograd.names import of_tensors
from ...errors import DtypeError, explain
from ...ground.public import method
from ...host.copying import copied
from ...operators.rules import ANY, CHOSEN, FLOAT, Magnitude, NoBooleans, Power, Rule, Scaled, Square, one_dtype
from ...runtime.source import device_function
from ...tensors import Tensor
from ...types import dtypes
from ..exact import quotient, root
from .family import elementwise
from .methods import OPERANDS
from .select import select

if TYPE_CHECKING:
    import triton.language as tl
    from triton.language.extra import libdevice

BOTH = ("x", "y")


def zeros(grad: Any) -> Any:
    """The gradient of a step function."""
    return grad.new_zeros(grad.shape)


# ---- sums and products ----------------------------------------------------------------------------------------

add = elementwise(ANY, np.add, "x + y.", methods=["__add__"])
add.gradients(x=lambda grad: grad, y=lambda grad: grad)


@add.kernel
def _(x, y):
    if x.dtype == tl.int1:
        return x | y
    else:
        return x + y


sub = elementwise(
    NoBooleans("difference", "Subtraction, the `-` operator, with a bool tensor is not supported."),
    np.subtract,
    "x - y.",
    name="sub",
    methods=["__sub__"],
)
sub.gradients(x=lambda grad: grad, y=lambda grad: -grad)


@sub.kernel
def _(x, y):
    return x - y


mul = elementwise(
    Rule("any", unrounded=BOTH),
    np.multiply,
    "Multiplies x and y element by element.",
    name="mul",
    methods=["__mul__", "mul", "multiply"],
)
mul.gradients(x=lambda grad, y: grad * y, y=lambda grad, x: grad * x)


@mul.kernel
def _(x, y):
    if x.dtype == tl.int1:
        return x & y
    else:
        return x * y


div = elementwise(
    Rule("float", floating=True, unrounded=BOTH),
    np.true_divide,
    "Divides x by y element by element; the result is floating.",
    name="div",
    methods=["__truediv__", "true_divide"],
)
# of the operands, as PyTorch's: the quotient may be changed in place afterwards
div.gradients(x=lambda grad, y: grad / y, y=lambda grad, x, y: -grad * (x / y / y))


@div.kernel
def _(x, y):
    return quotient(x, y)


def _scaled(x: Any, factor: Any, *others: Any) -> Any:
    """x times a number; a number in place of x is an element of the operands' dtype first."""
    if not isinstance(x, np.ndarray):
        x = np.asarray(x, dtype_of(*others))
    return x if factor == 1 else x * factor


@elementwise(Scaled("any"), methods=())
def add_scaled(x, y, *, alpha=1):
    """x + alpha * y."""
    return x + _scaled(y, alpha, x)


add_scaled.node = "add"
add_scaled.gradients(x=lambda grad: grad, y=lambda grad, alpha: grad * alpha)


@add_scaled.kernel
def _(x, y, alpha):
    if x.dtype == tl.int1:
        return x | (y & (alpha != 0))
    else:
        return x + y * alpha


def _factor(grad, value):
    """A number that a result was computed with: 1+0j is 1 for real tensors."""
    return value.real if isinstance(value, complex) and not grad.is_complex() else value


@elementwise(Rule("any", dtypes.INTEGER, held=("value",), widely=True), autocast={"cuda": "widest"})
def addcmul(x, tensor1, tensor2, *, value=1):
    """x + value * tensor1 * tensor2."""
    return x + _scaled(tensor1, value, x, tensor2) * tensor2


addcmul.gradients(
    x=lambda grad: grad,
    tensor1=lambda grad, tensor2, value: grad * tensor2 * _factor(grad, value),
    tensor2=lambda grad, tensor1, value: grad * tensor1 * _factor(grad, value),
)


@addcmul.kernel
def _(x, tensor1, tensor2, value):
    return x + value * tensor1 * tensor2


class Ratio(Rule):
    """Floating results; the quotient of two integers is refused, because its meaning has changed in PyTorch."""

    def __call__(self, operator: str, operands: Sequence[Any]) -> tuple[dtypes.dtype, dtypes.dtype]:
        """See the base class."""
        if all(isinstance(value, Tensor) and value.dtype.category < dtypes.FLOATING for value in operands[1:]):
            raise DtypeError(
                explain(
                    "Integer division with addcdiv is no longer supported",
                    remedy="convert one of the two tensors with .float(), or divide and add: input + value * (a // b)",
                )
            )
        return super().__call__(operator, operands)


@elementwise(Ratio("floating", dtypes.FLOATING, held=("value",), widely=True), autocast={"cuda": "widest"})
def addcdiv(x, tensor1, tensor2, *, value=1):
    """x + value * tensor1 / tensor2."""
    return x + _scaled(tensor1, value, x, tensor2) / tensor2


addcdiv.gradients(
    x=lambda grad: grad,
    tensor1=lambda grad, tensor2, value: grad * _factor(grad, value) / tensor2,
    tensor2=lambda grad, tensor1, tensor2, value: -grad * _factor(grad, value) * tensor1 / tensor2.square(),
)


@addcdiv.kernel
def _(x, tensor1, tensor2, value):
    return x + quotient(value * tensor1, tensor2)


class Interpolation(Rule):
    """Floating operands of one dtype; only a weight without dimensions may have another one, and promotes them."""

    def __call__(self, operator: str, operands: Sequence[Any]) -> tuple[dtypes.dtype, dtypes.dtype]:
        """See the base class."""
        weight = operands[2]
        if isinstance(weight, complex) and not any(isinstance(x, Tensor) and x.dtype.is_complex for x in operands):
            raise DtypeError(
                explain(
                    "value cannot be converted to type float without overflow",
                    f"{operator}(): the weight is {weight}, and the tensors are real",
                    remedy="pass a real weight",
                )
            )
        one_dtype(operator, operands[:2] if isinstance(weight, Tensor) and not weight.ndim else operands)
        return super().__call__(operator, operands)


WEIGHTED = Interpolation(
    "floating of one dtype", dtypes.FLOATING, held=("weight",), widely=True, unrounded=("end", "weight")
)


@elementwise(WEIGHTED)
def lerp(x, end, weight):
    """Linear interpolation: x + weight * (end - x), computed from the nearer end so that weight 1 gives `end`
    itself."""
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
    name="neg",
    methods=["__neg__", "neg", "negative"],
)
neg.gradient(lambda grad: -grad)


@neg.kernel
def _(x):
    return -x


square = elementwise(Square("square", dtypes.INTEGER), np.square, "The square of each element: x * x.", out="cast", autocast={"cuda": "float32"})
square.node = "pow"
square.gradient(lambda grad, x: grad * (2 * x))


@square.kernel
def _(x):
    return x * x


@elementwise(FLOAT, autocast={"cuda": "float32"})
def reciprocal(x):
    """The reciprocal of each element: 1 / x."""
    return 1 / x


reciprocal.gradient(lambda grad, out: -grad * out * out)


@reciprocal.kernel
def _(x):
    return quotient(1.0, x)


@method("__rtruediv__")
def _divide_number(self: Tensor, other: Any) -> Tensor:
    """other / self: the reciprocal times the number, with PyTorch's roundings; both can be changed in place later."""
    if not isinstance(other, OPERANDS):
        return NotImplemented
    inverse = reciprocal.method(self)
    return inverse if other.__class__ is int and other == 1 and not inverse._needs else inverse * other


# ---- powers and magnitudes ------------------------------------------------------------------------------------


@elementwise(Power("power", dtypes.INTEGER), methods=["__pow__", "pow"], autocast={"cuda": "float32"})
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
            return root if y > 0 else 1 / root  # type: ignore[no-any-return]
        if y == 3:
            return x * x * x  # type: ignore[no-any-return]
        y = float(y)  # as a kernel takes it: beyond 2**53 integers are even
        if y != 2 and y.is_integer():
            # np.power takes 60 ns for a negative base, 2 ns for a positive one
            size = np.abs(x) ** y
            return np.copysign(size, x) if y % 2 else size
    result = np.asarray(x**y)
    if isinstance(y, np.ndarray):
        # C's pow says infinity; where NumPy sees one exponent of 1/2 for many numbers, it takes the square root
        np.copyto(result, np.inf, where=(x == -np.inf) & (y == 0.5))
    return result


def dtype_of(*operands: Any) -> np.dtype:
    """The dtype of the first array among a reference's operands; they share one, apart from numbers."""
    return next(value.dtype for value in operands if isinstance(value, np.ndarray))


def _power_of_base(grad: Any, x: Any, y: Any) -> Any:
    if isinstance(y, Tensor):
        return where(y == 0, 0, grad * (y * x ** (y - 1)))
    exponent = y if isinstance(y, complex) else float(y)  # of the smallest integer there is none below
    return grad * (y * x ** (exponent - 1)) if y != 0 else zeros(grad)


def _power_of_exponent(grad: Any, out: Any, x: Any, y: Any) -> Any:
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
        if len(y.shape) == 0:  # a number: of a root, -inf has none and -0 has -0
            power = tl.where(y == 0.5, root(x), tl.where(y == -0.5, quotient(1.0, root(x)), power))
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


abs = elementwise(
    Magnitude("magnitude", dtypes.INTEGER),
    np.absolute,
    "The absolute value of each element; of a complex number its magnitude.",
    name="abs",
    methods=["__abs__", "abs", "absolute"],
    in_place_functions=["abs_"],
)
abs.gradient(lambda grad, x: grad * x.sgn())


@abs.kernel
def _(x):
    return tl.abs(x)


class RealSigns(Rule):
    """Refuses complex tensors, whose direction is `sgn`."""

    def __call__(self, operator: str, operands: Sequence[Any]) -> tuple[dtypes.dtype, dtypes.dtype]:
        """See the base class."""
        if operands[0].dtype.is_complex:
            words = "Unlike NumPy, torch.sign is not intended to support complex numbers. Please use torch.sgn instead."
            raise DtypeError(words)
        return super().__call__(operator, operands)


def _direction(x):
    if x.dtype.kind in "bu":
        return (x > 0).astype(x.dtype)
    if x.dtype.kind == "c":
        size = np.abs(x)
        return x / np.where(size == 0, 1, size)
    return np.nan_to_num(np.sign(x), nan=0.0)


sgn = elementwise(
    ANY,
    _direction,
    "The sign, also of complex numbers: x / |x|, and 0 where x is 0; for real numbers -1, 0 or 1, and 0 for NaN.",
    name="sgn",
    in_place_functions=(),
)
sign = elementwise(
    RealSigns("real", highest=dtypes.FLOATING),
    _direction,
    "The sign of each element: -1, 0 or 1, and 0 for NaN.",
    name="sign",
    in_place_functions=(),
)
sign.gradient(zeros)


def _turn(grad: Any, x: Any) -> Any:
    """The gradient of a direction: what of `grad` is at right angles to it, over the distance; 0 for real numbers."""
    if not x.dtype.is_complex:
        return zeros(grad)
    ratio = grad / x
    return where(x == 0, 0, grad / x.abs() - (ratio + ratio.conj()) / 2 * x.sgn())


sgn.gradient(_turn)
sgn.holomorphic = False


@device_function
def signs(x):
    """-1, 0 or 1."""
    if x.dtype == tl.int1:
        return x
    else:
        return (x > 0).to(x.dtype) - (x < 0).to(x.dtype)


@sgn.kernel
def _(x):
    return signs(x)


@sign.kernel
def _(x):
    return signs(x)


@elementwise(ANY, methods=())
def conj(x):
    """x with its imaginary part negated; real numbers as they are."""
    return np.conjugate(x) if x.dtype.kind == "c" else x.copy()


conj.gradient(lambda grad: conj(grad))


@conj.kernel
def _(x):
    return x


# ---- copy and where -------------------------------------------------------------------------------------------


@elementwise(ANY, methods=())
def copy(x):
    """x, in new memory."""
    return copied(x) if isinstance(x, np.ndarray) else x


copy.node = "clone"
copy.whole = True
copy.gradient(lambda grad: grad)


@copy.kernel
def _(x):
    return x


@elementwise(CHOSEN, kinds={"condition": dtypes.bool_}, methods=())
def where(condition, x, y):
    """x where condition holds, else y."""
    return select(condition, x, y)


where.gradients(
    x=lambda grad, condition: where(condition, grad, 0), y=lambda grad, condition: where(condition, 0, grad)
)


@where.kernel
def _(condition, x, y):
    return tl.where(condition, x, y)
