"""torch.xpu: libraries ask whether there is a device of Intel's; there is none here."""

from __future__ import annotations

__all__ = ["device_count", "is_available"]


def is_available() -> bool:
    """False."""
    return False


def device_count() -> int:
    """0."""
    return 0
