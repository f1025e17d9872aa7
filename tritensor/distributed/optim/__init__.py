"""Optimizers of parameters that several processes have, under PyTorch's name; they lie with the others, in `optim`."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    ZeroRedundancyOptimizer = Any

__all__ = ["ZeroRedundancyOptimizer"]


def __getattr__(name: str) -> Any:
    """Imported when it is first named: optimizers are above this room."""
    if name == "ZeroRedundancyOptimizer":
        return import_module(__name__.partition(".")[0] + ".optim.zero_redundancy").ZeroRedundancyOptimizer
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
