"""Signs and bits of numbers: copysign, signbit, neighbours, mantissas, and common divisors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ...autograd.names import of_tensors
from ...errors import UnsupportedError
from ...ground.arguments import wrong_type
from ...operators.rules import FLOATING, REAL_FLOAT, Rule
from ...tensors import Tensor
from ...types import dtypes
from .arithmetic import zeros
from .family import FUNCTIONS, elementwise

if TYPE_CHECKING:
    import triton.language as tl
    from triton.language.extra import libdevice


class RealSign(Rule):
    """Refuses complex tensors in PyTorch's words."""

    def __call__(self, operator: str, operands: Sequence[Any]) -> tuple[dtypes.dtype, dtypes.dtype]:
        """See the base class."""
        if operands[0].dtype.is_complex:
            raise UnsupportedError("signbit is not implemented for complex tensors.", remedy="pass x.real")
        return super().__call__(operator, operands)


copysign = elementwise(
    REAL_FLOAT, np.copysign, "The magnitude of x with the sign of y, which a zero has too.", native=FUNCTIONS
)
copysign.overload = lambda saved: 1 - of_tensors("y")(saved)
copysign.gradients(x=lambda grad, x, y: grad * (x.sign() * copysign(x.new_ones(()), y)), y=zeros)


@copysign.kernel
def _(x, y):
    negative = (y < 0) | ((y == 0) & (1 / y < 0))
    return tl.where(negative, -tl.abs(x), tl.abs(x))


@elementwise(RealSign("real", highest=dtypes.FLOATING, result=dtypes.bool_), out="boolean")
def signbit(x):
    """Tests the sign bit: True where x is negative, or a negative zero."""
    return np.signbit(x) if x.dtype.kind == "f" else x < 0


@signbit.kernel
def _(x):
    if x.dtype.is_floating():
        return libdevice.signbit(x) != 0
    elif x.dtype == tl.int1:
        return x != x
    else:
        return x < 0


class Exact(Rule):
    """Computed in the dtype of the result, half precision too."""

    def __call__(self, operator: str, operands: Sequence[Any]) -> tuple[dtypes.dtype, dtypes.dtype]:
        """See the base class."""
        numbers = [place for place, value in enumerate(operands) if not isinstance(value, Tensor)]
        if numbers and any(x.dtype.category < dtypes.FLOATING for x in operands if isinstance(x, Tensor)):
            place = numbers[0]
            raise wrong_type(operator, ("input", "other")[place], "Tensor", operands[place], place + 1)
        result = super().__call__(operator, operands)[1]
        return result, result


nextafter = elementwise(
    Exact("real floating", dtypes.FLOATING, dtypes.FLOATING),
    np.nextafter,
    "The next number after x towards y.",
    native=FUNCTIONS,
)
nextafter.gradients(x=lambda grad: grad, y=zeros)


@nextafter.kernel
def _(x, y):
    # as integers, the numbers of one sign are in order
    if x.dtype.primitive_bitwidth == 64:
        bits = x.to(tl.int64, bitcast=True)
    elif x.dtype.primitive_bitwidth == 32:
        bits = x.to(tl.int32, bitcast=True)
    else:
        bits = x.to(tl.int16, bitcast=True)
    one = bits * 0 + 1
    smallest = one.to(x.dtype, bitcast=True)
    moved = tl.where((y > x) == (x > 0), bits + one, bits - one).to(x.dtype, bitcast=True)
    moved = tl.where(x == 0, tl.where(y > 0, smallest, -smallest), moved)
    return tl.where(x != x, x, tl.where(y != y, y, tl.where(x == y, y, moved)))  # of a number, y != y is no block


def _frexp(x: np.ndarray) -> Any:
    mantissa, exponent = np.frexp(x)
    return mantissa, np.where(np.isfinite(x), exponent, 0)


frexp = elementwise(
    FLOATING,
    _frexp,
    "x as mantissa * 2**exponent, the mantissa in [0.5, 1); of 0, NaN and infinities x itself and 0.",
    name="frexp",
    inputs=("x",),
    outputs=("mantissa", "exponent"),
    methods=(),
    kinds={"exponent": dtypes.int32},
)
frexp.gradient(lambda grad, exponent: grad / exponent.to(grad.dtype).exp2())


@frexp.kernel
def _(x):
    if x.dtype.primitive_bitwidth == 64:
        tiny = tl.abs(x) < 2.2250738585072014e-308
        bits = tl.where(tiny, x * 18014398509481984.0, x).to(tl.int64, bitcast=True)
        exponent = ((bits >> 52) & 2047) - 1022
        mantissa = (bits - (exponent << 52)).to(tl.float64, bitcast=True)
    else:
        tiny = tl.abs(x) < 1.1754943508222875e-38
        bits = tl.where(tiny, x * 18014398509481984.0, x).to(tl.int32, bitcast=True)
        exponent = ((bits >> 23) & 255) - 126
        mantissa = (bits - (exponent << 23)).to(tl.float32, bitcast=True)
    plain = (x == 0) | (x - x != 0)
    exponent = tl.where(plain, exponent * 0, tl.where(tiny, exponent - 54, exponent))
    return tl.where(plain, x, mantissa), exponent.to(tl.int32)


WHOLE = Rule("integer", dtypes.INTEGER, dtypes.INTEGER)
gcd = elementwise(WHOLE, np.gcd, "The greatest common divisor of x and y; 0 of two zeros.", in_place_functions=["gcd_"])


@gcd.kernel
def _(x, y):
    x, y = tl.abs(x), tl.abs(y)
    for _step in range(x.dtype.primitive_bitwidth * 3 // 2):  # for n bits at most 1.44 n steps, of Fibonacci's numbers
        left = x % tl.where(y == 0, y + 1, y)
        x, y = tl.where(y == 0, x, y), tl.where(y == 0, y, left)
    return x
