"""Checks of arguments whose types Python does not check, with PyTorch's classes of errors and first words."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .errors import ArgumentError, explain

__all__ = ["check_flag", "check_number", "check_tensor", "wrong_type"]


def wrong_type(call: str, name: str, wanted: str, value: Any, position: int | None = None) -> ArgumentError:
    """The error for an argument of another type than the call wants.

    >>> str(wrong_type("eye", "n", "int", True, 1))
    "eye(): argument 'n' (position 1) must be int, not bool"
    """
    where = f" (position {position})" if position is not None else ""
    return ArgumentError(f"{call}(): argument '{name}'{where} must be {wanted}, not {type(value).__name__}")


def check_tensor(call: str, name: str, position: int, value: Any) -> None:
    """Raise unless `value` is a Tensor (which this module must not import)."""
    if not hasattr(value, "_origin"):
        raise wrong_type(call, name, "Tensor", value, position)


def check_flag(call: str, name: str, value: Any, position: int | None = None) -> None:
    """Raise unless `value` is True or False: a number or a text would be taken for True."""
    if not isinstance(value, bool):
        raise wrong_type(call, name, "bool", value, position)


def check_number(name: str, value: Any, fits: Callable[[Any], Any], otherwise: str) -> None:
    """Raise unless `fits(value)`.

    Raises:
        ArgumentError: the value cannot be compared, which Python tells in the same words as in PyTorch.
        ValueError: it does not fit; the message is `otherwise`.
    """
    try:
        good = fits(value)
    except TypeError as error:
        raise ArgumentError(explain(str(error), f"{name} is {value!r}", remedy="pass a number")) from None
    if not good:
        raise ValueError(otherwise)
