"""What `torch.cpu` has of mixed precision, by its older names."""

from __future__ import annotations

from . import amp

__all__ = ["amp"]
