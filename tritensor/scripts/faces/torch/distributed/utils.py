"""Private functions of `torch.distributed.utils`, which lightning calls."""

from __future__ import annotations

from collections.abc import Collection

from tritensor.distributed import ProcessGroup
from tritensor.nn import Module
from tritensor.nn.parallel.agreement import broadcast

__all__ = ["_sync_module_states"]


def _sync_module_states(
    module: Module,
    process_group: ProcessGroup,
    broadcast_bucket_size: int,
    src: int,
    params_and_buffers_to_ignore: Collection[str],
    broadcast_buffers: bool = True,
) -> None:
    """Copy the parameters and buffers of rank `src` to all processes."""
    named = [*module.named_parameters(), *(module.named_buffers() if broadcast_buffers else ())]
    tensors = [x.detach() for name, x in named if name not in params_and_buffers_to_ignore]
    broadcast(tensors, process_group, broadcast_bucket_size, src)
