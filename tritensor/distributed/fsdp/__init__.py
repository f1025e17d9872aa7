"""Fully sharded data parallel: parameters, gradients and optimizer state divided among ranks, as PyTorch's FSDP2.

`FullyShardedDataParallel`, PyTorch's first interface, is a module and lies with those, in `nn.parallel`.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from . import api, wrap
from .api import *  # noqa: F403
from .policies import CPUOffloadPolicy, MixedPrecisionPolicy, OffloadPolicy
from .sharding import FSDPModule, fully_shard, register_fsdp_forward_method, share_comm_ctx

if TYPE_CHECKING:
    FullyShardedDataParallel = Any

__all__ = ["CPUOffloadPolicy", "FSDPModule", "FullyShardedDataParallel", "MixedPrecisionPolicy", "OffloadPolicy"]
__all__ += ["fully_shard", "register_fsdp_forward_method", "share_comm_ctx", "wrap", *api.__all__]


def __getattr__(name: str) -> Any:
    """`FullyShardedDataParallel` is imported when it is first named: modules are above this room."""
    if name == "FullyShardedDataParallel":
        return sys.modules[__name__.partition(".")[0]].nn.parallel.FullyShardedDataParallel
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
