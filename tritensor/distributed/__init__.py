"""Several processes that work together, with PyTorch's names.

    mpiexec -n 4 python train.py

Each process runs the same program; `init_process_group` joins them, and collectives let them exchange tensors.
`tritensor.nn.parallel.DistributedDataParallel` trains one model in all of them. The `mpi` backend (pip install
"tritensor[mpi]") works on any machine; `nccl` is for real GPUs.
"""

from __future__ import annotations

from ..errors import DistError
from . import failure as _failure
from .backends import is_mpi_available, is_nccl_available
from .collectives import (
    all_gather,
    all_gather_into_tensor,
    all_reduce,
    barrier,
    broadcast,
    reduce,
    reduce_scatter,
    reduce_scatter_tensor,
)
from .process_group import (
    ProcessGroup,
    Work,
    destroy_process_group,
    get_backend,
    get_node_local_rank,
    get_rank,
    get_world_size,
    group,
    init_process_group,
    is_initialized,
)
from .reduce_op import ReduceOp

__all__ = ["DistError", "ProcessGroup", "ReduceOp", "Work", "all_gather", "all_gather_into_tensor", "all_reduce"]
__all__ += ["barrier", "broadcast", "destroy_process_group", "get_backend", "get_node_local_rank", "get_rank"]
__all__ += ["get_world_size", "group", "init_process_group", "is_available", "is_initialized", "is_mpi_available"]
__all__ += ["is_nccl_available", "reduce", "reduce_scatter", "reduce_scatter_tensor"]


def is_available() -> bool:
    """True if processes can be joined: whether mpi4py is installed."""
    return is_mpi_available()


_failure.arm()
