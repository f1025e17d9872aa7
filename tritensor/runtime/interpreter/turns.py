"""The programs of a cooperative launch in the interpreter: each in a thread of its own, one of which runs at a time.

A program goes on until it reads what others may be about to change, by an atomic operation or a volatile load, or ends.
Then it is another one's turn, so that a program that waits for others in a loop lets them get there.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Sequence
from contextvars import copy_context
from typing import Any

from ...errors import KernelError

_PATIENCE = 100  # polls of each program in a row that find what they found before, while nothing is written


class _Ended(BaseException):
    """Another program has failed."""


class Turns:
    """The turns of the programs of one launch."""

    def __init__(self, builder: Any) -> None:
        self._builder = builder
        self._waiting: deque[tuple[Any, threading.Lock]] = deque()
        self._idle = 0
        self._error: BaseException | None = None
        #: of the program that runs, or failed
        self.program: Any = None

    def run(self, programs: Sequence[Any], run: Callable[[], object]) -> None:
        """Run a function for each program, whose number it finds in the builder."""
        done = threading.Lock()
        done.acquire()
        threads = []
        for program in programs:
            gate = threading.Lock()
            gate.acquire()
            self._waiting.append((program, gate))
            begin = (copy_context().run, self._one, program, gate, run, done)
            threads.append(threading.Thread(target=begin[0], args=begin[1:], daemon=True))
        for thread in threads:
            thread.start()
        self._next(done)
        done.acquire()
        for thread in threads:
            thread.join()
        if self._error is not None:
            raise self._error

    def _one(self, program: Any, gate: threading.Lock, run: Callable[[], object], done: threading.Lock) -> None:
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
        (self._waiting.popleft()[1] if self._waiting else done).release()

    def _go(self, program: Any, gate: threading.Lock) -> None:
        gate.acquire()
        if self._error is not None:
            raise _Ended
        self.program = self._builder.grid_idx = program

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
            raise KernelError("CUDA error: programs wait for one another and none goes on", f"program {self.program}")
        if self._waiting:
            program, gate = self.program, threading.Lock()
            gate.acquire()
            self._waiting.append((program, gate))
            self._waiting.popleft()[1].release()
            self._go(program, gate)
