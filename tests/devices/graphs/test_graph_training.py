"""Training steps that are replayed: bit for bit those of eager training, on every device, beside eager steps."""

from __future__ import annotations

import functools

import numpy as np
import pytest

import tritensor as torch
import tritensor.nn.functional as F
from tritensor import cuda, drivers, nn, optim, settings

from ...needs import HAS_TRITON
from ...runtime.interpreted_device import interpreted_device
from .captures import captured

if not HAS_TRITON:
    pytest.skip("kernels need Triton", allow_module_level=True)


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


def eagerly(name):
    return _eagerly(name, type(drivers.require()))


@functools.cache
def _eagerly(name, kind):
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
    with cuda.simulate(engine="interpreter"):  # the same bits
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
