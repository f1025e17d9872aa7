"""The elementwise functions of the standard, and the operators of arrays, which are the same."""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Callable
from typing import Any

from .. import functional
from ..functional.elementwise.complex_numbers import complex
from ..ground.public import PACKAGE
from ..tensors import Tensor
from ..types import dtypes
from .arrays import Array
from .data_types import NUMBERS, promoted
from .declaring import functions_of

_ONE = """abs, acos, acosh, asin, asinh, atan, atanh, bitwise_invert = bitwise_not, ceil, conj = conj_physical, cos,
    cosh, exp, expm1, floor, imag, isfinite, isinf, isnan, log, log10, log1p, log2, logical_not, negative, positive,
    real, reciprocal, round, sign, signbit, sin, sinh, sqrt, square, tan, tanh, trunc"""
_TWO = """add, atan2, bitwise_and, bitwise_left_shift, bitwise_or, bitwise_right_shift, bitwise_xor, copysign,
    divide, equal = eq, floor_divide, greater, greater_equal, hypot, less, less_equal, logaddexp, logical_and,
    logical_or, logical_xor, maximum, minimum, multiply, nextafter, not_equal, pow, remainder, subtract"""
_OPERATORS = """add add, bitwise_and and, bitwise_left_shift lshift, bitwise_or or, bitwise_right_shift rshift,
    bitwise_xor xor, divide truediv, equal eq, floor_divide floordiv, greater gt, greater_equal ge, less lt,
    less_equal le, multiply mul, not_equal ne, pow pow, remainder mod, subtract sub"""


def _round(x: Tensor) -> Tensor:
    """The nearest integer, of two the even one; the parts of complex numbers are rounded each."""
    return complex(functional.round(x.real), functional.round(x.imag)) if x.is_complex() else functional.round(x)


def _sign(x: Tensor) -> Tensor:
    """-1, 0 or 1, and NaN for NaN; x / abs(x) for complex numbers."""
    if x.is_complex():
        return functional.sgn(x) + 0  # the sign of a zero goes
    return functional.where(x != x, x, functional.sign(x))


def _expm1(x: Tensor) -> Tensor:
    """exp(x) - 1, exact near 0."""
    found = functional.expm1(x)
    return functional.where(x.isfinite(), found + 0, x.exp() - 1) if x.is_complex() else found


def _floor_divide(x1: Tensor, x2: Tensor) -> Tensor:
    """The largest integer that is not above x1 / x2; infinite if that is, where PyTorch's is NaN."""
    found = functional.floor_divide(x1, x2)
    if found.dtype.category < dtypes.FLOATING:
        return found
    return functional.where(x1.isinf() | x2.isinf(), (x1 / x2).floor(), found)


def _remainder(x1: Tensor, x2: Tensor) -> Tensor:
    """The remainder of x1 divided by x2, with the sign of x2, which a 0 has too."""
    found = functional.remainder(x1, x2)
    if found.dtype.category < dtypes.FLOATING:
        return found
    return functional.where(found == 0, functional.copysign(found, x2), found)


def _clip(x: Tensor, min: int | None = None, max: Any = None) -> Tensor:
    """x with the elements below `min` and above `max` replaced by these, in the dtype of x."""
    found = x
    for bound, nearer in ((min, functional.maximum), (max, functional.minimum)):
        if bound is not None:
            found = nearer(*promoted("clip", found, bound, to=x.dtype))
    return found.clone() if found is x else found


def _table(names: str, parameters: str) -> str:
    pairs = [entry.strip().partition(" = ") for entry in names.split(",")]
    return "\n".join(f"{name}({parameters}) = {target or name}" for name, _, target in pairs)


_OWN = {"clip": _clip, "expm1": _expm1, "floor_divide": _floor_divide}
_OWN |= {"remainder": _remainder, "round": _round, "sign": _sign}
_all = f"{_table(_ONE, 'x, /')}\n{_table(_TWO, 'x1, x2, /')}\nclip(x, /, min=None, max=None)"
FUNCTIONS = functions_of(__name__, _all, ChainMap(_OWN, PACKAGE))


def _operator(name: str, function: Callable[..., Any]) -> None:
    """Let a function compute an operator of arrays, its reflected form and, where the results differ, that in place."""

    def method(form: str, place: int) -> Any:
        plain = getattr(Tensor, form)

        def call(self: Any, other: Any) -> Any:
            usual = isinstance(other, (Tensor, *NUMBERS))
            return function(*(self, other)[::place]) if usual else plain(self, other)

        return call

    setattr(Array, f"__{name}__", method(f"__{name}__", 1))
    if hasattr(Tensor, f"__r{name}__"):
        setattr(Array, f"__r{name}__", method(f"__r{name}__", -1))
    if name in ("floordiv", "mod"):
        setattr(Array, f"__i{name}__", lambda self, other: self.copy_(function(self, other)))


for _pair in _OPERATORS.split(","):
    _operator(_pair.split()[1], FUNCTIONS[_pair.split()[0]])
