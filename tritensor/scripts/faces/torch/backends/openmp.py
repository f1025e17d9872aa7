"""torch.backends.openmp, which computes nothing here."""

from __future__ import annotations

__all__ = ["is_available"]

enabled = False


def is_available() -> bool:
    """False: the CPU's references are NumPy's."""
    return False
