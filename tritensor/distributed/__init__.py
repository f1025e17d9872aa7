"""Distributed computing with PyTorch's names: process groups, collectives, sharding, in several processes.

    python -m tritensor launch -n 4 train.py
    mpiexec -n 4 python train.py

Each process runs the same program; `init_process_group` joins them, and collectives let them exchange tensors.
`tritensor.nn.parallel.DistributedDataParallel` trains one model in all of them. Tensors of any device go by MPI (pip
install "tritensor[mpi]"), those of real GPUs by NCCL.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..errors import DistBackendError, DistError, DistNetworkError, DistStoreError
from . import collectives, device_mesh, groups, meeting, objects, points
from . import failure as _failure
from .backends import (
    Backend,
    is_gloo_available,
    is_mpi_available,
    is_nccl_available,
    is_ucc_available,
    is_xccl_available,
)
from .collectives import *
from .device_mesh import *
from .grad_bucket import BuiltinCommHookType, GradBucket
from .groups import *
from .meeting import *
from .objects import *
from .points import *
from .process_group import ProcessGroup, Work
from .reduction import ReduceOp
from .store import FileStore, HashStore, PrefixStore, Store, TCPStore
from .traffic import Collective, count_collectives

if TYPE_CHECKING:
    from .cluster import simulate

__all__ = [
    "Backend",
    "BuiltinCommHookType",
    "DistBackendError",
    "DistError",
    "DistNetworkError",
    "DistStoreError",
    "FileStore",
]
__all__ += ["Collective", "GradBucket", "HashStore", "count_collectives"]
__all__ += ["PrefixStore", "ProcessGroup", "ReduceOp", "Store", "TCPStore", "Work", "is_available"]
__all__ += ["is_backend_available", "is_gloo_available", "is_mpi_available", "is_nccl_available", "is_ucc_available"]
__all__ += ["is_xccl_available", "reduce_op", "simulate"]
__all__ += collectives.__all__ + device_mesh.__all__ + groups.__all__ + objects.__all__ + points.__all__
__all__ += meeting.__all__

reduce_op = ReduceOp  # the older name


def is_available() -> bool:
    """True if processes can be joined: whether mpi4py or nccl4py is installed."""
    return is_mpi_available() or is_nccl_available()


def is_backend_available(backend: str) -> bool:
    """True if a backend can be used, by its name."""
    checks = {"gloo": is_gloo_available, "mpi": is_mpi_available, "nccl": is_nccl_available}
    return backend.lower() in checks and checks[backend.lower()]()


def __getattr__(name: str) -> Any:
    if name == "simulate":  # of what it needs, optimizers and the profiler, most programs need nothing
        from .cluster import simulate

        return simulate
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


_failure.arm()
