"""Checkpoints: PyTorch's own file format, written and read without PyTorch and without running what a file says."""

from __future__ import annotations

import importlib
from typing import Any

from .reader import load
from .safe import add_safe_globals, clear_safe_globals, get_safe_globals, safe_globals
from .stream_into import load_into
from .writer import save

__all__ = ["add_safe_globals", "clear_safe_globals", "get_safe_globals", "load", "load_into", "safe_globals", "save"]


def __getattr__(name: str) -> Any:
    if name == "sharded":  # which imports what several processes need
        return importlib.import_module(".sharded", __name__)
    raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
