"""Gradients: the modes of recording, the tape, and the backward pass."""

from __future__ import annotations

from typing import Any

from .backward import Handle, backward, grad
from .mode import (
    enable_grad,
    inference_mode,
    is_grad_enabled,
    is_inference_mode_enabled,
    no_grad,
    recording,
    set_grad_enabled,
)
from .tape import GradientPlan, Node, Slot, record

__all__ = [
    "GradientPlan",
    "Handle",
    "Node",
    "Slot",
    "backward",
    "enable_grad",
    "grad",
    "inference_mode",
    "is_grad_enabled",
    "is_inference_mode_enabled",
    "no_grad",
    "record",
    "recording",
    "set_grad_enabled",
]


def __getattr__(name: str) -> Any:
    """`Function`, `gradcheck` and `gradgradcheck` live above the tensor and are loaded when asked for."""
    if name in ("Function", "gradcheck", "gradgradcheck"):
        from .. import function

        return getattr(function, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
