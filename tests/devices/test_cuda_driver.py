"""The driver of real devices.

The tests run on a GPU where there is one, and on any Linux machine with cuda-core and a C compiler over a stub of
libcuda that keeps "device" memory on the host (libcuda_stub.c).
"""

from __future__ import annotations

import gc
import os
import threading
import warnings

import numpy as np
import pytest

from tritensor import cuda, drivers
from tritensor import settings as options
from tritensor.drivers.allocator import is_pinned
from tritensor.errors import DeviceError
from tritensor.memory import buffer, copies
from tritensor.types import devices

CUDA0, CUDA1 = devices.cuda(0), devices.cuda(1)
F32 = np.dtype(np.float32)


def numbers(*shape):
    return np.arange(int(np.prod(shape)), dtype=np.float32).reshape(shape)


@pytest.fixture
def driver():
    with options.simulate_cuda(0):
        found = drivers.active()
        if found is None:
            pytest.skip("no CUDA device here; the tests run on a stub of the driver as well")
        yield found
        found.synchronize(0)


def test_the_device_is_described(driver):
    found = cuda.get_device_properties(0)
    assert found.name == cuda.get_device_name() != ""
    assert "Simulated" not in found.name
    assert (found.major, found.minor) == cuda.get_device_capability() >= (5, 0)
    assert found.warp_size == 32
    assert found.multi_processor_count > 0
    assert found.L2_cache_size > 0
    assert found.shared_memory_per_block_optin >= 48 << 10
    assert driver.properties(0) is found
    free, total = cuda.mem_get_info()
    assert 0 < free <= total
    assert total <= found.total_memory * 1.01


@pytest.mark.parametrize("chunk", [64, 4 << 20])
@pytest.mark.parametrize("non_blocking", [False, True])
@pytest.mark.parametrize("pinned", [False, True])
def test_bytes_come_back_as_they_went(driver, monkeypatch, chunk, non_blocking, pinned):
    monkeypatch.setattr(copies, "CHUNK", chunk)
    host = copies.pin(numbers(33, 7)) if pinned else numbers(33, 7)
    array = copies.from_host(host, CUDA0, non_blocking)
    host[:] = -1
    np.testing.assert_array_equal(copies.to_host(array), numbers(33, 7))
    pending = copies.to_host(array[::2, 1::3].transpose((1, 0)), non_blocking=True)
    np.testing.assert_array_equal(pending.wait(), numbers(33, 7)[::2, 1::3].T)
    assert pending.done()
    same = copies.copy_across(array[:, 2:], CUDA0)
    np.testing.assert_array_equal(copies.to_host(same), numbers(33, 7)[:, 2:])
    copies.copy_into(array, np.zeros((33, 7), np.float32))
    assert not copies.to_host(array).any()
    driver.fill(array.data_ptr(), 0xFF, array.nbytes, driver.current_stream(0).handle)
    assert np.isnan(copies.to_host(array)).all()


def test_memory_is_used_again_and_handed_back(driver):
    gc.collect()
    cuda.empty_cache()
    before = cuda.memory_stats()
    first = buffer.empty((1000,), F32, CUDA0)
    address = first.data_ptr()
    assert address % 256 == 0
    del first
    assert buffer.empty((1000,), F32, CUDA0).data_ptr() == address
    assert cuda.memory_stats()["driver_allocations"] == before["driver_allocations"] + 1
    cuda.empty_cache()
    assert cuda.memory_reserved() == before["reserved"]


def test_the_pool_keeps_what_is_freed(driver):
    """At 0, as it comes, it gives memory back at every synchronisation."""
    buffer.empty((1,), F32, CUDA0)
    attribute = driver._cuda.CUmemPool_attribute.CU_MEMPOOL_ATTR_RELEASE_THRESHOLD
    status, threshold = driver._cuda.cuMemPoolGetAttribute(driver._pools[0], attribute)
    assert (int(status), int(threshold)) == (0, 2**64 - 1)


def test_pinned_memory_is_given_back_to_the_system(driver, monkeypatch):
    freed, free = [], driver._cuda.cuMemFreeHost
    monkeypatch.setattr(driver._cuda, "cuMemFreeHost", lambda address: freed.append(address) or free(address))
    memory = driver.allocate_pinned(1000)
    address, view = memory.ctypes.data, memory[10:]
    assert (memory.nbytes, memory.dtype) == (1000, np.uint8)
    del memory
    assert freed == []
    del view
    assert freed == [address]


def test_asking_for_too_much_raises_and_leaves_the_rest_usable(driver):
    array = copies.from_host(numbers(100), CUDA0)
    with pytest.raises(cuda.OutOfMemoryError, match=r"^CUDA out of memory. Tried to allocate"):
        buffer.empty((2 * driver.total_memory(0),), np.dtype(np.int8), CUDA0)
    np.testing.assert_array_equal(copies.to_host(array), numbers(100))


def test_streams_are_ordered_by_events(driver):
    stream = cuda.Stream(priority=-100)
    assert stream.handle.priority <= 0
    assert stream.handle.is_nonblocking
    assert not cuda.default_stream().handle.is_nonblocking
    assert stream.cuda_stream != cuda.default_stream().cuda_stream
    start, end = cuda.Event(enable_timing=True), cuda.Event(enable_timing=True)
    with cuda.stream(stream):
        start.record()
        array = copies.from_host(numbers(1000), CUDA0, non_blocking=True)
        end.record()
    array.buffer.record_stream(cuda.current_stream())
    cuda.current_stream().wait_event(end)
    cuda.current_stream().wait_stream(stream)
    np.testing.assert_array_equal(copies.to_host(array), numbers(1000))
    end.synchronize()
    assert end.query()
    assert start.elapsed_time(end) >= 0
    end.record(stream)
    stream.synchronize()
    assert stream.query()
    del array
    again = copies.from_host(numbers(1000), CUDA0)
    np.testing.assert_array_equal(copies.to_host(again), numbers(1000))
    with pytest.raises(DeviceError, match="is not simulated"):
        driver.submit(stream, print)


def test_other_threads_use_the_device_too(driver):
    found = []

    def work():
        array = copies.from_host(numbers(50), CUDA0)
        found.append(copies.to_host(array))
        found.append(cuda.current_stream() is cuda.default_stream())
        driver.pinned.empty_cache()
        found.append(is_pinned(copies.pin(numbers(3))))

    pending = copies.to_host(copies.from_host(numbers(7), CUDA0), non_blocking=True)
    reader = threading.Thread(target=lambda: found.append(pending.done() or pending.wait() is not None))
    reader.start()
    reader.join()
    assert found.pop()
    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    np.testing.assert_array_equal(found[0], numbers(50))
    assert found[1:] == [True, True]


def test_an_ordinal_that_is_not_there_is_refused(driver):
    beyond = cuda.device_count()
    for ask in (cuda.set_device, cuda.synchronize, cuda.get_device_name, cuda.mem_get_info, cuda.Stream):
        with pytest.raises(DeviceError, match=r"^CUDA error: invalid device ordinal"):
            ask(beyond)


def test_devices_copy_to_one_another(driver):
    if cuda.device_count() < 2:
        pytest.skip("one device only")
    array = copies.from_host(numbers(100), CUDA0)
    moved = copies.copy_across(array, CUDA1)
    assert moved.device is CUDA1
    np.testing.assert_array_equal(copies.to_host(moved), numbers(100))
    with cuda.device(1):
        assert cuda.current_stream().device is CUDA1
        assert cuda.Stream().handle.device.device_id == 1
        driver.synchronize(0)
        assert not cuda.current_stream().handle.is_nonblocking
    assert cuda.default_stream(1).handle.device.device_id == 1
    side = cuda.Stream(1)
    side.wait_stream(cuda.current_stream(0))
    assert driver.queue_done(side.handle) in (True, False)


def access(driver, reader, owner):
    """What the driver says of a device's access to the pool of another."""
    place = driver._cuda.CUmemLocation()
    place.type, place.id = driver._cuda.CUmemLocationType.CU_MEM_LOCATION_TYPE_DEVICE, reader
    status, flags = driver._cuda.cuMemPoolGetAccess(driver._pools[owner], place)
    assert int(status) == 0
    return int(flags)


def test_devices_that_can_reach_one_another_copy_without_the_host(driver):
    count = cuda.device_count()
    if count < 2:
        pytest.skip("one device only")
    for index in range(1, count):
        moved = copies.copy_across(copies.from_host(numbers(9), CUDA0), devices.cuda(index))
        np.testing.assert_array_equal(copies.to_host(moved), numbers(9))
        possible = cuda.can_device_access_peer(0, index)
        assert access(driver, 0, index) == access(driver, index, 0) == (3 if possible else 0)
        assert not cuda.can_device_access_peer(index, index)
    with pytest.raises(DeviceError, match=r"^CUDA error: invalid device ordinal"):
        cuda.can_device_access_peer(0, count)


def test_a_graph_repeats_copies_and_fills_on_the_same_memory(driver):
    source, target = copies.from_host(numbers(100), CUDA0), copies.from_host(np.zeros(100, np.float32), CUDA0)
    pinned = copies.pin(np.ones(100, np.float32))
    graph = cuda.CUDAGraph()
    with cuda.graph(graph):
        assert cuda.is_current_stream_capturing()
        copies.copy_into(target, source)
        made = buffer.empty((100,), F32, CUDA0)
        copies.copy_into(made, target)
        driver.fill(target.data_ptr(), 0, 40, cuda.current_stream().handle)
        read = buffer.empty((100,), F32, CUDA0)
        copies.copy_into(read, pinned, non_blocking=True)
        constant = copies.constant(numbers(7), CUDA0)
        kept = copies.copy_across(constant, CUDA0)
    assert not cuda.is_current_stream_capturing()
    np.testing.assert_array_equal(copies.to_host(target), np.zeros(100))
    for turn in range(3):
        copies.copy_into(source, numbers(100) + turn)
        pinned[:] = turn
        graph.replay()
        np.testing.assert_array_equal(copies.to_host(made), numbers(100) + turn)
        np.testing.assert_array_equal(copies.to_host(target)[10:], numbers(100)[10:] + turn)
        assert not copies.to_host(target)[:10].any()
        assert (copies.to_host(read) == turn).all()
        np.testing.assert_array_equal(copies.to_host(kept), numbers(7))
    del source, target, constant
    graph.reset()
    np.testing.assert_array_equal(copies.to_host(made), numbers(100) + 2)


def test_what_cannot_be_captured_is_refused_before_the_driver_sees_it(driver):
    array = copies.from_host(numbers(10), CUDA0)
    side = cuda.Stream()
    event = cuda.Event()
    event.record()

    def capture_with(graph, refused):
        with cuda.graph(graph, stream=side):
            copies.copy_into(buffer.empty((10,), F32, CUDA0), array)
            refused()

    for refused in (
        lambda: copies.to_host(array),
        lambda: copies.from_host(numbers(3), CUDA0),
        cuda.synchronize,
        side.synchronize,
        side.query,
        lambda: event.record(side),
        lambda: side.wait_event(event),
        lambda: side.wait_stream(cuda.default_stream()),
        cuda.empty_cache,
    ):
        graph = cuda.CUDAGraph()
        with pytest.raises(DeviceError, match=r"^CUDA error: operation not permitted when stream is capturing"):
            capture_with(graph, refused)
        with pytest.raises(DeviceError, match=r"^Called CUDAGraph::replay without a preceding successful capture"):
            graph.replay()
        side.synchronize()
        cuda.synchronize()
        assert driver.captures == {}
    # memory that runs out in a capture is asked for again without waiting for the device
    with pytest.raises(cuda.OutOfMemoryError), cuda.graph(cuda.CUDAGraph(), stream=side):
        buffer.empty((2 * driver.total_memory(0),), np.dtype(np.int8), CUDA0)
    np.testing.assert_array_equal(copies.to_host(array), numbers(10))


def test_the_memory_of_a_graph_is_used_again_and_handed_back(driver):
    gc.collect()
    cuda.empty_cache()
    before = cuda.memory_reserved()
    array = copies.from_host(numbers(1000), CUDA0)
    graph = cuda.CUDAGraph()
    with cuda.graph(graph):
        for _ in range(3):
            made = buffer.empty((1000,), F32, CUDA0)
            copies.copy_into(made, array)
            address = made.data_ptr()
            del made
        last = buffer.empty((1000,), F32, CUDA0)
        assert last.data_ptr() == address
        copies.copy_into(last, array)
    cuda.empty_cache()
    # what is free belongs to the graph as well
    del last
    assert buffer.empty((1000,), F32, CUDA0).data_ptr() != address
    cuda.empty_cache()
    assert cuda.memory_reserved() > before + array.nbytes
    graph.replay()
    del graph, array
    gc.collect()
    cuda.empty_cache()
    assert cuda.memory_reserved() == before


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_a_forked_child_says_that_it_cannot_use_cuda(driver):
    array = copies.from_host(numbers(3), CUDA0)
    stream = cuda.Stream()
    reader, writer = os.pipe()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Python warns of forking beside threads
        child = os.fork()
    if child == 0:
        try:
            text = ""
            for use in (lambda: copies.to_host(array), lambda: buffer.empty((2,), F32, CUDA0), cuda.synchronize):
                try:
                    use()
                except RuntimeError as error:
                    text += str(error).splitlines()[0] + "\n"
            del array, stream
            gc.collect()
            os.write(writer, text.encode())
        finally:
            os._exit(0)
    os.waitpid(child, 0)
    os.close(writer)
    with os.fdopen(reader) as pipe:
        lines = pipe.read().splitlines()
    assert len(lines) == 3
    assert all(
        line.startswith(
            "Cannot re-initialize CUDA in forked subprocess. To use CUDA with multiprocessing, you "
            "must use the 'spawn' start method"
        )
        for line in lines
    )
    np.testing.assert_array_equal(copies.to_host(array), numbers(3))
    assert stream.query()


@pytest.mark.thorough
@pytest.mark.parametrize("count", [1, 3])
def test_the_driver_works_on_a_stub(stub, count):
    result = stub("-m", "pytest", "-q", "-rs", "-p", "no:cacheprovider", __file__, STUB_DEVICES=str(count))
    assert result.returncode == 0, result.stdout + result.stderr
    assert "no CUDA device here" not in result.stdout
    assert ("one device only" in result.stdout) == (count == 1)
