"""Operators that move a window over an input: convolutions, and their gradients."""

from __future__ import annotations
