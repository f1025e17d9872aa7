"""Streams and events: the order of work on a device, and points in it. Names and behaviour are PyTorch's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..errors import ArgumentError, DeviceError
from ..types import Device, devices
from . import ledger
from .allocator import Arena
from .protocol import AbstractDriver
from .refusals import NO_WAITING, ONE_STREAM, refused_by

# Returns the driver in use, for streams and events that are made without one.
_in_use: Callable[[], AbstractDriver]


def find_driver_with(function: Callable[[], AbstractDriver]) -> None:
    """Set the function that returns the driver in use; `selection` passes its own, which avoids an import cycle."""
    global _in_use
    _in_use = function


class _Noted:
    """In `compute`, what computes the calls that a compiled function has noted: before the order of work on streams is
    changed, or waited for. None while no such function runs."""

    compute: Callable[[], object] | None = None


noted = _Noted()


def submit_noted() -> None:
    """Compute what compiled functions have noted."""
    if noted.compute is not None:
        noted.compute()


class Stream:
    """A queue of work on one device: its work runs in order, and concurrently with that of other streams.

    Args:
        device: a CUDA device, its ordinal, or None for the current one.
        priority: streams with lower numbers run first, where the device has a choice.

    Raises:
        DeviceError: no such device, or no driver.
    """

    __slots__ = ("__weakref__", "arena", "device", "driver", "handle", "priority")

    arena: Arena  # memory freed by this stream's work is kept here for this stream's next allocations
    device: devices.device
    driver: AbstractDriver
    handle: Any  # the driver's queue; with the CUDA driver a cuda.core.Stream
    priority: int

    def __init__(self, device: Device = None, priority: int = 0) -> None:
        driver = _in_use()
        index = driver.check(devices.ordinal(device))
        self._attach(driver, index, driver.open_queue(index, priority), priority)

    @classmethod
    def on(cls, driver: AbstractDriver, index: int, queue: object, priority: int) -> Stream:
        """The stream of a driver's queue."""
        stream = object.__new__(cls)
        stream._attach(driver, index, queue, priority)
        return stream

    def _attach(self, driver: AbstractDriver, index: int, queue: object, priority: int) -> None:
        self.driver = driver
        self.device = devices.cuda(index)
        self.handle = queue
        self.priority = priority
        self.arena = (driver.arena or Arena)(driver.heap(index), queue)

    @property
    def cuda_stream(self) -> int:
        """The driver's pointer, for other libraries."""
        return self.driver.queue_address(self.handle)

    def __cuda_stream__(self) -> tuple[int, int]:
        return 0, self.cuda_stream

    def query(self) -> bool:
        """True if all work submitted so far is done."""
        submit_noted()
        refused_by(self.driver, self.handle, *NO_WAITING)
        return self.driver.queue_done(self.handle)

    def synchronize(self) -> None:
        """Wait on the host until all work submitted so far is done."""
        submit_noted()
        refused_by(self.driver, self.handle, *NO_WAITING)
        ledger.note("sync")
        self.driver.queue_synchronize(self.handle)

    def wait_event(self, event: Event) -> None:
        """Have all work submitted from now on wait for an event; the host does not wait."""
        event.wait(self)

    def wait_stream(self, stream: Stream) -> None:
        """Have all work submitted from now on wait for the work now in the other stream; the host does not wait."""
        submit_noted()
        if stream.handle is not self.handle:
            refused_by(self.driver, self.handle, *ONE_STREAM)
            refused_by(stream.driver, stream.handle, *ONE_STREAM)
            self.driver.wait(self.handle, stream.driver.mark(stream.handle))

    def record_event(self, event: Event | None = None) -> Event:
        """Record an event (a new one, if none is given) behind all work submitted so far."""
        event = Event() if event is None else event
        event.record(self)
        return event

    def __eq__(self, other: object) -> bool:
        return self is other or (isinstance(other, Stream) and self.handle is other.handle)

    def __hash__(self) -> int:
        return hash(id(self.handle))

    def __repr__(self) -> str:
        return f"<tritensor.cuda.Stream device={self.device} cuda_stream={self.cuda_stream:#x}>"


class Event:
    """A point in a stream that other streams and the host can wait for; two of them can measure time.

    Args:
        enable_timing: record the time as well, for `elapsed_time`.
    """

    __slots__ = ("_driver", "_mark", "device", "enable_timing")

    def __init__(self, enable_timing: bool = False) -> None:
        self.enable_timing = enable_timing
        self.device: devices.device | None = None
        self._driver: AbstractDriver | None = None
        self._mark: Any = None

    def record(self, stream: Stream | None = None) -> None:
        """Put the event behind all work submitted so far to a stream (the current one, if none is given).

        Raises:
            DeviceError: the event was recorded on another device before.
        """
        submit_noted()
        stream = _current(stream)
        if self.device is not None and self.device is not stream.device:
            raise DeviceError(
                f"Event device {self.device} does not match recording stream's device {stream.device}.",
                remedy="use one event for each device",
            )
        refused_by(stream.driver, stream.handle, *ONE_STREAM)
        reusable = self._mark if self._driver is stream.driver else None
        self._mark = stream.driver.mark(stream.handle, reusable, self.enable_timing)
        self._driver, self.device = stream.driver, stream.device

    def wait(self, stream: Stream | None = None) -> None:
        """Have a stream's next work (the current stream's, if none is given) wait for this event."""
        if self._driver is not None:
            submit_noted()
            stream = _current(stream)
            refused_by(stream.driver, stream.handle, *ONE_STREAM)
            stream.driver.wait(stream.handle, self._mark)

    def query(self) -> bool:
        """True if everything before the event is done; true for an event that was never recorded."""
        return self._driver is None or self._driver.mark_done(self._mark)

    def synchronize(self) -> None:
        """Wait on the host until everything before the event is done."""
        if self._driver is not None:
            ledger.note("sync")
            self._driver.mark_synchronize(self._mark)

    def elapsed_time(self, end_event: Event) -> float:
        """Milliseconds from this event to `end_event`, measured on the device.

        Raises:
            DeviceError: one of them was made without `enable_timing`, not recorded, or is not done.
        """
        if not (self.enable_timing and end_event.enable_timing):
            raise DeviceError("Both events must be created with argument 'enable_timing=True'.")
        if self._driver is None or end_event._driver is None:
            raise DeviceError("Both events must be recorded before calculating elapsed time.")
        if not (self.query() and end_event.query()):
            raise DeviceError(
                "Both events must be completed before calculating elapsed time.",
                remedy="call end_event.synchronize() first",
            )
        return self._driver.elapsed(self._mark, end_event._mark)

    def __repr__(self) -> str:
        return f"<tritensor.cuda.Event device={self.device} recorded={self._driver is not None}>"


def _current(stream: Stream | None) -> Stream:
    if stream is None:
        return _in_use().current_stream(devices.current_index())
    if not isinstance(stream, Stream):
        raise ArgumentError(f"expected a tritensor.cuda.Stream, got {type(stream).__name__}")
    return stream
