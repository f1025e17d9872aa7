"""Automatic differentiation: `backward`, `grad`, the modes of gradient recording, and the tape."""

from __future__ import annotations

import importlib
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
from .tape import Gradient as GradientPlan  # its public name
from .tape import Node, Slot, record

__all__ = ["GradientPlan", "Handle", "Node", "Slot", "backward", "enable_grad", "grad", "inference_mode"]
__all__ += ["is_grad_enabled", "is_inference_mode_enabled", "no_grad", "record", "recording", "set_grad_enabled"]

# Defined in `tritensor.operators.function`, which imports tensors and sets these names when it is imported.
Function: Any
function: Any
gradcheck: Any
gradgradcheck: Any


_FROM = dict.fromkeys(("detect_anomaly", "set_detect_anomaly"), "anomaly_mode") | {"_profiler_enabled": "profiler"}


def __getattr__(name: str) -> Any:
    """Import a module of the folder on first access, as PyTorch has them."""
    if name in ("anomaly_mode", "forward_ad", "functional", "graph", "profiler"):
        return importlib.import_module(f".{name}", __name__)
    if name in _FROM:
        return getattr(importlib.import_module(f".{_FROM[name]}", __name__), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
