"""Streams of simulated devices: their order, and answers that show a missing wait."""

from __future__ import annotations

import gc
import threading

import numpy as np
import pytest

from tritensor import settings as options
from tritensor.drivers import Event, Stream, simulate
from tritensor.memory import copies
from tritensor.types import devices

CUDA0, CUDA1 = devices.cuda(0), devices.cuda(1)


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
