"""`torch.futures`: futures, values that are set later."""

from __future__ import annotations

from .distributed.futures import Future, collect_all, wait_all

__all__ = ["Future", "collect_all", "wait_all"]
