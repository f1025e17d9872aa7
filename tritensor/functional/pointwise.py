"""The functions that work element by element: arithmetic, comparison, logic, exponentials, trigonometry, rounding.

Most are made from the registry: a method that an elementwise declaration adds to Tensor becomes a function here, with
PyTorch's parameters (`input`, `other`) and the declaration's docstring. Written out are those whose call differs from
the operator's (`add(alpha=)`, `div(rounding_mode=)`, `clamp`) and those made of several operators.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .. import dtypes
from ..errors import ArgumentError, DtypeError, ShapeError, explain
from ..inplace import in_place
from ..kernels.elementwise import activation_gradients as _activation_gradients  # noqa: F401 - declares relu and sigmoid
from ..kernels.elementwise import arithmetic, comparison, division, rounding
from ..kernels.elementwise import error_function as _error_function  # noqa: F401
from ..kernels.elementwise import exponential as _exponential  # noqa: F401
from ..kernels.elementwise import maximum as extrema
from ..kernels.elementwise import trigonometric as _trigonometric  # noqa: F401
from ..kernels.elementwise.family import Elementwise
from ..operator import registry
from ..tensor import Tensor
from .search import nonzero

__all__ = [
    "add",
    "allclose",
    "clamp",
    "clip",
    "div",
    "divide",
    "equal",
    "isclose",
    "nan_to_num",
    "positive",
    "round",
    "sub",
    "subtract",
    "where",
]


# ---- made from the registry -----------------------------------------------------------------------------------


def _one(operator: Elementwise, name: str) -> Callable[..., Tensor]:
    quick = operator.quick

    def function(input: Tensor) -> Tensor:
        return quick(input) if isinstance(input, Tensor) else _refuse(name, input)

    return function


def _two(operator: Elementwise) -> Callable[..., Tensor]:
    quick = operator.quick

    def function(input: Any, other: Any) -> Tensor:
        return quick(input, other) if isinstance(input, Tensor) else operator(input, other)

    return function


def _refuse(name: str, value: Any) -> Any:
    raise ArgumentError(f"{name}(): argument 'input' (position 1) must be Tensor, not {type(value).__name__}")


def _publish(operator: Elementwise, name: str) -> None:
    """Make the public function `name` from an operator; one with its own parameter names is called as it is."""
    function: Any = operator
    if operator.inputs in (("x",), ("x", "y")) and not operator.metadata:
        function = _one(operator, name) if len(operator.inputs) == 1 else _two(operator)
        function.__name__ = function.__qualname__ = name
        function.__module__ = __name__
        function.__doc__ = operator.__doc__
    globals()[name] = function
    __all__.append(name)


for _operator in registry.values():
    if isinstance(_operator, Elementwise):
        for _name in _operator.methods:
            if _name not in __all__:
                _publish(_operator, _name)


# ---- calls that differ from the operator's --------------------------------------------------------------------


def add(input: Any, other: Any, *, alpha: Any = 1) -> Tensor:
    """input + alpha * other.

    >>> import tritensor as torch
    >>> torch.add(torch.tensor([1, 2]), torch.tensor([10, 20]), alpha=2)
    tensor([21, 42])

    Raises:
        DtypeError: a fractional or boolean alpha for operands that are not.
    """
    if type(alpha) is int and alpha == 1:
        return _quick_add(input, other) if isinstance(input, Tensor) else arithmetic.add(input, other)
    result = arithmetic.add_scaled(input, other, alpha=alpha)
    return _checked_alpha(result, alpha)


def sub(input: Any, other: Any, *, alpha: Any = 1) -> Tensor:
    """input - alpha * other; the errors are those of `add`."""
    if type(alpha) is int and alpha == 1:
        return _quick_sub(input, other) if isinstance(input, Tensor) else arithmetic.sub(input, other)
    return _checked_alpha(arithmetic.add_scaled(input, other, alpha=-alpha), alpha)


subtract = sub
_quick_add: Any = arithmetic.add.quick
_quick_sub: Any = arithmetic.sub.quick


def _checked_alpha(result: Tensor, alpha: Any) -> Tensor:
    if isinstance(alpha, bool) and result.dtype is not dtypes.bool_:
        raise DtypeError("Boolean alpha only supported for Boolean results.")
    if isinstance(alpha, float) and result.dtype.category < dtypes.FLOATING:
        raise DtypeError("For integral input tensors, argument alpha must not be a floating point number.")
    return result


def div(input: Any, other: Any, *, rounding_mode: str | None = None) -> Tensor:
    """input / other; with `rounding_mode` "floor" or "trunc" rounded down or toward zero, and integers stay integers.

    >>> import tritensor as torch
    >>> torch.div(torch.tensor([-7, 7]), 2, rounding_mode="trunc")
    tensor([-3,  3])

    Raises:
        ShapeError: another rounding mode, or integers divided by the number 0.
    """
    if rounding_mode is None:
        return _quick_div(input, other) if isinstance(input, Tensor) else arithmetic.div(input, other)
    if rounding_mode == "floor":
        return division.floor_divide(input, other)
    if rounding_mode == "trunc":
        return division.trunc_divide(input, other)
    raise ShapeError(f"div expected rounding_mode to be one of None, 'trunc', or 'floor' but found {rounding_mode!r}")


divide = div
_quick_div: Any = arithmetic.div.quick


def clamp(input: Tensor, min: Any = None, max: Any = None) -> Tensor:
    """input with what lies below `min` or above `max` brought to it; bounds are numbers or tensors, NaN stays.

    >>> import tritensor as torch
    >>> torch.clamp(torch.tensor([-1.0, 0.5, 3.0]), 0, 1)
    tensor([0.0000, 0.5000, 1.0000])

    Raises:
        ShapeError: no bound is given.
    """
    if max is None:
        if min is None:
            raise ShapeError("torch.clamp: At least one of 'min' or 'max' must not be None")
        return extrema.clamp_min(input, min)
    return extrema.clamp_max(input, max) if min is None else extrema.clamp(input, min, max)


clip = clamp


def round(input: Tensor, *, decimals: int = 0) -> Tensor:
    """The nearest number with `decimals` digits after the point; of two equally near ones the even one.

    >>> import tritensor as torch
    >>> torch.round(torch.tensor([0.5, 1.5, 2.5]))
    tensor([0., 2., 2.])
    """
    if decimals == 0:
        return rounding.rint(input)
    if decimals > 0:
        return rounding.rint(input * 10.0**decimals) / 10.0**decimals
    return rounding.rint(input / 10.0**-decimals) * 10.0**-decimals


def nan_to_num(input: Tensor, nan: float = 0.0, posinf: float | None = None, neginf: float | None = None) -> Tensor:
    """input with `nan` for NaN, and for the infinities the given numbers or the dtype's largest and smallest."""
    if input.dtype.category != dtypes.FLOATING:
        return input.clone()
    limits = dtypes.finfo(input.dtype)
    return rounding.replace_nonfinite(
        input,
        nan=0.0 if nan is None else nan,
        posinf=limits.max if posinf is None else posinf,
        neginf=limits.min if neginf is None else neginf,
    )


def positive(input: Tensor) -> Tensor:
    """input itself.

    Raises:
        DtypeError: a boolean tensor.
    """
    if input.dtype is dtypes.bool_:
        raise DtypeError("The `+` operator, on a bool tensor is not supported.")
    return input


def where(condition: Tensor, input: Any = None, other: Any = None) -> Any:
    """input where `condition` holds, else other; of a condition alone, the coordinates of its elements that are not 0.

    >>> import tritensor as torch
    >>> torch.where(torch.tensor([True, False]), torch.tensor([1, 2]), 0)
    tensor([1, 0])

    Raises:
        DtypeError: the condition is not boolean.
    """
    if input is None and other is None:
        return nonzero(condition, as_tuple=True)
    if isinstance(condition, Tensor) and condition.dtype is not dtypes.bool_:
        raise DtypeError(
            explain(
                f"where expected condition to be a boolean tensor, but got a tensor with dtype {condition.dtype}",
                remedy="compare it, as in condition != 0",
            )
        )
    return arithmetic.where(condition, input, other)


# ---- comparisons of whole tensors -----------------------------------------------------------------------------


def isclose(input: Tensor, other: Tensor, rtol: float = 1e-05, atol: float = 1e-08, equal_nan: bool = False) -> Tensor:
    """Whether |input - other| <= atol + rtol * |other|, element by element.

    Raises:
        DtypeError: the dtypes differ. ShapeError: a negative tolerance.
    """
    if input.dtype is not other.dtype:
        raise DtypeError(explain(f"{input.dtype} did not match {other.dtype}", remedy="convert one with .to(dtype)"))
    if rtol < 0 or atol < 0:
        raise ShapeError(f"rtol and atol must be greater than or equal to zero, but got {rtol} and {atol}")
    close = input == other
    if input.dtype.category >= dtypes.FLOATING:
        near = arithmetic.abs(input - other) <= arithmetic.abs(other) * rtol + atol
        close = close | (near & rounding.isfinite(other))
        if equal_nan:
            close = close | (rounding.isnan(input) & rounding.isnan(other))
    elif input.dtype is not dtypes.bool_:
        wide_input, wide_other = input.to(dtypes.float64), other.to(dtypes.float64)
        close = close | (arithmetic.abs(wide_input - wide_other) <= arithmetic.abs(wide_other) * rtol + atol)
    return close


def allclose(input: Tensor, other: Tensor, rtol: float = 1e-05, atol: float = 1e-08, equal_nan: bool = False) -> bool:
    """Whether all elements are close: see `isclose`.

    >>> import tritensor as torch
    >>> torch.allclose(torch.tensor([1.0]), torch.tensor([1.0 + 1e-7]))
    True
    """
    return bool(isclose(input, other, rtol, atol, equal_nan).all())


def equal(input: Tensor, other: Tensor) -> bool:
    """Whether both have the same shape and the same elements.

    >>> import tritensor as torch
    >>> torch.equal(torch.tensor([1, 2]), torch.tensor([1, 2]))
    True
    """
    return input._data.shape == other._data.shape and bool((input == other).all())


# ---- methods --------------------------------------------------------------------------------------------------


def _changing(function: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """The in-place method of a function."""

    def method(self: Tensor, *args: Any, **metadata: Any) -> Tensor:
        return in_place(self, function, *args, **metadata)

    method.__doc__ = function.__doc__
    return method


def _with_alpha(function: Callable[..., Tensor], plain: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """`add_` and `sub_`: without alpha by the operator's own way, which writes into the memory directly."""

    def method(self: Tensor, other: Any, *, alpha: Any = 1) -> Tensor:
        if type(alpha) is int and alpha == 1:
            return plain(self, other)
        return in_place(self, function, other, alpha=alpha)

    method.__doc__ = function.__doc__
    return method


def _inverted(self: Tensor) -> Tensor:
    """The bits that are not set; for booleans, not x."""
    if self.dtype.category > dtypes.INTEGER:
        raise ArgumentError("~ (operator.invert) is only implemented on integer and Boolean-type tensors")
    return comparison.bitwise_not(self)


def _where_method(self: Tensor, condition: Tensor, other: Any) -> Any:
    """The tensor's elements where `condition` holds, else `other`'s."""
    return where(condition, self, other)


def _attach() -> None:
    attach: dict[str, Any] = {
        name: globals()[name]
        for name in (
            "add",
            "sub",
            "subtract",
            "div",
            "divide",
            "clamp",
            "clip",
            "round",
            "nan_to_num",
            "positive",
            "isclose",
            "allclose",
            "equal",
        )
    }
    for name in ("div", "divide", "clamp", "clip", "round", "nan_to_num"):
        attach[f"{name}_"] = _changing(attach[name])
    attach["add_"] = _with_alpha(add, arithmetic.add.changing)
    attach["sub_"] = attach["subtract_"] = _with_alpha(sub, arithmetic.sub.changing)
    for operator in registry.values():
        if isinstance(operator, Elementwise) and operator.rule.result is dtypes.bool_ and len(operator.inputs) == 2:
            attach.update({f"{name}_": _changing(operator) for name in operator.methods})
    attach["logical_not_"] = _changing(comparison.logical_not)
    attach["where"] = _where_method
    attach["__pos__"], attach["__invert__"] = positive, _inverted
    for dunder, operator in (
        ("add", arithmetic.add),
        ("sub", arithmetic.sub),
        ("mul", arithmetic.mul),
        ("truediv", arithmetic.div),
        ("pow", arithmetic.pow),
        ("floordiv", division.floor_divide),
        ("mod", division.remainder),
        ("and", comparison.bitwise_and),
        ("or", comparison.bitwise_or),
        ("xor", comparison.bitwise_xor),
        ("lshift", comparison.bitwise_left_shift),
        ("rshift", comparison.bitwise_right_shift),
    ):
        attach[f"__i{dunder}__"] = operator.changing
    for name, function in attach.items():
        setattr(Tensor, name, function)


_attach()
