"""What happens to a stream while its work is captured in a graph: it runs nothing, and the host waits for none of it.

Memory that captured work asks for comes from a pool of the graph's own. The graph uses its addresses at every replay,
so nobody else gets them as long as there is a graph that was captured with the pool; memory from elsewhere that
captured work uses is kept alive by the graph.
"""

from __future__ import annotations

from typing import Any

from .allocator import Arena, Block, Heap
from .protocol import AbstractDriver
from .streams import Stream

__all__ = ["Capture", "Pool", "capturing"]


class Pool(Arena):
    """Memory that belongs to graphs. Its `queue` is that of the last replay, or `source` after a capture.

    Attributes:
        source: the queue that memory is asked from: the one that is captured may not allocate.
        aside: memory that graphs read and their work never gets. What is sent there while work is captured goes by
            `source`, for which the first replay waits.
        graphs: how many graphs replay with the pool's addresses.
        kept: while work is captured, the buffers from elsewhere that it uses, by id.
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
        """Whether a graph may still be replayed, which needs the memory that is free as well."""
        return self.graphs > 0

    def miss(self, form: Any) -> Block:
        """A new block; one that other streams have used would have to be waited for at every replay."""
        return self.heap.request(form.block_size, form.nbytes, self)

    def release(self) -> None:
        """Hand what is cached back to the driver, after the last replay."""
        if any(self.bins.values()) or any(self.late.values()):
            self.driver.wait(self.source, self.driver.mark_behind(self.queue))
        super().release()


class Capture:
    """One capture, from its beginning to its end.

    Attributes:
        stream: what is captured.
        pool: where its memory comes from.
        ordinary: where the stream's memory came from before; before: a mark behind what the stream held then.
        kept: buffers from elsewhere that the captured work uses, by id; hosts: pinned memory that it reads.
        randoms: the generators that were drawn from: where their state lies on the device, and how many calls there
            were.
        failed: what was asked for that cannot be captured.
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
        """The driver's graph, and how much work is in it; None for one that cannot be replayed.

        Raises:
            DeviceError: the driver refuses. The stream is as it was before the capture, whatever happens.
        """
        driver, pool = self.driver, self.pool
        self.stream.arena, pool.kept = self.ordinary, None
        del driver.captures[id(self.stream.handle)]
        # the next replay in the pool comes after the last one, and after what was allocated and sent meanwhile
        driver.wait(pool.source, driver.mark_behind(pool.queue))
        pool.queue = pool.source
        return driver.end_capture(self.stream.handle, self.failed is None)


def capturing(driver: AbstractDriver, index: Any) -> Capture | None:
    """The capture of this thread's current stream on a device; None if it runs its work."""
    if not driver.captures:
        return None
    return driver.captures.get(id(driver.current_stream(index).handle))
