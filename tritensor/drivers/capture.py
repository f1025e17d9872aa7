"""What happens to a stream while its work is captured in a graph: it runs nothing, and the host waits for none of it.

Memory that captured work asks for comes from a pool of the graph's own. The graph uses its addresses at every replay,
so nobody else gets them as long as there is a graph that was captured with the pool; memory from elsewhere that
captured work uses is kept alive by the graph.
"""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Any

from ..errors import DeviceError, explain
from . import ledger
from .allocator import Arena, Block, Heap

if TYPE_CHECKING:
    from ..memory.buffer import Buffer
    from .driver import Driver
    from .streams import Stream

__all__ = [
    "NO_READING",
    "NO_SENDING",
    "NO_WAITING",
    "ONE_DEVICE",
    "ONE_STREAM",
    "Capture",
    "Pool",
    "capturing",
    "refuse",
    "refused_by",
]

# What cannot be captured: the fact and the remedy.
NO_WAITING = (
    "captured work has not run when the host would wait for it",
    "wait after the capture has ended and the graph was replayed",
)
NO_READING = (
    "the host would read memory that captured work has not written yet",
    "leave the reading to after graph.replay(), or compute on the device (torch.where in place of a branch)",
)
NO_SENDING = (
    "a copy from host memory would be repeated from memory that is not there any more",
    "make the tensor before the capture and use it there, or copy with non_blocking=True from memory of pin_memory(), "
    "which is read again at each replay",
)
ONE_STREAM = (
    "events and waits between streams are not captured: a graph holds the work of one stream, in its order",
    "record and wait outside of the capture, around graph.replay()",
)
ONE_DEVICE = (
    "a graph holds the work of one stream, on one device",
    "copy between devices before or after graph.replay()",
)

_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep
# Modules whose functions carry out what others were asked for; a message names one of those others. Modules that run
# other people's code, or many operators: a message names the one operator.
_INNER = (f"memory{os.sep}", f"drivers{os.sep}", f"runtime{os.sep}", f"kernels{os.sep}")
_CALLERS = (f"nn{os.sep}", f"autograd{os.sep}", "function.py", f"utils{os.sep}")
# Modules whose methods are named together with their class.
_OWNERS = (f"cuda{os.sep}graphs.py", f"optim{os.sep}", f"drivers{os.sep}streams.py")


class Pool(Arena):
    """Memory that belongs to graphs. Its `queue` is that of the last replay, or `source` after a capture.

    Attributes:
        source: the queue that memory is asked from: the one that is captured may not allocate.
        aside: memory that graphs read and their work never gets. What is sent there while work is captured goes by
            `source`, for which the first replay waits.
        graphs: how many graphs replay with the pool's addresses.
        kept: while work is captured, memory from elsewhere that it uses.
    """

    __slots__ = ("aside", "graphs", "kept", "source")

    source: Any

    def __init__(self, heap: Heap) -> None:
        self.graphs = 0
        self.kept: dict[int, Buffer] | None = None
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
        kept: memory from elsewhere that the captured work uses, by id; hosts: pinned memory that it reads.
        randoms: the generators that were drawn from: where their state lies on the device, and how many calls there
            were.
        failed: what was asked for that cannot be captured.
    """

    def __init__(self, stream: Stream, pool: Pool) -> None:
        driver = stream.driver
        self.stream, self.pool, self.driver = stream, pool, driver
        self.kept: dict[int, Buffer] = {}
        self.hosts: list[Any] = []
        self.randoms: dict[Any, list[Any]] = {}
        self.failed: str | None = None
        self.ordinary = stream.arena
        self.before = driver.record(stream.handle)
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


def capturing(driver: Driver, index: Any) -> Capture | None:
    """The capture of this thread's current stream on a device; None if it runs its work."""
    if not driver.captures:
        return None
    return driver.captures.get(id(driver.current_stream(index).handle))


def refuse(capture: Capture, fact: str, remedy: str) -> None:
    """Raise, because something cannot be captured; the capture can only be ended from here on.

    Raises:
        DeviceError: always, with the operator's name.
    """
    name = _asked_for()
    capture.failed = capture.failed or name
    first = "CUDA error: operation not permitted when stream is capturing"
    raise DeviceError(explain(first, f"{name}: {fact}", f"at {ledger.call_site()}", remedy=remedy))


def refused_by(driver: Driver, queue: Any, fact: str, remedy: str) -> None:
    """Raise if a queue is being captured; costs 60 ns where none is."""
    if driver.captures:
        capture = driver.captures.get(id(queue))
        if capture is not None:
            refuse(capture, fact, remedy)


def _asked_for() -> str:
    """The operator or function that is being run, by the name that its caller knows it by."""
    frame: Any = sys._getframe(1)
    found = ""
    while frame is not None and frame.f_code.co_filename.startswith(_PACKAGE):
        name, path = frame.f_code.co_name, frame.f_code.co_filename[len(_PACKAGE) :]
        owner = frame.f_locals.get("self")
        if name == "__call__" and hasattr(owner, "inputs") and hasattr(owner, "rule"):
            found = str(owner.name)
        elif found and path.startswith(_CALLERS):
            break
        elif (name[0] not in "_<" or name.startswith("__")) and name != "wrapped":
            if owner is not None and path.startswith(_OWNERS):
                found = f"{type(owner).__name__}.{name}"
            elif not path.startswith(_INNER):
                found = name
        frame = frame.f_back
    return found or "an operation"
