"""PyTorch's older names of mixed precision on CUDA devices; each warns, and names the newer one."""

from __future__ import annotations

from typing import Any

from ..amp import autocast_mode
from ..amp.older import deprecated, older
from ..types.dtypes import float16

__all__ = ["GradScaler", "autocast", "custom_bwd", "custom_fwd"]

autocast, GradScaler = older("cuda", float16)


def custom_fwd(fwd: Any = None, *, cast_inputs: Any = None) -> Any:
    """`torch.amp.custom_fwd(device_type="cuda")`."""
    deprecated("cuda", "custom_fwd")
    return autocast_mode.custom_fwd(fwd, device_type="cuda", cast_inputs=cast_inputs)


def custom_bwd(bwd: Any) -> Any:
    """`torch.amp.custom_bwd(device_type="cuda")`."""
    deprecated("cuda", "custom_bwd")
    return autocast_mode.custom_bwd(bwd, device_type="cuda")
