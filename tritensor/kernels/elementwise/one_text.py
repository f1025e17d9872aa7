"""Operators whose reference is made from the text of their kernel: special functions by series and rational
approximations, of which a second text would be the first one again. Tests compare them with other programs' values.

The text is Triton's, branches are choices between values, and on arrays `tl` and `libdevice` mean NumPy's functions.
References compute in float64 and round once, so that the kernels' arithmetic in float32 is still tested; native
code on the CPU does so too.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import numpy as np

from ...ground.public import SPECIAL
from ...operators.rules import REAL_FLOAT, Rule
from ...runtime.source import device_function, spoken
from .error_function import erf_array, erfc_array, in_pieces
from .family import Elementwise, elementwise
from .log_gamma import lgamma_array
from .methods import function_of

if TYPE_CHECKING:
    import triton.language as tl

# Elements of a piece: the ten arrays of a text stay in the cache. i0e of 1 M takes 55 ms with eight times as many.
_PIECE = 1 << 12

ARRAYS = SimpleNamespace(
    abs=np.abs, float32=np.dtype(np.float32), static_range=range, where=np.where, zeros_like=np.zeros_like
)
_LIKE_NUMPY = "ceil copysign cos cosh exp expm1 floor log log1p sin sinh sqrt tan trunc"
_OTHERS = {"acos": np.arccos, "acosh": np.arccosh, "erf": erf_array, "erfc": erfc_array, "lgamma": lgamma_array}
LIBRARY = SimpleNamespace(**{name: getattr(np, name) for name in _LIKE_NUMPY.split()}, pow=np.power, **_OTHERS)


@device_function
def polynomial(x, TABLE: tl.constexpr):
    """The polynomial with these coefficients, highest power first."""
    result = tl.zeros_like(x) + TABLE[0]
    for place in tl.static_range(1, len(TABLE)):
        result = result * x + TABLE[place]
    return result


@device_function
def ratio(x, ABOVE: tl.constexpr, BELOW: tl.constexpr):
    """A quotient of polynomials."""
    return polynomial(x, ABOVE) / polynomial(x, BELOW)


@device_function
def clenshaw(x, TABLE: tl.constexpr):
    """The sum of Chebyshev polynomials at x / 2, highest degree first, of which the last counts half."""
    before = tl.zeros_like(x)
    last = tl.zeros_like(x)
    result = tl.zeros_like(x) + TABLE[0]
    for place in tl.static_range(1, len(TABLE)):
        before = last
        last = result
        result = x * last - before + TABLE[place]
    return 0.5 * (result - before)


@device_function
def any_of(condition):
    """True if a condition holds for an element of a block."""
    return tl.max(condition.to(tl.int32), axis=None) != 0


@device_function
def largest_of(x):
    """The largest element of a block, as an integer."""
    return tl.max(x, axis=None).to(tl.int32)


@device_function
def whole_of(number):
    """A number as an integer."""
    return number.to(tl.int32)


def _polynomial(x: np.ndarray | float, table: tuple[float, ...]) -> np.ndarray:
    """In one array."""
    result = np.full_like(x, table[0])
    for coefficient in table[1:]:
        result *= x
        result += coefficient
    return result


def _clenshaw(x: np.ndarray | float, table: tuple[float, ...]) -> np.ndarray:
    """In four arrays."""
    before, last, result = np.zeros_like(x), np.zeros_like(x), np.full_like(x, table[0])
    for coefficient in table[1:]:
        before, last, spare = last, result, before
        result = np.multiply(x, last, out=spare)
        result -= before
        result += coefficient
    return 0.5 * (result - before)


_WORDS: dict[str, Any] = {
    "any_of": np.any,
    "clenshaw": _clenshaw,
    "largest_of": lambda x: int(np.max(x, initial=0)),
    "polynomial": _polynomial,
    "whole_of": int,
}


def one_text(rule: Rule = REAL_FLOAT, **options: Any) -> Callable[[Callable[..., Any]], Elementwise]:
    """Declare an elementwise operator by its kernel's body; a decorator. `options` are those of `elementwise`."""

    def declare(body: Callable[..., Any]) -> Elementwise:
        compute = spoken(body, _WORDS, tl=ARRAYS, libdevice=LIBRARY)

        def reference(*operands: Any, **metadata: Any) -> Any:
            kind = next(value.dtype for value in operands if isinstance(value, np.ndarray))
            wide = [np.asarray(value, np.float64) for value in operands]
            if any(value.shape != wide[0].shape for value in wide):
                wide = [np.ascontiguousarray(value) for value in np.broadcast_arrays(*wide)]
            out = in_pieces(lambda *values: compute(*values, *metadata.values()), *wide, size=_PIECE)
            return np.asarray(out, kind)

        signature = inspect.signature(body)
        parameters = signature.parameters.values()  # those with a value are metadata
        reference.__signature__ = signature.replace(  # type: ignore[attr-defined]
            parameters=[
                each if each.default is each.empty else each.replace(kind=each.KEYWORD_ONLY) for each in parameters
            ]
        )
        reference.__doc__ = body.__doc__
        declared = elementwise(rule, reference, **{"name": body.__name__, **options})
        declared.one_text = True
        return declared.kernel(body)

    return declare


def special(body: Callable[..., Any]) -> Elementwise:
    """Declare an operator that is a function of `tritensor.special` alone; a decorator."""
    name = body.__name__
    operator = one_text(name=f"special_{name}", methods=())(body)
    SPECIAL.declare(name, function_of(operator, name))
    return operator
