"""Operators on the windows of an input: convolution, pooling, folding."""

from __future__ import annotations
