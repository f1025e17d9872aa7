"""The programs of a cooperative launch in the interpreter: each in a thread of its own, one of which runs at a time.

A program goes on until it reads what others may be about to change, by an atomic operation or a volatile load, or ends.
Then it is another one's turn, so that a program that waits for others in a loop lets them get there.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Sequence
from contextvars import copy_context
from typing import TYPE_CHECKING

from ...drivers.together import uncollected
from ...errors import KernelError

if TYPE_CHECKING:
    from .watching import Watching

Program = tuple[int, int, int]

_PATIENCE = 100  # polls of each program in a row that find what they found before, while nothing is written


class _Ended(BaseException):
    """Another program has failed."""


class Turns:
    """The turns of the programs of one launch."""

    def __init__(self, builder: Watching) -> None:
        self._builder = builder
        self._waiting: deque[threading.Lock] = deque()
        self._idle = 0
        self._error: BaseException | None = None

    def run(self, programs: Sequence[Program], run: Callable[[], object]) -> None:
        """Run a function for each program, whose number it finds in the builder."""
        done = threading.Lock()
        done.acquire()
        threads = []
        for program in programs:
            gate = threading.Lock()
            gate.acquire()
            self._waiting.append(gate)
            begin = self._one, program, gate, run, done
            threads.append(threading.Thread(target=copy_context().run, args=begin, daemon=True))
        with uncollected():
            for thread in threads:
                thread.start()
            self._next(done)
            done.acquire()
            for thread in threads:
                thread.join()
        if self._error is not None:
            raise self._error

    def _one(self, program: Program, gate: threading.Lock, run: Callable[[], object], done: threading.Lock) -> None:
        try:
            self._go(program, gate)
            run()
        except _Ended:
            pass
        except BaseException as error:  # the launching thread raises it
            self._error = error
        self._idle = 0
        self._next(done)

    def _next(self, done: threading.Lock) -> None:
        """Let the program go on that has waited longest, or the launching thread when all have ended."""
        (self._waiting.popleft() if self._waiting else done).release()

    def _go(self, program: Program, gate: threading.Lock) -> None:
        gate.acquire()
        if self._error is not None:
            raise _Ended
        self._builder.grid_idx = program

    def wrote(self) -> None:
        """Note that a program has changed memory."""
        self._idle = 0

    def give(self) -> None:
        """Let the other programs run before this one goes on.

        Raises:
            KernelError: they all do nothing but wait.
        """
        self._idle += 1
        if self._idle > _PATIENCE * (len(self._waiting) + 1):
            where = f"program {self._builder.grid_idx}"
            raise KernelError("CUDA error: programs wait for one another and none goes on", where)
        if self._waiting:
            program, gate = self._builder.grid_idx, threading.Lock()
            gate.acquire()
            self._waiting.append(gate)
            self._waiting.popleft().release()
            self._go(program, gate)
