"""The base class of drivers: heaps, the pool of pinned memory, current streams and captures."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Any
from weakref import WeakValueDictionary

from ..errors import DeviceError
from .allocator import Heap, PinnedPool
from .capture import Capture, Pool
from .current import Seeds, seeds
from .protocol import AbstractDriver
from .streams import Stream

if TYPE_CHECKING:
    from .shadow import Shadow

# After one of these errors the device can no longer be used by this process.
FATAL = (
    *("ILLEGAL_ADDRESS", "ILLEGAL_INSTRUCTION", "MISALIGNED_ADDRESS", "INVALID_ADDRESS_SPACE", "INVALID_PC", "ASSERT"),
    *("LAUNCH_FAILED", "LAUNCH_TIMEOUT", "HARDWARE_STACK_ERROR", "CONTEXT_IS_DESTROYED", "ECC_UNCORRECTABLE"),
)
CONTEXT_LOST = "the device's context is lost: nothing more runs on it in this process"


class _PerThread(threading.local):
    def __init__(self) -> None:
        self.current: dict[int, Stream] = {}


class Driver(AbstractDriver):
    """The base of the drivers: everything that is built on the abstract methods alone.

    Args:
        lock: a reentrant lock to use for everything; a driver has locks of its own without one.
    """

    def __init__(self, lock: Any = None) -> None:
        self.shadow: Shadow | None = None  # of a simulator: what is known of each byte of its memory
        self._lock = lock or threading.RLock()
        self.pinned: PinnedPool = PinnedPool(self, lock=lock)
        self.threads = _PerThread()
        self.seeds = Seeds(seeds().first)  # while the driver is one of `current.used`
        self._defaults: dict[int, Stream] = {}
        self._for_captures: dict[int, Stream] = {}
        self._heaps: dict[int, Heap] = {}
        self.captures: dict[int, Capture] = {}  # by the id of the queue that is being captured
        self.pools: WeakValueDictionary[Any, Pool] = WeakValueDictionary()  # by handle and ordinal
        self.programs: dict[Any, Any] = {}  # loaded kernels, by what they were compiled for
        # The last launches (programs, or texts), for the error of a kernel whose failure is reported by a later call.
        # Adding one costs 25 ns.
        self.launched: deque[Any] = deque(maxlen=32)

    # -- memory

    def heap(self, index: int) -> Heap:
        """The allocator of a device: its caches, counters and live buffers."""
        found = self._heaps.get(index)
        if found is None:
            with self._lock:
                found = self._heaps.get(index)
                if found is None:
                    found = self._heaps[index] = Heap(self, self.check(index))
        return found

    def empty_cache(self) -> None:
        """Return all cached memory that is not in use to the devices and the host."""
        for heap in list(self._heaps.values()):
            heap.release()
        self.pinned.empty_cache()

    def memory_stats(self, index: int) -> dict[str, int]:
        """The allocator's counters: bytes in use and reserved, now and at most, live buffers, calls of the driver."""
        return self.heap(index).stats()

    def spans(self, index: int) -> list[tuple[int, int, str]]:
        """(address, nbytes, label) of every live buffer of a device, by address."""
        return self.heap(index).spans()

    # -- streams and events

    def mark_behind(self, queue: object) -> Any:
        """A mark behind all work in the queue; while the queue is captured, behind the work before the capture."""
        capture = self.captures.get(id(queue))
        return self.mark(queue) if capture is None else capture.before

    def submit(self, stream: Stream, function: Callable[[], object]) -> None:
        """Run a Python function in the stream's order; only simulated devices can do so.

        Raises:
            DeviceError: the device is not simulated.
        """
        raise DeviceError(f"{stream.device} is not simulated: Python functions cannot run on it")

    def suspects(self) -> str:
        """A line of an error's text that names the last launches, which may have failed; "" if there are none."""
        names = dict.fromkeys(getattr(each, "name", each) for each in tuple(self.launched)[::-1])
        return f"launched last, newest first: {', '.join([*names][:8])}" if names else ""

    def default_stream(self, index: int) -> Stream:
        """The stream that is current in every thread until another is made current."""
        found = self._defaults.get(index)
        if found is None:
            with self._lock:
                found = self._defaults.get(index)
                if found is None:
                    self.check(index)
                    found = Stream.on(self, index, self.open_default_queue(index), 0)
                    self._defaults[index] = found
        return found

    def create_stream(self, index: int, priority: int = 0) -> Stream:
        """A new stream on a device."""
        return Stream.on(self, self.check(index), self.open_queue(index, priority), priority)

    def capture_stream(self, index: int) -> Stream:
        """The stream that graphs are captured in if the user names none."""
        with self._lock:
            if index not in self._for_captures:
                self._for_captures[index] = self.create_stream(index)
            return self._for_captures[index]

    def current_stream(self, index: int) -> Stream:
        """The stream that receives this thread's work on a device."""
        found = self.threads.current.get(index)
        return self.enter(index) if found is None else found

    def enter(self, index: int) -> Stream:
        """Set this thread up for its first use of a device: the default stream becomes current."""
        stream = self.threads.current[index] = self.default_stream(index)
        return stream

    def set_current_stream(self, stream: Stream) -> Stream:
        """Make a stream current on its device in this thread; returns the previous one."""
        index = stream.arena.heap.index
        before = self.current_stream(index)
        self.threads.current[index] = stream
        return before
