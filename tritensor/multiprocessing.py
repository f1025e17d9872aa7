"""Python's `multiprocessing` with `spawn`, by PyTorch's names. Tensors travel between processes as bytes."""

from __future__ import annotations

import multiprocessing as _python
import shutil
import signal
import tempfile
import traceback
import weakref
from collections.abc import Callable, Sequence
from multiprocessing import *  # noqa: F403
from multiprocessing import connection
from pathlib import Path
from typing import Any

__all__ = ["ProcessContext", "ProcessException", "ProcessExitedException", "ProcessRaisedException"]
__all__ += ["get_all_sharing_strategies", "get_sharing_strategy", "set_sharing_strategy", "spawn", "start_processes"]
__all__ += _python.__all__

_STRATEGIES = {"file_descriptor", "file_system"}
_strategy = ["file_descriptor"]


class ProcessException(Exception):
    """Raised when a process that `spawn` started failed.

    Attributes:
        error_index: its number. pid: its process id.
    """

    def __init__(self, msg: str, error_index: int, pid: int) -> None:
        super().__init__(msg)
        self.msg, self.error_index, self.pid = msg, error_index, pid


class ProcessRaisedException(ProcessException):
    """A process raised an exception, whose traceback is in the message."""


class ProcessExitedException(ProcessException):
    """A process ended with an exit code or by a signal."""

    def __init__(
        self, msg: str, error_index: int, error_pid: int, exit_code: int, signal_name: str | None = None
    ) -> None:
        super().__init__(msg, error_index, error_pid)
        self.exit_code, self.signal_name = exit_code, signal_name


def _call(fn: Callable[..., Any], index: int, args: Sequence[Any], report: str) -> None:
    try:
        fn(index, *args)
    except KeyboardInterrupt:
        pass  # the parent got the signal too
    except Exception:
        Path(report).write_text(traceback.format_exc(), encoding="utf-8")
        raise SystemExit(1) from None


class ProcessContext:
    """Processes that `start_processes` started; `join` waits for them."""

    def __init__(self, processes: Sequence[Any], reports: str) -> None:
        self.processes = list(processes)
        self._reports = reports
        weakref.finalize(self, shutil.rmtree, reports, ignore_errors=True)

    def pids(self) -> list[int]:
        """The process ids."""
        return [process.pid for process in self.processes]

    def join(self, timeout: float | None = None, grace_period: float | None = None) -> bool:
        """Wait until a process ends or seconds have passed; returns whether all have ended without failing.

        Raises:
            ProcessRaisedException, ProcessExitedException: a process failed; the others are ended, after
                `grace_period` seconds.
        """
        # Each code is read once, for a process may end between two looks at it.
        codes = [process.exitcode for process in self.processes]
        if None in codes and not any(codes):
            running = [process.sentinel for process, code in zip(self.processes, codes, strict=True) if code is None]
            connection.wait(running, timeout)
            codes = [process.exitcode for process in self.processes]
        failed = next((i for i, code in enumerate(codes) if code not in (None, 0)), None)
        if failed is None:
            return None not in codes
        for process in self.processes:
            if grace_period is not None:
                process.join(grace_period)
            if process.exitcode is None:
                process.terminate()
        for process in self.processes:
            process.join()
        raise self._error(failed)

    def _error(self, index: int) -> ProcessException:
        process, report = self.processes[index], Path(self._reports) / str(index)
        if report.exists():
            words = f"\n\n-- Process {index} terminated with the following error:\n"
            return ProcessRaisedException(words + report.read_text(encoding="utf-8"), index, process.pid)
        code, words = process.exitcode, f"process {index} terminated with"
        if code < 0:
            name = signal.Signals(-code).name
            return ProcessExitedException(f"{words} signal {name}", index, process.pid, code, name)
        return ProcessExitedException(f"{words} exit code {code}", index, process.pid, code)


def start_processes(
    fn: Callable[..., Any],
    args: Sequence[Any] = (),
    nprocs: int = 1,
    join: bool = True,
    daemon: bool = False,
    start_method: str = "spawn",
) -> Any:
    """Call `fn(index, *args)` in `nprocs` new processes, and wait for them unless `join` is false.

    Returns a `ProcessContext` where `join` is false.

    Raises:
        ProcessRaisedException: one of them raised an exception. ProcessExitedException: one exited with a code, or was
            killed. The others are ended.
    """
    context: Any = _python.get_context(start_method)
    reports = tempfile.mkdtemp(prefix="tritensor-processes-")
    processes = []
    for index in range(nprocs):
        report = str(Path(reports) / str(index))
        process = context.Process(target=_call, args=(fn, index, args, report), daemon=daemon)
        process.start()
        processes.append(process)
    started = ProcessContext(processes, reports)
    if not join:
        return started
    while not started.join():
        pass
    return None


spawn = start_processes


def get_all_sharing_strategies() -> set[str]:
    """The ways of sharing memory that PyTorch knows. Tensors here travel as bytes in each."""
    return set(_STRATEGIES)


def get_sharing_strategy() -> str:
    """The strategy that was set."""
    return _strategy[0]


def set_sharing_strategy(new_strategy: str) -> None:
    """Accepted for programs that set it.

    Raises:
        AssertionError: no strategy of PyTorch's.
    """
    if new_strategy not in _STRATEGIES:
        words = f"invalid sharing strategy {new_strategy!r}, expected one of {sorted(_STRATEGIES)}"
        raise AssertionError(words)
    _strategy[0] = new_strategy
