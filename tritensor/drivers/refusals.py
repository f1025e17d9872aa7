"""Errors for operations that cannot be captured in a graph."""

from __future__ import annotations

import os
import sys
from typing import Any

from ..errors import DeviceError
from . import ledger
from .protocol import AbstractDriver

# For each kind of operation the fact and the remedy of its error.
NO_WAITING = (
    "captured work has not run when the host would wait for it",
    "wait after the capture has ended and the graph was replayed",
)
NO_READING = (
    "the host would read memory that captured work has not written yet",
    "leave the reading to after graph.replay(), or compute on the device (torch.where in place of a branch)",
)
NO_SENDING = (
    "a copy from host memory would be repeated from memory that is not there any more",
    "make the tensor before the capture and use it there, or copy with non_blocking=True from memory of pin_memory(), "
    "which is read again at each replay",
)
ONE_STREAM = (
    "events and waits between streams are not captured: a graph holds the work of one stream, in its order",
    "record and wait outside of the capture, around graph.replay()",
)
ONE_DEVICE = (
    "a graph holds the work of one stream, on one device",
    "copy between devices before or after graph.replay()",
)

_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep
# A message names the operator or function that the user called. Functions of _INNER are called by those and never
# named. _CALLERS call the user's code or several operators, and the operator that they called is named instead.
_INNER = (f"memory{os.sep}", f"drivers{os.sep}", f"runtime{os.sep}", f"kernels{os.sep}")
_CALLERS = (f"nn{os.sep}", f"autograd{os.sep}", f"operators{os.sep}function.py", f"utils{os.sep}")
# Modules whose methods are named together with their class.
_OWNERS = (f"cuda{os.sep}graphs.py", f"optim{os.sep}", f"drivers{os.sep}streams.py")


def refuse(capture: Any, fact: str, remedy: str) -> None:
    """Raise for an operation that cannot be captured, and mark the capture as failed.

    Raises:
        DeviceError: always, with the operator's name.
    """
    name = _asked_for()
    capture.failed = capture.failed or name
    first = "CUDA error: operation not permitted when stream is capturing"
    raise DeviceError(first, f"{name}: {fact}", f"at {ledger.call_site()}", remedy=remedy)


def refused_by(driver: AbstractDriver, queue: object, fact: str, remedy: str) -> None:
    """Raise if a queue is being captured; costs 60 ns where none is."""
    if driver.captures:
        capture = driver.captures.get(id(queue))
        if capture is not None:
            refuse(capture, fact, remedy)


def _asked_for() -> str:
    """The name of the operator or public function that the user called."""
    frame: Any = sys._getframe(1)
    found = ""
    while frame is not None and frame.f_code.co_filename.startswith(_PACKAGE):
        name, path = frame.f_code.co_name, frame.f_code.co_filename[len(_PACKAGE) :]
        owner = frame.f_locals.get("self")
        if name == "__call__" and hasattr(owner, "inputs") and hasattr(owner, "rule"):
            found = str(owner.name)
        elif found and path.startswith(_CALLERS):
            break
        elif (name[0] not in "_<" or name.startswith("__")) and name != "wrapped":
            if owner is not None and path.startswith(_OWNERS):
                found = f"{type(owner).__name__}.{name}"
            elif not path.startswith(_INNER):
                found = name
        frame = frame.f_back
    return found or "an operation"
