"""Autocast under PyTorch's name, and how functions with gradients of their own run under it."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np

from ..autograd.precision import state
from ..operators.autocasting import autocast, eligible, is_autocast_available
from ..tensors import Tensor
from ..types.dtypes import dtype

__all__ = ["autocast", "custom_bwd", "custom_fwd", "is_autocast_available"]


def _check_type(device_type: str) -> None:
    if not isinstance(device_type, str):
        raise ValueError(f"Expected `device_type` of type `str`, got: `{type(device_type)}`")


def _cast(value: object, device_type: str, wanted: dtype) -> Any:
    """Floating tensors, and those in containers, in another dtype."""
    if isinstance(value, Tensor):
        return value.to(wanted) if eligible(value, device_type) else value
    if isinstance(value, (str, bytes, np.ndarray)):
        return value
    if isinstance(value, Mapping):
        return {_cast(k, device_type, wanted): _cast(v, device_type, wanted) for k, v in value.items()}
    if isinstance(value, Iterable):
        found = (_cast(each, device_type, wanted) for each in value)
        return type(value)(found) if isinstance(value, (list, tuple)) else found
    return value


def custom_fwd(fwd: Any = None, *, device_type: str, cast_inputs: dtype | None = None) -> Callable[..., Any]:
    """A decorator of the `forward` of an `autograd.Function`, for use with `custom_bwd`.

    Args:
        device_type: "cpu" or "cuda".
        cast_inputs: where autocast is on, floating tensors are cast to this dtype, and it is off for `forward`.

    Raises:
        ValueError: the type is no string.
    """
    _check_type(device_type)
    if fwd is None:
        return functools.partial(custom_fwd, device_type=device_type, cast_inputs=cast_inputs)

    @functools.wraps(fwd)
    def forward(ctx: Any, *args: Any, **named: Any) -> Any:
        on = device_type in state.types
        ctx._dtype, ctx._fwd_used_autocast = state.lower[device_type], on and cast_inputs is None
        if not on or cast_inputs is None:
            return fwd(ctx, *args, **named)
        with autocast(device_type, enabled=False):
            return fwd(ctx, *_cast(args, device_type, cast_inputs), **_cast(named, device_type, cast_inputs))

    return forward


def custom_bwd(bwd: Any = None, *, device_type: str) -> Callable[..., Any]:
    """A decorator of the `backward` of an `autograd.Function`: it runs under the autocast of its `forward`.

    >>> import tritensor as torch
    >>> class Product(torch.autograd.Function):
    ...     @staticmethod
    ...     @torch.amp.custom_fwd(device_type="cpu")
    ...     def forward(ctx, x, y):
    ...         ctx.save_for_backward(x, y)
    ...         return x @ y
    ...     @staticmethod
    ...     @torch.amp.custom_bwd(device_type="cpu")
    ...     def backward(ctx, grad):
    ...         x, y = ctx.saved_tensors
    ...         return grad @ y.mT, x.mT @ grad

    Raises:
        ValueError: the type is no string.
    """
    _check_type(device_type)
    if bwd is None:
        return functools.partial(custom_bwd, device_type=device_type)

    @functools.wraps(bwd)
    def backward(ctx: Any, *args: Any, **named: Any) -> Any:
        with autocast(device_type, enabled=ctx._fwd_used_autocast, dtype=ctx._dtype):
            return bwd(ctx, *args, **named)

    return backward
