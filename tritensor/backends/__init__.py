"""Settings of how operators compute, by PyTorch's names: `backends.cuda.matmul`, and flags that programs set."""

from __future__ import annotations

from . import cuda, cudnn, mps, native

__all__ = ["cuda", "cudnn", "mps", "native"]
