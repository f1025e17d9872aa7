"""Every wait in the package is needed: without it, one of these programs gives a wrong answer on a device that is late.

The programs run on simulated devices, on simulated ones that pass for real (so that launches take the path of real
devices), and, in a process of their own, over a stub of libcuda that is late (`libcuda_stub.c`) for the driver of real
devices. Whoever adds a wait adds the program that needs it; the places are found in the source (`waits.py`).
"""

from __future__ import annotations

import importlib.util
import os
import re
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import tritensor as torch
from tritensor import cuda, devices, settings
from tritensor.drivers import require
from tritensor.drivers.allocator import PinnedPool
from tritensor.memory import buffer, copies
from tritensor.memory.array import DeviceArray
from tritensor.runtime.launch import bind, kernel, launch
from tritensor.tensor import Tensor

from ..runtime.interpreted_device import interpreted_device
from . import libcuda_stub
from .waits import Site, fails, sites, without

if TYPE_CHECKING:
    import triton.language as tl

HERE = Path(__file__).parent
MEMORY = 8 << 20
ON_STUB = bool(os.environ.get("STUB_LATE"))
HAS_TRITON = importlib.util.find_spec("triton") is not None
KINDS = ["stub"] if ON_STUB else ["simulated", "real"]
CUDA0, CUDA1 = devices.cuda(0), devices.cuda(1)
PROGRAMS: list[Callable[[], None]] = []
A, B = np.arange(64, dtype=np.float32), np.full(64, -7, np.float32)
LARGE = 300_000  # floats; above the size from which pinned memory is read in place


def program(function: Callable[[], None]) -> Callable[[], None]:
    PROGRAMS.append(function)
    return function


@contextmanager
def late(kind: str) -> Iterator[None]:
    """Two devices of 8 MiB where nothing runs before somebody waits for it."""
    with ExitStack() as stack:
        if kind == "stub":
            stack.enter_context(settings.simulate_cuda(0))
            for index in range(2):
                driver = require()
                driver.set_current_stream(driver.default_stream(index))
            cuda.empty_cache()
            driver.pinned = PinnedPool(driver)
        else:
            stack.enter_context(settings.simulate_late(True))
            if kind == "simulated":
                stack.enter_context(cuda.simulate(devices=2, memory=MEMORY))
            else:
                driver = stack.enter_context(interpreted_device(2))
                object.__setattr__(driver.properties(0), "total_memory", MEMORY)
        yield


def on_device(array: np.ndarray = A, where: Any = CUDA0) -> DeviceArray:
    """The array in a device's memory, where it has arrived."""
    made = copies.from_host(array, where)
    require().synchronize(where.index)
    return made


def check(found: Any, expected: np.ndarray = A) -> None:
    if isinstance(found, DeviceArray):
        found = copies.to_host(found)
    np.testing.assert_array_equal(found, expected)


def set_bytes(stream: cuda.Stream, array: DeviceArray, byte: int) -> None:
    """Write to an array in a stream that its memory does not know of."""
    require().fill(array.data_ptr(), byte, array.nbytes, stream.handle)


def first_byte(array: DeviceArray) -> int:
    """What the default stream, which is waited for, finds in an array."""
    driver = require()
    host, queue = driver.allocate_pinned(array.nbytes), driver.default_stream(0).handle
    driver.copy_d2h(host, array.data_ptr(), queue)
    driver.queue_synchronize(queue)
    return int(host[0])


def default() -> cuda.Stream:
    return cuda.default_stream(0)


# ---- copies between host and device ---------------------------------------------------------------------------------


@program
def what_was_copied_there_comes_back() -> None:
    check(copies.from_host(A, CUDA0))


@program
def a_tensor_that_is_still_on_its_way_is_waited_for_by_its_reader() -> None:
    x = torch.from_numpy(A.copy()).cuda()
    check((x.to("cpu", non_blocking=True) + 1).numpy(), A + 1)


@program
def a_copy_is_done_when_its_bytes_are_there() -> None:
    pending = copies.to_host(on_device(), non_blocking=True)
    while not pending.done():
        pass
    check(pending.raw)


@program
def a_copy_that_nobody_reads_keeps_its_place() -> None:
    x = on_device()
    copies.to_host(x, non_blocking=True)
    check(copies.from_host(B, CUDA0), B)


@program
def a_copy_into_pinned_memory_is_there_when_the_call_returns() -> None:
    target = torch.zeros(64).pin_memory()
    target.copy_(torch.from_numpy(A.copy()).cuda())
    check(target.numpy())


@program
def memory_that_is_copied_from_is_not_given_out_before_that() -> None:
    x, side = on_device(), cuda.Stream()
    with cuda.stream(side):
        pending = copies.to_host(x, non_blocking=True)
    del x
    y = copies.from_host(B, CUDA0)
    default().synchronize()
    check(pending.wait())
    check(y, B)


@program
def the_host_reads_what_every_stream_wrote() -> None:
    x, side = on_device(B), cuda.Stream()
    set_bytes(side, x, 0)
    x.buffer.record_stream(side)
    check(x, np.zeros_like(B))


@program
def what_one_stream_copies_another_overwrites_later() -> None:
    x, side = on_device(B), cuda.Stream()
    with cuda.stream(side):
        copies.copy_into(x, B + 1)
    copies.copy_into(x, A)
    default().synchronize()
    side.synchronize()
    check(x)


@program
def a_large_pinned_source_may_be_overwritten_after_a_blocking_copy() -> None:
    host = copies.pin(np.ones(copies.CHUNK // 8, np.float32))
    x = copies.from_host(host, CUDA0)
    host[:] = 2
    check(x, np.ones_like(host))


def sent() -> tuple[Tensor, Tensor]:
    """Ones in pinned memory, on their way to a device from there."""
    x = torch.from_numpy(np.ones(LARGE, np.float32)).pin_memory()
    return x, x.to("cuda", non_blocking=True)


@program
def a_source_that_is_read_in_place_may_be_overwritten() -> None:
    x, moved = sent()
    x.fill_(2)
    check(moved._data, np.ones(LARGE, np.float32))


@program
def a_source_that_is_read_in_place_may_be_overwritten_after_its_second_copy() -> None:
    x, moved = sent()
    require().synchronize(0)
    with cuda.stream(cuda.Stream()):
        again = x.to("cuda", non_blocking=True)
        x.fill_(2)
        check(again._data, np.ones(LARGE, np.float32))
    check(moved._data, np.ones(LARGE, np.float32))


@program
def a_source_that_is_read_in_place_keeps_its_memory() -> None:
    x, moved = sent()
    del x
    torch.from_numpy(np.zeros(LARGE, np.float32)).pin_memory()
    check(moved._data, np.ones(LARGE, np.float32))


@program
def memory_that_is_written_from_the_source_is_not_given_out_before() -> None:
    target = torch.from_numpy(np.zeros(LARGE, np.float32)).cuda()
    x = torch.from_numpy(np.ones(LARGE, np.float32)).pin_memory()
    require().synchronize(0)
    with cuda.stream(cuda.Stream()):
        target.copy_(x, non_blocking=True)
    del target
    other = torch.from_numpy(np.zeros(LARGE, np.float32)).cuda()
    default().synchronize()  # before the other stream has got to it
    require().synchronize(0)
    check(other._data, np.zeros(LARGE, np.float32))


@program
def a_pinned_target_is_written_when_the_copy_returns() -> None:
    host = copies.pin(B)
    check(copies.to_host(on_device(), into=host))
    check(host)


@program
def sources_that_are_staged_do_not_share_their_place() -> None:
    first, second = copies.from_host(A, CUDA0), copies.from_host(B, CUDA0)
    check(first)
    check(second, B)


@program
def staging_has_a_limit_and_waits_at_it() -> None:
    pool = require().pinned
    pool.limit = 2 * 4096
    made = [copies.from_host(A + step, CUDA0) for step in range(6)]
    for step, x in enumerate(made):
        check(x, A + step)


# ---- between devices ------------------------------------------------------------------------------------------------


@program
def a_copy_to_another_device_arrives_before_it_is_read() -> None:
    check(copies.copy_across(on_device(), CUDA1))


@program
def a_copy_to_another_device_waits_for_what_reads_its_target() -> None:
    x, y = on_device(), on_device(B, CUDA1)
    pending = copies.to_host(y, non_blocking=True)
    copies.copy_into(y, x)
    default().synchronize()
    check(pending.wait(), B)
    check(y)


@program
def the_source_of_a_copy_to_another_device_is_kept_until_it_is_done() -> None:
    side = cuda.Stream()
    with cuda.stream(side):
        x = on_device()
    y = copies.copy_across(x, CUDA1)
    del x
    with cuda.stream(side):
        z = copies.from_host(B, CUDA0)
    side.synchronize()
    check(y)
    check(z, B)


@program
def the_target_of_a_copy_from_another_device_is_kept_until_it_is_done() -> None:
    x, side = on_device(), cuda.Stream(1)
    with cuda.stream(side):
        y = on_device(B, CUDA1)
    copies.copy_into(y, x)
    del y
    with cuda.stream(side):
        z = copies.from_host(B, CUDA1)
        side.synchronize()
        default().synchronize()
        check(z, B)


@program
def memory_that_was_told_of_a_stream_is_kept_for_it() -> None:
    x, y, side = torch.from_numpy(A.copy()).cuda(), on_device(B), cuda.Stream()
    cuda.synchronize()
    require().copy_d2d(y.data_ptr(), x.data_ptr(), A.nbytes, side.handle, (0, 0))
    x.record_stream(side)
    del x
    z = copies.from_host(B, CUDA0)
    default().synchronize()
    side.synchronize()
    check(y)
    check(z, B)


# ---- streams and events ---------------------------------------------------------------------------------------------


@program
def a_stream_waits_for_a_stream() -> None:
    x, side = on_device(), cuda.Stream()
    set_bytes(side, x, 3)
    default().wait_stream(side)
    assert first_byte(x) == 3


@program
def a_stream_waits_for_an_event() -> None:
    x, side = on_device(), cuda.Stream()
    set_bytes(side, x, 3)
    default().wait_event(side.record_event())
    assert first_byte(x) == 3


@program
def an_event_is_recorded_again_and_waited_for_there() -> None:
    x, side, event = on_device(), cuda.Stream(), cuda.Event(enable_timing=True)
    event.record(side)
    set_bytes(side, x, 3)
    side.record_event(event)
    event.wait(default())
    assert first_byte(x) == 3


@program
def the_host_waits_for_an_event() -> None:
    x, side, event = on_device(), cuda.Stream(), cuda.Event()
    set_bytes(side, x, 3)
    event.record(side)
    event.synchronize()
    assert first_byte(x) == 3


@program
def the_host_waits_for_a_stream() -> None:
    x, side = on_device(), cuda.Stream()
    set_bytes(side, x, 3)
    side.synchronize()
    assert first_byte(x) == 3


@program
def the_host_waits_for_a_device() -> None:
    x, side = on_device(), cuda.Stream()
    set_bytes(side, x, 3)
    cuda.synchronize()
    assert first_byte(x) == 3


@program
def a_stream_is_asked_until_it_is_done() -> None:
    x, side = on_device(), cuda.Stream()
    set_bytes(side, x, 3)
    while not side.query():
        pass
    assert first_byte(x) == 3


@program
def an_event_is_asked_until_it_is_done() -> None:
    x, side = on_device(), cuda.Stream()
    set_bytes(side, x, 3)
    event = side.record_event()
    while not event.query():
        pass
    assert first_byte(x) == 3


# ---- memory ---------------------------------------------------------------------------------------------------------


@program
def memory_goes_back_to_the_device_after_its_last_use() -> None:
    x = on_device()
    with cuda.stream(cuda.Stream()):
        pending = copies.to_host(x, non_blocking=True)
    del x
    default().arena.release()
    default().synchronize()
    check(pending.wait())


@program
def caches_are_given_back_before_memory_runs_out() -> None:
    int8 = np.dtype(np.int8)
    for size in (5 << 20, 6 << 20, 7 << 20):
        buffer.empty((size,), int8, CUDA0)


@program
def a_failure_that_nobody_waited_for_is_raised_at_the_end_of_a_simulation() -> None:
    if not require().is_simulated:
        return
    for index in range(2):

        def fail(index: int = index) -> None:
            with cuda.simulate(devices=2) as driver:
                driver.submit(cuda.Stream(index), lambda: 1 / 0)

        assert fails(fail)


# ---- graphs ---------------------------------------------------------------------------------------------------------


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


# ---- kernels --------------------------------------------------------------------------------------------------------


def with_kernels(function: Callable[[], None]) -> Callable[[], None]:
    if HAS_TRITON and not ON_STUB:
        PROGRAMS.append(function)
    return function


@kernel
def copy_kernel(out_ptr, in_ptr, BLOCK: tl.constexpr):
    index = tl.arange(0, BLOCK)
    tl.store(out_ptr + index, tl.load(in_ptr + index))


def in_another_stream(work: Callable[[Any], Any], make: Callable[[], Any] = on_device) -> Any:
    """Work on memory of the default stream, which gives it to somebody else before the work is done."""
    x, side = make(), cuda.Stream()
    with cuda.stream(side):
        out = work(x)
    del x
    copies.from_host(B, CUDA0)
    default().synchronize()
    return out


@with_kernels
def a_launch_keeps_memory_of_another_stream() -> None:
    def work(x: Any) -> Any:
        out = buffer.empty((64,), A.dtype, CUDA0)
        launch(copy_kernel, (1,), (out, x), {"BLOCK": 64}, CUDA0)
        return out

    check(in_another_stream(work))


@with_kernels
def a_launch_that_is_bound_keeps_memory_of_another_stream() -> None:
    out = on_device(B)
    bound = bind(copy_kernel, (1,), (out, out), {"BLOCK": 64}, CUDA0)

    def work(x: Any) -> Any:
        out = buffer.empty((64,), A.dtype, CUDA0)
        bound(out, x)
        return out

    check(in_another_stream(work))


@kernel
def reaching_kernel(out_ptr, table_ptr, BLOCK: tl.constexpr):
    index = tl.arange(0, BLOCK)
    found_ptr = tl.load(table_ptr).to(tl.pointer_type(tl.float32))
    tl.store(out_ptr + index, tl.load(found_ptr + index))


@with_kernels
def a_launch_keeps_what_it_reaches_by_a_table() -> None:
    def work(x: Any) -> Any:
        out = buffer.empty((64,), A.dtype, CUDA0)
        table = copies.from_host(np.array([x.data_ptr()]), CUDA0)
        launch(reaching_kernel, (1,), (out, table), {"BLOCK": 64}, CUDA0, reaches=(("x",), [(x,)]))
        return out

    check(in_another_stream(work))


def tensor() -> Any:
    x = torch.from_numpy(A.copy()).cuda()
    cuda.synchronize()
    return x


def replayed(work: Callable[[Any], Any], expected: np.ndarray) -> None:
    """Work that real devices repeat without going the long way."""
    for _ in range(2):
        work(tensor())
    check(in_another_stream(work, tensor).cpu().numpy(), expected)


@with_kernels
def an_operator_of_one_array_keeps_memory_of_another_stream() -> None:
    replayed(lambda x: -x, -A)


@with_kernels
def an_operator_of_an_array_and_a_number_keeps_memory_of_another_stream() -> None:
    replayed(lambda x: x * 2, A * 2)


@with_kernels
def an_operator_of_two_arrays_keeps_the_first_ones_memory() -> None:
    replayed(lambda x: x + tensor(), A + A)


@with_kernels
def an_operator_of_two_arrays_keeps_the_second_ones_memory() -> None:
    replayed(lambda x: tensor() + x, A + A)


@with_kernels
def a_change_in_place_keeps_the_memory_that_it_changes() -> None:
    for _ in range(2):
        tensor().add_(tensor())
    x, side = tensor(), cuda.Stream()
    with cuda.stream(side):
        x.add_(tensor())
    del x
    z = copies.from_host(B, CUDA0)
    default().synchronize()
    side.synchronize()
    check(z, B)


@with_kernels
def a_change_in_place_keeps_the_memory_that_it_reads() -> None:
    replayed(lambda x: tensor().add_(x), A + A)


@with_kernels
def an_operator_of_three_arrays_keeps_memory_of_another_stream() -> None:
    replayed(lambda x: torch.lerp(x, x, x), A)


@with_kernels
def an_operator_whose_first_call_is_recorded_keeps_memory_of_another_stream() -> None:
    check(in_another_stream(lambda x: x * 3, tensor).cpu().numpy(), A * 3)


@with_kernels
def the_line_about_a_launch_gives_the_time_that_it_took() -> None:
    x, written = tensor(), []
    before, sys.stderr = sys.stderr, type("Notes", (), {"write": lambda self, text: written.append(text)})()  # type: ignore[assignment]
    try:
        with settings.debug(2):
            x.exp()
    finally:
        sys.stderr = before
    (found,) = re.findall(r": ([0-9.]+) (us|ms|s),", "".join(written))
    assert 50e-6 < float(found[0]) * {"us": 1e-6, "ms": 1e-3, "s": 1}[found[1]] < 20


# ---- the tests ------------------------------------------------------------------------------------------------------


def run(kind: str, each: Callable[[], None]) -> None:
    with late(kind):
        each()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("each", PROGRAMS, ids=lambda each: each.__name__)
def test_programs_are_right_on_a_late_device(each: Callable[[], None], kind: str) -> None:
    run(kind, each)


def _is_of_the_driver(site: Site) -> bool:
    return site.module == "tritensor.drivers.cuda"


@pytest.mark.parametrize("site", [site for site in sites() if _is_of_the_driver(site) == ON_STUB], ids=str)
def test_without_this_wait_a_program_fails(site: Site) -> None:
    # the likely ones first: those of launches are the last ones above, and need what passes for a real device
    direction = -1 if site.module.startswith(("tritensor.kernels", "tritensor.runtime")) else 1
    tried = [(kind, each) for kind in KINDS[::direction] for each in PROGRAMS[::direction]]
    if direction == -1 and not HAS_TRITON:
        pytest.skip("the programs that need this one launch kernels, which needs Triton")
    with without(site):
        noticed = any(fails(lambda kind=kind, each=each: run(kind, each)) for kind, each in tried)
    assert noticed, (
        f"{site.module}.{site.function}: nothing notices when this is left out: {site.text}\nIt is needless, or a "
        "program that needs it is missing here."
    )


def test_waits_are_found_in_the_source() -> None:
    found = [site.text for site in sites()]
    assert len(set(sites())) == len(found) > 60
    for text in ("data.wait()", "driver.mark_synchronize(mark)", "stream.wait_stream(target_stream)", "mark.is_done"):
        assert text in found


@pytest.mark.skipif(ON_STUB, reason="this is the stub")
def test_the_driver_of_real_devices_needs_its_waits_too(tmp_path: Path) -> None:
    stub = libcuda_stub.environment(tmp_path, STUB_DEVICES="2", STUB_LATE="1", STUB_MEMORY=str(MEMORY))
    result = libcuda_stub.run(stub, "-m", "pytest", "-q", "-p", "no:cacheprovider", __file__, timeout=300)
    assert result.returncode == 0, result.stdout + result.stderr
    assert "skipped" not in result.stdout.splitlines()[-1].replace("1 skipped", "")
