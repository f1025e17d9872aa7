"""The backends, which send data between processes: `mpi` for the CPU and any CUDA device, `nccl` between real GPUs."""

from __future__ import annotations

import importlib.util
from typing import Any

from ...drivers import active

# Every backend is an MpiBackend: the one for nccl sends CUDA tensors by NCCL, and everything else by MPI too.
Backend = Any


def is_mpi_available() -> bool:
    """True if mpi4py is installed."""
    return importlib.util.find_spec("mpi4py") is not None


def is_nccl_available() -> bool:
    """True if nccl4py is installed and there is a real GPU."""
    driver = active()
    return driver is not None and not driver.lacks_nccl and importlib.util.find_spec("nccl") is not None


def open_backend(name: str, timeout: float) -> Backend:
    """The backend of a name, connected to the other processes.

    Raises:
        ValueError: no backend has that name. DistError: it is not installed, or cannot work here.
    """
    if name == "mpi":
        from .mpi import MpiBackend

        return MpiBackend(timeout)
    if name == "nccl":
        from .nccl import NcclBackend

        return NcclBackend(timeout)
    raise ValueError(f"Invalid backend: '{name}'; the backends are 'mpi' and 'nccl'")
