"""Workers that are processes.

The process that iterates sends tasks through a socket to each worker and gets short messages back; batches lie in
shared memory. A worker ends when its socket is closed, which the system does if the process that iterates dies in
whatever way; so the copies of the sockets that a forked process inherits are closed at once. A thread of the worker
looks for the death of its parent too, for a dataset that does not return.
"""

from __future__ import annotations

import contextlib
import copy
import multiprocessing
import os
import pickle
import queue
import random
import selectors
import signal
import sys
import threading
import time
import traceback
import warnings
import weakref
from collections.abc import Iterator
from dataclasses import replace
from multiprocessing import connection
from typing import Any

import numpy as np

from ...errors import explain
from ...host.threads import compute_alone
from ...random import manual_seed
from .fetch import END
from .shared import Arena, Mapped, Message, connected, pack, receive, send
from .workers import Outcome, Pool, Startup, Work, WorkerInfo, enter_worker

_BATCH, _END, _ERROR, _NOT_STARTED, _LOST = range(5)  # the kinds of messages; after the last the worker ends
_LIMITS = "while a batch was handed over: fewer workers or smaller batches need less; see `ulimit -n`, `-v` and `-f`"
_GRACE = 5.0  # seconds that workers have to finish what they are doing before they are killed
_WATCH = 0.5  # seconds between two looks for the parent


def context_of(method: Any) -> Any:
    """The multiprocessing context: a start method's, fork where None is given on Linux, else spawn."""
    if method is None:
        method = "fork" if sys.platform == "linux" else "spawn"
    return multiprocessing.get_context(method) if isinstance(method, str) else method


# ---- the worker -----------------------------------------------------------------------------------------------


def _run(socket: object, info: WorkerInfo, startup: Startup) -> None:
    """Runs a worker process until the other end of its socket is closed."""
    try:
        _work(socket, info, startup)
    except (BrokenPipeError, ConnectionResetError):
        pass  # the other end is closed
    except BaseException as error:
        _tell(socket, Outcome(info.id, -1, error=error), _LOST)


def _work(socket: object, info: WorkerInfo, startup: Startup) -> None:
    # Ctrl-C goes to all processes of a terminal; the one that iterates ends the others. A handler, and not SIG_IGN,
    # which programs that the dataset starts would inherit.
    signal.signal(signal.SIGINT, lambda *_: None)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    threading.Thread(target=_watch, args=(os.getppid(),), daemon=True).start()
    compute_alone()
    random.seed(info.seed)
    manual_seed(info.seed)
    np.random.seed(np.random.SeedSequence(info.seed).generate_state(4))  # noqa: NPY002 - for datasets that use it
    enter_worker(info)
    work, arena = Work(info, startup.recipe, startup.init), Arena(socket)
    while True:
        try:
            task, _ = receive(socket)
        except EOFError:
            return
        released, *given = pickle.loads(task.more)
        arena.release(released)
        _answer(socket, arena, work.outcome(*given))


def _answer(socket: object, arena: Arena, outcome: Outcome) -> None:
    if outcome.value is END:
        send(socket, Message(outcome.ticket, _END))
    elif outcome.error is not None:
        _tell(socket, outcome, _ERROR if outcome.started else _NOT_STARTED)
    else:
        try:
            arena.give(pack(outcome.value), outcome.ticket, _BATCH)
        except BaseException as error:
            if isinstance(error, (OSError, MemoryError)):
                error.add_note(_LIMITS)
            _tell(socket, replace(outcome, error=error), _ERROR)


def _tell(socket: object, outcome: Outcome, kind: int) -> None:
    """Send an error, in the message itself: there may be no memory to share, and no descriptor for it."""
    error = outcome.error
    name = type(error).__name__
    try:
        trace = "".join(traceback.format_exception(error))
    except Exception:  # of what the error holds
        trace = name
    try:
        carried = pickle.dumps(error)
        again = pickle.loads(carried)
        whole = type(again) is type(error) and str(again) == str(error)
    except Exception:
        whole = False
    told = pickle.dumps((carried if whole else None, name, trace))
    send(socket, Message(outcome.ticket, kind, more=told))


def _watch(parent: int) -> None:
    """End this process when its parent has ended."""
    if os.name == "nt":
        above = multiprocessing.parent_process()
        if above is not None:
            above.join()
    else:
        while os.getppid() == parent:
            time.sleep(_WATCH)
    os._exit(1)


# ---- the process that iterates ----------------------------------------------------------------------------------

_sockets: weakref.WeakSet[Any] = weakref.WeakSet()  # our ends, which a forked process must not keep open


def _close_inherited() -> None:
    for socket in list(_sockets):
        with contextlib.suppress(OSError):
            socket.close()
    _sockets.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_close_inherited)


@contextlib.contextmanager
def _uninterrupted() -> Iterator[None]:
    """Ctrl-C waits, here and in processes that are started, which inherit the mask until they have a handler."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


class _Worker:
    """A worker process, our end of its socket, and its memory."""

    def __init__(self, context: Any, number: int, startup: Startup) -> None:
        dataset = copy.copy(startup.dataset) if context.get_start_method() == "fork" else startup.dataset
        info = WorkerInfo(number, startup.number, startup.seed + number, dataset)
        self.socket, theirs = connected()
        _sockets.add(self.socket)
        self.memory = Mapped()
        self.process = context.Process(
            target=_run, args=(theirs, info, startup), name=f"DataLoader worker {number}", daemon=True
        )
        with theirs, _uninterrupted(), warnings.catch_warnings():
            # Python 3.12 and later: a lock that another thread holds at the fork is held for ever. Ours are made anew.
            warnings.filterwarnings("ignore", ".*multi-threaded, use of fork", DeprecationWarning)
            self.process.start()

    def answer(self) -> Outcome:
        """Read a message.

        Raises:
            EOFError: the worker has ended. OSError: its memory cannot be mapped here.
        """
        message, handle = receive(self.socket)
        ticket, kind, place, width, count, more = message
        if width:
            self.memory.add(handle, width, count)
        number = int(self.process.name.rpartition(" ")[2])
        if kind == _END:
            return Outcome(number, ticket, END)
        if kind != _BATCH:
            return Outcome(number, ticket, error=_raised(number, *pickle.loads(more)), started=kind == _ERROR)
        try:
            return Outcome(number, ticket, self.memory.read(place))
        except Exception as error:  # what unpickles the batch is the user's
            return Outcome(number, ticket, error=error)


def _raised(number: int, carried: bytes | None, name: str, trace: str) -> BaseException:
    """The error of a worker; one that cannot be made here, such as one whose class only the worker can import, is a
    RuntimeError with its traceback."""
    note = f"Caught {name} in DataLoader worker process {number}.\nOriginal {trace.rstrip()}"
    try:
        error = None if carried is None else pickle.loads(carried)
    except Exception:
        error = None
    if not isinstance(error, BaseException):
        return RuntimeError(f"{note}\n")
    error.add_note(note)
    return error


class Processes(Pool):
    """Workers that are processes. Each is started by its first task, so that it works while the next one is started.

    Args:
        context: a multiprocessing context, see `context_of`.
    """

    def __init__(self, startup: Startup, context: Any) -> None:
        super().__init__()
        self._startup, self._context = startup, context
        self._workers: list[_Worker] = []
        self._sources: dict[Any, _Worker] = {}  # by socket and by sentinel
        self._poll = selectors.DefaultSelector() if os.name != "nt" else None

    def start(self, number: int) -> None:
        """Start workers until there are so many."""
        while len(self._workers) < number:
            worker = _Worker(self._context, len(self._workers), self._startup)
            self._workers.append(worker)
            for source in (worker.socket, worker.process.sentinel):
                self._sources[source] = worker
                if self._poll is not None:
                    self._poll.register(source, selectors.EVENT_READ)

    def _send(self, worker: int, given: tuple[int, int, Any]) -> None:
        self.start(worker + 1)
        target = self._workers[worker]
        released = target.memory.released
        places = [released.pop() for _ in range(len(released))]
        # if the worker is dead, `get` tells
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            send(target.socket, Message(more=pickle.dumps((places, *given), 5)))

    def _ready(self, timeout: float | None) -> list[Any]:
        """The sockets and sentinels that can be read."""
        if self._poll is None:
            return connection.wait(list(self._sources), timeout)
        return [key.fileobj for key, _ in self._poll.select(timeout)]

    def _receive(self, timeout: float | None) -> Outcome:
        ready = self._ready(timeout)
        if not ready:
            raise queue.Empty
        dead = None
        for source in sorted(ready, key=lambda source: isinstance(source, int)):
            worker = self._sources[source]
            try:
                outcome = worker.answer() if source is worker.socket else None
            except (EOFError, ConnectionResetError):
                outcome = None
            if outcome is not None:
                if outcome.ticket < 0:
                    raise outcome.error  # type: ignore[misc]
                return outcome
            dead = dead or worker
        assert dead is not None
        raise RuntimeError(self._death(dead))

    def _death(self, worker: _Worker) -> str:
        """Words for how a worker ended."""
        process = worker.process
        process.join(1)
        status, name = process.exitcode, process.name
        if status is not None and status < 0:
            known = signal.strsignal(-status) or f"signal {-status}"
            killed = -status == getattr(signal, "SIGKILL", 9)
            return explain(
                f"DataLoader worker (pid {process.pid}) is killed by signal: {known}.",
                f"{name} of {len(self._workers)} ended by {signal.Signals(-status).name}",
                remedy="try fewer workers, a smaller prefetch_factor or smaller batches: Linux kills large processes"
                if killed
                else "run the same dataset with num_workers=0 to see where it ends",
            )
        return explain(
            f"DataLoader worker (pid(s) {process.pid}) exited unexpectedly",
            f"{name} of {len(self._workers)} ended with status {status}",
            remedy="look for a traceback above, for os._exit() and for a library that ends the process; num_workers=0 "
            "runs the same in this process",
        )

    def close(self) -> None:
        """End the workers: at once those that wait, and those that do not finish their batch soon by a signal."""
        self.closed = True
        if os.getpid() != self._process:
            return
        workers, self._workers, self._sources = self._workers, [], {}
        if self._poll is not None:
            self._poll.close()
        for worker in workers:
            worker.socket.close()
        deadline = time.monotonic() + _GRACE
        alive = _ended([worker.process for worker in workers], deadline)
        for process in alive:
            process.terminate()
        for process in _ended(alive, deadline + 1):
            process.kill()
            process.join()


def _ended(processes: list[Any], deadline: float) -> list[Any]:
    """Wait for processes; returns those that are alive at the deadline."""
    alive = [process for process in processes if process.is_alive()]
    while alive and time.monotonic() < deadline:
        connection.wait([process.sentinel for process in alive], deadline - time.monotonic())
        alive = [process for process in alive if process.is_alive()]
    return alive
