"""CUDA graphs in simulation: what a replay computes, where its memory is, and what cannot be captured."""

from __future__ import annotations

import functools
import gc
import importlib.util
import re
import weakref
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest

import tritensor as torch
import tritensor.nn.functional as F
from tritensor import cuda, nn, optim, settings
from tritensor.errors import DeviceError, KernelMemoryError, OutOfMemoryError

from ..runtime.interpreted_device import interpreted_device

if importlib.util.find_spec("triton") is None:
    pytest.skip("kernels need Triton", allow_module_level=True)

NOT_PERMITTED = r"^CUDA error: operation not permitted when stream is capturing"


# These hold on a real device as well: `--devices cuda` runs them there (tests/conftest.py).
ON_ANY = frozenset(
    (
        "test_a_capture_runs_nothing_and_a_replay_runs_it_on_the_same_memory",
        "test_replayed_training_equals_eager_training_bit_for_bit",
        "test_random_numbers_go_on_over_replays_and_eager_calls",
        "test_pinned_input_is_read_again_at_each_replay",
        "test_a_learning_rate_in_device_memory_is_read_at_each_replay",
        "test_eager_steps_between_replays_leave_the_graphs_table_alone",
        "test_what_a_graph_reads_lives_as_long_as_the_graph",
        "test_replays_in_several_streams_are_in_order",
        "test_the_stream_may_go_before_the_graph",
        "test_a_refusal_that_is_caught_still_ends_in_an_error",
        "test_an_error_of_ones_own_ends_the_capture",
        "test_steps_that_would_repeat_themselves_are_refused",
        "test_transfers_of_a_replay",
    )
)


@pytest.fixture(autouse=True)
def simulation(request):
    with cuda.simulate(devices=1 if request.node.originalname in ON_ANY else 2) as driver:
        yield driver
        assert driver.captures == {}


def test_names_of_tests_are_those_of_tests():
    assert {name for name in ON_ANY if name not in globals()} == set()


def captured(work, **options):
    """A graph of what a function does, and what it returned."""
    graph = cuda.CUDAGraph()
    with cuda.graph(graph, **options):
        result = work()
    return graph, result


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


def mlp(device, optimizer, seed=3):
    torch.manual_seed(seed)
    model = nn.Sequential(nn.Linear(4, 8), nn.GELU(), nn.Dropout(0.3), nn.LayerNorm(8), nn.Linear(8, 3)).to(device)
    return model, optimizer(model.parameters())


def step(model, optimizer, x, y, set_to_none=True):
    optimizer.zero_grad(set_to_none=set_to_none)
    loss = F.cross_entropy(model(x), y)
    loss.backward()
    optimizer.step()
    return loss


OPTIMIZERS = {
    "adam": lambda params: optim.Adam(params, lr=0.05, capturable=True),
    "adamw": lambda params: optim.AdamW(params, lr=torch.tensor(0.05, device="cuda"), amsgrad=True, capturable=True),
    "sgd": lambda params: optim.SGD(params, lr=0.05, momentum=0.9, nesterov=True),
}


def batches(count):
    rng = np.random.default_rng(0)
    return [
        (torch.tensor(rng.standard_normal((5, 4)).astype(np.float32)), torch.tensor(rng.integers(0, 3, 5)))
        for _ in range(count)
    ]


def train(name, captured_from, device="cuda:0", set_to_none=True):
    """Losses, parameters and state after some steps, of which those from `captured_from` on are replays."""
    model, optimizer = mlp(device, OPTIMIZERS[name])
    x, y = (part.to(device) for part in batches(1)[0])
    losses, graph = [], None
    for number, (new_x, new_y) in enumerate(batches(4)):
        if number == captured_from:
            graph = cuda.CUDAGraph()
            with cuda.graph(graph, stream=cuda.Stream(device)):
                loss = step(model, optimizer, x, y, set_to_none)
        x.copy_(new_x)
        y.copy_(new_y)
        if graph is None:
            losses.append(step(model, optimizer, x, y, set_to_none).item())
        else:
            graph.replay()
            losses.append(loss.item())
    state = [value.tolist() for entry in optimizer.state.values() for value in entry.values()]
    return losses, [param.tolist() for param in model.parameters()], state


@functools.cache
def eagerly(name):
    return train(name, None)


@pytest.mark.parametrize("name", ["adam", *(pytest.param(name, marks=pytest.mark.slow) for name in ("adamw", "sgd"))])
def test_replayed_training_equals_eager_training_bit_for_bit(name):
    """Forward with dropout, loss, backward, optimizer: random numbers and step counts go on from replay to replay."""
    losses, *_ = eagerly(name)
    assert len(set(losses)) == len(losses)
    assert train(name, 2) == eagerly(name)


@pytest.mark.parametrize("set_to_none", [True, pytest.param(False, marks=pytest.mark.slow)])
def test_replayed_training_is_the_same_when_streams_run_late(set_to_none):
    expected = eagerly("adam")
    with settings.simulate_late(True):
        assert train("adam", 1, set_to_none=set_to_none) == expected


def test_replayed_training_on_the_host_path_of_a_real_device(monkeypatch):
    """Operators repeat their recorded calls there, in the steps before the capture and in the capture."""
    expected = eagerly("adam")
    with interpreted_device():
        assert train("adam", 2) == expected


@pytest.mark.slow
def test_replayed_training_on_another_device():
    assert train("adam", 2, device="cuda:1") == eagerly("adam")


def test_graphs_of_two_devices_are_replayed_in_turn():
    made = []
    for device in ("cuda:0", "cuda:1"):
        x = torch.ones(3, device=device)
        with cuda.device(device):
            made.append((x, *captured(lambda x=x: x * 3)))
    for value in (1.0, 2.0):
        for x, graph, out in made:
            x.fill_(value)
            graph.replay()  # whichever device is current
            assert out.tolist() == [3 * value] * 3
            assert out.device == x.device


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


def test_a_learning_rate_in_device_memory_is_read_at_each_replay():
    param, lr = nn.Parameter(torch.zeros(1, device="cuda")), torch.tensor(1.0, device="cuda")
    optimizer = optim.SGD([param], lr=lr)
    schedule = optim.lr_scheduler.ExponentialLR(optimizer, 0.5)
    param.grad = torch.ones(1, device="cuda")
    optimizer.step()
    graph, _ = captured(optimizer.step)
    for _ in range(3):
        schedule.step()
        graph.replay()
    assert param.item() == -(1 + 0.5 + 0.25 + 0.125)


def test_eager_steps_between_replays_leave_the_graphs_table_alone():
    param = nn.Parameter(torch.zeros(4, device="cuda"))
    optimizer = optim.Adam([param], lr=1.0, capturable=True)
    param.grad = torch.ones(4, device="cuda")
    optimizer.step()

    def work():
        param.grad = torch.full((4,), 1.0, device="cuda")
        optimizer.step()

    graph, _ = captured(work)
    graph.replay()
    param.grad = torch.full((4,), -100.0, device="cuda")
    for _ in range(3):
        optimizer.step()
    before = param.tolist()
    average = optimizer.state[param]["exp_avg"].tolist()
    graph.replay()
    assert optimizer.state[param]["exp_avg"].tolist() == pytest.approx([0.9 * m + 0.1 for m in average])
    assert optimizer.state[param]["step"].item() == 6
    assert param.tolist() != before


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


# ---- what cannot be captured ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("work", "name"),
    [
        (lambda x: x.sum().item(), "item"),
        (lambda x: x.tolist(), "tolist"),
        (lambda x: x.cpu(), "cpu"),
        (lambda x: x.to("cpu", non_blocking=True), "to"),
        (lambda x: x.nonzero(), "nonzero"),
        (lambda x: bool(x.sum() > 0), "__bool__"),
        (lambda x: float(x.sum()), "__float__"),
        (lambda x: x[x > 0], "getitem"),
        (lambda x: repr(x), "__repr__"),
        (lambda x: torch.tensor([1.0, 2.0], device="cuda"), "tensor"),
        (lambda x: x.copy_(torch.ones(4)), "copy_"),
        (lambda x: x.copy_(torch.ones(4).pin_memory()), "copy_"),
        (lambda x: torch.ones(4).cuda(), "cuda"),
        (lambda x: x.to("cuda:1"), "to"),
        (lambda x: torch.randperm(4, device="cuda"), "randperm"),
        (lambda x: torch.multinomial(x, 1), "multinomial"),
        (lambda x: F.one_hot(x.long()), "one_hot"),
        (lambda x: cuda.synchronize(), "synchronize"),
        (lambda x: cuda.current_stream().synchronize(), "Stream.synchronize"),
        (lambda x: cuda.current_stream().query(), "Stream.query"),
        (lambda x: cuda.Event().record(), "Event.record"),
        (lambda x: cuda.current_stream().wait_stream(cuda.default_stream()), "Stream.wait_stream"),
        (lambda x: cuda.default_stream().wait_stream(cuda.current_stream()), "Stream.wait_stream"),
        (lambda x: cuda.empty_cache(), "empty_cache"),
    ],
)
def test_what_cannot_be_captured_is_named_with_its_remedy(work, name):
    x = torch.ones(4, device="cuda")
    graph = cuda.CUDAGraph()
    with pytest.raises(RuntimeError, match=NOT_PERMITTED) as raised:
        capture_with(graph, lambda: work(x))
    lines = str(raised.value).splitlines()
    assert lines[1].startswith(f"  {name}: ")
    assert re.match(r"  at .*test_graphs\.py:\d+", lines[2])
    assert lines[-1].startswith("  To mend it: ")
    # the capture has ended, and everything works as before
    assert not cuda.is_current_stream_capturing()
    with pytest.raises(DeviceError, match=r"^Called CUDAGraph::replay without a preceding successful capture"):
        graph.replay()
    assert x.sum().item() == 4
    assert cuda.current_stream() == cuda.default_stream()
    with cuda.graph(graph):
        y = x + 1
    graph.replay()
    assert y.tolist() == [2] * 4


def capture_with(graph, work, **options):
    with cuda.graph(graph, **options):
        work()


def test_a_refusal_that_is_caught_still_ends_in_an_error():
    x = torch.ones(4, device="cuda")
    graph = cuda.CUDAGraph()

    def work():
        with suppress(RuntimeError):
            x.sum().item()
        x.add_(1)

    with pytest.raises(
        RuntimeError,
        match=r"^CUDA error: operation failed due to a previous error during capture\n"
        "  item cannot be captured",
    ):
        capture_with(graph, work)
    assert x.tolist() == [1] * 4
    assert not cuda.is_current_stream_capturing()


def test_captures_that_are_begun_or_ended_wrongly():
    graph, other, x = cuda.CUDAGraph(), cuda.CUDAGraph(), torch.ones(4, device="cuda")
    side = cuda.Stream()
    with pytest.raises(RuntimeError, match=r"^Called CUDAGraph::replay without a preceding successful capture"):
        graph.replay()
    with pytest.raises(RuntimeError, match=r"^CUDA graphs must be captured on a non-default stream"):
        graph.capture_begin()
    with pytest.raises(RuntimeError, match=r"capture_end\(\) was called without"):
        graph.capture_end()
    with pytest.raises(RuntimeError, match=r"^Called CUDAGraph::pool\(\) without"):
        graph.pool()
    with pytest.raises(ValueError, match="Unknown capture error mode"):
        graph.capture_begin(capture_error_mode="strict")
    with cuda.stream(side):
        graph.capture_begin()
        y = x * 2
        with pytest.raises(RuntimeError, match=NOT_PERMITTED):
            other.capture_begin()
        graph.reset()
        graph.capture_begin()
        y = x * 3
        with pytest.raises(RuntimeError, match="already owns a captured graph"):
            graph.capture_begin()
        graph.capture_end()
    graph.replay()
    assert y.tolist() == [3] * 4
    with pytest.raises(RuntimeError, match="already owns a captured graph"):
        capture_with(graph, lambda: None)
    with cuda.stream(side):
        other.capture_begin()
    with pytest.raises(RuntimeError, match=r"^Capture must end on the same stream it began on"):
        other.capture_end()
    for work in (lambda: capture_with(cuda.CUDAGraph(), lambda: None), graph.replay):
        with pytest.raises(RuntimeError, match=NOT_PERMITTED):
            capture_with(cuda.CUDAGraph(), work)
    with pytest.warns(UserWarning, match="The CUDA Graph is empty"):
        capture_with(cuda.CUDAGraph(), lambda: None)
    # another device may be captured meanwhile
    one, two = cuda.CUDAGraph(), cuda.CUDAGraph()
    z = torch.ones(2, device="cuda:1")
    with cuda.graph(one):
        a = x + 1
        with cuda.device(1), cuda.graph(two):
            b = z + 2
    one.replay()
    two.replay()
    assert (a.tolist(), b.tolist()) == ([2] * 4, [3] * 2)


def test_an_error_of_ones_own_ends_the_capture():
    x = torch.ones(4, device="cuda")
    with pytest.raises(ZeroDivisionError):
        capture_with(cuda.CUDAGraph(), lambda: [x + 1, 1 / 0])
    assert (x + 1).tolist() == [2] * 4
    assert cuda.current_stream() == cuda.default_stream()


def test_steps_that_would_repeat_themselves_are_refused():
    param = nn.Parameter(torch.zeros(2, device="cuda"))
    param.grad = torch.ones(2, device="cuda")
    plain = optim.Adam([param])
    plain.step()
    with pytest.raises(
        RuntimeError,
        match=r"^Attempting CUDA graph capture of step\(\) for an instance of Adam but "
        "param_groups' capturable is False",
    ):
        capture_with(cuda.CUDAGraph(), plain.step)
    for cold in (optim.AdamW([param], capturable=True), optim.SGD([param], momentum=0.9)):
        with pytest.raises(RuntimeError, match=NOT_PERMITTED) as raised:
            capture_with(cuda.CUDAGraph(), cold.step)
        assert "warm up" in str(raised.value)
        cold.step()
        graph, _ = captured(cold.step)
        graph.replay()


def test_indices_are_not_read_in_a_capture_but_their_addresses_are_checked():
    table, index = torch.arange(12.0, device="cuda").reshape(4, 3), torch.tensor([0, 3], device="cuda")
    graph, rows = captured(lambda: F.embedding(index, table))
    graph.replay()
    assert rows.tolist() == [[0, 1, 2], [9, 10, 11]]
    index.copy_(torch.tensor([1, 4]))

    def replay():
        graph.replay()
        cuda.synchronize()  # where streams run late, a kernel fails when it is waited for

    with pytest.raises(KernelMemoryError, match="out of bounds"):
        replay()


def test_checked_mode_and_debug_lines_let_a_capture_pass(capsys):
    x = torch.ones(4, device="cuda")
    with settings.check(True), settings.debug(2):
        graph, out = captured(lambda: (x + 1).sum())
    graph.replay()
    assert out.item() == 8


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


def test_the_page_about_graphs_runs():
    text = (Path(__file__).parents[2] / "docs" / "graphs.md").read_text(encoding="utf-8")
    blocks = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    assert len(blocks) >= 2
    names: dict = {}
    for block in blocks:
        exec(compile(block, "docs/graphs.md", "exec"), names)
