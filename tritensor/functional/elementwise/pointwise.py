"""Elementwise functions: arithmetic, comparison, logic, exponentials, trigonometry, rounding.

The declarations in `kernels/elementwise` define most of them. Here are those whose signature differs from the
operator's (`add(alpha=)`, `div(rounding_mode=)`, `clamp`) and those made of several operators.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, overload

import numpy as np

from ...autograd.levels import followed
from ...errors import ArgumentError, DtypeError, ShapeError
from ...ground.arguments import check_tensor, number_in, number_of, older_order, whole, wrong_type
from ...ground.public import method, public
from ...kernels.elementwise import arithmetic, comparison, division, magnitudes, rounding
from ...kernels.elementwise import maximum as bounds
from ...operators.inplace import in_place, in_place_form
from ...operators.outputs import ELEMENTWISE, Into, into, takes_out
from ...operators.rules import Number, is_half
from ...tensors import Tensor
from ...types import dtypes
from ..indexing.search import nonzero

# ---- calls that differ from the operator's --------------------------------------------------------------------


@public(method=True)
def add(input: object, other: Tensor | complex, *older: Any, alpha: complex = 1, out: Tensor | None = None) -> Tensor:
    """Adds `other`, scaled by `alpha`, to `input`: input + alpha * other.

    >>> import tritensor as torch
    >>> torch.add(torch.tensor([1, 2]), torch.tensor([10, 20]), alpha=2)
    tensor([21, 42])

    Raises:
        DtypeError: a fractional or boolean alpha for operands that are not, or one that the result's dtype cannot hold.
    """
    if older:
        values, factors = older_order("add", {"alpha": alpha}, input, other, *older)
        return add(*values, **factors, out=out)
    if out is not None:
        return into(add, ELEMENTWISE, out, (input, other), {"alpha": alpha})
    if type(alpha) is int and alpha == 1:
        return _quick_add(input, other) if isinstance(input, Tensor) else arithmetic.add(input, other)
    _check_operands("add", input, other)
    alpha = number_of("add", "alpha", alpha)
    return arithmetic.add_scaled(input, other, alpha=alpha)


@public("subtract", method=True)
def sub(input: object, other: Tensor | complex, *older: Any, alpha: complex = 1, out: Tensor | None = None) -> Tensor:
    """Subtracts `other`, scaled by `alpha`, from `input`; the errors are those of `add`."""
    if older:
        values, factors = older_order("sub", {"alpha": alpha}, input, other, *older)
        return sub(*values, **factors, out=out)
    if out is not None:
        return into(sub, ELEMENTWISE, out, (input, other), {"alpha": alpha})
    if type(alpha) is int and alpha == 1:
        return _quick_sub(input, other) if isinstance(input, Tensor) else arithmetic.sub(input, other)
    _check_operands("sub", input, other)
    alpha = number_of("sub", "alpha", alpha)
    arithmetic.sub.rule("sub", (input, other))  # it refuses booleans
    return arithmetic.add_scaled(input, other, alpha=alpha if isinstance(alpha, bool) else -alpha)


def _check_operands(name: str, input: Any, other: Any) -> None:
    """Raise, under the name of the call, unless the operands are tensors, arrays or numbers, not both numbers."""
    for position, (argument, value) in enumerate((("input", input), ("other", other)), 1):
        if not isinstance(value, (Tensor, np.ndarray, *Number)):
            raise wrong_type(name, argument, "Tensor", value, position)
    if isinstance(input, Number) and isinstance(other, Number):
        raise ArgumentError(f"{name}(): at least one argument must be a Tensor")


_quick_add: Any = arithmetic.add.method
_quick_sub: Any = arithmetic.sub.method


@public("divide", method=True, in_place=in_place_form)
def div(input: object, other: object, *, rounding_mode: str | None = None, out: Tensor | None = None) -> Tensor:
    """Divides input by other; `rounding_mode` "floor" rounds down and "trunc" toward zero, and keeps integers.

    >>> import tritensor as torch
    >>> torch.div(torch.tensor([-7, 7]), 2, rounding_mode="trunc")
    tensor([-3,  3])

    Raises:
        ShapeError: another rounding mode. DivisionError: integers divided by 0, on the CPU or by the number 0; in a
            tensor on a device x / 0 is 0.
    """
    if out is not None:
        return into(div, ELEMENTWISE, out, (input, other), {"rounding_mode": rounding_mode})
    if rounding_mode is None:
        return _quick_div(input, other) if isinstance(input, Tensor) else arithmetic.div(input, other)
    if rounding_mode == "floor":
        return division.floor_divide(input, other)
    if rounding_mode == "trunc":
        return division.trunc_divide(input, other)
    raise ShapeError(f"div expected rounding_mode to be one of None, 'trunc', or 'floor' but found {rounding_mode!r}")


_quick_div: Any = arithmetic.div.method


@public("clip", method=True, in_place=in_place_form, in_place_function=True, out=takes_out(Into("same", "partly")))
def clamp(input: Tensor, min: Any = None, max: Any = None) -> Tensor:
    """Clamps elements to the range from `min` to `max`; bounds are numbers or tensors, NaN stays.

    >>> import tritensor as torch
    >>> torch.clamp(torch.tensor([-1.0, 0.5, 3.0]), 0, 1)
    tensor([0.0000, 0.5000, 1.0000])

    Raises:
        ShapeError: no bound is given.
    """
    if max is None:
        if min is None:
            raise ShapeError("torch.clamp: At least one of 'min' or 'max' must not be None")
        return bounds.clamp_min(input, min)
    if min is None:
        return bounds.clamp_max(input, max)
    if isinstance(min, Tensor) is not isinstance(max, Tensor):
        min, max = _as_number(min, input), _as_number(max, input)
    return bounds.clamp(input, min, max)


def _as_number(bound: Any, input: Tensor) -> Any:
    """A bound without dimensions beside a number promotes as a number does: integers to the default dtype only."""
    if not isinstance(bound, Tensor) or bound.ndim:
        return bound
    if bound.dtype.category <= input.dtype.category:
        return bound.item() if input.ndim == 0 and not (bound._needs or followed(bound)) else bound
    return bound.to(dtypes.get_default_dtype()) if bound.dtype.is_floating_point else bound


@public(method=True, in_place=in_place_form, in_place_function=True, out=takes_out(Into("same", "partly")))
def round(input: Tensor, *, decimals: int = 0) -> Tensor:
    """Rounds to the nearest number with `decimals` digits after the point; ties go to the even one.

    >>> import tritensor as torch
    >>> torch.round(torch.tensor([0.5, 1.5, 2.5]))
    tensor([0., 2., 2.])
    """
    if decimals == 0:
        return rounding.rint(input)
    decimals = whole("round", "decimals", decimals)
    if is_half(input.dtype):  # the products may be too large for it
        return round(input.float(), decimals=decimals).to(input.dtype)
    if decimals > 0:
        return rounding.rint(input * 10.0**decimals) / 10.0**decimals
    return rounding.rint(input / 10.0**-decimals) * 10.0**-decimals


@public(method=True, in_place=in_place_form, in_place_function=True, out=takes_out(Into("same", "partly")))
def nan_to_num(input: Tensor, nan: float = 0.0, posinf: float | None = None, neginf: float | None = None) -> Tensor:
    """Replaces NaN by `nan`, and infinities by the given numbers or the dtype's largest and smallest.

    Of complex numbers, both parts are replaced.
    """
    nan, posinf, neginf = map(number_in, (nan, posinf, neginf))
    for name, value in (("nan", nan), ("posinf", posinf), ("neginf", neginf)):
        if value is not None and not isinstance(value, (int, float, np.number)):
            raise wrong_type("nan_to_num", name, "float", value)
    if input.dtype.category < dtypes.FLOATING:
        return input.clone()
    limits = dtypes.finfo(input.dtype)
    return rounding.replace_nonfinite(
        input,
        nan=0.0 if nan is None else nan,
        posinf=limits.max if posinf is None else posinf,
        neginf=limits.min if neginf is None else neginf,
    )


@public(method=True)
def conj(input: Tensor) -> Tensor:
    """The complex conjugate: input with its imaginary part negated; a real tensor itself.

    >>> import tritensor as torch
    >>> torch.tensor([1 + 2j]).conj()
    tensor([1.-2.j])
    """
    check_tensor("conj", "input", 1, input)
    return arithmetic.conj(input) if input.dtype.is_complex else input


@method("__pos__")
@public(method=True)
def positive(input: Tensor) -> Tensor:
    """input itself.

    Raises:
        DtypeError: a boolean tensor.
    """
    if input.dtype is dtypes.bool_:
        raise DtypeError("The `+` operator, on a bool tensor is not supported.")
    return input


@overload
def where(condition: Tensor) -> tuple[Tensor, ...]: ...
@overload
def where(condition: Tensor, input: Any, other: Any) -> Tensor: ...
@public(out=takes_out(Into("same", "partly")))
def where(condition: Tensor, input: object = None, other: Tensor | complex | None = None) -> Any:
    """Selects elements of input where `condition` is True, else of other; of a condition alone, its `nonzero` indices.

    >>> import tritensor as torch
    >>> torch.where(torch.tensor([True, False]), torch.tensor([1, 2]), 0)
    tensor([1, 0])

    Raises:
        DtypeError: the condition is not boolean.
    """
    check_tensor("where", "condition", 1, condition)
    if input is None and other is None:
        return nonzero(condition, as_tuple=True)
    if isinstance(condition, Tensor) and condition.dtype is not dtypes.bool_:
        raise DtypeError(
            f"where expected condition to be a boolean tensor, but got a tensor with dtype {condition.dtype}",
            remedy="compare it, as in condition != 0",
        )
    return arithmetic.where(condition, input, other)


# ---- comparisons of whole tensors -----------------------------------------------------------------------------


@public(method=True)
def isclose(input: Tensor, other: Tensor, rtol: float = 1e-05, atol: float = 1e-08, equal_nan: bool = False) -> Tensor:
    """Tests if elements are close: |input - other| <= atol + rtol * |other|.

    Raises:
        DtypeError: the dtypes differ. ShapeError: a negative tolerance.
    """
    check_tensor("isclose", "input", 1, input)
    check_tensor("isclose", "other", 2, other)
    if input.dtype is not other.dtype:
        raise DtypeError(f"{input.dtype} did not match {other.dtype}", remedy="convert one with .to(dtype)")
    for name, tolerance in (("rtol", rtol), ("atol", atol)):
        if tolerance < 0:
            raise ShapeError(f"{name} must be greater than or equal to zero, but got {tolerance}")
    close = input == other
    if input.dtype.category >= dtypes.FLOATING:
        near = magnitudes.abs(input - other) <= magnitudes.abs(other) * rtol + atol
        close = close | (near & rounding.isfinite(other))
        if equal_nan:
            close = close | (rounding.isnan(input) & rounding.isnan(other))
    else:
        wide_input, wide_other = input.to(dtypes.float64), other.to(dtypes.float64)
        close = close | (magnitudes.abs(wide_input - wide_other) <= magnitudes.abs(wide_other) * rtol + atol)
    return close


@public(method=True)
def allclose(input: Tensor, other: Tensor, rtol: float = 1e-05, atol: float = 1e-08, equal_nan: bool = False) -> bool:
    """Tests if all elements of two tensors are close, within `rtol` and `atol`; see `isclose`.

    >>> import tritensor as torch
    >>> torch.allclose(torch.tensor([1.0]), torch.tensor([1.0 + 1e-7]))
    True
    """
    return bool(isclose(input, other, rtol, atol, equal_nan).all())


@public(method=True, guard=False)
def equal(input: Tensor, other: Tensor) -> bool:
    """Tests if two tensors have the same shape and the same elements.

    >>> import tritensor as torch
    >>> torch.equal(torch.tensor([1, 2]), torch.tensor([1, 2]))
    True
    """
    check_tensor("equal", "input", 1, input)
    check_tensor("equal", "other", 2, other)
    return input._data.shape == other._data.shape and bool((input == other).all())


# ---- methods --------------------------------------------------------------------------------------------------


def _with_alpha(function: Callable[..., Tensor], plain: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """`add_` and `sub_`: without alpha they call the operator's own method, which writes to the memory directly."""

    def call(self: Tensor, other: Tensor | float, *older: Any, alpha: Any = 1) -> Tensor:
        if type(alpha) is int and alpha == 1 and not older:
            return plain(self, other)
        return in_place(self, function, other, *older, alpha=alpha)

    call.__name__ = f"{function.__name__}_"
    call.__doc__ = f"In-place version of `{function.__name__}`: writes to the tensor's own memory."
    return call


method("add_")(_with_alpha(add, arithmetic.add.method_in_place))
method("sub_", "subtract_")(_with_alpha(sub, arithmetic.sub.method_in_place))


@method("__invert__")
def _inverted(self: Tensor) -> Tensor:
    """The bitwise complement; for booleans the logical one."""
    if self.dtype.category > dtypes.INTEGER:
        raise ArgumentError("~ (operator.invert) is only implemented on integer and Boolean-type tensors")
    return comparison.bitwise_not(self)


@method("where")
def _where_method(self: Tensor, condition: Tensor, other: Tensor | complex) -> Tensor:
    """Selects the tensor's elements where `condition` is True, else `other`'s."""
    return where(condition, self, other)
