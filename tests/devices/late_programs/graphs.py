"""Programs that capture graphs and replay them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tritensor import cuda
from tritensor.drivers import require
from tritensor.memory import buffer, copies
from tritensor.memory.array import DeviceArray

from .late_device import CUDA0, A, B, check, default, first_byte, on_device, program, set_bytes


def captured(work: Callable[[], Any], pool: Any = None, stream: Any = None) -> tuple[cuda.CUDAGraph, Any]:
    """A graph of some work, captured without waiting for anything, and what the work made."""
    graph = cuda.CUDAGraph()
    with cuda.stream(cuda.Stream() if stream is None else stream):
        graph.capture_begin(pool)
        made = work()
        graph.capture_end()
    return graph, made


def copied(x: DeviceArray) -> DeviceArray:
    made = buffer.empty(x.shape, x.dtype, CUDA0)
    copies.copy_into(made, x)
    return made


@program
def work_before_a_capture_is_done_when_its_graph_is_replayed() -> None:
    x, side, graph = on_device(), cuda.Stream(), cuda.CUDAGraph()
    set_bytes(side, x, 3)
    with cuda.graph(graph, stream=side):
        y = copied(x)
    graph.replay()
    assert first_byte(y) == 3


@program
def what_is_sent_during_a_capture_is_there_at_the_first_replay() -> None:
    graph, (x, y) = captured(lambda: [copied(copies.constant(host, CUDA0)) for host in (A, B)])
    graph.replay()
    default().synchronize()
    check(x)
    check(y, B)


@program
def graphs_of_one_memory_are_replayed_in_order() -> None:
    x = on_device()
    first, y = captured(lambda: copied(x))
    first.replay()
    second, z = captured(lambda: copied(y), first.pool())
    side = cuda.Stream()
    with cuda.stream(side):
        second.replay()
    side.synchronize()
    default().synchronize()
    check(z)


@program
def the_memory_of_a_graph_goes_back_after_its_last_replay() -> None:
    x = on_device()
    graph, y = captured(lambda: copied(copied(x)))
    source = graph._captured.pool.source  # type: ignore[union-attr]
    graph.replay()
    graph.reset()
    require().queue_synchronize(source)
    check(y)


@program
def memory_that_goes_while_its_stream_is_captured_is_kept_for_what_came_before() -> None:
    x, side, graph = on_device(), cuda.Stream(), cuda.CUDAGraph()
    y = on_device(B)
    with cuda.stream(side):
        pending = copies.to_host(x, non_blocking=True)
        graph.capture_begin()
        del x
        with cuda.stream(default()):
            z = copies.from_host(B, CUDA0)
            default().synchronize()
        copied(y)
        graph.capture_end()
    check(pending.wait())
    check(z, B)
