"""The objects for streams and events: where they are made, how they compare, and time between events."""

from __future__ import annotations

import numpy as np
import pytest

from tritensor.drivers import Event, Stream, simulate
from tritensor.errors import ArgumentError, DeviceError
from tritensor.types import devices

CUDA0, CUDA1 = devices.cuda(0), devices.cuda(1)


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
