"""The elementwise functions of the standard, declared by the name of the function that computes and a sentence.

Binary ones take two tensors of any shapes that broadcast, or one and a number, and compute in their common dtype.
"""

from __future__ import annotations

import builtins
from collections.abc import Callable
from typing import Any

from .. import dtypes, functional
from ..arguments import check_tensor
from ..public import PACKAGE
from ..tensor import Tensor
from .data_types import promoted

_UNARY = {
    "abs": "The absolute value of numbers; real for complex ones.",
    "acos": "The arc cosine.",
    "acosh": "The inverse hyperbolic cosine.",
    "asin": "The arc sine.",
    "asinh": "The inverse hyperbolic sine.",
    "atan": "The arc tangent.",
    "atanh": "The inverse hyperbolic tangent.",
    "bitwise_invert": "Every bit of integers inverted; the negation of booleans.",
    "ceil": "The smallest integer that is not less, in the dtype of `x`.",
    "conj": "The complex conjugate.",
    "cos": "The cosine of radians.",
    "cosh": "The hyperbolic cosine.",
    "exp": "e to the power of `x`.",
    "expm1": "e to the power of `x`, minus 1, exact near 0.",
    "floor": "The greatest integer that is not greater, in the dtype of `x`.",
    "imag": "The imaginary part of complex numbers.",
    "isfinite": "Whether an element is neither infinite nor NaN.",
    "isinf": "Whether an element is infinite.",
    "isnan": "Whether an element is NaN.",
    "log": "The natural logarithm.",
    "log10": "The logarithm to the base 10.",
    "log1p": "The logarithm of 1 + `x`, exact near 0.",
    "log2": "The logarithm to the base 2.",
    "logical_not": "The negation of booleans.",
    "negative": "The number of the other sign.",
    "positive": "A copy of numbers.",
    "real": "The real part of complex numbers.",
    "reciprocal": "1 / `x`.",
    "round": "The nearest integer, of two the even one, in the dtype of `x`.",
    "sign": "-1, 0 or 1, NaN for NaN; `x / abs(x)` for complex numbers.",
    "signbit": "Whether the sign bit is set, as it is in -0.0.",
    "sin": "The sine of radians.",
    "sinh": "The hyperbolic sine.",
    "sqrt": "The principal square root.",
    "square": "`x` times `x`.",
    "tan": "The tangent of radians.",
    "tanh": "The hyperbolic tangent.",
    "trunc": "The nearest integer that is not farther from 0, in the dtype of `x`.",
}
_BINARY = {
    "add": "`x1 + x2`.",
    "atan2": "The angle of the points (`x2`, `x1`) in radians.",
    "bitwise_and": "The bits that are set in both.",
    "bitwise_left_shift": "The bits of `x1` shifted left by `x2`.",
    "bitwise_or": "The bits that are set in either.",
    "bitwise_right_shift": "The bits of `x1` shifted right by `x2`, copies of the sign moving in.",
    "bitwise_xor": "The bits that are set in one of them.",
    "copysign": "`x1` with the sign of `x2`.",
    "divide": "`x1 / x2`, floating or complex.",
    "equal": "Whether `x1 == x2`.",
    "floor_divide": "The greatest integer that is not greater than `x1 / x2`.",
    "greater": "Whether `x1 > x2`.",
    "greater_equal": "Whether `x1 >= x2`.",
    "hypot": "The square root of the sum of squares, without overflow.",
    "less": "Whether `x1 < x2`.",
    "less_equal": "Whether `x1 <= x2`.",
    "logaddexp": "The logarithm of `exp(x1) + exp(x2)`.",
    "logical_and": "Whether both are true.",
    "logical_or": "Whether either is true.",
    "logical_xor": "Whether one of them is true.",
    "maximum": "The greater one, NaN if either is.",
    "minimum": "The smaller one, NaN if either is.",
    "multiply": "`x1 * x2`.",
    "nextafter": "The next number after `x1` in the direction of `x2`.",
    "not_equal": "Whether `x1 != x2`.",
    "pow": "`x1` to the power of `x2`.",
    "remainder": "What `floor_divide` leaves, of the sign of `x2`.",
    "subtract": "`x1 - x2`.",
}
_OTHER_NAMES = {"bitwise_invert": "bitwise_not", "equal": "eq", "conj": "conj_physical"}


def _real_alone(name: str) -> Callable[[Tensor], Tensor]:
    """Of a function of floating numbers, the one that leaves integers and booleans as they are."""
    compute = getattr(functional, name)

    def rounded(x: Tensor) -> Tensor:
        return compute(x) if x.dtype.category >= dtypes.FLOATING else x.clone()  # type: ignore[no-any-return]

    return rounded


def _round(x: Tensor) -> Tensor:
    if x.is_complex():
        return functional.complex(functional.round(x.real), functional.round(x.imag))
    return _real_alone("round")(x)


def _sign(x: Tensor) -> Tensor:
    if x.is_complex():
        return functional.sgn(x)
    return functional.where(x != x, x, functional.sign(x))


_OWN: dict[str, Callable[[Tensor], Tensor]] = {
    **{name: _real_alone(name) for name in ("ceil", "floor", "trunc")},
    "round": _round,
    "sign": _sign,
    "positive": lambda x: x.clone(),
}


def _unary(name: str, text: str) -> Callable[..., Tensor]:
    compute = _OWN.get(name) or PACKAGE[_OTHER_NAMES.get(name, name)]

    def function(x: Tensor, /) -> Tensor:
        check_tensor(name, "x", 1, x)
        return compute(x)  # type: ignore[no-any-return]

    return _declared(function, name, text)


def _binary(name: str, text: str) -> Callable[..., Tensor]:
    compute = PACKAGE[_OTHER_NAMES.get(name, name)]

    def function(x1: Tensor | complex, x2: Tensor | complex, /) -> Tensor:
        return compute(*promoted(name, x1, x2))  # type: ignore[no-any-return]

    return _declared(function, name, text)


def _declared(function: Any, name: str, text: str) -> Callable[..., Tensor]:
    function.__name__ = function.__qualname__ = name
    function.__doc__ = text
    return function  # type: ignore[no-any-return]


globals().update({name: _unary(name, text) for name, text in _UNARY.items()})
globals().update({name: _binary(name, text) for name, text in _BINARY.items()})


def clip(x: Tensor, /, min: Tensor | float | None = None, max: Tensor | float | None = None) -> Tensor:
    """`x` with the elements below `min` and above `max` replaced by these, in the dtype of `x`."""
    check_tensor("clip", "x", 1, x)
    for bound, nearer in ((min, functional.maximum), (max, functional.minimum)):
        if bound is not None:
            x = nearer(*promoted("clip", x, bound, to=x.dtype))
    return x.clone() if min is max is None else x


__all__ = [*_UNARY, *_BINARY, "clip"]
_ = builtins
