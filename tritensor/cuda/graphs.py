"""CUDA graphs: the work of a stream, captured once and replayed at the cost of one launch. Names are PyTorch's."""

from __future__ import annotations

import gc
import itertools
import sys
from contextlib import suppress
from typing import Any

from ..drivers import Driver, Stream, active, ledger, require
from ..drivers.capture import Capture, Pool, capturing
from ..drivers.refusals import refuse
from ..errors import ArgumentError, DeviceError, warn
from ..types import devices

__all__ = ["CUDAGraph", "graph", "graph_pool_handle", "is_current_stream_capturing"]

_handles = itertools.count(1)
_MODES = ("global", "thread_local", "relaxed")


def graph_pool_handle() -> tuple[int, int]:
    """The handle of a memory pool for several graphs, to be passed to `graph(..., pool=)`.

    Graphs that share a pool overwrite each other's memory: replay them in the order in which they were captured.
    """
    return (0, next(_handles))


def is_current_stream_capturing() -> bool:
    """True if the work of this thread's current stream is being captured; False without a CUDA device."""
    driver = active()
    return driver is not None and capturing(driver, devices.current_index()) is not None


def _pool(driver: Driver, stream: Stream, handle: tuple[int, ...]) -> Pool:
    """The pool of a handle on the stream's device, made on first use."""
    index = stream.device.index
    found = driver.pools.get((handle, index))
    if found is None:
        found = Pool(driver.heap(index))  # type: ignore[arg-type]
        driver.pools[handle, index] = found
    return found


class CUDAGraph:
    """The work submitted to a stream between `capture_begin` and `capture_end`, to be run by `replay`.

    The capture runs nothing. A replay runs everything on the same memory: write new input into the tensors that were
    used in the capture, and read results from those that were made in it. Each replay draws new random numbers, and
    continues the step count of `Adam(capturable=True)`. Prefer `with graph(g)`, which chooses a stream to capture.

    >>> import tritensor as torch
    >>> with torch.cuda.simulate():
    ...     x, g = torch.zeros(2, device="cuda"), torch.cuda.CUDAGraph()
    ...     with torch.cuda.graph(g):
    ...         y = x * 10
    ...     _ = x.copy_(torch.tensor([1.0, 2.0]))
    ...     g.replay()
    ...     y
    tensor([10., 20.], device='cuda:0')

    Args:
        keep_graph: accepted for PyTorch's signature.
    """

    def __init__(self, keep_graph: bool = False) -> None:
        self._capture: Capture | None = None
        self._captured: Capture | None = None
        self._executable: Any = None
        self._handle: Any = None

    def capture_begin(self, pool: Any = None, capture_error_mode: str = "global") -> None:
        """Capture the current stream's work from here on.

        Args:
            pool: the memory pool to use: `graph_pool_handle()` or another graph's `pool()`; None for a pool of its own.
            capture_error_mode: accepted for PyTorch's signature. Calls that cannot be captured raise in the thread that
                makes them; other threads are not affected.

        Raises:
            DeviceError: there is no device, the stream is the default one, the graph has been captured before, or work
                on the device is being captured already.
            ArgumentError, ValueError: no such pool or mode.
        """
        if pool is not None and not (isinstance(pool, tuple) and len(pool) == 2):
            raise ArgumentError(f"pool must be what graph_pool_handle() or CUDAGraph.pool() returns, got {pool!r}")
        if capture_error_mode not in _MODES:
            raise ValueError(
                "Unknown capture error mode. Expected `global`, `thread_local`, or `relaxed`, got " + capture_error_mode
            )
        driver = require()
        index = devices.current_index()
        stream = driver.current_stream(index)
        if self._executable is not None or self._capture is not None:
            raise DeviceError(
                "This CUDAGraph instance already owns a captured graph. To capture a new graph, create a new instance.",
                remedy="make a new CUDAGraph, or call reset() first",
            )
        for other in list(driver.captures.values()):
            if other.stream.device is stream.device:
                refuse(other, "another graph is being captured on the device", "end that capture first")
        if stream == driver.default_stream(index):
            raise DeviceError(
                "CUDA graphs must be captured on a non-default stream. (However, after capture, it's ok to replay "
                "them on the default stream.)",
                remedy="use `with tritensor.cuda.graph(g):`, which finds a stream by itself",
            )
        self._handle = graph_pool_handle() if pool is None else pool
        self._capture = Capture(stream, _pool(driver, stream, self._handle))

    def capture_end(self) -> None:
        """End the capture; `replay` can be called from here on.

        Raises:
            DeviceError: there is no capture, another stream is current, or something in between could not be captured.
                The capture has ended then, and there is no graph.
        """
        capture = self._capture
        if capture is None:
            raise DeviceError("capture_end() was called without a capture_begin() before it.")
        if capture.driver.current_stream(capture.pool.heap.index) is not capture.stream:
            self._end()
            raise DeviceError("Capture must end on the same stream it began on.")
        count = self._end()
        if capture.failed is not None:
            self.reset()
            raise DeviceError(
                "CUDA error: operation failed due to a previous error during capture",
                f"{capture.failed} cannot be captured",
                remedy="leave it out of the capture",
            )
        if count == 0:
            warn(
                "The CUDA Graph is empty. This usually means that the graph was attempted to be captured on wrong "
                "device or stream."
            )

    def _end(self) -> int:
        """End the capture; returns the number of nodes that were captured."""
        capture, self._capture = self._capture, None
        assert capture is not None
        try:
            self._executable, count = capture.end()
        except BaseException:
            _give_back(capture)
            raise
        self._captured = capture
        return count

    def replay(self) -> None:
        """Run the captured work in the current stream of the graph's device; the host does not wait.

        Raises:
            DeviceError: nothing was captured, or the stream is being captured.
        """
        capture, graph = self._captured, self._executable
        if capture is None or graph is None:
            raise DeviceError(
                "Called CUDAGraph::replay without a preceding successful capture.",
                remedy="capture work first: with tritensor.cuda.graph(g):",
            )
        driver, pool = capture.driver, capture.pool
        stream = driver.current_stream(pool.heap.index)
        outer = capturing(driver, pool.heap.index)
        if outer is not None:
            refuse(outer, "a graph within a graph is not captured", "replay one after the other")
        if pool.queue is not stream.handle:  # the previous replay, in another stream, used the same memory
            driver.wait(stream.handle, driver.mark_behind(pool.queue))
            pool.queue = stream.handle
        for generator, (state, calls) in capture.randoms.items():
            generator.replayed(state, calls)
        driver.launch_graph(graph, stream.handle)

    def pool(self) -> tuple[int, int]:
        """The handle of the graph's memory pool, for other graphs to share.

        Raises:
            DeviceError: nothing was captured.
        """
        if self._handle is None:
            raise DeviceError("Called CUDAGraph::pool() without a preceding successful capture.")
        handle: tuple[int, int] = self._handle
        return handle

    def reset(self) -> None:
        """Drop the captured work, and end an unfinished capture.

        Tensors that were made in the capture keep their memory until they are deleted.
        """
        if self._capture is not None:
            self._capture.failed = self._capture.failed or "CUDAGraph.reset"
            self._end()
        capture, self._captured = self._captured, None
        executable, self._executable = self._executable, None
        self._handle = None
        if capture is not None:
            if executable is not None:
                capture.driver.destroy_graph(executable)
            _give_back(capture)

    def __del__(self) -> None:
        if not sys.is_finalizing():
            with suppress(DeviceError):  # raised in a forked child, where the device cannot be used
                self.reset()

    def __repr__(self) -> str:
        state = "being captured" if self._capture else "captured" if self._executable is not None else "empty"
        return f"<tritensor.cuda.CUDAGraph {state}>"


def _give_back(capture: Capture) -> None:
    """Release the memory that a graph's replays need."""
    capture.pool.graphs -= 1
    capture.kept.clear()
    capture.randoms.clear()
    capture.hosts.clear()
    if not capture.pool.held:
        capture.pool.release()


class graph:
    """`with graph(g):` captures the work of a block in a graph; before the block, the host waits for the device.

    Code that allocates state on first use (optimizers, above all) must have run before, in any stream: warm up with a
    few steps. If the block raises, the capture ends, and there is no graph.

    Args:
        cuda_graph: a `CUDAGraph` without a capture.
        pool: the memory pool to use; see `CUDAGraph.capture_begin`.
        stream: the stream to capture, on any device; None for a stream of the current device that is kept for captures.
        capture_error_mode: accepted for PyTorch's signature.

    Raises:
        DeviceError: see `CUDAGraph.capture_begin` and `capture_end`.
    """

    def __init__(
        self, cuda_graph: CUDAGraph, pool: Any = None, stream: Stream | None = None, capture_error_mode: str = "global"
    ) -> None:
        self.cuda_graph, self.pool, self.capture_error_mode = cuda_graph, pool, capture_error_mode
        self.capture_stream = stream
        self._before: list[tuple[Driver, int, Stream]] = []

    def __enter__(self) -> None:
        driver = require()
        stream = self.capture_stream or driver.capture_stream(devices.current_index())
        index: Any = stream.device.index
        for other in list(driver.captures.values()):
            if other.stream.device is stream.device:
                refuse(other, "another graph is being captured on the device", "end that capture first")
        ledger.note("sync")
        driver.synchronize(index)
        gc.collect()  # so that memory in unreachable reference cycles is not freed in the middle of the capture
        self._before.append((driver, devices.current_index(), driver.current_stream(index)))
        driver.set_device(index)
        driver.set_current_stream(stream)
        try:
            self.cuda_graph.capture_begin(self.pool, self.capture_error_mode)
        except BaseException:
            self._leave()
            raise

    def __exit__(self, kind: object, *exception: Any) -> None:
        try:
            if kind is None:
                self.cuda_graph.capture_end()
            else:
                with suppress(DeviceError):  # the exception of the block says more than the driver's error
                    self.cuda_graph.reset()
        finally:
            self._leave()

    def _leave(self) -> None:
        driver, index, stream = self._before.pop()
        driver.set_current_stream(stream)
        driver.set_device(index)
