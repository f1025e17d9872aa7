"""Tensor parallelism: layers that are divided among ranks."""

from __future__ import annotations

from .loss import loss_parallel
from .styles import (
    ColwiseParallel,
    ParallelStyle,
    PrepareModuleInput,
    PrepareModuleInputOutput,
    PrepareModuleOutput,
    RowwiseParallel,
    SequenceParallel,
    parallelize_module,
)

__all__ = ["ColwiseParallel", "ParallelStyle", "PrepareModuleInput", "PrepareModuleInputOutput", "PrepareModuleOutput"]
__all__ += ["RowwiseParallel", "SequenceParallel", "loss_parallel", "parallelize_module"]
