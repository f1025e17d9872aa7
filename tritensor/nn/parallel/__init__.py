"""Modules on several devices: `DataParallel` within one process, `DistributedDataParallel` in one process each."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .data_parallel import DataParallel, data_parallel
from .parallel_apply import parallel_apply
from .replicate import replicate
from .scatter_gather import gather, scatter

if TYPE_CHECKING:
    from .distributed import DistributedDataParallel

__all__ = ["DataParallel", "DistributedDataParallel", "data_parallel", "gather", "parallel_apply", "replicate"]
__all__ += ["scatter"]


def __getattr__(name: str) -> Any:
    """`DistributedDataParallel` is imported when it is first named, and `tritensor.distributed` with it."""
    if name == "DistributedDataParallel":
        from .distributed import DistributedDataParallel

        return DistributedDataParallel
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
