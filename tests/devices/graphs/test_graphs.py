"""CUDA graphs in simulation: what a replay computes and where its memory is."""

from __future__ import annotations

import gc
import weakref

import pytest

import tritensor as torch
import tritensor.nn.functional as F
from tritensor import cuda, settings
from tritensor.errors import DeviceError, OutOfMemoryError

from ...needs import HAS_TRITON
from ...runtime.interpreted_device import interpreted_device
from . import test_captures_refused, test_graph_training
from .captures import captured
from .conftest import ON_ANY

if not HAS_TRITON:
    pytest.skip("kernels need Triton", allow_module_level=True)


def test_names_of_tests_are_those_of_tests():
    tests = globals().keys() | vars(test_captures_refused).keys() | vars(test_graph_training).keys()
    assert {name for name in ON_ANY if name not in tests} == set()


# ---- replays ----------------------------------------------------------------------------------------------------


def test_a_capture_runs_nothing_and_a_replay_runs_it_on_the_same_memory():
    x, y = torch.ones(5, device="cuda"), torch.zeros(5, device="cuda")

    def work():
        doubled = x * 2
        y.add_(doubled)
        return doubled + 1

    assert not cuda.is_current_stream_capturing()
    graph = cuda.CUDAGraph()
    with cuda.graph(graph):
        assert cuda.is_current_stream_capturing()
        out = work()
    assert not cuda.is_current_stream_capturing()
    assert y.tolist() == [0] * 5
    for turn in range(1, 4):
        x.copy_(torch.full((5,), float(turn)))
        graph.replay()
        assert out.tolist() == [2 * turn + 1] * 5
    assert y.tolist() == [2.0 * (1 + 2 + 3)] * 5


def test_operators_that_repeat_recorded_calls_are_captured_too(monkeypatch, simulation):
    """On a real device's host path: calls that were recorded before the capture, and those that are recorded in it."""
    with interpreted_device() as driver:
        x, w = torch.ones(4, 4, device="cuda"), torch.ones(4, 4, device="cuda")
        start = torch.ones(1, device="cuda")

        def work(start=start):
            y = x
            for _ in range(3):
                y = (y @ w).relu() + start
            return y - torch.ones(4, 4, device="cuda").mul_(2)

        expected = {}
        for value in (2.0, 1.0):
            x.fill_(value)
            expected[value] = [work().tolist() for _ in range(3)][-1]
        # nobody but the graph keeps what the capture uses
        memory = weakref.ref(start._data.buffer)
        graph, out = captured(work)
        del start, work
        gc.collect()
        assert memory() is not None
        launches = len(driver.launches)
        for value in (1.0, 2.0):
            x.fill_(value)
            launches = len(driver.launches)
            graph.replay()
            assert len(driver.launches) == launches  # the host's path is not taken again
            assert out.tolist() == expected[value]


def test_random_numbers_go_on_over_replays_and_eager_calls():
    def draws():
        return torch.rand(3, device="cuda"), torch.randn(3, device="cuda"), torch.randint(9, (3,), device="cuda")

    torch.manual_seed(7)
    expected = [[part.tolist() for part in draws()] for _ in range(4)]
    state = cuda.get_rng_state()
    torch.manual_seed(7)
    found = [[part.tolist() for part in draws()]]
    graph, parts = captured(draws)
    for _ in range(2):
        graph.replay()
        found.append([part.tolist() for part in parts])
    found.append([part.tolist() for part in draws()])
    assert found == expected
    assert torch.equal(cuda.get_rng_state(), state)
    torch.manual_seed(7)
    graph.replay()
    assert [part.tolist() for part in parts] == expected[0]


def test_the_mask_of_a_captured_dropout_is_that_of_its_gradient():
    generator = torch.Generator("cuda").manual_seed(5)
    x = torch.ones(1000, device="cuda", requires_grad=True)

    def work():
        y = F.dropout(x, 0.5)
        (gradient,) = torch.autograd.grad(y.sum(), x)
        return y, gradient, torch.rand(3, device="cuda", generator=generator)

    graph, (y, gradient, other) = captured(work)
    seen = []
    for turn in range(3):
        graph.replay()
        assert y.tolist() == gradient.tolist()
        seen.append(y.tolist())
        assert (
            other.tolist()
            == [
                torch.rand(3, generator=g).tolist() for g in [torch.Generator().manual_seed(5)] for _ in range(turn + 1)
            ][-1]
        )
    assert seen[0] != seen[1] != seen[2]


def test_pinned_input_is_read_again_at_each_replay():
    host, x = torch.zeros(4).pin_memory(), torch.zeros(4, device="cuda")
    graph, out = captured(lambda host=host: x.copy_(host, non_blocking=True) * 2)
    for value in (1.0, 5.0):
        host.fill_(value)
        graph.replay()
        assert out.tolist() == [2 * value] * 4
    seen = weakref.ref(host)
    del host
    gc.collect()
    assert seen() is None
    graph.replay()
    assert out.tolist() == [10.0] * 4


# ---- memory -----------------------------------------------------------------------------------------------------


def test_memory_belongs_to_the_graph_and_outlives_it_with_its_tensors():
    x = torch.ones(1000, device="cuda")
    reserved = cuda.memory_reserved()
    graph, out = captured(lambda: (x * 2 + 1) * 3)
    place = out.data_ptr()
    graph.replay()
    cuda.empty_cache()
    others = [torch.full((1000,), -1.0, device="cuda") for _ in range(20)]
    # nothing of the graph's was given out: neither the result nor what was free again when the capture ended
    graph.replay()
    assert all((other == -1).all() for other in others)
    del others
    graph.reset()
    assert (out == 9).all() and out.data_ptr() == place
    fresh = [torch.zeros(1000, device="cuda") for _ in range(5)]
    assert (out == 9).all()
    del out, fresh, graph
    gc.collect()
    cuda.empty_cache()
    assert cuda.memory_reserved() == reserved


def test_what_a_graph_reads_lives_as_long_as_the_graph():
    x = torch.ones(100, device="cuda")
    memory = weakref.ref(x._data.buffer)
    graph, out = captured(lambda x=x: x * 2)
    del x
    gc.collect()
    spoiled = [torch.zeros(100, device="cuda") for _ in range(5)]
    graph.replay()
    assert (out == 2).all()
    graph.reset()
    assert memory() is None
    del spoiled


def test_graphs_that_share_a_pool_share_memory():
    def held(pool):
        x = torch.ones(100_000, device="cuda")
        graphs = [captured(lambda: ((x + 1) * 2).sum(), pool=pool) for _ in range(3)]
        for graph, out in graphs:
            graph.replay()
            assert out.item() == 400_000
        return cuda.memory_reserved()

    apart = held(None)
    gc.collect()
    cuda.empty_cache()
    together = held(cuda.graph_pool_handle())
    assert together <= apart - 2 * 400_000
    x = torch.ones(5, device="cuda")
    first, one = captured(lambda: x + 1)
    second, two = captured(lambda: one * 2, pool=first.pool(), stream=cuda.Stream())
    assert second.pool() == first.pool()
    for graph in (first, second):
        graph.replay()
    first.reset()
    one.zero_()
    second.replay()
    assert (two == 0).all()
    with pytest.raises(TypeError, match="pool must be what graph_pool_handle"):
        cuda.CUDAGraph().capture_begin(pool="mine")


def test_replays_in_several_streams_are_in_order():
    with settings.simulate_late(True):
        x = torch.zeros(10, device="cuda")
        graph, out = captured(lambda: x.add_(1) * 2)
        side = cuda.Stream()
        side.wait_stream(cuda.current_stream())
        graph.replay()
        with cuda.stream(side):
            graph.replay()
        graph.replay()
        assert out.tolist() == [6.0] * 10


def test_memory_that_runs_out_in_a_capture():
    # a late stream frees when it is waited for, which a capture must not do; a device takes what is queued to be freed
    with settings.simulate_late(False), cuda.simulate(memory="1MB") as driver:
        kept = torch.ones(1000, device="cuda")
        cached = torch.ones(150_000, device="cuda")
        del cached
        graph, out = captured(lambda: torch.ones(200_000, device="cuda"))  # by giving back what was cached
        graph.replay()
        assert out.sum().item() == 200_000
        with pytest.raises(OutOfMemoryError, match="CUDA out of memory"):
            captured(lambda: torch.ones(1_000_000, device="cuda"))
        assert driver.captures == {}
        assert kept.sum().item() == 1000


def test_the_stream_may_go_before_the_graph():
    x = torch.ones(3, device="cuda")
    stream = cuda.Stream()
    graph, out = captured(lambda: x * 2, stream=stream)
    with cuda.stream(stream):
        graph.replay()
    del stream
    gc.collect()
    graph.replay()
    assert out.tolist() == [2, 2, 2]
    # a graph that goes in the middle of its capture leaves the stream as it was
    stream = cuda.Stream()
    with cuda.stream(stream):
        cuda.CUDAGraph().capture_begin()
        gc.collect()
        assert not cuda.is_current_stream_capturing()
        assert (x + 1).tolist() == [2, 2, 2]


def test_a_graph_of_an_ended_simulation_says_so():
    with cuda.simulate():
        x = torch.ones(3, device="cuda")
        graph, _ = captured(lambda: x * 2)
    with pytest.raises(DeviceError, match="the simulated device is gone"):
        graph.replay()
    graph.reset()


def test_transfers_of_a_replay():
    x = torch.ones(4, device="cuda")
    graph, _ = captured(lambda: x + 1)
    with cuda.transfers() as copies:
        graph.replay()
    assert copies.entries == []
    graph, _ = captured(lambda: x + torch.rand(4, device="cuda"))
    with cuda.transfers() as copies:
        graph.replay()
    assert [(entry.kind, entry.nbytes) for entry in copies.entries] == [("h2d", 16)]  # the generator's state


def test_without_a_device_nothing_is_captured(monkeypatch):
    monkeypatch.setattr("tritensor.cuda.graphs.active", lambda: None)
    assert cuda.is_current_stream_capturing() is False
