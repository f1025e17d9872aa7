"""Data parallelism: `DataParallel` within one process, `DistributedDataParallel` with a process for each device."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .data_parallel import DataParallel, data_parallel
from .parallel_apply import parallel_apply
from .replicate import replicate
from .scatter_gather import gather, scatter

if TYPE_CHECKING:
    from .distributed import DistributedDataParallel
    from .fully_sharded import FullyShardedDataParallel

__all__ = ["DataParallel", "DistributedDataParallel", "FullyShardedDataParallel", "data_parallel", "gather"]
__all__ += ["parallel_apply", "replicate", "scatter"]


def __getattr__(name: str) -> Any:
    """What takes `tritensor.distributed` is imported when it is first named."""
    if name == "DistributedDataParallel":
        from .distributed import DistributedDataParallel

        return DistributedDataParallel
    if name == "FullyShardedDataParallel":
        from .fully_sharded import FullyShardedDataParallel

        return FullyShardedDataParallel
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
