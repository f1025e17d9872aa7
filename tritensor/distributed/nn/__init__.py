"""Collectives with gradients: see `tritensor.distributed.nn.functional`."""

from __future__ import annotations

from .functional import (
    all_gather,
    all_reduce,
    all_to_all,
    all_to_all_single,
    broadcast,
    gather,
    reduce,
    reduce_scatter,
    scatter,
)

__all__ = ["all_gather", "all_reduce", "all_to_all", "all_to_all_single", "broadcast", "gather", "reduce"]
__all__ += ["reduce_scatter", "scatter"]
