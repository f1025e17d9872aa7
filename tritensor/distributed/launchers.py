"""What launchers say about a process in its environment: its rank, how many there are, and where rank 0 is."""

from __future__ import annotations

import os
import re
import stat
import zlib
from typing import NamedTuple

from ..errors import DistError


class Launch(NamedTuple):
    """Who started this process, and as which of how many.

    Attributes:
        mpi: the kind of MPI that the launcher connects the processes with: "mpich" (and Intel MPI), "openmpi", or "";
            "any" for a process that nobody launched.
    """

    launcher: str
    rank: int
    size: int
    variables: str = ""
    mpi: str = ""


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


def _mpi_of(launcher: str) -> str:
    """The kind of MPI that a launcher connects this process with.

    MPICH's connection is an open file, which what this process starts does not have, though it has the variables.
    """
    if launcher == "mpirun" or (launcher == "srun" and "PMIX_RANK" in os.environ):
        return "openmpi"
    try:
        connected = "PMI_PORT" in os.environ or stat.S_ISSOCK(os.fstat(int(os.environ["PMI_FD"])).st_mode)
    except (KeyError, ValueError, OSError):
        return ""
    return "mpich" if connected and launcher == "mpiexec" else ""


def all_launches() -> list[Launch]:
    """What each launcher says that left its variables, the one to believe first."""
    found = []
    for launcher, rank_name, size_name, _ in _VARIABLES:
        rank, size = _number(rank_name), _number(size_name)
        if launcher == "srun" and _in_a_shell_of_slurm():
            continue
        if rank is not None and size is not None:
            told = f"{rank_name}={rank}, {size_name}={size}"
            found.append(Launch(launcher, rank, size, told, _mpi_of(launcher)))
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


def placed(rank: int, size: int) -> Launch:
    """Which process of how many this is, by arguments, which are -1 if not given, and by launchers.

    Raises:
        ValueError: the launcher contradicts an argument.
    """
    # arguments and an address go before launchers: a process that one has started may have started this one
    given = -1 not in (rank, size) and "MASTER_ADDR" in os.environ
    launch = Launch("", 0, 1) if given else launched()
    alone = not given and not launch.launcher and size in (-1, 1) and rank in (-1, 0)
    if launch.launcher or alone:
        for name, argument, known in (("world_size", size, launch.size), ("rank", rank, launch.rank)):
            if argument not in (-1, known) and launch.launcher != "torchrun":
                says = launch.launcher or "MPI"
                raise ValueError(f"init_process_group(): {name}={argument}, but {says} says {known}; leave it out")
        size, rank = (launch.size if size == -1 else size), (launch.rank if rank == -1 else rank)
    found = (each.mpi for each in all_launches() if each.mpi and (each.rank, each.size) == (rank, size))
    return launch._replace(rank=rank, size=size, mpi="any" if alone else next(found, ""))


def local_rank() -> int | None:
    """The number of this process among those on its machine, by the launcher."""
    return next((number for *_, name in _VARIABLES if (number := _number(name)) is not None), None)


def first_node(nodes: str) -> str:
    """The first name of a list as Slurm writes it.

    >>> first_node("gpu[003-007,12],login"), first_node("a1,b2"), first_node("rack[2,4]n[10-11]")
    ('gpu003', 'a1', 'rack2n10')
    """
    return re.sub(r"\[(\w+)[^\]]*\]", r"\1", re.split(r",(?![^\[]*\])", nodes)[0])


def port_of(name: str) -> int:
    """A port for a job with a name, below those that systems give to connections."""
    return 20000 + zlib.crc32(name.encode()) % 12000


def address(launch: Launch) -> tuple[str, int]:
    """Where rank 0 is: what MASTER_ADDR and MASTER_PORT say, else what follows from the launcher's variables.

    Raises:
        ValueError: it is not said.
    """
    variables, host, port = os.environ, "", 0
    if launch.launcher == "srun":
        host = first_node(variables.get("SLURM_STEP_NODELIST") or variables.get("SLURM_JOB_NODELIST", ""))
        port = port_of(f"{variables.get('SLURM_JOB_ID')}.{variables.get('SLURM_STEP_ID')}")
    elif launch.launcher == "SkyPilot":
        host, port = variables.get("SKYPILOT_NODE_IPS", "").split("\n")[0], 29500
    elif (_number("OMPI_COMM_WORLD_LOCAL_SIZE") or _number("MPI_LOCALNRANKS")) == launch.size:  # all on this machine
        host, port = "127.0.0.1", port_of(variables.get("PMIX_NAMESPACE") or f"{os.getppid()}")
    host, port = variables.get("MASTER_ADDR") or host, _number("MASTER_PORT") or port
    if not host or not port:
        raise ValueError(
            "Error initializing torch.distributed using env:// rendezvous: environment variable "
            f"{'MASTER_PORT' if host else 'MASTER_ADDR'} expected, but not set"
        )
    return host, port


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
