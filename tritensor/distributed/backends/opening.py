"""Loading an MPI library by mpi4py, of the kind that a launcher goes with, and starting it."""

from __future__ import annotations

import atexit
import contextlib
import os
import site
import subprocess
import sys
from collections.abc import Iterator
from types import ModuleType
from typing import Any

from ...errors import DistError, explain
from ..checks import call_site
from ..liveness import complete, release

# Names of libraries by their binary interfaces: MPICH's and Intel MPI's, and Open MPI's.
_NAMES = {"mpich": "libmpi{}.12{}", "openmpi": "libmpi{}.40{}"}
_started = ("", 0)  # the job for which MPI was started, and the process


def started() -> str:
    """The job for which MPI was started in this process; "" if it was not.

    Raises:
        DistError: it was started in the process that this one was forked from.
    """
    job, process = _started
    if job and process != os.getpid():
        raise DistError(
            "init_process_group: MPI was started in the process that this one was forked from, and cannot be again",
            f"process {process} joined a job before",
            remedy='start processes with multiprocessing\'s "spawn", as torch.multiprocessing does',
        )
    return job


def load_mpi(launchers: str) -> str:
    """Load an MPI library, and return its kind. MPI is not started yet.

    Args:
        launchers: the kind by which a launcher has connected the processes. Then a library comes first that the
            launcher's variables or the system know, else MPICH's in Python's environment, or Intel MPI's.

    Raises:
        DistError: there is none.
    """
    kind = launchers if launchers in _NAMES else "mpich"
    mac = sys.platform == "darwin"
    name = _NAMES[kind].format("" if mac else ".so", ".dylib" if mac else "")
    folders = [f"{prefix}/lib" for prefix in (sys.exec_prefix, site.USER_BASE, sys.base_exec_prefix) if prefix]
    own = [f"{folder}/{name}" for folder in folders]
    theirs = [name, *(f"{os.environ[root]}/lib/{name}" for root in ("OPAL_PREFIX", "I_MPI_ROOT") if root in os.environ)]
    chosen = {"MPI4PY_MPIABI", "MPI4PY_LIBMPI"} & set(os.environ)
    new = "mpi4py.MPI" not in sys.modules
    try:
        import mpi4py

        if new:
            mpi4py.rc.initialize = False
            if mpi4py.rc.finalize is None:
                # done here, because mpi4py finalizes MPI even when that would wait for a rank that is gone
                mpi4py.rc.finalize = False
            if not chosen and os.name == "posix":
                places = [*theirs, *own] if launchers in _NAMES else [*own, *theirs]
                os.environ["MPI4PY_LIBMPI"] = os.pathsep.join([*places, *folders, ""])
        from mpi4py import MPI
    except (ImportError, RuntimeError) as error:  # RuntimeError: there is no MPI library for it to load
        raise DistError(
            "Distributed package doesn't have MPI built in",
            f"{type(error).__name__}: {error}".split("\n")[0],
            remedy='pip install "tritensor[mpi]"',
        ) from error
    finally:
        if not chosen:
            os.environ.pop("MPI4PY_LIBMPI", None)
    return "openmpi" if MPI.get_vendor()[0] == "Open MPI" else "mpich"


def library() -> str:
    """The name and the version of the MPI library that is loaded."""
    from mpi4py import MPI

    return " ".join(MPI.Get_library_version().split("\n")[0].split(",")[0].split())


def open_mpi(timeout: float, rank: int, size: int, job: str) -> tuple[Any, Any]:
    """MPI's communicators for all processes, which all call this: mpi4py's module, and (communicators, requests).

    The first call starts MPI in the environment that the caller has made, which waits for all processes to do so. That
    wait cannot be interrupted, so after the timeout the process is ended, with a traceback of where it was.

    Args:
        job: a name for the processes; "" where a launcher has connected them.

    Raises:
        DistError: MPI knows other processes.
    """
    import mpi4py
    from mpi4py import MPI

    global _started
    before = started()
    if not MPI.Is_initialized():
        with _ended_after(timeout, rank, size, call_site()):
            MPI.Init_thread()
    world = MPI.COMM_WORLD
    if not before:
        _started = (job or (f"process {os.getpid()}" if world.size == 1 else "a launcher's"), os.getpid())
        # what a store has started ends without MPI: a rank that ends by multiprocessing's _exit would be waited for
        if not job:  # before `failure` registers to leave, so it runs after that
            atexit.register(_finalize, MPI, mpi4py.rc.finalize is False)
    if (world.rank, world.size) != (rank, size):
        raise DistError(
            f"init_process_group: this is rank {rank} of {size}, but MPI says {world.rank} of {world.size}",
            f"the MPI library is {library()}",
            remedy="keep the ranks of the first job, for MPI is started once in a process, or start new processes"
            if before
            else "start the job with that library's mpiexec, or with python -m tritensor launch",
        )
    return MPI, [world.Idup() for _ in range(3)]


# MPI waits for all ranks with Python's lock, so another process looks at the time, and removes what would stay.
_WATCH = """import os, select, sys
if not select.select([0], [], [], float(sys.argv[1]))[0]:
    os.write(2, sys.argv[3].encode())
    for line in open(f"/proc/{sys.argv[2]}/maps") if os.path.exists("/proc/self/maps") else ():
        path = line.split()[-1]
        if path.startswith("/dev/shm/mpich_shm_") and os.path.exists(path):
            os.unlink(path)
    os.kill(int(sys.argv[2]), 9)"""


@contextlib.contextmanager
def _ended_after(seconds: float, rank: int, size: int, line: str) -> Iterator[None]:
    """End this process, with a message, if the block takes longer."""
    if size == 1 or os.name != "posix":
        yield
        return
    text = explain(
        f"DistError: Watchdog caught collective operation timeout: init_process_group ran for {int(seconds * 1000)} "
        "milliseconds before timing out",
        f"rank {rank} of {size} waited at {line}; other ranks have not started MPI",
        remedy="make all ranks call init_process_group, or give it more time: timeout=",
    )
    shown = "".join(f"[rank{rank}]: {line}\n" for line in text.splitlines())
    words = [sys.executable, "-I", "-S", "-c", _WATCH, str(seconds), str(os.getpid()), shown]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL):  # whose input ends with the block
        yield


def _finalize(mpi: ModuleType, ours: bool) -> None:
    """End MPI with the process, if all ranks still can; where mpi4py finalizes MPI, it does so last."""
    if _started[1] != os.getpid():
        return  # forked from the rank
    if complete() or not ours:
        release()
        if ours and not mpi.Is_finalized():
            mpi.Finalize()
