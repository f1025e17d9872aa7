"""The group of all processes of a job: joining and leaving it, and running one collective."""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import numpy as np

from .. import settings
from ..drivers import active
from ..errors import DistError, explain, require
from . import checks, failure, liveness
from .backends import open_backend

_HALF_AN_HOUR = timedelta(minutes=30)
# How a waiting process polls: for 10 ms it only yields the core between polls, then it sleeps for 50 us, growing to 1
# ms. Two processes on two cores sum 38 kB in 60 us by yielding and in 1.4 ms by sleeping alone (MPI takes several
# rounds, and each one waits for a sleep to end); four processes on the two cores take 0.5 ms and 10 ms.
_YIELDING, _NAP, _LONGEST_NAP = 0.01, 5e-5, 1e-3
_yield = getattr(os, "sched_yield", lambda: time.sleep(0))
# How often it checks whether another process has left.
_LOOK = 0.05
# How long a process that leaves waits for its operations; if they last longer, another process has not taken part.
_PARTING = 1.0
# Operations that never ended. MPI may write to their memory until the process ends.
_abandoned: list[Any] = []


class Work:
    """A collective that was started with `async_op=True`; its result is there after `wait()`."""

    def __init__(self, owner: ProcessGroup, call: checks.Call, operation: Any) -> None:
        self._owner, self._call, self._operation = owner, call, operation

    def is_completed(self) -> bool:
        """True if `wait()` would return at once."""
        return bool(self._operation.done())

    def wait(self, timeout: timedelta | None = None) -> bool:
        """Wait for the collective (for its result on the current stream, with nccl); true when it is there.

        Raises:
            DistError: it took longer than `timeout` (the group's unless given), or another process has left the job.
        """
        if self._owner.backend.host_waits:
            self._owner.poll(self._operation.done, self._call, timeout)
        self._operation.finish()
        return True

    def __repr__(self) -> str:
        return f"<Work {self._call}>"


class ProcessGroup:
    """The processes of a job, and how many collectives this one has started."""

    def __init__(self, backend: Any) -> None:
        self.backend = backend
        self.rank: int = backend.rank
        self.size: int = backend.size
        self.sequence = 0
        self.checked = False
        self.local_rank = 0
        self.links = liveness.Links(self.rank)
        self._left: dict[int, int] = {}
        # Operations that may still run: MPI uses their memory even if nothing waits for them.
        self._running: list[Any] = []

    def open(self, checked: bool) -> None:
        """Wait for all processes, and agree with them on whether to compare collectives."""
        started = checks.Call("init_process_group", 0)
        self.backend.join()
        self.poll(self.backend.opened, started)
        try:
            self._find_neighbours(checked, started)
            self.backend.connect(lambda text: self.exchange(text, started))
        except BaseException:
            self.links.leave()
            raise

    def _find_neighbours(self, checked: bool, started: checks.Call) -> None:
        mine = f"{socket.gethostname()}|{int(checked)}|{self.links.listen()}"
        facts = [row.split("|") for row in self.exchange(mine, started)]
        self.checked = any(flag == "1" for _, flag, _ in facts)
        addresses = {rank: address for rank, (host, _, address) in enumerate(facts) if host == facts[self.rank][0]}
        self.local_rank = list(addresses).index(self.rank)
        self.links.connect(addresses)
        self.links.watch(self._report, self._end)

    def run(self, call: checks.Call, start: Callable[[], Any], async_op: bool) -> Work | None:
        """Run one collective: check that all processes have called the same one, start it, wait for it."""
        self.sequence += 1
        call = call._replace(sequence=self.sequence)
        if self.checked:
            checks.compare(self.exchange, call)
        work = Work(self, call, self._running_with(start()))
        if async_op:
            return work
        work.wait()
        return None

    def _running_with(self, operation: Any) -> Any:
        self._running = [each for each in self._running if not each.done()]
        self._running.append(operation)
        return operation

    def exchange(self, text: str, call: checks.Call) -> list[str]:
        """The texts of all processes by rank; each is cut to the size of a message."""
        message = np.zeros(checks.MESSAGE_SIZE, np.uint8)
        encoded = np.frombuffer(text.encode("utf-8", "replace")[: checks.MESSAGE_SIZE], np.uint8)
        message[: encoded.size] = encoded
        operation, rows = self.backend.exchange(message)
        self.poll(self._running_with(operation).done, call)
        return [bytes(row).rstrip(b"\0").decode("utf-8", "replace") for row in rows]

    def poll(self, done: Callable[[], bool], call: checks.Call, timeout: timedelta | None = None) -> None:
        """Poll until it is done.

        Raises:
            DistError: too much time has passed, or a process that would have to take part has left the job or is gone.
        """
        if done():
            return
        limit = self.backend.timeout if timeout is None else timeout.total_seconds()
        start = look = time.monotonic()
        nap = _NAP
        while not done():
            now = time.monotonic()
            if now - start < min(_YIELDING, limit):
                _yield()
                continue
            if now - look > _LOOK or self.links.gone:
                look = now
                self._look(call)
            if now - start > limit:
                raise DistError(
                    f"Watchdog caught collective operation timeout: {call} ran for {int(limit * 1000)} "
                    "milliseconds before timing out",
                    f"rank {self.rank} of {self.size} waited; other ranks have not come to it",
                    remedy="make all ranks start the same collectives in the same order; TRITENSOR_DEBUG=1 "
                    "compares them",
                )
            time.sleep(nap)
            nap = min(nap * 1.5, _LONGEST_NAP)

    def _look(self, call: checks.Call) -> None:
        for ending in self.links.gone.values():
            if time.monotonic() - ending.seen < _LOOK:
                break  # it may have taken part before it ended, and the operation be about to end here
            self.links.told = True
            raise DistError(
                str(ending),
                f"it was process {ending.process}; rank {self.rank} of {self.size} waits for it in {call}",
                remedy=ending.remedy,
            )
        self._left.update(self.backend.farewells())
        for rank, last in self._left.items():
            if last < call.sequence:
                raise DistError(
                    f"rank {rank} has left the job after {last} collective{'s' if last != 1 else ''}; rank "
                    f"{self.rank} of {self.size} waits for it in {call}",
                    remedy="make all ranks start the same number of collectives",
                )

    def __repr__(self) -> str:
        return f"<ProcessGroup {self.backend.name}, rank {self.rank} of {self.size}>"

    def close(self) -> None:
        """Tell the others that this process starts no more collectives, and wait for those that run."""
        self.backend.leave(self.sequence)
        limit = time.monotonic() + _PARTING
        while (running := [each for each in self._running if not each.done()]) and time.monotonic() < limit:
            time.sleep(_LONGEST_NAP)
        _abandoned.extend(running)
        self.links.leave()

    def abort(self) -> None:
        """End the whole job now."""
        self.links.leave(ends_the_job=True)
        self.backend.abort()

    def _report(self, ending: liveness.Ending) -> None:
        failure.say(self, f"{ending} (process {ending.process})\n")

    def _end(self, ending: liveness.Ending) -> None:
        failure.say(
            self,
            explain(str(ending), f"it was process {ending.process}", remedy=ending.remedy)
            + f"\nrank {self.rank} of {self.size} ended the job, in which not all can take part any more.\n",
        )
        failure.last_words()
        self.abort()


_default: ProcessGroup | None = None


def init_process_group(
    backend: str | None = None,
    init_method: str | None = None,
    timeout: timedelta | None = None,
    world_size: int = -1,
    rank: int = -1,
) -> None:
    """Join the other processes of the job, which mpiexec started; all of them have to call this.

        mpiexec -n 4 python train.py

    In simulation and debug mode (`TRITENSOR_DEBUG=1`) every collective is compared across processes before it runs.
    From here on an uncaught exception ends the whole job.

    Args:
        backend: "mpi" (unless given) or "nccl".
        init_method: None or "env://": MPI knows the processes.
        timeout: how long to wait for the others in a collective, half an hour unless given.
        world_size: checked against what MPI says, if given.
        rank: likewise.

    Raises:
        ValueError: an unknown backend or way to start, a number that MPI contradicts, or an existing group.
        DistError: the backend is not installed or cannot work here, or not all processes joined in time.
    """
    global _default
    require(_default is None, ValueError, "trying to initialize the default process group twice!")
    if init_method not in (None, "env://"):
        raise ValueError(f"init_process_group(): cannot start by {init_method!r}; start with mpiexec and leave it out")
    limit = _HALF_AN_HOUR if timeout is None else timeout
    if not isinstance(limit, timedelta):
        raise TypeError(f"Expected timeout argument to be of type datetime.timedelta, got {limit!r}")
    made = ProcessGroup(open_backend((backend or "mpi").lower(), limit.total_seconds()))
    for name, argument, known in (("world_size", world_size, made.size), ("rank", rank, made.rank)):
        if argument not in (-1, known):
            raise ValueError(f"init_process_group(): {name}={argument}, but MPI says {known}; leave it out")
    driver = active()
    made.open(checked=bool(settings.debug.value) or (driver is not None and driver.checks_by_default))
    _default = made
    failure.watch(made)


def destroy_process_group(group: ProcessGroup | None = None) -> None:
    """Leave the job. A process that ends without it leaves too; others that then wait for it get an error.

    Raises:
        ValueError: there is no group.
    """
    global _default
    made = default_group(group)
    failure.unwatch()
    _default = None
    made.close()


def default_group(group: ProcessGroup | None = None) -> ProcessGroup:
    """The group of all processes, which is the only one there is.

    Raises:
        ValueError: `init_process_group` has not been called, or `group` is another object.
    """
    if _default is None:
        raise ValueError("Default process group has not been initialized, please make sure to call init_process_group.")
    if group is not None and group is not _default:
        raise ValueError(f"Invalid process group specified: {group!r}; there is one group, of all processes")
    return _default


def is_initialized() -> bool:
    """True if this process has joined a job.

    >>> is_initialized()
    False
    """
    return _default is not None


def get_rank(group: ProcessGroup | None = None) -> int:
    """The number of this process, from 0. Raises ValueError before `init_process_group`."""
    return default_group(group).rank


def get_world_size(group: ProcessGroup | None = None) -> int:
    """The number of processes. Raises ValueError before `init_process_group`."""
    return default_group(group).size


def get_node_local_rank(fallback_rank: int | None = None) -> int:
    """The number of this process among those on its machine: which GPU to use.

    Before `init_process_group` it is what the launcher says in LOCAL_RANK or MPI_LOCALRANKID, else `fallback_rank`.

    Raises:
        RuntimeError: none of these is known.
    """
    if _default is not None:
        return _default.local_rank
    for name in ("LOCAL_RANK", "MPI_LOCALRANKID", "OMPI_COMM_WORLD_LOCAL_RANK"):
        if name in os.environ:
            return int(os.environ[name])
    if fallback_rank is not None:
        return fallback_rank
    raise RuntimeError(
        "LOCAL_RANK is not in the environment. Consider passing fallback_rank to allow `get_node_local_rank` to work, "
        "assuming you are not running in a multi-device context and want the code to run locally instead."
    )


def get_backend(group: ProcessGroup | None = None) -> str:
    """The backend's name, "mpi" or "nccl". Raises ValueError before `init_process_group`."""
    return str(default_group(group).backend.name)


class _WorldOf(type):
    @property
    def WORLD(cls) -> ProcessGroup | None:
        """The group of all processes; None before `init_process_group`."""
        return _default


class group(metaclass=_WorldOf):
    """`group.WORLD` is the group of all processes, None before `init_process_group`."""
