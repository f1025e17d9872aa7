"""Errors of workers: `record` writes an exception where the launcher reads it, `ChildFailedError` tells them all."""

from __future__ import annotations

import contextlib
import functools
import json
import os
import shutil
import signal
import socket
import time
import traceback
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

__all__ = ["ChildFailedError", "ProcessFailure", "record"]

P = ParamSpec("P")
R = TypeVar("R")
_NONE = "<N/A>"


@dataclass
class ProcessFailure:
    """How one worker failed.

    Attributes:
        exitcode: minus the number of the signal, if one ended it.
        message: what `record` has written in the error file, or words; and timestamp: when, or now.
    """

    local_rank: int
    pid: int
    exitcode: int
    error_file: str
    message: Any = field(init=False)
    timestamp: float = field(init=False)

    def __post_init__(self) -> None:
        try:
            # the file's time, for that within it has seconds: the others fail within milliseconds of the first
            self.timestamp = os.stat(self.error_file).st_mtime
            self.message = json.loads(Path(self.error_file).read_text(encoding="utf-8"))["message"]
        except (OSError, ValueError, LookupError, TypeError):  # none was written, or not to its end
            self.timestamp, self.error_file = time.time(), _NONE
            self.message = f"{self.ending()} of PID {self.pid}; no exception was recorded"

    def ending(self) -> str:
        """The exit code, or the signal, in words."""
        if self.exitcode > 0:
            return f"exit code {self.exitcode}"
        return f"Signal {-self.exitcode} ({self.signal_name()})"

    def signal_name(self) -> str:
        """The name of the signal that ended the worker; "<N/A>" if none did, or it has no name."""
        return {-number: number.name for number in signal.Signals}.get(self.exitcode, _NONE)

    def told(self, heading: str, rank: int, whole: bool) -> str:
        """The rows of a report, with the whole traceback or the exception alone."""
        text, name = self.message, self.signal_name()
        if isinstance(text, dict):
            last = text.get("message", _NONE)
            text = text.get("extraInfo", {}).get("py_callstack", last) if whole else last
        rows = {
            "time": datetime.fromtimestamp(int(self.timestamp)).isoformat(sep="_"),
            "host": socket.gethostname(),
            "rank": f"{rank} (local_rank: {self.local_rank})",
            "exitcode": f"{self.exitcode} (pid: {self.pid})" + (f" ({name})" if name != _NONE else ""),
            "error_file": self.error_file,
            "traceback": str(text).rstrip().replace("\n", "\n  "),
        }
        return "\n".join([heading, *(f"  {key:10s}: {value}" for key, value in rows.items())])


class ChildFailedError(Exception):
    """Workers of the program `name` failed: the message tells `failures`, by rank, and last the first of them."""

    def __init__(self, name: str, failures: Mapping[int, ProcessFailure]) -> None:
        self.name, self.failures = name, dict(failures)
        root = self.get_first_failure()[0]
        told = {rank: each.told(f"[{n}]:", rank, rank == root) for n, (rank, each) in enumerate(failures.items())}
        first, thick, thin = told.pop(root), "=" * 60, "-" * 60
        others = [*told.values()] or ["  <NO_OTHER_FAILURES>"]
        lines = ["", thick, f"{name} FAILED", thin, "Failures:", *others, thin, "Root Cause (first observed failure):"]
        super().__init__("\n".join([*lines, first, thick]))

    def get_first_failure(self) -> tuple[int, ProcessFailure]:
        """The rank that failed first, and how."""
        rank = min((failure.timestamp, rank) for rank, failure in self.failures.items())[1]
        return rank, self.failures[rank]


def record_exception(error: BaseException) -> None:
    """Write an exception where the launcher reads it, which names it as the reason; nothing without a launcher."""
    path = os.environ.get("TORCHELASTIC_ERROR_FILE")
    with contextlib.suppress(OSError):  # the exception matters more than that it cannot be written
        if path and isinstance(error, ChildFailedError):  # of a launcher within a worker
            shutil.copyfile(error.get_first_failure()[1].error_file, path)
        elif path:
            more = {"py_callstack": "".join(traceback.format_exception(error)), "timestamp": str(int(time.time()))}
            data = {"message": {"message": f"{type(error).__name__}: {error}", "extraInfo": more}}
            Path(path).write_text(json.dumps(data), encoding="utf-8")


def record(fn: Callable[P, R]) -> Callable[P, R]:
    """Decorate a program's main function: an exception that leaves it is told in the launcher's report, too.

    It is raised again. A program that `python -m tritensor` runs needs no decorator for that.
    """

    @functools.wraps(fn)
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return fn(*args, **kwargs)
        except Exception as error:
            record_exception(error)
            raise

    return call
