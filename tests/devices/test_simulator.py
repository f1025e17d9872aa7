"""Simulated devices: what they are, how they end, and streams that show a missing wait."""

from __future__ import annotations

import gc
import os
import threading
import warnings

import numpy as np
import pytest

from tritensor import cuda, devices, drivers
from tritensor import settings as options
from tritensor.drivers import Event, Stream, selection, simulate
from tritensor.drivers.simulator import Simulator, parse_memory
from tritensor.errors import ArgumentError, DeviceError
from tritensor.memory import buffer, copies

CUDA0, CUDA1 = devices.cuda(0), devices.cuda(1)


@pytest.fixture(params=[False, True], ids=["prompt", "late"])
def simulator(request):
    with options.simulate_late(request.param), simulate(devices=2) as driver:
        yield driver


@pytest.fixture
def late():
    with options.simulate_late(True), simulate(devices=2) as driver:
        yield driver


class Cell:
    """Four floats on a device, and work on them for a stream."""

    def __init__(self, driver, value=0.0, device=CUDA0):
        self.driver = driver
        self.array = copies.from_host(np.full(4, value, np.float32), device)
        driver.synchronize(device.index)

    def view(self):
        return self.driver.memory(self.array.data_ptr(), 16).view(np.float32)

    def set(self, stream, value):
        self.driver.submit(stream, lambda: self.view().fill(value))

    def copy_from(self, stream, other):
        self.driver.submit(stream, lambda: np.copyto(self.view(), other.view()))

    def value(self):
        return float(copies.to_host(self.array)[0])


# -- what a simulated device is


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


# -- streams


def test_work_of_one_stream_runs_in_order(simulator):
    stream, ran = simulator.create_stream(0), []
    for step in range(5):
        simulator.submit(stream, lambda step=step: ran.append(step))
    stream.synchronize()
    assert ran == [0, 1, 2, 3, 4]
    assert stream.query()


def test_late_streams_run_only_when_waited_for(late):
    ran = []
    stream, other = late.create_stream(0), late.create_stream(0)
    late.submit(stream, lambda: ran.append("stream"))
    other.synchronize()
    assert ran == []
    late.synchronize(1)
    assert ran == []
    late.synchronize(0)
    assert ran == ["stream"]


def test_prompt_streams_run_at_once_and_first_what_was_late():
    ran = []
    with options.simulate_late(False), simulate() as driver:
        stream = driver.create_stream(0)
        with options.simulate_late(True):
            driver.submit(stream, lambda: ran.append(1))
        assert ran == []
        driver.submit(stream, lambda: ran.append(2))
        assert ran == [1, 2]


def test_a_stream_that_nobody_refers_to_finishes_its_work(late):
    ran = []
    late.submit(Stream(), lambda: ran.append(1))
    gc.collect()
    late.synchronize(0)
    assert ran == [1]
    assert not late._busy


@pytest.mark.parametrize("way", ["event", "stream", "no wait"])
def test_a_missing_wait_between_streams_gives_a_wrong_answer(late, way):
    x, y = Cell(late, 1.0), Cell(late, 0.0)
    producer, consumer = late.create_stream(0), late.create_stream(0)
    x.set(producer, 5.0)
    if way == "event":
        consumer.wait_event(producer.record_event())
    elif way == "stream":
        consumer.wait_stream(producer)
    y.copy_from(consumer, x)
    consumer.synchronize()
    producer.synchronize()
    assert y.value() == (1.0 if way == "no wait" else 5.0)


@pytest.mark.parametrize("way", ["event", "stream", "device", "no wait"])
def test_a_missing_wait_of_the_host_gives_a_wrong_answer(late, way):
    x = Cell(late, 1.0)
    stream = late.create_stream(0)
    x.set(stream, 5.0)
    if way == "event":
        stream.record_event().synchronize()
    elif way == "stream":
        stream.synchronize()
    elif way == "device":
        late.synchronize(0)
    assert x.value() == (1.0 if way == "no wait" else 5.0)


def test_an_event_holds_up_no_more_than_what_came_before_it(late):
    x = Cell(late)
    stream = late.create_stream(0)
    x.set(stream, 1.0)
    event = stream.record_event()
    x.set(stream, 2.0)
    event.synchronize()
    assert x.value() == 1.0
    assert event.query()
    assert not stream.query() or x.value() == 2.0


def test_an_event_recorded_again_means_its_new_place(late):
    x = Cell(late)
    stream, other, event = late.create_stream(0), late.create_stream(0), Event()
    event.record(stream)
    x.set(stream, 1.0)
    event.record(stream)
    event.wait(other)
    other.synchronize()
    assert x.value() == 1.0


def test_waiting_back_and_forth_between_streams_needs_no_deep_stack(late):
    first, second, ran = late.create_stream(0), late.create_stream(1), []
    for step in range(3000):
        late.submit(first, lambda step=step: ran.append(step))
        second.wait_stream(first)
        first, second = second, first
    first.synchronize()
    assert ran == list(range(3000))


def test_asking_lets_one_piece_of_work_run(late):
    stream, other, ran = late.create_stream(0), late.create_stream(0), []
    late.submit(other, lambda: ran.append("other"))
    stream.wait_stream(other)
    late.submit(stream, lambda: ran.append("stream"))
    event = stream.record_event()
    asked = 0
    while not event.query():
        asked += 1
    assert ran == ["other", "stream"]
    assert 3 <= asked < 10
    assert stream.query()


def test_a_failure_is_raised_where_it_is_waited_for(late):
    def fail():
        raise ZeroDivisionError("kernel")

    stream, ran = late.create_stream(0), []
    late.submit(stream, fail)
    late.submit(stream, lambda: ran.append(1))
    with pytest.raises(ZeroDivisionError, match="kernel"):
        stream.synchronize()
    stream.synchronize()
    assert ran == [1]


def test_what_the_host_sees_of_a_copy_is_what_it_has_waited_for(simulator):
    """Copies are delivered by exactly those waits that order them before the host."""
    x = Cell(simulator, 3.0)
    current = simulator.current_stream(0)
    other, third = simulator.create_stream(0), simulator.create_stream(0)
    before = current.record_event()
    pending = copies.to_host(x.array, non_blocking=True)
    after = current.record_event()
    other.wait_event(before)
    third.wait_event(after)
    before.synchronize()
    other.synchronize()
    assert np.isnan(pending.raw).all()
    third.synchronize()
    np.testing.assert_array_equal(pending.raw, [3, 3, 3, 3])


@pytest.mark.parametrize("way", ["query", "event query", "synchronize", "device"])
def test_every_kind_of_wait_delivers(simulator, way):
    x = Cell(simulator, 3.0)
    stream = simulator.current_stream(0)
    pending = copies.to_host(x.array, non_blocking=True)
    event = stream.record_event()
    if way == "query":
        while not stream.query():
            pass
    elif way == "event query":
        while not event.query():
            pass
    elif way == "synchronize":
        stream.synchronize()
    else:
        simulator.synchronize(0)
    np.testing.assert_array_equal(pending.raw, [3, 3, 3, 3])


def test_each_thread_has_its_own_current_stream(simulator):
    stream = simulator.create_stream(0)
    before = simulator.set_current_stream(stream)
    assert before is simulator.default_stream(0)
    found = []
    thread = threading.Thread(target=lambda: found.append(simulator.current_stream(0)))
    thread.start()
    thread.join()
    assert found == [simulator.default_stream(0)]
    assert simulator.current_stream(0) is stream
    assert simulator.current_stream(1) is simulator.default_stream(1)


# -- the stream and event objects


def test_streams_are_made_on_the_device_that_is_named(simulator):
    assert Stream().device is CUDA0
    assert Stream(1).device is CUDA1
    assert Stream("cuda:1", priority=-1).priority == -1
    assert Stream(devices.device("cuda")).device is CUDA0
    simulator.set_device(1)
    assert Stream().device is CUDA1
    assert Stream("cuda").device is CUDA1
    for bad, words in [
        ("cpu", "Expected a cuda device, but got: cpu"),
        (-1, "CUDA error: invalid device ordinal"),
        (7, "CUDA error: invalid device ordinal"),
    ]:
        with pytest.raises(DeviceError, match=words):
            Stream(bad)


def test_streams_compare_by_their_queue(simulator):
    first, second = Stream(), Stream()
    assert first == first
    assert first != second
    assert len({first, second, first}) == 2
    assert first != 1
    assert first.cuda_stream != second.cuda_stream
    assert first.__cuda_stream__() == (0, first.cuda_stream)
    assert repr(first).startswith("<tritensor.cuda.Stream device=cuda:0 cuda_stream=0x")


def test_a_stream_need_not_wait_for_itself(late):
    stream = Stream()
    stream.wait_stream(stream)
    assert not stream.handle.entries


def test_events_measure_time(simulator):
    stream = Stream()
    start, end = Event(enable_timing=True), Event(enable_timing=True)
    stream.record_event(start)
    simulator.submit(stream, lambda: np.linalg.svd(np.ones((60, 60))))
    stream.record_event(end)
    end.synchronize()
    assert 0 < start.elapsed_time(end) < 10_000


def test_events_say_why_they_cannot_measure(late):
    timed, plain = Event(enable_timing=True), Event()
    with pytest.raises(RuntimeError, match=r"^Both events must be created with argument 'enable_timing=True'"):
        timed.elapsed_time(plain)
    with pytest.raises(DeviceError, match=r"^Both events must be recorded"):
        timed.elapsed_time(Event(enable_timing=True))
    timed.record()
    late.submit(late.current_stream(0), lambda: None)
    end = Event(enable_timing=True)
    end.record()
    with pytest.raises(DeviceError, match=r"^Both events must be completed"):
        timed.elapsed_time(end)


def test_an_event_that_was_never_recorded_is_done(simulator):
    event = Event()
    assert event.query()
    event.synchronize()
    event.wait()
    assert repr(event) == "<tritensor.cuda.Event device=None recorded=False>"


def test_an_event_stays_on_one_device(simulator):
    event = Stream(0).record_event()
    assert event.device is CUDA0
    with pytest.raises(DeviceError, match=r"^Event device cuda:0 does not match recording stream's device cuda:1"):
        event.record(Stream(1))
    with pytest.raises(ArgumentError, match=r"expected a tritensor.cuda.Stream, got int"):
        event.record(0)


def test_an_event_outlives_its_simulation():
    event = Event()
    for _ in range(2):
        with simulate():
            event.record()
            event.synchronize()


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
