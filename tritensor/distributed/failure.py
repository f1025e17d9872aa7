"""Ending the job when one of its processes fails, instead of leaving the others to wait.

* An uncaught exception is printed with the rank, and ends all processes (MPI's abort). Under mpiexec this applies from
  the import of `tritensor.distributed` on, else from `init_process_group`.
* A process that ends, or leaves the group, sends a message to the others; one that waits for it raises
  (`ProcessGroup.poll`).
* A process that is killed, crashes or calls `os._exit` is noticed by the others of its machine (`liveness`): those that
  wait for it raise, and the others end the job. On other machines mpiexec ends them.
* One that hangs is noticed by the others' timeouts.
"""

from __future__ import annotations

import atexit
import contextlib
import multiprocessing.util
import os
import sys
import time
import traceback
from types import TracebackType
from typing import Any, Protocol

from ..errors import DistError
from . import launchers


class Job(Protocol):
    """The methods of a job that this file calls."""

    rank: int
    size: int

    def leave(self) -> None:
        """Leave the job."""

    def abort(self, why: str = "") -> None:
        """End the whole job now."""


_watched: Job | None = None
_hook_before: Any = None
_finalizers: list[multiprocessing.util.Finalize] = []

# Seconds between the message and the end. mpiexec drops what it has not read when a job is aborted: 1 message in 10.
_LAST_WORDS = 0.5
_ENDING = 5.0  # seconds in which mpiexec ends this process when it is asked to


def arm() -> None:
    """If a launcher started this process with others, make an uncaught exception end the job.

    A process that fails before `init_process_group` would leave the others waiting in it.
    """
    if any(launch.size > 1 for launch in launchers.all_launches()):
        _install()


def watch(job: Job) -> None:
    """End a job when this process fails, from now on, and leave it when the process ends."""
    global _watched
    _watched = job
    _install()
    atexit.register(_leave)
    # processes of multiprocessing end without atexit
    finalizer = multiprocessing.util.Finalize(None, _leave, exitpriority=0)
    _finalizers.append(finalizer)


def unwatch() -> None:
    """Do not end the job for errors of this process any more."""
    global _watched
    _watched = None
    if sys.excepthook is _end_the_job:  # another hook may have been installed since
        sys.excepthook = _hook_before
    atexit.unregister(_leave)
    while _finalizers:
        _finalizers.pop().cancel()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=unwatch)  # the rank is the parent's: the end of a forked process is not its end


def _install() -> None:
    global _hook_before
    if sys.excepthook is not _end_the_job:
        _hook_before, sys.excepthook = sys.excepthook, _end_the_job


def _end_the_job(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    launch = next(iter(launchers.all_launches()), None)
    rank, size = (launch.rank, launch.size) if launch is not None else (0, 1)
    if _watched is not None:
        rank, size = _watched.rank, _watched.size
    if size == 1:
        _hook_before(kind, error, trace)
        return
    last = f"rank {rank} of {size} ended the job: {kind.__name__} was raised and not caught there.\n"
    if _hook_before is sys.__excepthook__:
        # with the rank before every line, and in one piece: the others may be printing theirs
        _write(rank, "".join(traceback.format_exception(kind, error, trace)) + last)
    else:
        _hook_before(kind, error, trace)
        sys.stderr.write(last)
    last_words()
    if _watched is not None:
        _watched.abort(f"{kind.__name__} was raised and not caught there: {error}")
    elif launch is not None and launch.mpi:
        _abort()


def _abort() -> None:
    """End a job that this process has not joined, by mpiexec.

    MPI's own abort has to start MPI first, which waits for all processes. What others have in /dev/shm, because they
    have started it and wait, is removed here.
    """
    link = os.environ.get("PMI_FD", "")
    if "mpi4py.MPI" not in sys.modules and link.isdecimal():
        launcher = os.getppid()
        with contextlib.suppress(OSError), open(f"/proc/{launcher}/task/{launcher}/children", encoding="ascii") as file:
            for process in file.read().split():
                unlink_memory(process)
        with contextlib.suppress(OSError):
            os.write(int(link), b"cmd=abort exitcode=1\n")
            time.sleep(_ENDING)
    mpi = sys.modules.get("mpi4py.MPI")
    if mpi is not None and mpi.Is_initialized():
        mpi.COMM_WORLD.Abort(1)


def unlink_memory(process: str = "self") -> None:
    """Remove the names of the memory that MPICH shares between a process and others, which all have it by now.

    It would stay if a process were killed, or ended without `MPI_Finalize`: 2 MB a job, in memory.
    """
    with contextlib.suppress(OSError), open(f"/proc/{process}/maps", encoding="utf-8") as maps:
        for path in {line.split()[-1] for line in maps if "/dev/shm/mpich_shm_" in line}:
            with contextlib.suppress(OSError):
                os.unlink(path)


def say(rank: int, text: str) -> None:
    """Print lines on stderr with the rank in front."""
    _write(rank, text)
    sys.stderr.flush()


def last_words() -> None:
    """Wait until mpiexec has read what this process has printed."""
    sys.stderr.flush()
    sys.stdout.flush()
    time.sleep(_LAST_WORDS)


def _write(rank: int, text: str) -> None:
    sys.stderr.write("".join(f"[rank{rank}]: {line}\n" for line in text.splitlines()))


def _leave() -> None:
    job = _watched
    if job is not None:
        unwatch()
        try:
            job.leave()
        except DistError as error:  # of a function that runs at the end, Python would keep the exit status
            say(job.rank, f"{type(error).__name__}: {error}")
            last_words()
            os._exit(1)
