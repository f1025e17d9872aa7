"""The elementwise functions of the standard, and the operators of arrays, which are the same.

Functions of `x1` and `x2` take two tensors of any shapes that broadcast, or one and a number, and compute in the dtype
that both promote to.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .. import dtypes, functional
from ..functional.complex_numbers import complex
from ..public import PACKAGE
from ..tensor import Tensor
from .arrays import declared, operator
from .data_types import promoted

_ONE = """
abs: The absolute value of numbers; real for complex ones.
acos: The arc cosine.
acosh: The inverse hyperbolic cosine.
asin: The arc sine.
asinh: The inverse hyperbolic sine.
atan: The arc tangent.
atanh: The inverse hyperbolic tangent.
bitwise_invert: Every bit of integers inverted; the negation of booleans.
ceil: The smallest integer that is not less, in the dtype of `x`.
conj: The complex conjugate.
cos: The cosine of radians.
cosh: The hyperbolic cosine.
exp: e to the power of `x`.
expm1: e to the power of `x`, minus 1, exact near 0.
floor: The greatest integer that is not greater, in the dtype of `x`.
imag: The imaginary part of complex numbers.
isfinite: Whether an element is neither infinite nor NaN.
isinf: Whether an element is infinite.
isnan: Whether an element is NaN.
log: The natural logarithm.
log10: The logarithm to the base 10.
log1p: The logarithm of 1 + `x`, exact near 0.
log2: The logarithm to the base 2.
logical_not: The negation of booleans.
negative: The number of the other sign.
positive: A copy of numbers.
real: The real part of complex numbers.
reciprocal: 1 / `x`.
round: The nearest integer, of two the even one, in the dtype of `x`.
sign: -1, 0 or 1, and NaN for NaN; `x / abs(x)` for complex numbers.
signbit: Whether the sign bit is set, as it is in -0.0.
sin: The sine of radians.
sinh: The hyperbolic sine.
sqrt: The principal square root.
square: `x` times `x`.
tan: The tangent of radians.
tanh: The hyperbolic tangent.
trunc: The nearest integer that is not farther from 0, in the dtype of `x`.
"""
_TWO = """
add: `x1 + x2`.
atan2: The angle of the points (`x2`, `x1`) in radians.
bitwise_and: The bits that are set in both.
bitwise_left_shift: The bits of `x1` shifted left by `x2`.
bitwise_or: The bits that are set in either.
bitwise_right_shift: The bits of `x1` shifted right by `x2`; copies of the sign move in.
bitwise_xor: The bits that are set in one of them.
copysign: `x1` with the sign of `x2`.
divide: `x1 / x2`, floating or complex.
equal: Whether `x1 == x2`.
floor_divide: The greatest integer that is not greater than `x1 / x2`, infinite if that is.
greater: Whether `x1 > x2`.
greater_equal: Whether `x1 >= x2`.
hypot: The square root of the sum of squares, without overflow.
less: Whether `x1 < x2`.
less_equal: Whether `x1 <= x2`.
logaddexp: The logarithm of `exp(x1) + exp(x2)`.
logical_and: Whether both are true.
logical_or: Whether either is true.
logical_xor: Whether one of them is true.
maximum: The greater one, NaN if either is.
minimum: The smaller one, NaN if either is.
multiply: `x1 * x2`.
nextafter: The next number after `x1` in the direction of `x2`.
not_equal: Whether `x1 != x2`.
pow: `x1` to the power of `x2`.
remainder: What `floor_divide` leaves, of the sign of `x2` even where it is 0.
subtract: `x1 - x2`.
"""
_OTHER_NAMES = {"bitwise_invert": "bitwise_not", "equal": "eq", "conj": "conj_physical"}
_OPERATORS = """add add, bitwise_and and, bitwise_left_shift lshift, bitwise_or or, bitwise_right_shift rshift,
    bitwise_xor xor, divide truediv, equal eq, floor_divide floordiv, greater gt, greater_equal ge, less lt,
    less_equal le, multiply mul, not_equal ne, pow pow, remainder mod, subtract sub"""


def _integral(name: str) -> Callable[[Tensor], Tensor]:
    """Of a function that rounds numbers to integers, the one that copies integers and booleans."""
    compute = PACKAGE[name]
    return lambda x: compute(x) if x.dtype.category >= dtypes.FLOATING else x.clone()


def _round(x: Tensor) -> Tensor:
    return complex(functional.round(x.real), functional.round(x.imag)) if x.is_complex() else _integral("round")(x)


def _sign(x: Tensor) -> Tensor:
    return functional.sgn(x) if x.is_complex() else functional.where(x != x, x, functional.sign(x))  # type: ignore[no-any-return]


def _floor_divide(x1: Tensor, x2: Tensor) -> Tensor:
    found = functional.floor_divide(x1, x2)
    if found.dtype.category < dtypes.FLOATING:
        return found
    return functional.where(x1.isinf() | x2.isinf(), (x1 / x2).floor(), found)  # type: ignore[no-any-return]


def _remainder(x1: Tensor, x2: Tensor) -> Tensor:
    found = functional.remainder(x1, x2)
    if found.dtype.category < dtypes.FLOATING:
        return found
    return functional.where(found == 0, functional.copysign(found, x2), found)  # type: ignore[no-any-return]


_OWN: dict[str, Callable[..., Tensor]] = {
    **{name: _integral(name) for name in ("ceil", "floor", "trunc")},
    "floor_divide": _floor_divide,
    "positive": lambda x: x.clone(),
    "remainder": _remainder,
    "round": _round,
    "sign": _sign,
}


def _compute(name: str) -> Callable[..., Any]:
    return _OWN.get(name) or PACKAGE[_OTHER_NAMES.get(name, name)]  # type: ignore[no-any-return]


def _of_one(name: str) -> Callable[..., Any]:
    compute = _compute(name)
    return lambda x, /: compute(x)


def _of_two(name: str) -> Callable[..., Any]:
    compute = _compute(name)
    return lambda x1, x2, /: compute(*promoted(name, x1, x2))


def _clip(x: Tensor, /, min: Tensor | float | None = None, max: Tensor | float | None = None) -> Tensor:
    """`x` with the elements below `min` and above `max` replaced by these, in the dtype of `x`."""
    found = x
    for bound, nearer in ((min, functional.maximum), (max, functional.minimum)):
        if bound is not None:
            found = nearer(*promoted("clip", found, bound, to=x.dtype))
    return found.clone() if found is x else found


_made = declared(__name__, {line.split(":")[0]: _of_one(line.split(":")[0]) for line in _ONE.split("\n")[1:-1]}, _ONE)
_made |= declared(__name__, {line.split(":")[0]: _of_two(line.split(":")[0]) for line in _TWO.split("\n")[1:-1]}, _TWO)
_made |= declared(__name__, {"clip": _clip})
for _pair in _OPERATORS.split(","):
    _name, _short = _pair.split()
    operator(_short, _made[_name])
globals().update(_made)

__all__ = list(_made)
