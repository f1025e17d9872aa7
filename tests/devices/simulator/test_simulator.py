"""Simulated devices: what they are, how they end, and what is refused."""

from __future__ import annotations

import os
import threading
import warnings

import numpy as np
import pytest

from tritensor import cuda, drivers
from tritensor import settings as options
from tritensor.drivers import Stream, selection, simulate
from tritensor.drivers.simulator import Simulator
from tritensor.drivers.sizes import parse_memory
from tritensor.errors import ArgumentError, DeviceError
from tritensor.memory import buffer, copies
from tritensor.types import devices

CUDA0, CUDA1 = devices.cuda(0), devices.cuda(1)


def test_nobody_is_simulated_without_asking():
    with options.simulate_cuda(0):
        driver = drivers.active()
        assert driver is None or not driver.is_simulated


def test_a_simulation_is_what_it_was_asked_to_be():
    with simulate(devices=3, memory="1GB", capability=(8, 0), name="H200") as driver:
        assert drivers.active() is drivers.require() is driver
        assert driver.device_count() == 3
        assert driver.name(2) == "H200 (Simulated)"
        assert driver.capability(0) == (8, 0)
        assert driver.total_memory(0) == 10**9
        assert driver.memory_info(0) == (10**9, 10**9)
        properties = driver.properties(1)
        assert properties.is_simulated
        assert properties.multi_processor_count > 1
    with simulate(name="Simulated thing") as driver:
        assert driver.name(0) == "Simulated thing"
    with simulate() as driver:
        assert "Simulated" in driver.name(0)


@pytest.mark.parametrize("index", [2, -1])
def test_an_ordinal_that_is_not_there_is_refused_in_pytorchs_words(simulator, index):
    for ask in (simulator.check, simulator.properties, simulator.default_stream, simulator.set_device, simulator.heap):
        with pytest.raises(DeviceError, match=r"^CUDA error: invalid device ordinal\n.*cuda:0 to cuda:1"):
            ask(index)
    with pytest.raises(RuntimeError, match="invalid device ordinal"):
        buffer.empty((2,), np.dtype(np.float32), devices.cuda(5))


def test_one_device_is_named_in_the_singular():
    with simulate() as driver, pytest.raises(DeviceError, match="there is 1, cuda:0\n"):
        driver.check(1)


@pytest.mark.parametrize(
    ("text", "nbytes"),
    [
        ("1GB", 10**9),
        ("1GiB", 2**30),
        ("1.5 kib", 1536),
        (" 2 MB ", 2_000_000),
        ("7", 7),
        ("7B", 7),
        (12, 12),
        ("2TB", 2 * 10**12),
    ],
)
def test_memory_sizes_are_read(text, nbytes):
    assert parse_memory(text) == nbytes


@pytest.mark.parametrize(
    ("memory", "error"),
    [
        ("a lot", ValueError),
        ("1XB", ValueError),
        ("-1GB", ValueError),
        (0, ValueError),
        ("0GB", ValueError),
        (1.5, ArgumentError),
        (True, ArgumentError),
    ],
)
def test_memory_sizes_that_make_no_sense_are_refused(memory, error):
    with pytest.raises(error, match=r"simulate\(\): "), simulate(memory=memory):
        pass


@pytest.mark.parametrize("count", [0, -1, True, "2", 1.0])
def test_numbers_of_devices_that_make_no_sense_are_refused(count):
    with pytest.raises(ArgumentError, match="devices must be an int of at least 1"), simulate(devices=count):
        pass


def test_the_setting_simulates_as_many_devices_as_it_says():
    with options.simulate_cuda(3):
        first = drivers.require()
        assert first.device_count() == 3
        assert drivers.active() is first
        with options.simulate_cuda(2):
            assert drivers.require().device_count() == 2
        assert drivers.active() is first


def test_simulations_nest_and_put_back_what_was_there():
    with simulate(devices=2) as outer:
        outer.set_device(1)
        array = copies.from_host(np.ones(2, np.float32), CUDA1)
        with simulate(devices=1) as inner:
            assert drivers.active() is inner
            assert devices.current_index() == 0
        assert drivers.active() is outer
        assert devices.current_index() == 1
        np.testing.assert_array_equal(copies.to_host(array), [1, 1])
    assert devices.current_index() == 0


def test_an_exception_leaves_a_simulation_as_well():
    before = drivers.active()
    with pytest.raises(KeyError), simulate() as driver:
        raise KeyError
    assert drivers.active() is before
    assert driver.closed


@pytest.mark.parametrize("late_streams", [False, True])
def test_tensors_of_a_finished_simulation_say_so(late_streams):
    with options.simulate_late(late_streams):
        with simulate(devices=2) as driver:
            array = copies.from_host(np.ones(2, np.float32), CUDA0)
            pending = copies.to_host(array, non_blocking=True)
            stream = driver.create_stream(0)
            array.buffer.record_stream(stream)
        for use in (
            array.data_ptr,
            lambda: copies.to_host(array),
            lambda: copies.copy_into(array, np.ones(2, "f4")),
            lambda: copies.copy_across(array, CUDA0),
            lambda: driver.submit(stream, print),
        ):
            with pytest.raises(DeviceError, match=r"^CUDA error: the simulated device is gone"), simulate():
                use()
        np.testing.assert_array_equal(pending.wait(), [1, 1])
        with pytest.raises(DeviceError, match=r"\.cpu\(\)"):
            driver.allocate(0, 512, stream.handle)
        # array and stream go now: their memory is gone already, and nothing complains


def test_streams_and_events_of_a_finished_simulation_say_so():
    with simulate():
        stream = Stream()
        event = stream.record_event()
    assert stream.query() and event.query()  # nothing of theirs is left to wait for
    stream.synchronize()
    event.synchronize()
    with simulate() as driver:
        array = copies.from_host(np.ones(2, np.float32), CUDA0)
        current = driver.current_stream(0)
        uses = [
            stream.record_event,
            lambda: stream.wait_stream(current),
            lambda: current.wait_stream(stream),
            lambda: stream.wait_event(current.record_event()),
            lambda: cuda.set_stream(stream),
            lambda: cuda.stream(stream).__enter__(),
        ]
        for use in uses:
            with pytest.raises(DeviceError, match=r"^CUDA error: the simulated device is gone"):
                use()
        np.testing.assert_array_equal(copies.to_host(array), [1, 1])


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_a_forked_child_goes_on_with_its_own_copy_of_a_simulation(simulator):
    array = copies.from_host(np.ones(2, np.float32), CUDA0)
    with warnings.catch_warnings(action="ignore"):  # Python warns of forking beside threads
        child = os.fork()
    if child == 0:
        right = False
        try:
            right = copies.to_host(array).tolist() == [1, 1]
            copies.copy_into(array, np.zeros(2, np.float32))
            right = right and copies.to_host(array).tolist() == [0, 0]
        finally:
            os._exit(0 if right else 1)
    assert os.waitpid(child, 0)[1] == 0
    np.testing.assert_array_equal(copies.to_host(array), [1, 1])


def test_an_unfinished_copy_of_a_simulation_that_broke_off_is_no_trap():
    kept = []

    def break_off():
        with simulate():
            kept.append(copies.to_host(copies.from_host(np.ones(2, np.float32), CUDA0), non_blocking=True))
            raise KeyError

    with options.simulate_late(True), pytest.raises(KeyError):
        break_off()
    pending = kept[0]
    assert pending.done()
    assert np.isnan(pending.wait()).all()


def test_memory_outside_of_every_allocation_is_refused(simulator):
    array = copies.from_host(np.ones(2, np.float32), CUDA0)
    assert simulator.memory(array.data_ptr() + 4, 4).view(np.float32) == 1
    for address, nbytes in [(array.data_ptr(), 1 << 20), (array.data_ptr() - 1, 1), (0, 1)]:
        with pytest.raises(DeviceError, match=r"^CUDA error: an illegal memory access was encountered"):
            simulator.memory(address, nbytes)


def test_only_simulated_devices_run_python_functions(simulator):
    with pytest.raises(DeviceError, match="is not simulated"):
        drivers.Driver.submit(simulator, Stream(), print)


def test_the_setting_s_simulators_are_made_once_across_threads():
    made = []
    selection._by_setting.pop(5, None)
    with options.simulate_cuda(5):
        threads = [threading.Thread(target=lambda: made.append(drivers.active())) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert len(set(map(id, made))) == 1
    assert isinstance(made[0], Simulator)
