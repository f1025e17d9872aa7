"""Batches that workers make ahead of time, in order; and workers that are threads."""

from __future__ import annotations

import contextvars
import copy
import os
import queue
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from ...drivers.current import used
from ...errors import explain
from .fetch import END, Recipe


@dataclass(frozen=True)
class WorkerInfo:
    """The result of `get_worker_info` in a worker: `id`, `num_workers`, `seed`, and the worker's copy of `dataset`."""

    id: int
    num_workers: int
    seed: int
    dataset: Any


class _Local(threading.local):
    info: WorkerInfo | None = None


_local = _Local()


def get_worker_info() -> WorkerInfo | None:
    """The `WorkerInfo` of the `DataLoader` worker that is running this code; None outside of one."""
    return _local.info


def enter_worker(info: WorkerInfo) -> None:
    """Make this thread, or this process, a worker."""
    _local.info = info


@dataclass(frozen=True)
class Startup:
    """The arguments that workers are started with.

    Attributes:
        seed: the first worker's; the others' follow it.
        init: called with the worker's number before anything else.
    """

    dataset: Any
    recipe: Recipe
    number: int
    seed: int
    init: Callable[[int], Any] | None


@dataclass(frozen=True)
class Outcome:
    """The outcome of a ticket: a batch, END, or an error."""

    worker: int
    ticket: int
    value: Any = None
    error: BaseException | None = None
    started: bool = True  # False if the error is the worker's start's


class Pool(ABC):
    """Workers, numbered, which each take one task after the other.

    Attributes:
        passes: how many passes over the dataset were begun.
        tickets: how many tasks were given.
        closed: whether the workers are told to end.
    """

    def __init__(self) -> None:
        self.passes = self.tickets = 0
        self.closed = False
        self._process = os.getpid()

    @property
    def usable(self) -> bool:
        """True if the workers are this process's, and not told to end."""
        return not self.closed and self._process == os.getpid()

    def check_process(self) -> None:
        """Raise a RuntimeError in a process that was forked from the workers' own."""
        if os.getpid() != self._process:
            raise RuntimeError(
                explain(
                    "this iterator's workers belong to another process",
                    f"it was made in process {self._process}, this is process {os.getpid()}",
                    remedy="iterate the DataLoader anew here",
                )
            )

    def begin(self) -> int:
        """Begin a pass, in which workers read the dataset anew; returns its number."""
        self.passes += 1
        return self.passes

    def put(self, worker: int, task: object) -> int:
        """Give a task to a worker; returns its ticket."""
        self.check_process()
        self._send(worker, (self.passes, self.tickets, task))
        self.tickets += 1
        return self.tickets - 1

    def get(self, timeout: float | None) -> Outcome:
        """The outcome of any task.

        Raises:
            queue.Empty: there is none after `timeout` seconds. RuntimeError: a worker has died.
        """
        self.check_process()
        return self._receive(timeout)

    @abstractmethod
    def start(self, number: int) -> None:
        """Start workers until there are so many."""

    @abstractmethod
    def _send(self, worker: int, given: tuple[int, int, Any]) -> None: ...

    @abstractmethod
    def _receive(self, timeout: float | None) -> Outcome: ...

    @abstractmethod
    def close(self) -> None:
        """End the workers."""

    def __del__(self) -> None:
        if not getattr(self, "closed", True):
            self.close()


class Prefetched:
    """An iterator of batches that workers make ahead of time.

    Batch number `i` is made by worker `i % num_workers`, and the batches come in the order of their tasks, so neither
    depends on which worker is faster. At most `num_workers * prefetch_factor` batches are being made or waiting to be
    read at a time.

    Args:
        tasks: what to fetch, one entry a batch; for a stream an endless iterator.
        timeout: seconds to wait for a batch; 0 waits for ever.
        in_order: if False batches come as they are finished, and the next task goes to the worker that is.
        keep: whether the workers go on after the last batch.
    """

    def __init__(
        self,
        pool: Pool,
        number: int,
        tasks: Iterator[Any],
        *,
        prefetch_factor: int,
        timeout: float,
        in_order: bool,
        keep: bool,
    ) -> None:
        self._pool: Pool | None = pool
        self._tasks: Iterator[Any] | None = tasks
        self._timeout, self._in_order, self._keep = timeout, in_order, keep
        self._turns = list(range(number))  # the workers that have more to give
        self._pass = pool.begin()
        self._due = self._next = self._first = pool.tickets  # tickets: of the batch to return, and of the next task
        self._done: dict[int, Outcome] = {}
        self._broken: str | None = None  # why the workers had to be ended
        self._late: BaseException | None = None  # what the sampler raised, to be raised after the batches before it
        try:
            for _ in range(number * max(prefetch_factor, 1)):
                self._dispatch(self._turn())
            pool.start(number)
        except BaseException:
            self.close()  # a task may be half sent
            raise

    def _turn(self) -> int:
        return self._turns[(self._next - self._first) % len(self._turns)]

    def _dispatch(self, worker: int) -> None:
        """Give the next task to a worker."""
        if self._tasks is None or self._pool is None:
            return
        try:
            task = next(self._tasks)
        except StopIteration:
            self._tasks = None
        except Exception as error:
            self._tasks, self._late = None, error
        else:
            self._next = self._pool.put(worker, task) + 1

    def __iter__(self) -> Prefetched:
        return self

    def __next__(self) -> Any:
        value, error = self.take()
        if error is not None:
            try:
                raise error
            finally:
                del error  # its traceback has this frame
        return value

    def take(self) -> tuple[Any, BaseException | None]:
        """The next batch, or the error to be raised in its place; StopIteration after the last."""
        if self._pool is not None and self._pool.passes != self._pass:
            return None, RuntimeError(
                explain(
                    "the loader's workers have begun another pass",
                    "with persistent_workers=True a loader makes one pass at a time",
                    remedy="finish this pass before the next, or make another DataLoader",
                )
            )
        if self._broken is not None:
            return None, RuntimeError(self._broken)
        while self._pool is not None and self._due < self._next:
            try:
                outcome = self._outcome()
                self._due += 1
                if outcome.value is END and outcome.worker in self._turns:
                    self._turns.remove(outcome.worker)
                if not outcome.started:
                    self.close()
                elif self._turns:
                    again = not self._in_order and outcome.worker in self._turns
                    self._dispatch(outcome.worker if again else self._turn())
            except queue.Empty:
                return None, RuntimeError(f"DataLoader timed out after {self._timeout} seconds")
            except BaseException as error:
                self.close()  # a message may be half read or half sent
                self._broken = str(error) if isinstance(error, RuntimeError) else f"interrupted by {error!r}"
                raise
            if outcome.error is not None or outcome.value is not END:
                return outcome.value, outcome.error
        late, self._late = self._late, None
        if not self._keep:
            self.close()
        return None, late or StopIteration()

    def _outcome(self) -> Outcome:
        """The outcome that is due: the next ticket's, or any if the order does not matter."""
        assert self._pool is not None
        while self._due not in self._done:
            found = self._pool.get(self._timeout or None)
            # else it is of a pass that was left, or a worker failed just after it had answered
            if found.ticket >= (self._due if self._in_order else self._first):
                self._done[found.ticket if self._in_order else self._due] = found
        return self._done.pop(self._due)

    def close(self) -> None:
        """End the workers."""
        pool, self._pool = self._pool, None
        if pool is not None:
            pool.close()

    def __del__(self) -> None:
        if not self._keep:
            self.close()


# ---- threads --------------------------------------------------------------------------------------------------

_STOP = object()


class Threads(Pool):
    """Workers that are threads: nothing is pickled or copied, and code that holds Python's lock takes turns."""

    def __init__(self, startup: Startup) -> None:
        super().__init__()
        self._simulations = used.get()
        self._results: queue.SimpleQueue[Outcome] = queue.SimpleQueue()
        self._tasks: list[queue.SimpleQueue[Any]] = [queue.SimpleQueue() for _ in range(startup.number)]
        for number, tasks in enumerate(self._tasks):
            own = copy.copy(startup.dataset)
            info = WorkerInfo(number, startup.number, startup.seed + number, own)
            # the thread has no reference to this object, whose end stops it however far this loop has come
            arguments = (info, startup.recipe, startup.init, tasks, self._results)
            # a copy of the context for each: the caller's simulation and its other context variables apply
            run = contextvars.copy_context().run
            name = f"DataLoader worker {number}"
            threading.Thread(target=run, args=(_serve, *arguments), name=name, daemon=True).start()

    @property
    def usable(self) -> bool:
        """True if the workers are this process's, not told to end, and in the simulation that the caller is in."""
        return super().usable and self._simulations == used.get()

    def start(self, number: int) -> None:
        """They are started all at once."""

    def _send(self, worker: int, given: tuple[int, int, Any]) -> None:
        self._tasks[worker].put(given)

    def _receive(self, timeout: float | None) -> Outcome:
        return self._results.get(timeout=timeout)

    def close(self) -> None:
        """Make each thread end after its current batch."""
        self.closed = True
        for tasks in self._tasks:
            tasks.put(_STOP)


def _serve(
    info: WorkerInfo,
    recipe: Recipe,
    init: Callable[[int], Any] | None,
    tasks: queue.SimpleQueue[Any],
    results: queue.SimpleQueue[Outcome],
) -> None:
    """Runs a worker's thread."""
    enter_worker(info)
    work = Work(info, recipe, init)
    while True:
        given = tasks.get()
        if given is _STOP:
            return
        outcome = work.outcome(*given)
        if outcome.error is not None:
            outcome.error.add_note(f"raised in DataLoader worker {info.id}")
        results.put(outcome)
        del outcome


class Work:
    """A worker's own state: its dataset, and how far it has read it."""

    def __init__(self, info: WorkerInfo, recipe: Recipe, init: Callable[[int], Any] | None) -> None:
        self._info, self._recipe, self._pass = info, recipe, 0
        self._failure: BaseException | None = None
        self._fetch: Callable[[Any], Any] | None = None
        try:
            if init is not None:
                init(info.id)
        except BaseException as error:
            self._failure = error

    def outcome(self, number: int, ticket: int, task: object) -> Outcome:
        """Do a task of a pass."""
        worker = self._info.id
        if self._failure is not None:
            return Outcome(worker, ticket, error=self._failure, started=False)
        try:
            if number != self._pass:
                self._fetch, self._pass = self._recipe.fetch(self._info.dataset), number
            assert self._fetch is not None
            return Outcome(worker, ticket, self._fetch(task))
        except BaseException as error:
            return Outcome(worker, ticket, error=error)
