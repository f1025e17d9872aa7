"""Device arrays, the copies between host and devices, and the allocator under them, on simulated devices."""

from __future__ import annotations

import gc

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from tritensor import settings as options
from tritensor.drivers import allocator as memory
from tritensor.drivers import simulate
from tritensor.drivers.allocator import is_pinned
from tritensor.errors import ArgumentError, OutOfMemoryError, ShapeError
from tritensor.memory import buffer, copies
from tritensor.types import devices, layout

CUDA0, CUDA1 = devices.cuda(0), devices.cuda(1)
F32 = np.dtype(np.float32)
shapes = hnp.array_shapes(min_dims=0, max_dims=4, min_side=0, max_side=4)


@pytest.fixture
def simulator():
    with simulate(devices=2) as driver:
        yield driver


@pytest.fixture
def late():
    with options.simulate_late(True):
        yield


def same(found, expected):
    """Equal elements, and equal shapes and dtypes too: NumPy's own comparison broadcasts."""
    np.testing.assert_array_equal(found, np.asarray(expected), strict=True)


def numbers(*shape, dtype=np.float32):
    return np.arange(int(np.prod(shape))).reshape(shape).astype(dtype)


# -- arrays and their views


@settings(max_examples=150)
@given(shapes, st.data())
def test_views_select_what_numpys_select(shape, data):
    base = numbers(*shape)
    order = tuple(data.draw(st.permutations(range(base.ndim))))
    key = data.draw(hnp.basic_indices(shape, allow_newaxis=True, allow_ellipsis=False))
    key = key if isinstance(key, tuple) else (key,)
    with simulate():
        array = copies.from_host(base, CUDA0)
        same(copies.to_host(array), base)
        same(copies.to_host(array.transpose(order)), base.transpose(order))
        selected, expected = array[key], base[(*key, ...)]
        assert selected.buffer is array.buffer
        same(copies.to_host(selected), expected)
        assert (selected.shape, selected.ndim, selected.size) == (expected.shape, expected.ndim, expected.size)
        assert selected.nbytes == expected.nbytes
        wide = (2, *selected.shape)
        same(copies.to_host(selected.broadcast_to(wide)), np.broadcast_to(expected, wide))


def test_reshape_is_a_view_or_says_that_it_takes_a_copy(simulator):
    array = copies.from_host(numbers(2, 3), CUDA0)
    flat = array.reshape((-1,))
    assert flat.buffer is array.buffer
    np.testing.assert_array_equal(copies.to_host(flat), numbers(6))
    with pytest.raises(layout.NotViewable):
        array.transpose((1, 0)).reshape((6,))
    with pytest.raises(ShapeError, match=r"^shape '\[4\]' is invalid for input of size 6"):
        array.reshape((4,))


def test_as_strided_stays_inside_of_the_buffer(simulator):
    array = copies.from_host(numbers(6), CUDA0)
    windows = array.as_strided((4, 3), (1, 1), 0)
    expected = np.lib.stride_tricks.sliding_window_view(numbers(6), 3)
    np.testing.assert_array_equal(copies.to_host(windows), expected)
    np.testing.assert_array_equal(copies.to_host(array.as_strided((6,), (-1,), 5)), numbers(6)[::-1])
    for shape, strides, offset in [((7,), (1,), 0), ((2,), (1,), 5), ((2,), (-1,), 0)]:
        with pytest.raises(ShapeError, match=r"^setStorage: sizes"):
            array.as_strided(shape, strides, offset)


def test_data_ptr_counts_from_the_first_element(simulator):
    array = copies.from_host(numbers(3, 4), CUDA0)
    assert array.data_ptr() % 256 == 0
    assert array[1, 2].data_ptr() - array.data_ptr() == 6 * 4
    assert array[::-1].data_ptr() - array.data_ptr() == 8 * 4
    assert len(array) == 3
    assert array.itemsize == 4
    assert array.is_contiguous()
    assert not array[:, 1:].is_contiguous()
    assert repr(array[:, 1:]) == "<DeviceArray float32[3, 3] strides [4, 1] on cuda:0>"


def test_numpy_cannot_see_device_memory(simulator):
    array = copies.from_host(numbers(3), CUDA0)
    with pytest.raises(TypeError, match=r"^can't convert cuda:0 device type tensor to numpy. Use Tensor.cpu\(\)"):
        np.asarray(array)
    with pytest.raises(ArgumentError):
        np.add(array, 1)
    with pytest.raises(TypeError):
        memoryview(array)


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16, np.float32, np.float64, np.complex64])
def test_empty_is_nan_where_it_is_simulated(simulator, dtype):
    assert np.isnan(copies.to_host(buffer.empty((5,), np.dtype(dtype), CUDA0)).astype(np.complex64)).all()


def test_empty_integers_are_recognisable(simulator):
    found = copies.to_host(buffer.empty((3,), np.dtype(np.int32), CUDA0))
    assert (found.view(np.uint8) == 0xA5).all()


def test_memory_that_is_used_again_is_poisoned_again(simulator):
    first = copies.from_host(numbers(4), CUDA0)
    address = first.data_ptr()
    del first
    second = buffer.empty((4,), F32, CUDA0)
    assert second.data_ptr() == address
    assert np.isnan(copies.to_host(second)).all()


# -- copies


@pytest.mark.parametrize("chunk", [64, 4 << 20])
@pytest.mark.parametrize("late_streams", [False, True])
@pytest.mark.parametrize("non_blocking", [False, True])
def test_host_copies_in_pieces_of_any_size(simulator, monkeypatch, chunk, late_streams, non_blocking):
    monkeypatch.setattr(copies, "CHUNK", chunk)
    host = numbers(33, 7)
    with options.simulate_late(late_streams):
        array = copies.from_host(host, CUDA1, non_blocking)
        assert array.device is CUDA1
        same(copies.to_host(array), host)
        same(copies.to_host(array[::2, 1::3]), host[::2, 1::3])
        same(copies.to_host(array.transpose((1, 0)), non_blocking=True).wait(), host.T)


@pytest.mark.parametrize("pinned", [False, True])
@pytest.mark.parametrize("count", [5, 1 << 19])
@pytest.mark.parametrize("non_blocking", [False, True])
def test_a_source_overwritten_in_flight_does_no_harm(simulator, late, pinned, count, non_blocking):
    host = copies.pin(numbers(count)) if pinned else numbers(count)
    array = copies.from_host(host, CUDA0, non_blocking)
    host[:] = -1
    np.testing.assert_array_equal(copies.to_host(array), numbers(count))


def test_without_the_snapshot_an_overwritten_source_corrupts_the_copy(simulator, late):
    array = buffer.empty((4,), F32, CUDA0)
    host = numbers(4)
    simulator.copy_h2d(array.data_ptr(), host.view(np.uint8), simulator.current_stream(0).handle)
    host[:] = -1
    np.testing.assert_array_equal(copies.to_host(array), [-1, -1, -1, -1])


@pytest.mark.parametrize("late_streams", [False, True])
def test_an_unfinished_copy_holds_nan_until_it_is_waited_for(simulator, late_streams):
    with options.simulate_late(late_streams):
        array = copies.from_host(numbers(2, 3), CUDA0)
        pending = copies.to_host(array, non_blocking=True)
        assert np.isnan(pending.raw).all()
        assert (pending.shape, pending.ndim, pending.size, pending.nbytes) == ((2, 3), 2, 6, 24)
        with pytest.raises(ArgumentError, match="under way"):
            np.asarray(pending)
        np.testing.assert_array_equal(pending.wait(), numbers(2, 3))
        assert pending.wait() is pending.wait()
        assert pending.done()


def test_an_unfinished_copy_shows_what_was_there_when_it_was_asked_for(simulator, late):
    array = copies.from_host(numbers(3), CUDA0)
    pending = copies.to_host(array, non_blocking=True)
    copies.copy_into(array, np.zeros(3, np.float32))
    np.testing.assert_array_equal(pending.wait(), numbers(3))
    np.testing.assert_array_equal(copies.to_host(array), [0, 0, 0])


def test_an_unfinished_copy_that_nobody_reads_does_no_harm(simulator, late):
    array = copies.from_host(numbers(3), CUDA0)
    copies.to_host(array, non_blocking=True)
    other = copies.to_host(array, non_blocking=True)
    np.testing.assert_array_equal(other.wait(), numbers(3))


def test_done_asks_without_waiting(simulator, late):
    pending = copies.to_host(copies.from_host(numbers(3), CUDA0), non_blocking=True)
    assert not pending.done()
    asked = 1
    while not pending.done():
        asked += 1
        assert asked < 20
    np.testing.assert_array_equal(pending.raw, numbers(3))


@pytest.mark.parametrize("late_streams", [False, True])
@pytest.mark.parametrize("where", [CUDA0, CUDA1])
def test_devices_copy_among_themselves(simulator, late_streams, where):
    host = numbers(3, 4)
    with options.simulate_late(late_streams):
        array = copies.from_host(host, CUDA0)
        for view, expected in [
            (array, host),
            (array[:, 1:], host[:, 1:]),
            (array[::-1], host[::-1]),
            (array[:0], host[:0]),
        ]:
            moved = copies.copy_across(view, where, non_blocking=True)
            assert moved.device is where
            assert moved.strides == view.strides
            assert moved.buffer is not array.buffer
            np.testing.assert_array_equal(copies.to_host(moved), expected)


@pytest.mark.parametrize("source", ["host", "same device", "other device"])
def test_copy_into_overwrites(simulator, source):
    target = copies.from_host(numbers(2, 3), CUDA0)
    value = numbers(2, 3) + 10
    given_ = value if source == "host" else copies.from_host(value, CUDA0 if source == "same device" else CUDA1)
    copies.copy_into(target, given_)
    np.testing.assert_array_equal(copies.to_host(target), value)
    copies.copy_into(target[0], np.zeros(3, np.float32))
    np.testing.assert_array_equal(copies.to_host(target), [[0, 0, 0], [13, 14, 15]])
    copies.copy_into(target[:0], np.zeros((0, 3), np.float32))


def test_copy_into_refuses_what_does_not_fit_and_changes_nothing(simulator):
    target = copies.from_host(numbers(2, 3), CUDA0)
    for bad in (np.zeros((3, 2), np.float32), np.zeros((2, 3), np.int32), copies.from_host(numbers(3, 2), CUDA1)):
        with pytest.raises(ShapeError, match="the arrays differ"):
            copies.copy_into(target, bad)
    with pytest.raises(ShapeError, match="contiguous"):
        copies.copy_into(target.transpose((1, 0)), numbers(3, 2))
    with pytest.raises(ShapeError, match="contiguous"):
        copies.copy_into(target, copies.from_host(numbers(3, 2), CUDA1).transpose((1, 0)))
    np.testing.assert_array_equal(copies.to_host(target), numbers(2, 3))


@pytest.mark.parametrize("non_blocking", [False, True])
def test_a_scalar_stays_a_scalar(simulator, non_blocking):
    array = copies.from_host(np.array(3, np.float32), CUDA0)
    assert array.shape == ()
    same(copies.to_host(array), np.float32(3))
    same(copies.to_host(array, non_blocking=True).wait(), np.float32(3))
    same(copies.to_host(copies.copy_across(array, CUDA1)), np.float32(3))
    copies.copy_into(array, np.array(4, np.float32), non_blocking)
    same(copies.to_host(array), np.float32(4))


def test_nothing_can_be_copied_too(simulator):
    array = copies.from_host(np.zeros((0, 3), np.float32), CUDA0)
    assert copies.to_host(array).shape == (0, 3)
    assert copies.to_host(array, non_blocking=True).shape == (0, 3)
    assert copies.copy_across(array, CUDA1).shape == (0, 3)


def test_a_host_copy_waits_for_every_stream_that_used_the_memory(simulator, late):
    """What another stream wrote is seen when the memory knows about that stream, and only then."""
    for recorded in (True, False):
        array = copies.from_host(np.zeros(3, np.float32), CUDA0)
        simulator.synchronize(0)
        stream = simulator.create_stream(0)
        view = simulator.memory(array.data_ptr(), 12).view(np.float32)
        simulator.submit(stream, lambda view=view: view.fill(7))
        if recorded:
            array.buffer.record_stream(stream)
            array.buffer.record_stream(stream)
            assert len(array.buffer.users) == 1
        np.testing.assert_array_equal(copies.to_host(array), np.full(3, 7 if recorded else 0))


# -- pinned memory


def test_pinned_memory_is_recognised_through_views(simulator):
    host = numbers(4, 5)
    pinned = copies.pin(host)
    np.testing.assert_array_equal(pinned, host)
    assert is_pinned(pinned)
    assert is_pinned(pinned[1:, ::2].T)
    assert not is_pinned(host)
    assert not is_pinned(pinned.copy())
    assert copies.pin(pinned) is pinned
    assert copies.pin(np.empty((0, 3), np.float32)).shape == (0, 3)


@pytest.mark.usefixtures("no_device")
def test_pin_changes_nothing_where_there_is_no_device():
    host = numbers(3)
    assert copies.pin(host) is host


def test_pinned_memory_goes_back_to_its_pool_with_the_last_view(simulator):
    pinned = copies.pin(numbers(4))
    address = pinned.ctypes.data
    view = pinned[1:]
    del pinned
    assert copies.pin(numbers(4)).ctypes.data != address
    del view
    assert copies.pin(numbers(4)).ctypes.data == address
    simulator.pinned.empty_cache()
    assert not simulator.pinned.bins


def test_blocks_in_flight_are_not_used_again_and_not_without_limit(simulator, late, monkeypatch):
    monkeypatch.setattr(simulator, "mark_done", lambda mark: mark.done)  # a device that takes its time
    pool, queue = simulator.pinned, simulator.current_stream(0).handle
    pool.limit = 3 * 4096
    addresses = []
    for _ in range(8):
        block = pool.take(100)
        address = block.bytes.ctypes.data
        assert all(other.bytes.ctypes.data != address for _, other, _ in pool.in_flight)
        assert pool.bytes_in_flight <= pool.limit
        addresses.append(address)
        pool.hold_until(block, simulator.mark(queue))
    assert len(set(addresses)) == 4


# -- the allocator


@given(st.integers(0, 1 << 40))
def test_size_classes_waste_little(nbytes):
    size = memory.round_size(nbytes)
    assert size >= max(nbytes, 1)
    assert size % 512 == 0
    assert size - nbytes <= (512 if nbytes <= 1 << 20 else min(nbytes / 8, 2 << 20))
    assert memory.round_size(size) == size


def test_memory_lives_as_long_as_the_last_view(simulator):
    array = copies.from_host(numbers(100), CUDA0)
    view = array[3:4]
    del array
    assert simulator.memory_stats(0)["allocated"] == 512
    np.testing.assert_array_equal(copies.to_host(view), [3])
    del view
    stats = simulator.memory_stats(0)
    assert stats["allocated"] == 0
    assert stats["allocated_peak"] == stats["reserved"] == 512
    assert stats["live_buffers"] == 0


def test_freed_memory_serves_the_same_stream_again_and_no_other(simulator):
    first = buffer.empty((4,), F32, CUDA0)
    address = first.data_ptr()
    del first
    stream = simulator.create_stream(0)
    before = simulator.set_current_stream(stream)
    other = buffer.empty((4,), F32, CUDA0)
    assert other.data_ptr() != address
    simulator.set_current_stream(before)
    assert buffer.empty((4,), F32, CUDA0).data_ptr() == address
    assert simulator.memory_stats(0)["driver_allocations"] == 2


@pytest.mark.parametrize("recorded", [True, False])
def test_memory_that_another_stream_uses_is_not_given_out_before_that_is_done(simulator, late, recorded):
    """Without record_stream the new owner's bytes are what the slow reader sees: the mistake that it prevents."""
    array = copies.from_host(numbers(4), CUDA0)
    stream = simulator.create_stream(0)
    stream.wait_stream(simulator.current_stream(0))
    address, seen = array.data_ptr(), []
    simulator.submit(stream, lambda: seen.append(simulator.memory(address, 16).view(np.float32).copy()))
    if recorded:
        array.buffer.record_stream(stream)
    del array
    second = copies.from_host(np.full(4, 9, np.float32), CUDA0)
    assert second.data_ptr() == address
    simulator.current_stream(0).synchronize()
    stream.synchronize()
    np.testing.assert_array_equal(seen[0], numbers(4) if recorded else np.full(4, 9))


def test_cached_memory_is_handed_back_on_request(simulator):
    stream = simulator.create_stream(0)
    kept = buffer.empty((1000,), F32, CUDA0)
    used = buffer.empty((1000,), F32, CUDA0)
    used.buffer.record_stream(stream)
    del used
    buffer.empty((5000,), F32, CUDA0)
    assert simulator.memory_stats(0)["reserved"] == 2 * 4096 + 20480 - 20480 % 512
    simulator.heap(0).release()
    assert simulator.memory_stats(0)["reserved"] == 4096
    assert simulator.memory_info(0) == ((16 << 30) - 4096, 16 << 30)
    assert np.isnan(copies.to_host(kept)).all()


def test_a_stream_that_goes_takes_its_cache_with_it(simulator):
    stream = simulator.create_stream(0)
    before = simulator.set_current_stream(stream)
    array = copies.from_host(numbers(4), CUDA0)
    simulator.set_current_stream(before)
    del stream
    np.testing.assert_array_equal(copies.to_host(array), numbers(4))
    del array
    gc.collect()
    assert simulator.memory_stats(0)["reserved"] == 0


def test_capacity_runs_out_with_a_report():
    with simulate(memory="1MB") as driver:
        weights = buffer.empty((300, 300), F32, CUDA0)
        small = buffer.empty((7,), np.dtype(np.int64), CUDA0)
        with pytest.raises(OutOfMemoryError) as error:
            buffer.empty((1000, 200), F32, CUDA0)
        text = str(error.value)
        assert text.startswith("CUDA out of memory. Tried to allocate 781.25 KiB.")
        assert "Simulated" in text
        assert "2 live buffers" in text
        assert text.index("351.56 KiB, float32[300, 300]") < text.index("56 bytes, int64[7]")
        assert driver.memory_stats(0)["allocated"] == 360448 + 512
        assert weights.size
        assert small.size


def test_out_of_memory_is_a_runtime_error_that_leaves_the_rest_usable():
    with simulate(memory="1MB"):
        array = copies.from_host(numbers(100), CUDA0)
        with pytest.raises(RuntimeError, match=r"^CUDA out of memory"):
            copies.from_host(np.zeros(1 << 20, np.float32), CUDA0)
        np.testing.assert_array_equal(copies.to_host(array), numbers(100))


@pytest.mark.parametrize("late_streams", [False, True])
def test_caches_are_freed_before_memory_runs_out(late_streams):
    with options.simulate_late(late_streams), simulate(memory="1MB") as driver:
        for count in (200_000, 150_000, 240_000):
            assert copies.from_host(np.zeros(count, np.float32), CUDA0).size == count
        assert driver.memory_stats(0)["retries"] == 2
        assert driver.memory_stats(0)["live_buffers"] == 0


def test_memory_in_reference_cycles_is_found_before_memory_runs_out():
    class Holder:
        pass

    with simulate(memory="1MB"):
        holder = Holder()
        holder.itself, holder.array = holder, buffer.empty((200_000,), F32, CUDA0)
        gc.disable()
        try:
            del holder
            assert buffer.empty((200_000,), F32, CUDA0).size == 200_000
        finally:
            gc.enable()


def test_all_of_the_capacity_can_be_used():
    capacity = 20_000 * 512
    assert memory.round_size(capacity) > capacity
    with simulate(memory=capacity):
        assert buffer.empty((capacity,), np.dtype(np.int8), CUDA0).nbytes == capacity


def test_live_memory_is_listed_by_address(simulator):
    first = buffer.empty((2, 3), F32, CUDA0)
    second = buffer.empty((4,), np.dtype(np.int64), CUDA0)
    expected = sorted([(first.data_ptr(), 24, "float32[2, 3]"), (second.data_ptr(), 32, "int64[4]")])
    assert simulator.spans(0) == expected
    assert simulator.spans(1) == []


def test_debug_mode_says_where_memory_was_made(simulator):
    with options.debug(1):
        array = buffer.empty((2,), F32, CUDA0)
    assert "test_buffer.py:" in simulator.spans(0)[0][2]
    assert array.buffer.driver is simulator
    assert array.buffer.device is CUDA0


def test_sizes_are_written_for_reading():
    assert [memory.readable(n) for n in (3, 2048, 3 << 19, 5 << 30)] == ["3 bytes", "2.00 KiB", "1.50 MiB", "5.00 GiB"]
