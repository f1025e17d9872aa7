"""`torch.backends.mps`, which programs ask for Apple's GPUs: there is no such device here."""

from __future__ import annotations

__all__ = ["is_available", "is_built"]


def is_available() -> bool:
    """False: the devices are the CPU and CUDA's."""
    return False


def is_built() -> bool:
    """False: the devices are the CPU and CUDA's."""
    return False
