"""A library of the processor, such as torch.backends.mkldnn, which computes nothing here: see `names._WITHIN`."""

from __future__ import annotations

__all__ = ["is_available"]

enabled = False


def is_available() -> bool:
    """False: the CPU's references are NumPy's."""
    return False
