"""PyTorch's older names of mixed precision, those of `torch.cpu.amp` and `torch.cuda.amp`; each warns of that."""

from __future__ import annotations

from ..errors import warn
from ..types.dtypes import dtype as _dtype
from .autocast_mode import autocast
from .grad_scaler import GradScaler


def deprecated(kind: str, name: str) -> None:
    """Warn of an older name, and say the newer one."""
    words = (
        f"`torch.{kind}.amp.{name}(args...)` is deprecated. Please use `torch.amp.{name}('{kind}', args...)` instead."
    )
    warn(words, FutureWarning)


def older(kind: str, half: _dtype) -> tuple[type[autocast], type[GradScaler]]:
    """`autocast` and `GradScaler` for a type of devices, which they do not have as their first parameter."""

    class Block(autocast):
        def __init__(self, enabled: bool = True, dtype: _dtype = half, cache_enabled: bool = True) -> None:
            deprecated(kind, "autocast")
            super().__init__(kind, enabled=enabled, dtype=dtype, cache_enabled=cache_enabled)

    class Scaler(GradScaler):
        def __init__(
            self,
            init_scale: float = 2.0**16,
            growth_factor: float = 2.0,
            backoff_factor: float = 0.5,
            growth_interval: int = 2000,
            enabled: bool = True,
        ) -> None:
            deprecated(kind, "GradScaler")
            super().__init__(kind, init_scale, growth_factor, backoff_factor, growth_interval, enabled)

    for made, name in ((Block, "autocast"), (Scaler, "GradScaler")):
        made.__name__ = made.__qualname__ = name
        made.__module__ = f"tritensor.{kind}.amp"
        made.__doc__ = f'`torch.amp.{name}("{kind}", ...)`.'
    return Block, Scaler
