"""Kernels as users write them, each launched by a function that returns what is to be compared: `CASES`."""

from __future__ import annotations

from . import flow, libraries, memory, numbers
from .cases import CASES, REFUSED

__all__ = ["CASES", "REFUSED", "flow", "libraries", "memory", "numbers"]
