"""Captures beside replays that used the same stream or the same pool, simulated and on the driver of real devices.

The capture under test follows a replay; which stream each of them is in, whose memory they use, and whether the
captured block raises are all combined.
"""

from __future__ import annotations

import itertools
import os

import numpy as np
import pytest

from tritensor import cuda, drivers, settings
from tritensor.drivers.allocator import Arena
from tritensor.errors import DeviceError
from tritensor.memory import copies
from tritensor.types import devices

STREAMS = ("default", "first", "kept", "new")  # "first" is that of the capture before, "kept" the one for captures
FAILURES = {None: (), "body": ZeroDivisionError, "refused": RuntimeError, "wait": DeviceError}
MATRIX = [
    pytest.param(*case, id="-".join(map(str, case)))
    for case in itertools.product(STREAMS, STREAMS[1:], ("shared", "own"), FAILURES)
]


@pytest.fixture
def simulation():
    """A simulated device, or in the stub's process the real driver."""
    if os.environ.get("STUB_DEVICES"):
        with settings.simulate_cuda(0):
            yield drivers.require()
    else:
        with cuda.simulate() as driver:
            yield driver


def numbers(*values):
    return copies.from_host(np.array(values, np.float32), devices.cuda(0))


def values(array):
    return copies.to_host(array).tolist()


def copied(array):
    """Work of two copies, which needs no kernel: a stub of the driver runs it too."""
    return copies.copy_across(copies.copy_across(array, array.device), array.device)


@pytest.mark.sampled(50)
@pytest.mark.parametrize("late", [False, True])
@pytest.mark.parametrize(("replayed_in", "captured_in", "pool", "failure"), MATRIX)
def test_a_capture_after_a_replay(simulation, monkeypatch, replayed_in, captured_in, pool, failure, late):
    with settings.simulate_late(late):
        first, x = cuda.Stream(), numbers(1, 2)
        streams = {"default": cuda.default_stream(), "first": first, "new": cuda.Stream()}
        streams["kept"] = simulation.capture_stream(0)
        one, two = cuda.CUDAGraph(), cuda.CUDAGraph()
        with cuda.graph(one, stream=first):
            out = copied(x)
        with cuda.stream(streams[replayed_in]):
            one.replay()
        options = {"stream": streams[captured_in], "pool": one.pool() if pool == "shared" else None}
        try:
            with cuda.graph(two, **options):
                other = copied(out)
                if failure == "body":
                    raise ZeroDivisionError
                if failure == "refused":
                    copies.to_host(other)
                if failure == "wait":
                    monkeypatch.setattr(simulation, "wait", refuse)
        except FAILURES[failure]:
            monkeypatch.undo()
        else:
            assert failure is None
        # Whatever happened, nothing is captured any more: both streams run work, and the host may wait for it.
        assert simulation.captures == {}
        for stream in streams.values():
            assert type(stream.arena) is Arena
            with cuda.stream(stream):
                assert values(copied(x)) == [1, 2]
        cuda.synchronize()
        if failure:
            with cuda.graph(two, **options):
                other = copied(out)
        copies.copy_into(x, np.array([3, 4], np.float32))
        cuda.synchronize()
        one.replay()
        two.replay()
        assert (values(out), values(other)) == ([3, 4], [3, 4])


def refuse(*_):
    raise DeviceError("CUDA error: a stream could not wait for an event")


@pytest.mark.skipif(bool(os.environ.get("STUB_DEVICES")), reason="this is the stub")
def test_a_simulated_stream_does_not_wait_across_the_edge_of_a_capture(simulation):
    one, two = (simulation.create_stream(0).handle for _ in range(2))
    before = simulation.mark(one)
    simulation.begin_capture(one)
    inside = simulation.mark(one)
    simulation.wait(one, inside)
    for queue, mark in ((two, inside), (one, before)):
        with pytest.raises(DeviceError, match="not part of the same capture"):
            simulation.wait(queue, mark)
    simulation.end_capture(one, keep=False)
    simulation.wait(one, before)


@pytest.mark.thorough
@pytest.mark.skipif(bool(os.environ.get("STUB_DEVICES")), reason="this is the stub")
@pytest.mark.parametrize("late", [pytest.param("", marks=pytest.mark.slow), "1"])
def test_it_holds_over_a_stub_of_the_driver(stub, late):
    variables = {"STUB_LATE": late} if late else {}
    result = stub(
        "-m", "pytest", "-q", "-m", "not slow", "-n0", "-p", "no:cacheprovider", __file__, "-k", "False", **variables
    )
    assert result.returncode == 0, result.stdout
    assert f"{len(MATRIX)} passed" in result.stdout, result.stdout
