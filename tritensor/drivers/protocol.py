"""What a driver must implement, and the facts about its devices.

Allocator, streams and captures are written against `AbstractDriver`; `driver.Driver` adds what every driver shares,
which is made of those. So this file imports none of them.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from .. import devices
from ..errors import DeviceError, explain

if TYPE_CHECKING:
    from .loading import LaunchRequest

_T = TypeVar("_T")

__all__ = ["AbstractDriver", "DeviceProperties", "OutOfRoom"]


class OutOfRoom(Exception):
    """A driver has no memory left; the heap above frees its caches, asks once more, then raises OutOfMemoryError."""


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


class AbstractDriver(ABC):
    """Memory, streams and events of some number of devices.

    Addresses are plain integers. A *queue* is the driver's own object for a stream, a *mark* its own object for a place
    in a queue (an event): only the driver that made one looks inside. Everything that takes a queue happens in the
    queue's order and returns at once.
    """

    is_simulated = False
    #: what the devices are, for a report of the installation
    kind = "real"
    #: why NCCL cannot carry the devices' tensors; empty where it can
    lacks_nccl = "NCCL carries tensors of NVIDIA's devices"
    #: whether checks that cost time at each call are made without being asked for
    checks_by_default = False

    # What `driver.Driver` implements, and narrows the types of, for those below it.
    captures: dict[int, Any]  # by the id of the queue that is being captured
    pinned: Any  # the pool of pinned host memory
    prepared: dict[Any, Any]  # launches that are repeated, by the operator and its operands

    @abstractmethod
    def heap(self, index: int) -> Any:
        """The allocator of a device."""

    @abstractmethod
    def current_stream(self, index: int) -> Any:
        """The stream that this thread's work on a device goes to."""

    @abstractmethod
    def set_current_stream(self, stream: Any) -> Any:
        """Make a stream current on its device in this thread; returns the one that was."""

    @abstractmethod
    def mark_behind(self, queue: Any) -> Any:
        """A mark behind everything that is in the queue now; in one that is being captured, behind what came before."""

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

    def set_device(self, index: int) -> None:
        """Make a device current in this thread."""
        devices.set_current_index(self.check(index))

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
    def mark(self, queue: Any, reusable: Any = None, timing: bool = False) -> Any:
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

    # -- kernels; drivers that run compiled ones share `compiling.CompilingDriver`

    @abstractmethod
    def launch(self, stream: Any, request: LaunchRequest) -> None:
        """Run a kernel behind what the stream holds now."""

    @abstractmethod
    def prepare(self, stream: Any, request: LaunchRequest) -> tuple[Any, list[Any]] | None:
        """The program of a launch that is to be repeated, and its values; None where each is prepared anew."""

    @abstractmethod
    def pick(self, compiled: _T, interpreted: _T) -> _T:
        """The one of two choices (block sizes above all) that suits the way kernels are run here."""

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
