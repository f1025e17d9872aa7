"""PyTorch's older names of mixed precision on the CPU; each warns, and names the newer one."""

from __future__ import annotations

from ..amp.older import older
from ..types.dtypes import bfloat16

__all__ = ["GradScaler", "autocast"]

autocast, GradScaler = older("cpu", bfloat16)
