"""The interface of drivers, and the properties of their devices.

The allocator, streams and captures depend on `AbstractDriver` only. `driver.Driver`, the base class of the drivers, is
built from those, so this file imports none of them.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from ..errors import DeviceError
from ..types import devices

if TYPE_CHECKING:
    from .loading import LaunchRequest

_T = TypeVar("_T")


class OutOfRoom(Exception):
    """A driver has no memory left: the heap frees its caches, tries again, raises OutOfMemoryError if that fails."""


@dataclass(frozen=True)
class DeviceProperties:
    """The properties of a device under PyTorch's names. Sizes are in bytes, clock rates in kHz (0: not known)."""

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

    Addresses are plain integers. A *queue* is the driver's own object for a stream, a *mark* its own object for an
    event in a queue; both are opaque to other code. Methods with a queue add work to it, which runs in the queue's
    order, and return at once.
    """

    is_simulated = False
    #: the kind of devices, for the report of `python -m tritensor doctor`
    kind = "real"
    #: why NCCL cannot transfer the devices' tensors; empty where it can
    lacks_nccl = "NCCL carries tensors of NVIDIA's devices"
    #: why no kernel in Gluon, Triton's language of layouts, runs; empty where they do
    lacks_gluon = ""
    #: kernels are compiled to a card's machine code, and Triton's own runtime can launch them
    assembles = True
    #: times of kernels are predicted from their work, and nothing is measured
    predicts = False
    #: what runs compiled kernels in the device's place to count their work (`profiling.profile`), or None
    recorder: Any = None
    #: why no other library can use the devices' memory; empty where one can: by `CudaDriver.holder` and `order`
    hidden = "no other library can use its memory"
    #: makes the arena of a stream in place of `allocator.Arena`, of which it is a subclass; None for that one
    arena: Any = None
    #: the default of checks that cost time at each call
    checks_by_default = False

    # Implemented by `driver.Driver`, with narrower types; declared here for the allocator, streams and captures.
    captures: dict[int, Any]  # by the id of the queue that is being captured
    pinned: Any  # the pool of pinned host memory
    prepared: dict[Any, Any]  # launches that are repeated, by the operator and its operands

    @abstractmethod
    def heap(self, index: int) -> Any:
        """The allocator of a device."""

    @abstractmethod
    def current_stream(self, index: int) -> Any:
        """The stream that receives this thread's work on a device."""

    @abstractmethod
    def set_current_stream(self, stream: Any) -> Any:
        """Make a stream current on its device in this thread; returns the previous one."""

    @abstractmethod
    def mark_behind(self, queue: Any) -> Any:
        """A mark behind all work in the queue; while the queue is captured, behind the work before the capture."""

    # -- devices

    @abstractmethod
    def device_count(self) -> int:
        """The number of devices."""

    @abstractmethod
    def properties(self, index: int) -> DeviceProperties:
        """The properties of device `index`."""

    def name(self, index: int) -> str:
        """The device's name; that of a simulated device contains the word."""
        return self.properties(index).name

    def capability(self, index: int) -> tuple[int, int]:
        """The compute capability, as in (9, 0)."""
        found = self.properties(index)
        return found.major, found.minor

    def total_memory(self, index: int) -> int:
        """The device's memory in bytes."""
        return self.properties(index).total_memory

    def check(self, index: int) -> int:
        """Return the ordinal if there is such a device.

        Raises:
            DeviceError: there is none; the text begins with PyTorch's words.
        """
        count = self.device_count()
        if not 0 <= index < count:
            raise DeviceError(
                "CUDA error: invalid device ordinal",
                f"cuda:{index} was asked for; there {'is' if count == 1 else 'are'} {count}, "
                f"{'cuda:0' if count == 1 else f'cuda:0 to cuda:{count - 1}'}",
                remedy="name a device that is there"
                + (", or simulate more with tritensor.cuda.simulate(devices=...)" if self.is_simulated else ""),
            )
        return index

    def set_device(self, index: int) -> None:
        """Make a device current in this thread."""
        devices.set_current_index(self.check(index))

    # -- memory

    @abstractmethod
    def allocate(self, index: int, nbytes: int, queue: Any) -> int:
        """The address of new memory, aligned to 256 bytes, for work added to `queue` from now on; raises OutOfRoom."""

    @abstractmethod
    def free(self, index: int, address: int, nbytes: int, queue: Any) -> None:
        """Free memory when the work that is now in `queue` is done."""

    @abstractmethod
    def trim(self, index: int) -> None:
        """Wait for the device, then return all freed memory to the system."""

    @abstractmethod
    def allocate_pinned(self, nbytes: int) -> np.ndarray:
        """Page-locked host memory (uint8), which the device can read and write directly; raises OutOfRoom."""

    @abstractmethod
    def memory_info(self, index: int) -> tuple[int, int]:
        """Free and total bytes of the device; memory of all processes counts as used."""

    @abstractmethod
    def fill(self, address: int, byte: int, nbytes: int, queue: Any) -> None:
        """Set every byte of a range."""

    @abstractmethod
    def copy_h2d(self, address: int, host: np.ndarray, queue: Any) -> None:
        """Copy contiguous pinned host bytes to the device; they must not change until the copy is done."""

    @abstractmethod
    def copy_d2h(self, host: np.ndarray, address: int, queue: Any) -> None:
        """Copy from the device into contiguous pinned host bytes, which are undefined until the copy is waited for."""

    @abstractmethod
    def copy_d2d(self, target: int, source: int, nbytes: int, queue: Any, devices: tuple[int, int]) -> None:
        """Copy between addresses; `devices` are the ordinals of the target's and the source's device."""

    @abstractmethod
    def can_access_peer(self, index: int, peer: int) -> bool:
        """True if device `index` can read the memory of `peer` directly, so that copies skip the host."""

    # -- streams and events

    @abstractmethod
    def open_queue(self, index: int, priority: int) -> Any:
        """A new queue on a device."""

    @abstractmethod
    def open_default_queue(self, index: int) -> Any:
        """The queue of a device's default stream; called once per device."""

    @abstractmethod
    def queue_address(self, queue: Any) -> int:
        """The driver's pointer as an integer, which other libraries accept for a stream."""

    @abstractmethod
    def queue_done(self, queue: Any) -> bool:
        """True if everything in the queue has run."""

    @abstractmethod
    def queue_synchronize(self, queue: Any) -> None:
        """Wait until everything in the queue has run."""

    @abstractmethod
    def synchronize(self, index: int) -> None:
        """Wait for everything on the device."""

    @abstractmethod
    def mark(self, queue: Any, reusable: Any = None, timing: bool = False) -> Any:
        """A mark behind all work in the queue; `reusable` is an earlier mark that may be moved there instead."""

    @abstractmethod
    def wait(self, queue: Any, mark: Any) -> None:
        """Have work added to the queue from now on wait for the mark; the host does not wait."""

    @abstractmethod
    def mark_done(self, mark: Any) -> bool:
        """True if everything before the mark has run."""

    @abstractmethod
    def mark_synchronize(self, mark: Any) -> None:
        """Wait until everything before the mark has run."""

    @abstractmethod
    def elapsed(self, start: Any, end: Any) -> float:
        """Milliseconds between two marks made with timing, both done."""

    # -- kernels; `compiling.CompilingDriver` implements these for compiled kernels

    @abstractmethod
    def launch(self, stream: Any, request: LaunchRequest) -> None:
        """Add the launch of a kernel to a stream."""

    @abstractmethod
    def pick(self, compiled: _T, interpreted: _T) -> _T:
        """`compiled` or `interpreted`, by how the driver runs kernels; used for block sizes above all."""

    # -- graphs

    @abstractmethod
    def begin_capture(self, queue: Any) -> None:
        """From now on capture the work added to the queue instead of running it."""

    @abstractmethod
    def end_capture(self, queue: Any, keep: bool) -> tuple[Any, int]:
        """End the capture; returns the captured work as a graph, and the number of its nodes.

        Without `keep` the work is dropped, and the graph is None.
        """

    @abstractmethod
    def launch_graph(self, graph: Any, queue: Any) -> None:
        """Add a graph's work to the queue; it uses the addresses of the capture."""

    @abstractmethod
    def destroy_graph(self, graph: Any) -> None:
        """Free a graph when its launches are done."""
