"""Random tensors, distributions that fill a tensor, and dropout."""

from __future__ import annotations
