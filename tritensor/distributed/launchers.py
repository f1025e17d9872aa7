"""What launchers say about a process in its environment: its rank, how many there are, and where rank 0 is."""

from __future__ import annotations

import os
import re
import zlib
from typing import NamedTuple

from ..errors import DistError


class Launch(NamedTuple):
    """Who started this process, and as which of how many."""

    launcher: str
    rank: int
    size: int
    variables: str = ""

    @property
    def by_mpi(self) -> bool:
        """True if the launcher's own MPI connects the processes: its connection or its daemon is there."""
        if self.launcher == "mpirun":
            return True
        return "PMI_RANK" in os.environ and bool({"PMI_FD", "PMI_PORT"} & set(os.environ))


# In this order: explicit variables before those that a launcher sets for programs of its own.
_VARIABLES = (
    ("torchrun", "RANK", "WORLD_SIZE", "LOCAL_RANK"),
    ("mpirun", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK"),  # Open MPI's
    ("mpiexec", "PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID"),  # MPICH's and Intel MPI's
    ("srun", "SLURM_PROCID", "SLURM_NTASKS", "SLURM_LOCALID"),
    ("SkyPilot", "SKYPILOT_NODE_RANK", "SKYPILOT_NUM_NODES", ""),  # one process a node, without torchrun
)
# Steps of Slurm with such numbers are a batch script's or an interactive shell's: one process.
_FIRST_SPECIAL_STEP = 4294967290


def _number(name: str) -> int | None:
    text = os.environ.get(name, "")
    return int(text) if text.isdecimal() else None


def _in_a_shell_of_slurm() -> bool:
    step = _number("SLURM_STEP_ID")
    return step >= _FIRST_SPECIAL_STEP if step is not None else os.environ.get("ENVIRONMENT") == "BATCH"


def all_launches() -> list[Launch]:
    """What each launcher says that left its variables, the one to believe first."""
    found = []
    for launcher, rank_name, size_name, _ in _VARIABLES:
        rank, size = _number(rank_name), _number(size_name)
        if launcher == "srun" and _in_a_shell_of_slurm():
            continue
        if rank is not None and size is not None:
            found.append(Launch(launcher, rank, size, f"{rank_name}={rank}, {size_name}={size}"))
    return found


def launched() -> Launch:
    """Who started this process; ("", 0, 1) if no launcher did.

    Raises:
        DistError: another launcher says that there are more processes, so that this one would train alone.
    """
    found = all_launches()
    # fewer are no contradiction: torchrun is started by srun once for each node, as mpiexec's own daemons are
    if found and max(launch.size for launch in found) > found[0].size:
        raise DistError(
            "init_process_group: the launchers disagree about the number of processes",
            *(launch.variables for launch in found),
            remedy="start the job with one of them, or make the variables of the first agree",
        )
    return found[0] if found else Launch("", 0, 1)


def local_rank() -> int | None:
    """The number of this process among those on its machine, by the launcher."""
    return next((number for *_, name in _VARIABLES if (number := _number(name)) is not None), None)


def first_node(nodes: str) -> str:
    """The first name of a list as Slurm writes it.

    >>> first_node("gpu[003-007,12],login"), first_node("a1,b2")
    ('gpu003', 'a1')
    """
    return re.sub(r"\[(\w+)[^\]]*\]", r"\1", re.split(r",(?![^\[]*\])", nodes)[0])


def address(launch: Launch) -> tuple[str, int]:
    """Where rank 0 is, as the launcher says it.

    Raises:
        ValueError: it does not say it.
    """
    host, port = os.environ.get("MASTER_ADDR"), os.environ.get("MASTER_PORT", "")
    if host and port.isdecimal():
        return host, int(port)
    if launch.launcher == "srun" and not host:
        nodes = os.environ.get("SLURM_STEP_NODELIST") or os.environ.get("SLURM_JOB_NODELIST", "")
        job = (_number("SLURM_JOB_ID") or 0) + 7919 * ((_number("SLURM_STEP_ID") or 0) % 97)
        return first_node(nodes) or "localhost", 20000 + job % 20000
    if launch.launcher == "SkyPilot" and not host:
        return os.environ.get("SKYPILOT_NODE_IPS", "").split("\n")[0] or "localhost", 29500
    local = _number("OMPI_COMM_WORLD_LOCAL_SIZE") or _number("MPI_LOCALNRANKS")
    if launch.launcher in ("mpirun", "mpiexec") and local == launch.size:  # all on this machine
        name = os.environ.get("PMIX_NAMESPACE") or f"{os.getppid()}"
        return host or "127.0.0.1", 20000 + zlib.crc32(name.encode()) % 20000
    missing = "MASTER_ADDR" if not host else "MASTER_PORT"
    raise ValueError(
        "Error initializing torch.distributed using env:// rendezvous: environment variable "
        f"{missing} expected, but not set"
    )


def as_torchrun() -> dict[str, str]:
    """The variables that torchrun would set, for programs that read them; none if it did, or if no launcher did."""
    launch = launched()
    if launch.size == 1 or launch.launcher == "torchrun":
        return {}
    near = local_rank()
    names = ("OMPI_COMM_WORLD_LOCAL_SIZE", "MPI_LOCALNRANKS", "SLURM_NTASKS_PER_NODE")
    found = {"RANK": launch.rank, "WORLD_SIZE": launch.size, "LOCAL_RANK": launch.rank if near is None else near}
    found["LOCAL_WORLD_SIZE"] = next((number for name in names if (number := _number(name))), launch.size)
    try:
        host, port = address(launch)
    except ValueError:  # it does not say where rank 0 is
        return {name: str(value) for name, value in found.items()}
    return {name: str(value) for name, value in found.items()} | {"MASTER_ADDR": host, "MASTER_PORT": str(port)}
