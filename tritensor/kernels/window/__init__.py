"""Operators whose elements are computed from a window of their input: convolution, pooling, resizing, padding."""
"""Operators on the windows of an input: convolution, pooling, folding."""

from __future__ import annotations
