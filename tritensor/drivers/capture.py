"""Capturing a stream's work in a graph: the work is noted and does not run, and the host must not wait for it.

Captured work allocates from a pool. The graph uses the same addresses at every replay, so the pool keeps its memory as
long as a graph that was captured with it exists. Other memory that captured work uses is kept alive by the graph.
"""

from __future__ import annotations

from typing import Any

from .allocator import Arena, Block, Heap
from .protocol import AbstractDriver
from .streams import Stream


class Pool(Arena):
    """The memory of one or more graphs. Its `queue` is that of the last replay, or `source` after a capture.

    Attributes:
        source: the queue that allocates the memory, because a queue that is being captured must not allocate.
        aside: an arena for memory that graphs only read. Copies into it during a capture are made in `source`, for
            which the first replay waits.
        graphs: how many graphs use the pool's addresses.
        kept: during a capture, the buffers of other arenas that the captured work uses, by id.
    """

    __slots__ = ("aside", "graphs", "kept", "source")

    source: Any

    def __init__(self, heap: Heap) -> None:
        self.graphs = 0
        self.kept: dict[int, Any] | None = None
        self.source = heap.driver.open_queue(heap.index, 0)
        self.aside = Arena(heap, self.source)
        super().__init__(heap, self.source)

    @property
    def held(self) -> bool:  # type: ignore[override]
        """True if a graph may still be replayed, which uses the pool's free blocks too."""
        return self.graphs > 0

    def miss(self, form: Any) -> Block:
        """A new block, never one that other streams have used: every replay would have to wait for those streams."""
        return self.heap.request(form.block_size, form.nbytes, self)

    def release(self) -> None:
        """Return the cached blocks to the driver, after the last replay."""
        if any(self.bins.values()) or any(self.late.values()):
            self.driver.wait(self.source, self.driver.mark_behind(self.queue))
        super().release()


class Capture:
    """One capture, from its beginning to its end.

    Attributes:
        stream: the stream that is captured.
        pool: the arena of its memory during the capture.
        ordinary: the stream's own arena, which `end` puts back.
        before: a mark behind the work that the stream held when the capture began.
        kept: the buffers of other arenas that the captured work uses, by id.
        hosts: the pinned host arrays that it reads.
        randoms: for each generator that it draws from, the array of the state on the device and the number of calls.
        failed: the name of an operation that cannot be captured and was called all the same, else None.
    """

    def __init__(self, stream: Stream, pool: Pool) -> None:
        driver = stream.driver
        self.stream, self.pool, self.driver = stream, pool, driver
        self.kept: dict[int, Any] = {}
        self.hosts: list[Any] = []
        self.randoms: dict[Any, list[Any]] = {}
        self.failed: str | None = None
        self.ordinary = stream.arena
        self.before = driver.mark(stream.handle)
        driver.begin_capture(stream.handle)
        driver.captures[id(stream.handle)] = self
        pool.graphs += 1
        pool.kept = self.kept
        stream.arena = pool

    def end(self) -> tuple[Any, int]:
        """The driver's graph and the number of its nodes; the graph is None if the capture failed.

        Raises:
            DeviceError: the driver reported an error. The stream's state before the capture is restored in any case.
        """
        driver, pool, queue = self.driver, self.pool, self.stream.handle
        kept = False
        try:
            # The next replay waits for the last one, and for the allocations and copies in `source` during the capture.
            # `captures` still has this one: if the last replay was in the captured stream, the mark is that before it.
            driver.wait(pool.source, driver.mark_behind(pool.queue))
            pool.queue = pool.source
            kept = self.failed is None
        finally:
            self.stream.arena, pool.kept = self.ordinary, None
            del driver.captures[id(queue)]
            ended = driver.end_capture(queue, kept)
        return ended


def capturing(driver: AbstractDriver, index: Any) -> Capture | None:
    """The capture of this thread's current stream on a device; None if it is not being captured."""
    if not driver.captures:
        return None
    return driver.captures.get(id(driver.current_stream(index).handle))
