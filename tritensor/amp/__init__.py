"""Mixed precision: autocast, and the scaling of losses that keeps gradients of half precision from becoming zero."""

from __future__ import annotations

from . import autocast_mode, grad_scaler
from .autocast_mode import autocast, custom_bwd, custom_fwd, is_autocast_available
from .grad_scaler import GradScaler

__all__ = ["GradScaler", "autocast", "autocast_mode", "custom_bwd", "custom_fwd", "grad_scaler"]
__all__ += ["is_autocast_available"]
