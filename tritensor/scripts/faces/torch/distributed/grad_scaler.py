"""PyTorch's `ShardedGradScaler`."""

from __future__ import annotations

from typing import Any

from .....amp import GradScaler


class ShardedGradScaler(GradScaler):
    """A `GradScaler` of sharded gradients; all ranks leave out a step if one of them has to.

    Args:
        device, init_scale, growth_factor, backoff_factor, growth_interval, enabled: as `GradScaler`'s.
        process_group: accepted, unused: gradients know their ranks.
    """

    def __init__(self, device: str = "cuda", *args: Any, process_group: object = None, **kwargs: Any) -> None:
        super().__init__(device, *args, **kwargs)
