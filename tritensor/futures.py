"""`torch.futures`: values that are there later."""

from __future__ import annotations

from .distributed.futures import Future, collect_all, wait_all

__all__ = ["Future", "collect_all", "wait_all"]
