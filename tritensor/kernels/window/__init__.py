"""Operators whose elements are computed from a window of their input: convolution, pooling, resizing, padding."""

from __future__ import annotations
