"""torch.profiler: what programs ask before they profile."""

from __future__ import annotations

__all__ = ["kineto_available"]


def kineto_available() -> bool:
    """False: there is no Kineto."""
    return False
