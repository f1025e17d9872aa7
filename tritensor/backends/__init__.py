"""Settings of how operators compute, by PyTorch's names: `tritensor.backends.cuda.matmul`."""

from __future__ import annotations

from . import cuda

__all__ = ["cuda"]
