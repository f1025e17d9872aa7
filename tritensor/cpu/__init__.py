"""The CPU by the names of `torch.cpu`, so that programs find it where they find other devices."""

from __future__ import annotations

from . import amp

__all__ = ["amp", "current_device", "device_count", "is_available", "synchronize"]


def is_available() -> bool:
    """True."""
    return True


def device_count() -> int:
    """1."""
    return 1


def current_device() -> str:
    """ "cpu"."""
    return "cpu"


def synchronize(device: object = None) -> None:
    """Do nothing: operators on the CPU are done when they return."""
