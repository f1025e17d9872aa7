"""The language of optimizer rules: its functions for kernels, and their meaning for other kinds of values."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from ...runtime.launch import device_function
from ...runtime.source import spoken as spoken
from ..elementwise.arithmetic import where
from ..elementwise.maximum import larger as larger
from ..elementwise.maximum import smaller as smaller

if TYPE_CHECKING:
    import triton.language as tl
    from triton.language.extra import libdevice


@device_function
def root_of(x):
    """The square root."""
    return tl.sqrt(x)


@device_function
def choose(condition, x, y):
    """x where the condition holds, else y."""
    return tl.where(condition, x, y)


@device_function
def sign_of(x):
    """-1, 0, 1 or NaN."""
    return tl.where(x > 0, 1.0, tl.where(x < 0, -1.0, x))


@device_function
def size_of(x):
    """The absolute value."""
    return tl.abs(x)


@device_function
def power(x, y):
    """x to the power y."""
    return libdevice.pow(x + y * 0.0, y + x * 0.0)


@device_function
def single(x):
    """As it is kept in a state, in float32."""
    return x.to(tl.float32).to(tl.float64)


def _chosen(condition: bool, x: object, y: object) -> Any:
    return x if condition else y


ARRAYS: dict[str, Callable[..., Any]] = {
    "root_of": np.sqrt,
    "choose": lambda condition, x, y: (np.where if getattr(condition, "ndim", 0) else _chosen)(condition, x, y),
    "larger": np.maximum,
    "smaller": np.minimum,
    "sign_of": np.sign,
    "size_of": np.abs,
    "power": lambda x, y: x**y,
    "single": lambda x: np.float64(np.float32(x)),
}

TENSORS: dict[str, Callable[..., Any]] = {
    "root_of": lambda x: x**0.5,
    "choose": lambda condition, x, y: (where if hasattr(condition, "_origin") else _chosen)(condition, x, y),
    "larger": lambda x, y: x.maximum(y) if hasattr(y, "_origin") else x.clamp(min=y),
    "smaller": lambda x, y: x.clamp(max=y),
    "sign_of": lambda x: x.sign(),
    "size_of": lambda x: x.abs(),
    "power": lambda x, y: x**y,
    "single": lambda x: x,
}
