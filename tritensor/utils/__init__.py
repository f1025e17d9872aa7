"""Tools for training: `tritensor.utils.data`, `tritensor.utils.checkpoint`, which saves memory, and
`tritensor.utils.hooks`, the handle that registering a hook returns."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from . import hooks

if TYPE_CHECKING:
    from . import benchmark, checkpoint, data, deterministic, dlpack, tensorboard

__all__ = ["benchmark", "checkpoint", "data", "deterministic", "dlpack", "hooks", "tensorboard"]


def __getattr__(name: str) -> Any:
    """Import a module when it is first named: layers need only `hooks`, and importing tritensor stays fast."""
    if name in __all__:
        return importlib.import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
