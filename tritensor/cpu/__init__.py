"""`torch.cpu`: mixed precision on the CPU by its older names."""

from __future__ import annotations

from . import amp

__all__ = ["amp"]
