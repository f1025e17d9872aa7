"""Groups of processes: one collective of them, waiting for it, and noticing that others have gone."""

from __future__ import annotations

import math
import os
import time
from collections import deque
from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Any

from ..errors import DistError
from ..tensors import Tensor
from . import checks, traffic
from .backends import sliced
from .futures import Future
from .job import Job

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
    """A collective or a message that was started with `async_op=True`; its result is there after `wait()`."""

    def __init__(self, owner: ProcessGroup, call: checks.Call, operation: Any, tensors: Sequence[Tensor] = ()) -> None:
        self._owner, self._call, self._operation, self._tensors = owner, call, operation, list(tensors)
        self._error: BaseException | None = None

    def is_completed(self) -> bool:
        """True if `wait()` would return at once."""
        self._owner.progress()
        return bool(self._operation.done())

    def is_success(self) -> bool:
        """True if it has ended without an error."""
        return self.is_completed() and self._error is None

    def exception(self) -> BaseException | None:
        """The error that `wait()` raised."""
        return self._error

    def wait(self, timeout: timedelta | None = None) -> bool:
        """Wait for it (for its result on the current stream, with nccl); true when it is there.

        Raises:
            DistError: it took longer than `timeout` (the group's unless given), another process has left the job, or
                the processes have started different collectives.
        """
        try:
            if self._operation.host_waits:
                self._owner.poll(self._operation.done, self._call, timeout, getattr(self._operation, "site", ""))
            self._operation.finish()
        except BaseException as error:
            self._error = error
            raise
        return True

    def synchronize(self) -> None:
        """Wait for it, as `wait()` does."""
        self.wait()

    def result(self) -> list[Tensor]:
        """The tensors with the result."""
        return self._tensors

    def source_rank(self) -> int:
        """The rank of the group that sent the message."""
        return int(self._operation.source)

    def get_future(self) -> Future[list[Any]]:
        """A future with `result()`, which waits for the collective when it is waited for."""
        future: Future[list[Any]] = Future._of(
            self.is_completed, lambda: future._fulfil(lambda: self.wait() and self.result())
        )
        return future

    def __repr__(self) -> str:
        return f"<Work {self._call}>"


class Works(Work):
    """Several works as one, which has ended when all have."""

    def __init__(self, works: Sequence[Work]) -> None:
        last = works[-1]
        super().__init__(last._owner, last._call, last._operation, [x for each in works for x in each.result()])
        self._works = works

    def is_completed(self) -> bool:
        """True if `wait()` would return at once."""
        return all(each.is_completed() for each in self._works)

    def wait(self, timeout: timedelta | None = None) -> bool:
        """Wait for all of them. Raises DistError as one work does."""
        try:
            return all(each.wait(timeout) for each in self._works)
        except BaseException as error:
            self._error = error
            raise


class _Agreed:
    """A collective on the host: its data are sent once all processes are seen to have called the same.

    Both steps go on while this process computes, whenever `progress` is called. The data of collectives are sent in
    the order of their calls, which is the same in all processes; their texts arrive in any.
    """

    host_waits = True

    def __init__(self, group: ProcessGroup, call: checks.Call, operation: Any) -> None:
        self._group, self.call, self._data = group, call, operation
        self._text = checks.message(call, group.checked)
        self._asked, self._rows = group.host.exchange(self._text)
        self._asked.begin()
        self._begun = False
        self._error: DistError | None = None

    @property
    def site(self) -> str:
        """The line that started it."""
        return checks.text_of(self._text).split("\x1f")[2]

    def begins(self) -> bool:
        """Begin to send the data if all texts are there; false if they are not."""
        if not self._asked.done():
            return False
        self._begun = True
        self._error = checks.difference(self._text, self._rows, self._group.ranks)
        if self._error is None and self._data is not None:
            self._data.begin()
        return True

    def done(self) -> bool:
        """True if it has ended."""
        if not self._begun:
            progress()
        return self._begun and (self._error is not None or self._data is None or self._data.done())

    def finish(self) -> None:
        """Write the result to the tensors. Raises DistError if the processes disagree."""
        if self._error is not None:
            raise self._error
        if self._data is not None:
            self._data.finish()


# Groups with collectives whose data are not sent yet. Waiting in one group goes on with those of all: the others may
# wait in another.
_waiting: set[ProcessGroup] = set()


def progress() -> None:
    """Go on with all collectives that have been started, without waiting."""
    sliced.advance()
    for group in tuple(_waiting):
        queue = group.queue
        while queue and queue[0].begins():
            queue.popleft()
        if not queue:
            _waiting.discard(group)


class ProcessGroup:
    """Some or all processes of a job, and how many collectives they have started.

    Attributes:
        ranks: the ranks in the job of its processes; a process's place among them is its rank in the group.
        group_name: its name, the same in all processes.
        group_desc: what it is for.
    """

    def __init__(self, job: Job, name: str, ranks: Sequence[int], backend: str, host: Any, device: Any) -> None:
        self.job, self.group_name, self.ranks = job, name, tuple(ranks)
        self.group_desc = "undefined"
        self.backend, self.host, self.device = backend, host, device
        self.timeout = job.timeout
        self.sequence = self.exchanges = 0
        self.checked = job.checked
        self.queue: deque[_Agreed] = deque()
        self.lacks_cpu = host is None  # or simulated devices, on which "nccl" carries what it carries on real ones
        self._rank = self.ranks.index(job.rank)
        # Operations that may still run: MPI uses their memory even if nothing waits for them.
        self._running: list[Any] = []
        job.groups[name] = self

    def rank(self) -> int:
        """The number of this process in the group."""
        return self._rank

    def size(self) -> int:
        """The number of processes in the group."""
        return len(self.ranks)

    def name(self) -> str:
        """The name of the backend."""
        return self.backend

    def transport(self, x: Tensor | None) -> Any:
        """Choose what sends a tensor: the backend for GPUs, or the host's.

        Raises:
            DistError: the group has none for the tensor's device.
        """
        kind = "cpu" if x is None or not x.is_cuda else "cuda"
        own = self.host if kind == "cpu" else self.device or self.host
        if x is None:  # a barrier
            return own or self.device
        if own is None or (kind == "cpu" and self.lacks_cpu):
            raise DistError(
                f"No backend type associated with device type {x.device.type}",
                f"the group's backend is {self.backend!r}",
                remedy='move the tensor to the GPU, or call init_process_group("cpu:gloo,cuda:nccl")',
            )
        return own

    def run(
        self, call: checks.Call, start: Callable[[Any], Any], async_op: bool, tensors: Sequence[Tensor] = ()
    ) -> Work | None:
        """Run one collective: check that all processes have called the same one, start it, wait for it.

        Args:
            call: what it is.
            start: prepares it with a transport; it begins when all processes are known to have called the same.
            async_op: return a `Work` at once.
            tensors: what it writes to, or else sends.
        """
        transport = self.transport(tensors[0] if tensors else None)
        self.sequence += 1
        call = call._replace(sequence=self.sequence)
        traffic.note(call, len(self.ranks), self.group_name)
        if self.checked and not transport.host_waits:
            checks.compare(self.exchange, call, self.ranks)
        operation = start(transport)
        if transport.host_waits:
            if len(self.ranks) > 1:
                operation = _Agreed(self, call, operation)
                self.queue.append(operation)
                _waiting.add(self)
            elif operation is not None:
                operation.begin()
        if operation is None:  # a barrier of one
            return Work(self, call, _Nothing(), tensors) if async_op else None
        work = self.started(call, operation, tensors)
        if async_op:
            return work
        work.wait()
        return None

    def started(self, call: checks.Call, operation: Any, tensors: Sequence[Tensor]) -> Work:
        """The work of an operation that runs."""
        self._running = [each for each in self._running if not each.done()]
        self._running.append(operation)
        return Work(self, call, operation, tensors)

    def progress(self) -> None:
        """Go on with the collectives that were started, while this process computes."""
        if self._running:
            progress()
            self._running = [each for each in self._running if not each.done()]

    def exchange(self, text: str, call: checks.Call) -> list[str]:
        """The texts of all processes by rank; each is cut to the size of a message."""
        if self.host is None:
            return self.job.exchange_by_store(self, text)
        operation, rows = self.host.exchange(checks.padded(text.encode("utf-8", "replace")))
        operation.begin()
        self._running.append(operation)
        self.poll(operation.done, call)
        return [checks.text_of(row) for row in rows]

    def poll(
        self, done: Callable[[], bool], call: checks.Call, timeout: timedelta | None = None, site: str = ""
    ) -> None:
        """Poll until it is done.

        Args:
            site: the line that started it, if that is not the one which waits.

        Raises:
            DistError: too much time has passed, or a process that would have to take part has left the job or is gone.
        """
        if done():
            return
        limit = (self.timeout if timeout is None else timeout).total_seconds()
        start = look = time.monotonic()
        nap = _NAP
        while not done():
            now = time.monotonic()
            if now - start < min(_YIELDING, limit):
                _yield()
                continue
            if now - look > _LOOK or self.job.links.gone:
                look = now
                self._look(call, site)
            if now - start > limit:
                raise DistError(
                    f"Watchdog caught collective operation timeout: {call}{self._shown()} ran for {int(limit * 1000)} "
                    "milliseconds before timing out",
                    f"rank {self.job.rank} of {self.job.size} waited at {site or checks.call_site()}; other ranks have "
                    "not come to it",
                    remedy="make all ranks start the same collectives in the same order; TRITENSOR_DEBUG=1 "
                    "compares their shapes, too",
                )
            progress()
            time.sleep(nap)
            nap = min(nap * 1.5, _LONGEST_NAP)

    def monitored_barrier(self, timeout: timedelta | None = None, wait_all_ranks: bool = False) -> None:
        """Wait until every process has called this, and say which have not: `distributed.monitored_barrier`."""
        if self.host is None:
            raise DistError("monitored_barrier needs a host backend", remedy='join with "cpu:gloo,cuda:nccl"')
        limit = (self.timeout if timeout is None else timeout).total_seconds()
        call = checks.Call("monitored_barrier", 0)
        missing = self.host.missing(lambda done, seconds: self.poll(done, call, timedelta(seconds=seconds)), limit)
        if missing:
            missing = [self.ranks[place] for place in missing]
            shown = f"Ranks {', '.join(map(str, missing))}" if wait_all_ranks else f"Rank {missing[0]}"
            raise DistError(
                f"{shown} failed to pass monitoredBarrier in {int(limit * 1000)} ms",
                f"rank {self.job.rank} of {self.job.size} waits for it in {call} at {checks.call_site()}",
                remedy="find out where that rank is: python -X faulthandler, or py-spy",
            )

    def _shown(self) -> str:
        """The group, for a message; nothing for all processes."""
        if len(self.ranks) == self.job.size and self.group_name == "0":
            return ""
        return f" in group {self.group_name} (ranks {', '.join(map(str, self.ranks))})"

    def _look(self, call: checks.Call, site: str = "") -> None:
        """Raise if a process that has to take part in a call is gone, or has left."""
        waits = f"rank {self.job.rank} of {self.job.size} waits for it in {call} at {site or checks.call_site()}"
        for ending in list(self.job.links.gone.values()):
            if time.monotonic() - ending.seen < _LOOK:
                break  # it may have taken part before it ended, and the operation be about to end here
            self.job.links.told = True
            raise DistError(str(ending), f"{ending.which}{waits}", remedy=ending.remedy)
        left = self.job.farewells()
        for rank, lasts in left.items():
            last = lasts.get(self.group_name, 0)
            if rank in self.ranks and last < call.sequence:
                raise DistError(
                    f"rank {rank} has left the job after {last} collective{'s' if last != 1 else ''}; {waits}",
                    remedy="make all ranks start the same number of collectives",
                )
        # what a rank has sent before it left may arrive for a while
        since = [self.job.left_since.get(rank, math.inf) for rank in call.peers]
        if since and time.monotonic() - max(since) > 2 * _PARTING:
            raise DistError(
                f"rank {call.peers[0]} has left the job; {waits}", remedy="send and receive the same number of messages"
            )

    def __repr__(self) -> str:
        return f"<ProcessGroup {self.group_name} {self.backend}, rank {self._rank} of {len(self.ranks)}>"

    def close(self) -> None:
        """Wait for the collectives that run, and free what the group has.

        Raises:
            DistError: one of them cannot end, because another process has left without it.
        """
        limit = time.monotonic() + _PARTING
        while (running := [each for each in self._running if not each.done()]) and time.monotonic() < limit:
            time.sleep(_LONGEST_NAP)
        _abandoned.extend(running)
        _waiting.discard(self)
        self.job.groups.pop(self.group_name, None)
        try:
            for each in running:
                if isinstance(each, _Agreed):
                    self._look(each.call, each.site)
        finally:
            for transport in (self.host, self.device):
                if transport is not None:
                    transport.free()


class _Nothing:
    """What is done at once."""

    host_waits = False

    def done(self) -> bool:
        return True

    finish = done
