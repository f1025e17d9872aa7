"""The caching allocator: free blocks by size class for each stream, counters, live buffers, out-of-memory reports.

An allocation by the driver takes microseconds, a `take` and a `give` of the cache together 0.2 us. A freed block is
used again by the same stream without an event, because a stream runs in order. A block that other streams have used too
is kept with their marks, and the stream that takes it next waits for those marks.
"""

from __future__ import annotations

import contextlib
import gc
import sys
import threading
import weakref
from collections import defaultdict, deque
from functools import lru_cache
from typing import Any

import numpy as np

from ..errors import DeviceError, OutOfMemoryError, explain
from ..types import devices
from .protocol import AbstractDriver, OutOfRoom

# Pinned sources above this size are not copied to other pinned memory first: that takes 100 us a MiB.
DIRECT = 1 << 20
_SMALL = 1 << 20
_STEP = 2 << 20


def round_size(nbytes: int) -> int:
    """A request rounded up to its size class: by at most 511 bytes up to 1 MiB, above by at most an eighth or 2 MiB.

    >>> round_size(1), round_size(513), round_size((1 << 20) + 1) - (1 << 20)
    (512, 1024, 131072)
    """
    if nbytes <= _SMALL:
        return (nbytes + 511) & -512 or 512
    step = min(1 << (nbytes.bit_length() - 4), _STEP)
    return (nbytes + step - 1) & -step


def readable(nbytes: int) -> str:
    """A number of bytes as PyTorch's messages write it.

    >>> readable(20 << 20), readable(3)
    ('20.00 MiB', '3 bytes')
    """
    for unit, size in (("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)):
        if nbytes >= size:
            return f"{nbytes / size:.2f} {unit}"
    return f"{nbytes} bytes"


class Block:
    """Memory from the driver, free or in use; one buffer after another uses it."""

    __slots__ = ("address", "bin", "owner", "size", "use", "users")

    # What the memory is allocated for, for out-of-memory reports and the sanitizer: a form (`memory.array.Form`); in
    # debug mode a pair of the form and the line of the user's code.
    use: Any

    def __init__(self, address: int, size: int, bin: list[Block]) -> None:
        self.address = address
        self.size = size
        self.bin = bin
        self.users: list[Arena] | None = None
        # the buffer; set in simulation only, whose end invalidates the addresses of buffers
        self.owner: weakref.ref[Any] | None = None

    @property
    def nbytes(self) -> int:
        """The size of the request in bytes; `size` is that of the block."""
        use = self.use
        return int((use[0] if use.__class__ is tuple else use).nbytes)

    def label(self) -> str:
        """The dtype and shape that the memory was allocated for, and the line that did so (with TRITENSOR_DEBUG=1)."""
        form, line = self.use if self.use.__class__ is tuple else (self.use, "")
        return f"{_name(form.dtype)}{list(form.shape)}{line and f' made at {line}'}"


@lru_cache(maxsize=64)
def _name(dtype: np.dtype) -> str:
    """NumPy makes names anew each time, and a simulated launch labels all buffers."""
    return str(dtype.name)


class Heap:
    """All memory of one device: the arenas of its streams, counters, and blocks by address."""

    def __init__(self, driver: AbstractDriver, index: int) -> None:
        self.driver = driver
        self.index = index
        self.arenas: weakref.WeakSet[Arena] = weakref.WeakSet()
        self.blocks: dict[int, Block] = {}  # by address: every block that the driver allocated and has not freed
        self.allocated = self.peak = 0
        self.reserved = self.peak_reserved = 0
        self.driver_calls = 0
        self.retries = 0
        self.fraction = 1.0  # the part of the device's memory that this process may hold

    def request(self, size: int, nbytes: int, arena: Arena) -> Block:
        """A new block from the driver; if that fails, free all caches and try once more, without rounding up.

        Raises:
            OutOfMemoryError: the second attempt failed too.
        """
        try:
            address = self._allocate(size, arena)
        except OutOfRoom:
            self.retries += 1
            gc.collect()  # frees the memory of tensors in unreachable reference cycles
            self.release()
            size = (nbytes + 511) & -512 or 512
            try:
                address = self._allocate(size, arena)
            except OutOfRoom:
                raise OutOfMemoryError(self.report(nbytes)) from None
        block = self.blocks[address] = Block(address, size, arena.bins[size])
        self.driver_calls += 1
        self.reserved += size
        self.peak_reserved = max(self.peak_reserved, self.reserved)
        return block

    def _allocate(self, size: int, arena: Arena) -> int:
        if self.fraction < 1 and self.reserved + size > self.allowed:
            raise OutOfRoom
        return self.driver.allocate(self.index, size, arena.source)

    @property
    def allowed(self) -> int:
        """Bytes that this process may hold."""
        return int(self.fraction * self.driver.total_memory(self.index))

    def give_back(self, block: Block, queue: object) -> None:
        """Free a block in the order of a queue."""
        self.blocks.pop(block.address, None)
        self.reserved -= block.size
        self.driver.free(self.index, block.address, block.size, queue)

    def release(self) -> None:
        """Return all cached blocks that are not in use to the driver."""
        captures = self.driver.captures
        for arena in list(self.arenas):
            if not arena.held and id(arena.queue) not in captures:
                arena.release()
        if not captures:  # `trim` waits for the device, which is not allowed during a capture
            self.driver.trim(self.index)

    def abandon(self) -> list[Any]:
        """Drop all blocks, because the device is gone; returns the buffers that still refer to one."""
        blocks = list(self.blocks.values())
        self.blocks.clear()
        for block in blocks:
            block.users = None
        for arena in list(self.arenas):
            arena.bins.clear()
            arena.late.clear()
        return [owner for block in blocks if block.owner and (owner := block.owner()) is not None]

    def live(self) -> list[Block]:
        """The blocks that are in use."""
        free = {id(block) for arena in list(self.arenas) for block in arena.free()}
        return [block for block in list(self.blocks.values()) if id(block) not in free]

    def spans(self) -> list[tuple[int, int, str]]:
        """(address, nbytes, label) of every live buffer, by address."""
        return sorted((block.address, block.nbytes, block.label()) for block in self.live())

    def stats(self) -> dict[str, int]:
        """The counters."""
        return {
            "allocated": self.allocated,
            "allocated_peak": self.peak,
            "reserved": self.reserved,
            "reserved_peak": self.peak_reserved,
            "live_buffers": len(self.live()),
            "driver_allocations": self.driver_calls,
            "retries": self.retries,
        }

    def report(self, asked: int) -> str:
        """The out-of-memory message: the size of the request, the memory in use, and the largest live buffers."""
        driver, index = self.driver, self.index
        free, total = driver.memory_info(index)
        elsewhere = total - free - self.reserved
        live = sorted(self.live(), key=lambda block: -block.nbytes)
        return explain(
            f"CUDA out of memory. Tried to allocate {readable(asked)}.",
            f"cuda:{index} ({driver.name(index)}) has {readable(total)}, of which {readable(free)} is free",
            f"{readable(self.allocated)} is in use by {len(live)} live buffers, "
            f"{readable(self.reserved - self.allocated)} was cached and could not be joined up",
            f"this process may hold {readable(self.allowed)} (set_per_process_memory_fraction)"
            if self.fraction < 1
            else "",
            f"{readable(elsewhere)} is held by other processes, and by the driver itself" if elsewhere > 0 else "",
            *(f"live: {readable(block.nbytes)}, {block.label()}" for block in live[:5]),
            remedy="make the batch smaller, drop references to tensors that are done with (del x), or compute without "
            "recording gradients (with tritensor.no_grad():)",
        )


class Arena:
    """The free blocks of one stream.

    Attributes:
        bins: by size, the blocks that the stream's next work may use at once.
        late: by size, the blocks that other streams have used too, each with the marks to wait for.
        poison: whether new memory is filled with a pattern (in simulation).
    """

    __slots__ = ("__weakref__", "bins", "device", "driver", "heap", "late", "poison", "queue")

    held = False  # whether cached blocks must not be returned to the driver
    kept: Any = None  # during a capture a dictionary that holds the other arenas' buffers in use (`drivers.capture`)

    def __init__(self, heap: Heap, queue: Any) -> None:
        self.heap = heap
        self.driver = heap.driver
        self.device = devices.cuda(heap.index)
        self.queue = queue
        self.poison = heap.driver.is_simulated
        self.bins: defaultdict[int, list[Block]] = defaultdict(list)
        self.late: defaultdict[int, list[tuple[Block, list[Any]]]] = defaultdict(list)
        heap.arenas.add(self)

    @property
    def source(self) -> Any:
        """The queue in whose order the driver allocates and frees this arena's memory."""
        return self.queue

    def take(self, use: Any) -> Block:
        """A block for work of this stream; `use` is a form, or a form and a line (see `Block.use`)."""
        form = use[0] if use.__class__ is tuple else use
        size = form.block_size
        try:
            block = self.bins[size].pop()
        except IndexError:
            block = self.miss(form)
        block.use = use
        heap = self.heap
        heap.allocated = allocated = heap.allocated + block.size
        if allocated > heap.peak:
            heap.peak = allocated
        return block

    def miss(self, form: Any) -> Block:
        """A block for a form when `bins` has none: one that other streams have used, or a new one."""
        try:
            block, marks = self.late[form.block_size].pop()
        except IndexError:
            return self.heap.request(form.block_size, form.nbytes, self)
        for mark in marks:
            self.driver.wait(self.queue, mark)
        return block

    def give(self, block: Block) -> None:
        """Take a block back.

        Called when the last reference to a buffer goes, which can happen at any point of a program, so it never waits.
        """
        self.heap.allocated -= block.size
        if block.users is None:
            block.bin.append(block)
        elif not sys.is_finalizing():
            try:
                marks = [self.driver.mark_behind(user.queue) for user in block.users]
            except DeviceError:  # the device is lost; calls that can report it raise this error too
                return
            block.users = None
            self.late[block.size].append((block, marks))

    def free(self) -> list[Block]:
        """All cached blocks, those of `late` included."""
        kept = [block for blocks in list(self.bins.values()) for block in tuple(blocks)]
        return kept + [block for late in list(self.late.values()) for block, _ in tuple(late)]

    def release(self) -> None:
        """Return the cached blocks to the driver."""
        for late in list(self.late.values()):
            while late:
                block, marks = late.pop()
                for mark in marks:
                    self.driver.wait(self.source, mark)
                self.heap.give_back(block, self.source)
        for blocks in list(self.bins.values()):
            while blocks:
                self.heap.give_back(blocks.pop(), self.source)

    def __del__(self) -> None:
        if not sys.is_finalizing():
            with contextlib.suppress(DeviceError):  # the device is lost, as in `give`
                self.release()


class PinnedBlock:
    """Page-locked host memory, which a device reads and writes directly; its pool gets it back after the last array."""

    __slots__ = ("__array_interface__", "__weakref__", "bytes", "pool")

    def __init__(self, pool: PinnedPool, memory: np.ndarray) -> None:
        self.pool = pool
        self.bytes = memory
        # NumPy makes the object that has this attribute the base of every view, which keeps the block alive.
        self.__array_interface__ = memory.__array_interface__

    def array(self, shape: tuple[int, ...], dtype: np.dtype[Any]) -> np.ndarray:
        """The memory as an array of this shape, which keeps the block alive."""
        nbytes = int(np.prod(shape)) * dtype.itemsize
        return np.asarray(self)[:nbytes].view(dtype).reshape(shape)

    def __del__(self) -> None:
        self.pool.give(self.bytes)


def is_pinned(array: np.ndarray) -> bool:
    """True if an array, or the array that it is a view of, is in pinned memory."""
    base: Any = array
    while isinstance(base, np.ndarray):
        base = base.base
    return isinstance(base, PinnedBlock)


class PinnedPool:
    """Pinned host memory by size class: an allocation takes a millisecond, so freed memory is cached.

    `hold_until` keeps a block that a queued copy still uses in flight until its mark is done. At most `limit` bytes are
    in flight: beyond that `take` waits for the oldest copy, so that a fast producer cannot pin all of the memory.
    """

    def __init__(self, driver: AbstractDriver, limit: int = 64 << 20, lock: Any = None) -> None:
        self.driver = driver
        self.limit = limit
        self.bins: defaultdict[int, list[np.ndarray]] = defaultdict(list)
        self.in_flight: deque[tuple[Any, PinnedBlock, int]] = deque()
        self.bytes_in_flight = 0
        # reentrant, because a garbage collection while it is held may call `hold_until`
        self._lock = lock or threading.RLock()

    def take(self, nbytes: int) -> PinnedBlock:
        """A block of at least `nbytes`."""
        self.finish_copies()
        size = 1 << max(nbytes - 1, 4095).bit_length()
        try:
            memory = self.bins[size].pop()
        except IndexError:
            memory = self._request(size)
        return PinnedBlock(self, memory)

    def _request(self, size: int) -> np.ndarray:
        """New memory from the driver; if that fails, free the cache and try once more."""
        try:
            return self.driver.allocate_pinned(size)
        except OutOfRoom:
            gc.collect()
            self.empty_cache(wait=True)
        try:
            return self.driver.allocate_pinned(size)
        except OutOfRoom:
            raise OutOfMemoryError(
                f"CUDA out of memory. Tried to allocate {readable(size)} of pinned host memory.",
                "the system pins no more memory for this process",
                remedy="drop references to pinned tensors, pin smaller batches or prefetch fewer of them, or raise "
                "the limit of locked memory (ulimit -l)",
            ) from None

    def give(self, memory: np.ndarray) -> None:
        """Cache freed memory for the next `take`."""
        self.bins[memory.nbytes].append(memory)

    def hold_until(self, block: PinnedBlock, mark: Any, counted: bool = True) -> None:
        """Keep a block until the copy before the mark is done; `counted` is False for blocks that the user pinned."""
        nbytes = block.bytes.nbytes if counted else 0
        with self._lock:
            self.in_flight.append((mark, block, nbytes))
            self.bytes_in_flight += nbytes

    def finish_copies(self, wait: bool = False) -> None:
        """Release the blocks whose copies are done; wait for copies above the limit, with `wait` for all of them."""
        with self._lock:
            while self.in_flight:
                mark, _, nbytes = self.in_flight[0]
                if wait or self.bytes_in_flight > self.limit:
                    self.driver.mark_synchronize(mark)
                elif not self.driver.mark_done(mark):
                    break
                self.in_flight.popleft()
                self.bytes_in_flight -= nbytes

    def empty_cache(self, wait: bool = False) -> None:
        """Return cached memory to the system; with `wait`, also that of copies in flight, after waiting for them."""
        self.finish_copies(wait)
        self.bins.clear()
