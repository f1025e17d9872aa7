"""One node's part of a job: starts its workers, passes on what they print, ends all if one fails, starts them again."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import IO, Any

from .multiprocessing.errors import ChildFailedError, ProcessFailure

# What a worker is first, on Linux: it asks the kernel for SIGKILL (9) when the launcher ends (PR_SET_PDEATHSIG, 1), and
# becomes the program. That takes 15 ms; code between fork and exec takes less, but may hang where there are threads.
# Python ignores SIGPIPE, which other programs must not inherit.
_BOUND = """import ctypes, os, signal, sys
signal.signal(signal.SIGPIPE, signal.SIG_DFL)
ctypes.CDLL(None).prctl(1, 9)
os.getppid() == int(sys.argv[1]) and os.execvp(sys.argv[2], sys.argv[2:])"""
_REPORT = 5.0  # seconds before SIGTERM that the others have when a worker has failed, to notice it and tell about it
_writing = threading.Lock()


def say(text: str) -> None:
    """Print a line of the launcher's own on stderr."""
    with _writing:
        print(f"[launch] {text}", file=sys.stderr, flush=True)


class _Worker:
    """A process of the job, with threads that pass on what it prints and tell its end."""

    def __init__(self, agent: Agent, local_rank: int, attempt: int, port: int, folder: Path) -> None:
        self.local_rank, self.rank = local_rank, agent.node_rank * agent.nproc + local_rank
        self.error_file = folder / "error.json"
        folder.mkdir(parents=True)
        environment = {**({"OMP_NUM_THREADS": "1"} if agent.nproc > 1 else {}), **os.environ}
        environment |= agent.environment(local_rank, attempt, port, self.error_file)
        self._threads = [threading.Thread(target=self._await, args=(agent.events.put,), daemon=True)]
        pipes: list[int | None] = [None, None]
        for number, name in ((1, "stdout"), (2, "stderr")):
            teed, redirected = agent.tee[local_rank] & number, agent.redirects[local_rank] & number
            shown = (teed or not redirected) and (not agent.shown or local_rank in agent.shown)
            # A worker that prints on a terminal and nowhere else has it itself: for bars, colours, debuggers.
            if teed or redirected or not shown or not os.isatty(number):
                pipes[number - 1] = subprocess.PIPE
                log = folder / f"{name}.log" if teed or redirected else os.devnull
                prefix = f"[{agent.role}{local_rank}]:" if teed else ""
                sinks = (log, os.dup(number) if shown else os.devnull, prefix.encode(), b"\n" * (agent.nproc > 1))
                self._threads.append(threading.Thread(target=self._pass_on, args=(name, *sinks), daemon=True))
        if pipes[0]:  # what is printed arrives at once, and is not lost if the worker is killed
            environment.setdefault("PYTHONUNBUFFERED", "1")
        words = [word.replace("${local_rank}", str(local_rank)) for word in agent.command]
        if sys.platform == "linux":
            words = [sys.executable, "-S", "-P", "-c", _BOUND, str(os.getpid()), *words]
        # in a session, and so a group, of its own: the launcher's signals reach what it starts, and Ctrl-C comes once
        streams: dict[str, Any] = {"stdout": pipes[0], "stderr": pipes[1]}
        self.process = subprocess.Popen(words, env=environment, start_new_session=True, **streams)
        for thread in self._threads:
            thread.start()

    def _await(self, ended: Callable[[Any], None]) -> None:
        code = self.process.wait()
        if code:
            self.send(signal.SIGKILL)  # what it has started
        ended((self, code))

    def _pass_on(self, name: str, log: Path | str, console: int | str, prefix: bytes, last: bytes) -> None:
        """Write what it prints to its file and, by whole lines, to the launcher's stream; `last` ends the last line.

        If that is gone the pipe closes, and the worker notices as it would have noticed itself.
        """
        line, source = bytearray(), getattr(self.process, name)
        with contextlib.suppress(OSError), source, open(log, "wb") as file, open(console, "wb") as shown:
            while data := source.read1(1 << 16):
                file.write(data)
                file.flush()
                end = max(data.rfind(b"\n"), data.rfind(b"\r")) + 1  # a bar of progress ends with the latter
                line += data[:end]
                if end:
                    _write(shown, line, prefix)
                    line.clear()
                line += data[end:]
            _write(shown, line + last if line else line, prefix)

    def send(self, number: signal.Signals) -> None:
        """Send a signal to the worker and to what it has started."""
        with contextlib.suppress(ProcessLookupError, PermissionError):  # it is gone, or is all but gone, on macOS
            os.killpg(self.process.pid, number)

    def close(self) -> None:
        """End it if it runs, and wait until its output was passed on."""
        if self.process.returncode is None:
            self.send(signal.SIGKILL)
        for thread in self._threads:
            thread.join(1.0)  # a process that it has left behind may hold its pipes


def _write(shown: IO[bytes], lines: bytearray, prefix: bytes) -> None:
    with _writing:
        shown.writelines(prefix + line for line in lines.splitlines(keepends=True))
        shown.flush()


@dataclass
class Agent:
    """Runs a job's workers on this node: `run`.

    Attributes:
        command: the program and its arguments, in which `${local_rank}` is replaced.
        host, port: where rank 0 opens a port; 0 for a free one in every attempt.
        shutdown: seconds between SIGTERM and SIGKILL.
        redirects, tee: by local rank, 1 for stdout, 2 for stderr, 3 for both.
        shown: the local ranks whose output is shown; empty for all.
    """

    name: str
    command: Sequence[str]
    nproc: int
    nnodes: int
    node_rank: int
    host: str
    port: int
    run_id: str
    role: str
    max_restarts: int
    shutdown: float
    log_dir: str
    redirects: Sequence[int]
    tee: Sequence[int]
    shown: Sequence[int]
    events: SimpleQueue[Any] = field(default_factory=SimpleQueue)  # workers with exit codes, and signals that came
    stopped: signal.Signals | None = None

    def run(self) -> None:
        """Run the workers until all have ended well, and start them again as often as the job allows.

        A signal to this process ends them, and then comes again, to do what it does without workers.

        Raises:
            ChildFailedError: they failed.
        """
        if self.log_dir:
            os.makedirs(self.log_dir, exist_ok=True)
        prefix = f"{self.run_id.replace(os.sep, '_')}_" if self.log_dir else "tritensor-launch-"
        root = Path(tempfile.mkdtemp(prefix=prefix, dir=self.log_dir or None)).resolve()
        if not self.log_dir and any([*self.redirects, *self.tee]):
            say(f"the workers' output is in {root}")
        try:
            with self._signals():
                for attempt in range(self.max_restarts + 1):
                    failures = self._attempt(attempt, root / f"attempt_{attempt}")
                    if self.stopped or not failures:
                        break
                    error = ChildFailedError(self.name, failures)
                    rank, first = error.get_first_failure()
                    if attempt == self.max_restarts:
                        raise error
                    say(f"rank {rank} failed first ({first.ending()}); restart {attempt + 1} of {self.max_restarts}")
        finally:
            if not any(path.is_file() for path in root.rglob("*")):
                shutil.rmtree(root)
        if self.stopped:
            signal.raise_signal(self.stopped)

    @contextlib.contextmanager
    def _signals(self) -> Iterator[None]:
        """Signals to this process become events, but for those that it ignores, as under nohup."""

        def note(number: int, frame: object) -> None:
            self.events.put(signal.Signals(number))

        before = {}
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT):
            main = threading.current_thread() is threading.main_thread()
            if main and signal.getsignal(number) not in (None, signal.SIG_IGN):
                before[number] = signal.signal(number, note)
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    def environment(self, local_rank: int, attempt: int, port: int, error_file: Path) -> dict[str, str]:
        """What tells a worker its place."""
        world, rank = self.nnodes * self.nproc, self.node_rank * self.nproc + local_rank
        facts: dict[str, object] = {"RANK": rank, "LOCAL_RANK": local_rank, "GROUP_RANK": self.node_rank}
        facts |= {"WORLD_SIZE": world, "LOCAL_WORLD_SIZE": self.nproc, "GROUP_WORLD_SIZE": self.nnodes}
        facts |= {"ROLE_RANK": rank, "ROLE_WORLD_SIZE": world, "ROLE_NAME": self.role}
        facts |= {"MASTER_ADDR": self.host, "MASTER_PORT": port, "TORCHELASTIC_ERROR_FILE": error_file}
        facts |= {"TORCHELASTIC_RESTART_COUNT": attempt, "TORCHELASTIC_MAX_RESTARTS": self.max_restarts}
        facts |= {"TORCHELASTIC_RUN_ID": self.run_id}
        return {name: str(value) for name, value in facts.items()}

    def _attempt(self, attempt: int, folder: Path) -> dict[int, ProcessFailure]:
        """Run all workers once; returns by rank how some failed."""
        port = self.port
        if not port:
            with socket.socket() as listening:
                listening.bind(("", 0))
                port = listening.getsockname()[1]
        return self._workers(attempt, port, folder)

    def _workers(self, attempt: int, port: int, folder: Path) -> dict[int, ProcessFailure]:
        workers: list[_Worker] = []
        try:
            workers.extend(_Worker(self, rank, attempt, port, folder / str(rank)) for rank in range(self.nproc))
            return self._watch({*workers})
        finally:
            for worker in workers:
                worker.close()

    def _watch(self, running: set[_Worker]) -> dict[int, ProcessFailure]:
        """Wait until all workers have ended, and see to it that they do if one has failed."""
        failures: dict[int, ProcessFailure] = {}
        plan: list[tuple[float, signal.Signals]] = []  # what is sent when
        while running:
            try:
                event = self.events.get(timeout=max(0.0, plan[0][0] - time.monotonic()) if plan else None)
                if isinstance(event, signal.Signals):
                    plan = [(time.monotonic() + self.shutdown, signal.SIGKILL)]
                    event, self.stopped = signal.SIGKILL if self.stopped else event, event  # who asks twice means it
            except Empty:
                event = plan.pop(0)[1]
            if isinstance(event, signal.Signals):
                for worker in running:
                    worker.send(event)
                continue
            worker, code = event
            running.discard(worker)
            if code:
                failure = ProcessFailure(worker.local_rank, worker.process.pid, code, str(worker.error_file))
                failures[worker.rank] = failure
                if running and not plan and len(failures) == 1:
                    pause = min(_REPORT, self.shutdown)
                    say(f"rank {worker.rank} failed ({failure.ending()}); the others get SIGTERM in {pause:g} s")
                    end = time.monotonic() + pause
                    plan = [(end, signal.SIGTERM), (end + self.shutdown, signal.SIGKILL)]
        return failures
