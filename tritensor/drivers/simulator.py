"""Simulated CUDA devices: host memory that only copies and kernels access, and streams that can be made to run late.

Addresses are those of host memory, so that Triton's interpreter can work on them. Mistakes that would go unnoticed here
and fail on a GPU are made to fail here as well: memory is filled with NaN until it is written, a copy to the host holds
NaN until it is waited for, and with `TRITENSOR_SIMULATE_LATE=1` work in a stream runs only when something waits for it,
so that a missing wait gives a wrong result every time instead of once in a thousand runs.
"""

# ruff: noqa: D102  the docstrings in protocol.py describe these methods

from __future__ import annotations

import math
import mmap
import os
import threading
import time
import weakref
from bisect import bisect_right, insort
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from .. import settings
from ..errors import DeviceError
from .allocator import PinnedBlock
from .compiling import CompilingDriver
from .current import use
from .protocol import DeviceProperties, OutOfRoom
from .shadow import Shadow, views_of
from .together import refuse_more

if TYPE_CHECKING:
    from .loading import Compiled, LaunchRequest, Loaded, Target
    from .streams import Stream

_T = TypeVar("_T")
_ALIGNMENT = 256
_POISON = 0xFF  # as bytes of any floating type: NaN

# One lock for all simulators, which Python's own lock and the interpreter's let run one after the other anyway. With
# one for each, two threads could wait for each other: a garbage collection that happens in the work of one simulation
# gives back memory of any other.
_lock = threading.RLock()
if hasattr(os, "register_at_fork"):
    # a forked process, which has none of the other threads, finds no work half done and the lock free
    os.register_at_fork(before=_lock.acquire, after_in_parent=_lock.release, after_in_child=_lock.release)


class Queue:
    """The work of one simulated stream that has not run yet, and its copies to the host that are not waited for yet."""

    __slots__ = ("__weakref__", "captured", "entries", "index", "outbox", "seen", "sent")

    def __init__(self, index: int) -> None:
        self.index = index
        self.captured: list[Any] | None = None  # during a capture, the work added since it began, which is not run
        self.entries: deque[Any] = deque()
        # Copies to the host that have run: number, target and bytes. The bytes are written to the target when the host
        # waits for the copy. `sent` counts this queue's copies, `seen` those of each other queue that this one has
        # waited for.
        self.outbox: deque[tuple[int, np.ndarray, np.ndarray]] = deque()
        self.sent = 0
        self.seen: dict[Queue, int] = {}


class Mark:
    """A place in a queue: done when the queue has run up to it."""

    __slots__ = ("captured", "done", "queue", "seen", "time")

    def __init__(self, queue: Queue) -> None:
        self.queue = queue
        self.captured = queue.captured  # the capture that it is a place in
        self.done = False
        self.time = 0.0
        self.seen: dict[Queue, int] = {}


class _Wait:
    __slots__ = ("mark",)

    def __init__(self, mark: Mark) -> None:
        self.mark = mark


class _Gone:
    """The address of memory whose simulation has ended: any arithmetic on it raises an error that says so."""

    def _refuse(self, *_: object) -> Any:
        raise DeviceError(
            "CUDA error: the simulated device is gone",
            "the tensor, or the thread that uses the device, belongs to a simulation that has ended",
            remedy="copy what is to outlive it with .cpu() inside of the `with tritensor.cuda.simulate(...)` block",
        )

    __add__ = __radd__ = __index__ = __int__ = _refuse


def _unowned(host: np.ndarray) -> np.ndarray:
    """The same bytes, without a reference to their pinned block: a queued copy on a device does not keep one either."""
    base: Any = host
    while isinstance(base, np.ndarray):
        base = base.base
    if not isinstance(base, PinnedBlock):
        return host
    start = host.ctypes.data - base.bytes.ctypes.data
    return base.bytes[start : start + host.nbytes]


class Simulator(CompilingDriver):
    """The driver of simulated devices.

    Attributes:
        seed: of the errors of instructions that a card executes approximately.
    """

    seed = 0

    is_simulated = True
    kind = "simulated in host memory"
    lacks_nccl = lacks_gluon = "the devices are simulated"
    predicts = True
    assembles = False
    repeats_calls = False
    hidden = "the device is simulated: there is no memory of a card that another library could use"
    checks_by_default = True

    def __init__(
        self, count: int, memory: int = 16 << 30, capability: tuple[int, int] = (9, 0), name: str | None = None
    ) -> None:
        super().__init__(_lock)
        self.shadow = Shadow() if settings.simulate_races.value else None
        if name is None:
            name = "Simulated CUDA device"
        elif "simulated" not in name.lower():
            name = f"{name} (Simulated)"
        major, minor = capability
        # Few multiprocessors, so that kernels that divide work among them run their loops at test sizes too.
        self._properties = DeviceProperties(name, major, minor, memory, 4, L2_cache_size=1 << 20, is_simulated=True)
        self._count = count
        self._used = [0] * count
        self._bases: list[int] = []
        self._blocks: dict[int, tuple[int, np.ndarray]] = {}
        self._queues: list[weakref.WeakSet[Queue]] = [weakref.WeakSet() for _ in range(count)]
        self._busy: set[Queue] = set()  # keeps queues with unfinished work alive after their stream is gone
        self.closed = False

    @contextmanager
    def share(self) -> Iterator[Simulator]:
        """Use the simulation in another thread too, for a block of code: `with simulation.share():`.

        The thread begins with device 0 as the current one, and with the default streams. The simulation still ends
        with the block of the thread that made it; what uses its devices afterwards raises.

        Raises:
            DeviceError: the simulation has ended.
        """
        self._refuse_when_closed()
        with use(self):
            yield self

    # -- devices

    def device_count(self) -> int:
        return self._count

    def properties(self, index: int) -> DeviceProperties:
        self.check(index)
        return self._properties

    # -- memory

    def allocate(self, index: int, nbytes: int, queue: Queue) -> int:
        with self._lock:
            self._refuse_when_closed()
            if self._used[index] + nbytes > self._properties.total_memory:
                raise OutOfRoom
            memory = np.empty(nbytes + _ALIGNMENT, np.uint8)
            if memory.ctypes.data < 1 << 32:  # of which a kernel would take the address for an int32; a card has none
                memory = np.frombuffer(mmap.mmap(-1, nbytes + _ALIGNMENT), np.uint8)
            start = -memory.ctypes.data % _ALIGNMENT
            memory = memory[start : start + nbytes]
            address = memory.ctypes.data
            self._used[index] += nbytes
            self._blocks[address] = index, memory
            insort(self._bases, address)
            if self.shadow is not None:
                self.shadow.allocated(address, nbytes)
            return address

    def free(self, index: int, address: int, nbytes: int, queue: Queue) -> None:
        if not self.closed:
            self._push(queue, lambda: self._forget(index, address, nbytes))

    def _forget(self, index: int, address: int, nbytes: int) -> None:
        if self._blocks.pop(address, None) is not None:
            self._bases.remove(address)
            self._used[index] -= nbytes
            if self.shadow is not None:
                self.shadow.freed(address)

    def trim(self, index: int) -> None:
        self.synchronize(index)

    def allocate_pinned(self, nbytes: int) -> np.ndarray:
        return np.empty(nbytes, np.uint8)

    def memory_info(self, index: int) -> tuple[int, int]:
        total = self._properties.total_memory
        return total - self._used[self.check(index)], total

    def memory(self, address: int, nbytes: int) -> np.ndarray:
        """The bytes of simulated memory at an address, for copies and interpreted kernels.

        Raises:
            DeviceError: the range is not within one allocation.
        """
        with self._lock:
            self._refuse_when_closed()
            at = bisect_right(self._bases, address) - 1
            if at >= 0:
                base = self._bases[at]
                block = self._blocks[base][1]
                if address + nbytes <= base + block.nbytes:
                    return block[address - base : address - base + nbytes]
        raise DeviceError(
            "CUDA error: an illegal memory access was encountered",
            f"no simulated memory holds the {nbytes} bytes at {address:#x}",
        )

    def fill(self, address: int, byte: int, nbytes: int, queue: Queue) -> None:
        def run() -> None:
            self.memory(address, nbytes)[:] = byte
            if self.shadow is not None:  # new memory is filled, and nothing else
                self.shadow.mark(address, nbytes, False)

        self._push(queue, run)

    def copy_h2d(self, address: int, host: np.ndarray, queue: Queue) -> None:
        host = _unowned(host)

        def run() -> None:
            self.memory(address, host.nbytes)[:] = host
            if self.shadow is not None:
                self.shadow.mark(address, host.nbytes)

        self._push(queue, run)

    def copy_d2h(self, host: np.ndarray, address: int, queue: Queue) -> None:
        host = _unowned(host)
        host[:] = _POISON

        def run() -> None:
            host[:] = _POISON  # a device would write from here on, even if the memory was given to another user
            queue.sent += 1
            queue.outbox.append((queue.sent, host, self.memory(address, host.nbytes).copy()))

        self._push(queue, run)

    def copy_d2d(self, target: int, source: int, nbytes: int, queue: Queue, devices: tuple[int, int]) -> None:
        def run() -> None:
            self.memory(target, nbytes)[:] = self.memory(source, nbytes)
            if self.shadow is not None:
                self.shadow.copied(target, source, nbytes)

        self._push(queue, run)

    def can_access_peer(self, index: int, peer: int) -> bool:
        return self.check(index) != self.check(peer)

    # -- streams and events

    def set_current_stream(self, stream: Stream) -> Stream:
        self._refuse_when_closed()
        return super().set_current_stream(stream)

    def open_queue(self, index: int, priority: int) -> Queue:
        queue = Queue(index)
        self._queues[index].add(queue)
        return queue

    def open_default_queue(self, index: int) -> Queue:
        return self.open_queue(index, 0)

    def queue_address(self, queue: Queue) -> int:
        return id(queue)

    def submit(self, stream: Stream, function: Callable[[], object]) -> None:
        self._push(stream.handle, function)

    def submit_to(self, queue: Queue, function: Callable[[], object]) -> None:
        """Run a function in a queue's order."""
        self._push(queue, function)

    def mark(self, queue: Queue, reusable: Mark | None = None, timing: bool = False) -> Mark:
        mark = Mark(queue)
        self._push(queue, mark)
        return mark

    def wait(self, queue: Queue, mark: Mark) -> None:
        if mark.captured is not queue.captured:
            raise DeviceError(
                "CUDA error: operation would result in a dependency on uncaptured work (STREAM_CAPTURE_ISOLATION)",
                "one stream of the two is captured: the event and the wait are not part of the same capture",
            )
        self._push(queue, _Wait(mark))

    def queue_done(self, queue: Queue) -> bool:
        # On a device work goes on between two queries; here each query runs one entry.
        with self._lock:
            self._poll(queue)
            if queue.entries:
                return False
            self._deliver({**queue.seen, queue: queue.sent})
            return True

    def queue_synchronize(self, queue: Queue) -> None:
        with self._lock:
            self._run(queue)
            self._deliver({**queue.seen, queue: queue.sent})

    def synchronize(self, index: int) -> None:
        with self._lock:
            for queue in list(self._queues[self.check(index)]):
                self.queue_synchronize(queue)

    def synchronize_all(self) -> None:
        """Wait for every device."""
        for index in range(self._count):
            self.synchronize(index)

    def mark_done(self, mark: Mark) -> bool:
        with self._lock:
            if not mark.done:
                self._poll(mark.queue)
            if mark.done:
                self._deliver(mark.seen)
            return mark.done or self.closed

    def mark_synchronize(self, mark: Mark) -> None:
        with self._lock:
            self._run(mark.queue, mark)
            self._deliver(mark.seen)

    def elapsed(self, start: Mark, end: Mark) -> float:
        return (end.time - start.time) * 1e3

    # -- graphs

    def begin_capture(self, queue: Queue) -> None:
        queue.captured = []

    def end_capture(self, queue: Queue, keep: bool) -> tuple[Any, int]:
        entries, queue.captured = queue.captured, None
        found = [entry for entry in entries or () if type(entry) is not Mark]
        return (found, len(found)) if keep else (None, 0)

    def launch_graph(self, graph: Any, queue: Queue) -> None:
        for entry in graph:
            self._push(queue, entry)

    def destroy_graph(self, graph: Any) -> None:
        graph.clear()

    # -- kernels

    def launch(self, stream: Stream, request: LaunchRequest) -> None:
        if self.recorder is not None:  # which counts compiled kernels
            super().launch(stream, request)
        else:
            self.submit(stream, self.interpreted(stream, request))

    def interpreted(self, stream: Stream, request: LaunchRequest) -> Callable[..., None]:
        """A launch in Triton's interpreter, to be run in the stream's order."""
        index = stream.arena.heap.index
        # Buffers may be freed before a late kernel runs, though behind it in the stream's order, so it checks addresses
        # against the buffers of now. Any other kernel runs at once or, if captured, at each replay: it reads them then.
        late = settings.simulate_late.value and id(stream.handle) not in self.captures
        live = self.spans(index) if late else None
        if request.kernel.cooperative:
            refuse_more(request.name or request.kernel.family, math.prod(request.grid), self._properties)
        run = request.interpreted(stream, lambda: self.spans(index) if live is None else live, self.memory)
        if self.shadow is not None:
            self.shadow.views = views_of(request)
            run = self.shadow.launching(math.prod(request.grid))(run)
        return run

    def target(self, index: int) -> Target:
        major, minor = self.capability(index)
        return "cuda", major * 10 + minor

    def load(self, index: int, compiled: Compiled, label: str) -> Loaded:
        from .execution import executed

        return executed(self, compiled, label)

    def refused(self, label: str, error: Exception) -> DeviceError:
        return DeviceError(f"CUDA error: launch failure at the launch of {label}", str(error))

    def tensor_map(self, *facts: Any) -> bytes:
        from .ptx.tiles import encoded

        return encoded(*facts)

    def pick(self, compiled: _T, interpreted: _T) -> _T:
        return interpreted

    # -- running

    def _push(self, queue: Queue, entry: Any) -> None:
        with self._lock:
            self._refuse_when_closed()
            if queue.captured is not None:
                queue.captured.append(entry)
                return
            queue.entries.append(entry)
            self._busy.add(queue)
            if not settings.simulate_late.value:
                self._run(queue)

    def _run(self, queue: Queue, until: Mark | None = None) -> None:
        """Run a queue up to a mark, or all of it; a queue that it waits for runs first."""
        stack: list[tuple[Queue, Mark | None]] = [(queue, until)]
        while stack:
            queue, until = stack[-1]
            if not queue.entries or (until is not None and until.done):
                stack.pop()
            elif (blocker := self._step(queue)) is not None:
                stack.append((blocker.queue, blocker))

    def _poll(self, queue: Queue) -> None:
        """Run one entry of a queue, or of the queue that it waits for."""
        while queue.entries and (blocker := self._step(queue)) is not None:
            queue = blocker.queue

    def _step(self, queue: Queue) -> Mark | None:
        """Run the first entry, or return the mark that it waits for."""
        entry = queue.entries[0]
        if type(entry) is _Wait and not entry.mark.done:
            return entry.mark
        queue.entries.popleft()
        if not queue.entries:
            self._busy.discard(queue)
        if type(entry) is _Wait:
            for other, sent in entry.mark.seen.items():
                queue.seen[other] = max(sent, queue.seen.get(other, 0))
        elif type(entry) is Mark:
            entry.seen = {**queue.seen, queue: queue.sent}
            entry.time = time.perf_counter()
            entry.done = True
        else:
            entry()
        return None

    def _deliver(self, seen: dict[Queue, int]) -> None:
        """Write the copies that the host has waited for to their targets."""
        for queue, sent in seen.items():
            while queue.outbox and queue.outbox[0][0] <= sent:
                _, host, data = queue.outbox.popleft()
                host[:] = data

    def _refuse_when_closed(self) -> None:
        if self.closed:
            _Gone()._refuse()

    def close(self) -> None:
        """End the simulation: free its memory, and make any use of its tensors raise an error that says so."""
        with self._lock:
            gone = [buffer for heap in self._heaps.values() for buffer in heap.abandon()]
            self.closed = True  # only now: an arena that is collected before this line still frees its memory
            for buffer in gone:
                buffer.address = _Gone()
            for queues in self._queues:
                for queue in queues:
                    queue.entries.clear()
            self._busy.clear()
            self._bases.clear()
            self._blocks.clear()
