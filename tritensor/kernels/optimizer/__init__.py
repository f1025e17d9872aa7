"""Optimizer steps and gradient clipping, many tensors in one launch."""

from __future__ import annotations
