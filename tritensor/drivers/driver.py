"""The protocol that a driver fulfils, and what every driver shares: current streams, heaps, the check of an ordinal."""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from weakref import WeakValueDictionary

import numpy as np

from .. import devices
from ..errors import DeviceError, explain
from .allocator import Heap, OutOfRoom, PinnedPool
from .streams import Stream

if TYPE_CHECKING:
    from .capture import Capture, Pool

__all__ = ["CONTEXT_LOST", "FATAL", "DeviceProperties", "Driver", "OutOfRoom"]

# A device that reports one of these does nothing more for this process.
FATAL = (
    *("ILLEGAL_ADDRESS", "ILLEGAL_INSTRUCTION", "MISALIGNED_ADDRESS", "INVALID_ADDRESS_SPACE", "INVALID_PC", "ASSERT"),
    *("LAUNCH_FAILED", "LAUNCH_TIMEOUT", "HARDWARE_STACK_ERROR", "CONTEXT_IS_DESTROYED", "ECC_UNCORRECTABLE"),
)
CONTEXT_LOST = "the device's context is lost: nothing more runs on it in this process"


@dataclass(frozen=True)
class DeviceProperties:
    """What a device is, by PyTorch's names. Sizes are in bytes, clock rates in kHz (0: not known)."""

    name: str
    major: int
    minor: int
    total_memory: int
    multi_processor_count: int
    warp_size: int = 32
    max_threads_per_multi_processor: int = 2048
    shared_memory_per_block_optin: int = 232448
    L2_cache_size: int = 0
    clock_rate: int = 0
    memory_clock_rate: int = 0
    memory_bus_width: int = 0
    is_simulated: bool = False


class _PerThread(threading.local):
    def __init__(self) -> None:
        self.current: dict[int, Stream] = {}


class Driver(ABC):
    """Memory, streams and events of some number of devices.

    Addresses are plain integers. A *queue* is the driver's own object for a stream, a *mark* its own object for a place
    in a queue (an event): only the driver that made one looks inside. Everything that takes a queue happens in the
    queue's order and returns at once.
    """

    is_simulated = False

    def __init__(self) -> None:
        self.pinned = PinnedPool(self)
        self.threads = _PerThread()
        self._defaults: dict[int, Stream] = {}
        self._for_captures: dict[int, Stream] = {}
        self._heaps: dict[int, Heap] = {}
        self._lock = threading.RLock()
        self.captures: dict[int, Capture] = {}  # by the id of the queue that is being captured
        self.pools: WeakValueDictionary[Any, Pool] = WeakValueDictionary()  # by handle and ordinal
        # What was launched last, for the error of a kernel that fails unseen: plans and graphs, or texts. To add one
        # costs 25 ns.
        self.launched: deque[Any] = deque(maxlen=32)

    # -- devices

    @abstractmethod
    def device_count(self) -> int:
        """How many devices there are."""

    @abstractmethod
    def properties(self, index: int) -> DeviceProperties:
        """What device `index` is."""

    def name(self, index: int) -> str:
        """The device's name; a simulated one's says so."""
        return self.properties(index).name

    def capability(self, index: int) -> tuple[int, int]:
        """The compute capability, as in (9, 0)."""
        found = self.properties(index)
        return found.major, found.minor

    def total_memory(self, index: int) -> int:
        """The device's memory in bytes."""
        return self.properties(index).total_memory

    def check(self, index: int) -> int:
        """The ordinal itself when there is such a device.

        Raises:
            DeviceError: there is none; the text begins with PyTorch's words.
        """
        count = self.device_count()
        if not 0 <= index < count:
            raise DeviceError(
                explain(
                    "CUDA error: invalid device ordinal",
                    f"cuda:{index} was asked for; there {'is' if count == 1 else 'are'} {count}, "
                    f"{'cuda:0' if count == 1 else f'cuda:0 to cuda:{count - 1}'}",
                    remedy="name a device that is there"
                    + (", or simulate more with tritensor.cuda.simulate(devices=...)" if self.is_simulated else ""),
                )
            )
        return index

    # -- memory

    @abstractmethod
    def allocate(self, index: int, nbytes: int, queue: Any) -> int:
        """Address of new memory, aligned to 256 bytes, good for work of `queue` from here on; raises OutOfRoom."""

    @abstractmethod
    def free(self, index: int, address: int, nbytes: int, queue: Any) -> None:
        """Give memory back when the work that `queue` holds now is done."""

    @abstractmethod
    def trim(self, index: int) -> None:
        """Wait for the device, then hand all freed memory back to the system."""

    @abstractmethod
    def allocate_pinned(self, nbytes: int) -> np.ndarray:
        """Host memory (uint8) that the device can copy from and to by itself; raises OutOfRoom."""

    @abstractmethod
    def memory_info(self, index: int) -> tuple[int, int]:
        """Free and total bytes of the device, as the whole machine sees them."""

    @abstractmethod
    def fill(self, address: int, byte: int, nbytes: int, queue: Any) -> None:
        """Set every byte."""

    @abstractmethod
    def copy_h2d(self, address: int, host: np.ndarray, queue: Any) -> None:
        """Copy contiguous pinned host bytes to the device; they must stay as they are until the copy is done."""

    @abstractmethod
    def copy_d2h(self, host: np.ndarray, address: int, queue: Any) -> None:
        """Copy from the device into contiguous pinned host bytes, which hold nothing of use until waited for."""

    @abstractmethod
    def copy_d2d(self, target: int, source: int, nbytes: int, queue: Any, devices: tuple[int, int]) -> None:
        """Copy between addresses of the devices (target's, source's)."""

    @abstractmethod
    def can_access_peer(self, index: int, peer: int) -> bool:
        """Whether device `index` can read the memory of `peer` by itself, so that copies skip the host."""

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
        """Hand all memory that nobody uses back to the devices and the host."""
        for heap in list(self._heaps.values()):
            heap.release()
        self.pinned.empty_cache()

    def memory_stats(self, index: int) -> dict[str, int]:
        """Bytes in use and held, now and at most, and how often the device was asked for memory."""
        return self.heap(index).stats()

    def spans(self, index: int) -> list[tuple[int, int, str]]:
        """(address, nbytes, label) of every live buffer of a device, by address."""
        return self.heap(index).spans()

    # -- streams and events

    @abstractmethod
    def open_queue(self, index: int, priority: int) -> Any:
        """A new queue on a device."""

    @abstractmethod
    def open_default_queue(self, index: int) -> Any:
        """The queue of a device's default stream; asked for once."""

    @abstractmethod
    def queue_address(self, queue: Any) -> int:
        """What other libraries take for a stream: the driver's pointer as an integer."""

    @abstractmethod
    def queue_done(self, queue: Any) -> bool:
        """Whether everything in the queue has run."""

    @abstractmethod
    def queue_synchronize(self, queue: Any) -> None:
        """Wait until everything in the queue has run."""

    @abstractmethod
    def synchronize(self, index: int) -> None:
        """Wait for everything on the device."""

    @abstractmethod
    def record(self, queue: Any, mark: Any = None, timing: bool = False) -> Any:
        """A mark behind everything that is in the queue now; `mark` is an earlier one that may be used again."""

    @abstractmethod
    def wait(self, queue: Any, mark: Any) -> None:
        """Have what comes next in the queue wait for the mark; the host does not wait."""

    @abstractmethod
    def mark_done(self, mark: Any) -> bool:
        """Whether everything before the mark has run."""

    @abstractmethod
    def mark_synchronize(self, mark: Any) -> None:
        """Wait until everything before the mark has run."""

    @abstractmethod
    def elapsed(self, start: Any, end: Any) -> float:
        """Milliseconds between two marks recorded with timing, both done."""

    def mark_behind(self, queue: Any) -> Any:
        """A mark behind everything that is in the queue now; in one that is being captured, behind what came before."""
        capture = self.captures.get(id(queue))
        return self.record(queue) if capture is None else capture.before

    # -- graphs

    @abstractmethod
    def begin_capture(self, queue: Any) -> None:
        """From here on note what the queue is given, instead of running it."""

    @abstractmethod
    def end_capture(self, queue: Any, keep: bool) -> tuple[Any, int]:
        """Have the queue run its work again; returns what was noted, as a graph, and how much that is.

        Without `keep` the notes are dropped, and the graph is None.
        """

    @abstractmethod
    def launch_graph(self, graph: Any, queue: Any) -> None:
        """Run what was noted, on the same memory."""

    @abstractmethod
    def destroy_graph(self, graph: Any) -> None:
        """Forget a graph, when its launches are done."""

    def submit(self, stream: Stream, function: Callable[[], object]) -> None:
        """Run a Python function in the stream's order; a real device has no such thing.

        Raises:
            DeviceError: the device is not simulated.
        """
        raise DeviceError(f"{stream.device} is not simulated: Python functions cannot run on it")

    def suspects(self) -> str:
        """What an error says of the kernels that may have failed, those launched last; nothing where none was."""
        names = dict.fromkeys(getattr(each, "name", each) for each in tuple(self.launched)[::-1])
        return f"launched last, newest first: {', '.join([*names][:8])}" if names else ""

    def default_stream(self, index: int) -> Stream:
        """The stream that work goes to unless another is made current."""
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
        """The stream that graphs are captured in where no other was asked for."""
        with self._lock:
            if index not in self._for_captures:
                self._for_captures[index] = self.create_stream(index)
            return self._for_captures[index]

    def current_stream(self, index: int) -> Stream:
        """The stream that this thread's work on a device goes to."""
        found = self.threads.current.get(index)
        return self.enter(index) if found is None else found

    def enter(self, index: int) -> Stream:
        """Get this thread ready for a device that it has not used before; its default stream becomes current."""
        stream = self.threads.current[index] = self.default_stream(index)
        return stream

    def set_current_stream(self, stream: Stream) -> Stream:
        """Make a stream current on its device in this thread; returns the one that was."""
        index = stream.arena.heap.index
        before = self.current_stream(index)
        self.threads.current[index] = stream
        return before

    def set_device(self, index: int) -> None:
        """Make a device current in this thread."""
        devices.set_current_index(self.check(index))
