"""Checkpoints: PyTorch's own file format, written and read without PyTorch and without running anything in a file."""

from __future__ import annotations

from .reader import load
from .stream_into import load_into
from .writer import save

__all__ = ["load", "load_into", "save"]
