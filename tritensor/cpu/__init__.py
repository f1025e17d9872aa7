"""`torch.cpu`: the CPU by the names that the modules of other devices have, for programs that take any of them.

Nothing runs behind: streams order nothing, and `synchronize` waits for nothing. `amp` has mixed precision by its older
names.
"""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import Any

from . import amp

__all__ = ["Event", "Stream", "StreamContext", "amp", "current_device", "current_stream", "device_count"]
__all__ += ["is_available", "is_initialized", "set_device", "stream", "synchronize"]


class Stream:
    """A stream, which orders nothing: operations have ended when their calls return."""

    def __init__(self, priority: int = -1) -> None:
        pass

    def wait_stream(self, stream: object) -> None:
        """Nothing is waited for."""

    def record_event(self) -> None:
        """Nothing is recorded."""

    def wait_event(self, event: object) -> None:
        """Nothing is waited for."""


class Event:
    """An event, which has always happened."""

    def query(self) -> bool:
        """True."""
        return True

    def record(self, stream: object = None) -> None:
        """Nothing is recorded."""

    def synchronize(self) -> None:
        """Nothing is waited for."""

    def wait(self, stream: object = None) -> None:
        """Nothing is waited for."""


class StreamContext(AbstractContextManager["StreamContext"]):
    """A block on a stream, as any other block."""

    def __init__(self, stream: Stream | None) -> None:
        self.stream = stream

    def __exit__(self, *error: object) -> None:
        pass


_STREAM = Stream()


def is_available() -> bool:
    """True: there is a CPU."""
    return True


def is_initialized() -> bool:
    """True."""
    return True


def device_count() -> int:
    """1, however many cores there are."""
    return 1


def current_device() -> str:
    """The name of the device.

    >>> current_device()
    'cpu'
    """
    return "cpu"


def set_device(device: object) -> None:
    """Accepted: there is one CPU."""


def current_stream(device: object = None) -> Stream:
    """The one stream there is."""
    return _STREAM


def stream(stream: Stream) -> AbstractContextManager[Any]:
    """A block on a stream, as any other block."""
    return nullcontext(stream)


def synchronize(device: object = None) -> None:
    """Return: operations have ended when their calls return."""
