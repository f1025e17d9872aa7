"""The results of functions that return several tensors, by the names that PyTorch has for their types."""

from __future__ import annotations

from .tensors.results import *
