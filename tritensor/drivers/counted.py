"""Counted devices: a card on which kernels are priced instead of run, and whose memory is addresses alone.

A device has a clock for each stream. A launch moves the clock of its stream by the seconds that the kernel is predicted
to take, a wait moves it to the time of the mark, and `Event.elapsed_time` is the difference of two. Memory is made by
the system when it is touched, which only small copies and the blocks that are run to price a kernel do.
"""

# ruff: noqa: D102  the docstrings in protocol.py describe these methods

from __future__ import annotations

import mmap
import sys
from bisect import bisect_right, insort
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from .compiled import CompiledSimulator
from .protocol import OutOfRoom
from .simulator import Mark, Queue

if TYPE_CHECKING:
    from .loading import Compiled, LaunchRequest, Loaded
    from .streams import Stream

_PAGE = 4096
_MOVED = 1 << 20  # the same for copies on the device, of which only objects that ranks exchange are read
_ZEROED = 1 << 16  # bytes up to which new memory is zeroed whether it was touched or not: in 2 us
#: Bytes from which on what is copied or filled is counted, and not done: no table of addresses or bounds is so large.
_LARGE = 32 << 20
# The pages are private and reserve nothing, so that 80 GB can be had where there are 16.
_NORESERVE = 0x4000  # of Linux; Python names it from 3.13 on
_FLAGS = {"flags": mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | _NORESERVE} if sys.platform == "linux" else {}


class CountedDevice(CompiledSimulator):
    """The driver of one counted device.

    Attributes:
        price: gives the seconds of a launch: called with the driver, the stream and the request.
        passed: called with name, queue, start and seconds of what has been put into a stream.
        efficiency: the share of the predicted speed that kernels reach.
        log: the order of work, marks and waits, from which `replayed` computes other times.
        rates: bytes a second of device memory and of a copy between host and device.
        cluster: the job that the device is part of (`distributed.cluster`), or None.
    """

    kind = "counted: kernels are priced, not run"
    checks_by_default = False
    cluster: Any = None
    memory_in_use: Any = None  # what notes the memory that is taken (`distributed.cluster.memory`)

    def __init__(
        self,
        memory: int,
        capability: tuple[int, int],
        name: str,
        price: Callable[[Any, Any, Any], tuple[str, float]],
        passed: Callable[[str, Any, float, float], object],
        rates: tuple[float, float],
    ) -> None:
        super().__init__(1, memory, capability, name)
        self.shadow = None
        self.price, self.passed, self.rates = price, passed, rates
        self._clocks: dict[Queue, float] = {}
        self._last: dict[Queue, str] = {}  # what each queue does last
        self.efficiency = 1.0
        self.log: list[tuple[Any, ...]] = []
        self.touched: set[int] = set()  # addresses of blocks that kernels were run on
        self._maps: dict[int, mmap.mmap] = {}
        self.codes: dict[int, bytes] = {}  # the code of loaded kernels, by their ids
        self.host = 0.0  # when the host goes on: it has waited for streams

    # -- time

    def clock(self, queue: Queue) -> float:
        """When the queue has done all of its work, in seconds from the beginning."""
        return max(self._clocks.get(queue, 0.0), self.host)

    def now(self) -> float:
        """When all of the device's work is done."""
        return max([self.host, *self._clocks.values()])

    def spend(self, queue: Queue, name: str, seconds: float, computes: bool = False) -> None:
        """Put work that takes so long into a queue; what computes takes longer by the efficiency."""
        self.log.append(("computes" if computes else "moves", queue, seconds))
        seconds = seconds / self.efficiency if computes else seconds
        start = self.clock(queue)
        self._clocks[queue], self._last[queue] = start + seconds, name
        self.passed(name, queue, start, seconds)

    def mark(self, queue: Queue, reusable: Mark | None = None, timing: bool = False) -> Mark:
        mark = super().mark(queue, reusable, timing)
        mark.time = self.clock(queue)
        self.log.append(("mark", queue, mark))
        return mark

    def wait(self, queue: Queue, mark: Mark) -> None:
        super().wait(queue, mark)
        self.log.append(("wait", queue, mark))
        now = self.clock(queue)
        if mark.time > now:
            self.passed(f"waits for {self._last.get(mark.queue, '')}", queue, now, mark.time - now)
            self._clocks[queue] = mark.time

    def queue_synchronize(self, queue: Queue) -> None:
        super().queue_synchronize(queue)
        self.host = self.clock(queue)
        self.log.append(("host", queue, None))

    def mark_synchronize(self, mark: Mark) -> None:
        super().mark_synchronize(mark)
        self.host = max(self.host, mark.time)
        self.log.append(("host", None, mark))

    # -- memory

    def allocate(self, index: int, nbytes: int, queue: Queue) -> int:
        with self._lock:
            self._refuse_when_closed()
            if self._used[index] + nbytes > self._properties.total_memory:
                raise OutOfRoom
            pages = mmap.mmap(-1, nbytes + _PAGE, **_FLAGS)
            memory = np.frombuffer(pages, np.uint8)[:nbytes]
            address = memory.ctypes.data
            self._maps[address] = pages
            self._used[index] += nbytes
            self._blocks[address] = index, memory
            insort(self._bases, address)
            return address

    def close(self) -> None:
        super().close()
        self._maps.clear()

    def block_at(self, address: int) -> tuple[int, int]:
        """The beginning and the size of the allocation that an address lies in; (0, 0) if it lies in none."""
        at = bisect_right(self._bases, address) - 1
        if at >= 0 and address < (base := self._bases[at]) + (size := self._blocks[base][1].nbytes):
            return base, size
        return 0, 0

    def fill(self, address: int, byte: int, nbytes: int, queue: Queue) -> None:
        """New memory is zero, as the system gives it: what a kernel was to write that was not run is no garbage."""
        if nbytes <= _ZEROED:
            self._blocks[address][1][:] = 0
        elif address in self.touched:
            self._maps[address].madvise(mmap.MADV_DONTNEED)
            self.touched.discard(address)

    def _forget(self, index: int, address: int, nbytes: int) -> None:
        self.touched.discard(address)
        self._maps.pop(address, None)
        super()._forget(index, address, nbytes)

    def copy_h2d(self, address: int, host: np.ndarray, queue: Queue) -> None:
        self.spend(queue, "copy to the device", host.nbytes / self.rates[1])
        if host.nbytes < _LARGE:
            super().copy_h2d(address, host, queue)

    def copy_d2h(self, host: np.ndarray, address: int, queue: Queue) -> None:
        self.spend(queue, "copy to the host", host.nbytes / self.rates[1])
        if host.nbytes < _LARGE:
            super().copy_d2h(host, address, queue)

    def copy_d2d(self, target: int, source: int, nbytes: int, queue: Queue, devices: tuple[int, int]) -> None:
        self.spend(queue, "copy", 2 * nbytes / self.rates[0])
        if nbytes < _MOVED:
            super().copy_d2d(target, source, nbytes, queue, devices)

    # -- kernels

    def load(self, index: int, compiled: Compiled, label: str) -> Loaded:
        loaded = super().load(index, compiled, label)
        self.codes[id(loaded.kernel)] = compiled.binary
        return loaded

    def launch(self, stream: Stream, request: LaunchRequest) -> None:
        name, seconds = self.price(self, stream, request)
        self.spend(stream.handle, name, seconds, computes=True)

    def run(self, stream: Stream, request: LaunchRequest) -> None:
        """Run a launch, as far as the recorder does."""
        super().launch(stream, request)


def replayed(log: Sequence[tuple[Any, ...]], efficiency: float) -> float:
    """The seconds that the work of a log takes, from when all before it is done, with another efficiency of kernels."""
    clocks: dict[Any, float] = {}
    marks: dict[Any, float] = {}
    host = 0.0
    for kind, queue, value in log:
        now = max(clocks.get(queue, 0.0), host)
        if kind == "computes":
            clocks[queue] = now + value / efficiency
        elif kind == "moves":
            clocks[queue] = now + value
        elif kind == "mark":
            marks[value] = now
        elif kind == "wait":
            clocks[queue] = max(now, marks.get(value, 0.0))
        else:
            host = now if value is None else max(host, marks.get(value, 0.0))
    return max([host, *clocks.values()])
