"""One module on several simulated devices: what comes out, what flows back, what is shared and what is refused."""

from __future__ import annotations

import dataclasses
import doctest
import re
import sys
from collections import namedtuple
from pathlib import Path

import numpy as np
import pytest

import tritensor as torch
from tritensor import cuda, nn, settings
from tritensor.drivers import require
from tritensor.errors import DeviceError
from tritensor.nn.parallel import data_parallel, replicate, scatter
from tritensor.nn.parallel.scatter_gather import scatter_kwargs

from ..needs import needs_triton

pytestmark = needs_triton


Pair = namedtuple("Pair", ["first", "second"])


@pytest.fixture(params=[1, 2, 3])
def devices(request):
    with cuda.simulate(devices=request.param):
        yield request.param


class Model(nn.Module):
    """Two layers, one of them used twice, a buffer that is read and one that counts, and a parameter for nothing."""

    def __init__(self):
        super().__init__()
        self.inner = nn.Sequential(nn.Linear(4, 4), nn.ReLU())
        self.head = nn.Linear(4, 3)
        self.unused = nn.Parameter(torch.ones(2))
        self.register_buffer("scale", torch.tensor([1.0, 2.0, 3.0]))
        self.register_buffer("calls", torch.zeros(1))
        self.register_buffer("nothing", None)
        self.register_parameter("none", None)
        self.again = self.inner[0]

    def forward(self, x, shift=None):
        x = self.again(self.inner(x))
        self.calls.add_(1)
        y = self.head(x) * self.scale
        return y if shift is None else y + shift


def make_model():
    torch.manual_seed(3)
    return Model().to("cuda")


def host(x):
    return x.detach().cpu().numpy()


def gradients(model):
    return {name: None if p.grad is None else host(p.grad) for name, p in model.named_parameters()}


def run(call, model, batch, **kwargs):
    """Output and gradients of a loss that weighs every element of the output differently."""
    x = torch.linspace(-1, 1, batch * 4).reshape(batch, 4).to("cuda").requires_grad_()
    out = call(x, **kwargs)
    weights = torch.arange(out.numel()).reshape(out.shape).to(out.device, torch.float32) * 0.1
    model.zero_grad()
    (out * weights).sum().backward()
    return host(out), host(x.grad), gradients(model)


def assert_same(found, expected):
    for mine, other in zip(found[:2], expected[:2], strict=True):
        np.testing.assert_allclose(mine, other, rtol=1e-5, atol=1e-6)
    assert found[2].keys() == expected[2].keys()
    for name, gradient in expected[2].items():
        if gradient is None:
            assert found[2][name] is None, name
        else:
            np.testing.assert_allclose(found[2][name], gradient, rtol=1e-5, atol=1e-6, err_msg=name)


# ---- the result of one device -----------------------------------------------------------------------------------


@pytest.mark.sampled(1)
@pytest.mark.parametrize("batch", [1, 2, 3, 4, 7])
def test_equals_one_device(devices, batch):
    model = make_model()
    expected = run(model, model, batch)
    assert_same(run(nn.DataParallel(model), model, batch), expected)
    assert expected[2]["unused"] is None


def test_equals_one_device_when_streams_run_late(devices):
    with settings.simulate_late(True):
        model = make_model()
        shift = torch.ones(5, 3)
        expected = run(lambda x: model(x, shift=shift.to("cuda")), model, 5)
        assert_same(run(nn.DataParallel(model), model, 5, shift=shift), expected)


def test_empty_batch(two_devices):
    model = make_model()
    out = nn.DataParallel(model)(torch.zeros(0, 4))
    assert tuple(out.shape) == (0, 3)


@pytest.mark.sampled(2)
def test_function_equals_the_module(devices):
    model = make_model()
    shift = torch.full((5, 3), 0.5, device="cuda")
    expected = run(model, model, 5, shift=shift)
    found = run(lambda x: data_parallel(model, x, module_kwargs={"shift": shift}), model, 5)
    assert_same(found, expected)
    assert data_parallel(model, (torch.ones(3, 4),), output_device="cpu" if devices > 1 else None).shape[0] == 3


@pytest.mark.thorough
def test_training_equals_one_device():
    """Three steps on two devices and on one end with the same parameters."""
    ends = []
    for count in (1, 2):
        with cuda.simulate(devices=count):
            model = nn.DataParallel(make_model())
            optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
            for step in range(3):
                optimizer.zero_grad()
                out = model(torch.linspace(-1, step + 1, 20).reshape(5, 4))
                (out * out).mean().backward()
                optimizer.step()
            ends.append({name: host(value) for name, value in model.state_dict().items()})
    assert ends[0].keys() == ends[1].keys()
    for name in ends[0]:
        np.testing.assert_allclose(ends[1][name], ends[0][name], rtol=1e-5, atol=1e-6, err_msg=name)


def test_second_gradients(two_devices):
    model = nn.Linear(3, 2).to("cuda")
    x = torch.linspace(-1, 1, 9).reshape(3, 3).to("cuda").requires_grad_()
    found = []
    for call in (model, nn.DataParallel(model)):
        (first,) = torch.autograd.grad((call(x) ** 3).sum(), x, create_graph=True)
        found.append([host(g) for g in torch.autograd.grad((first**2).sum(), [x, model.weight])])
    for mine, other in zip(*found, strict=True):
        np.testing.assert_allclose(mine, other, rtol=1e-4)


@pytest.mark.thorough
def test_many_calls_at_once(two_devices):
    """Threads share caches of kernels and memory; twenty calls in a row meet in many orders."""
    model = make_model()
    parallel = nn.DataParallel(model)
    x = torch.linspace(-1, 1, 24).reshape(6, 4)
    with torch.no_grad():
        expected = host(model(x.to("cuda")))
        for _ in range(20):
            np.testing.assert_allclose(host(parallel(x)), expected, rtol=1e-5, atol=1e-6)


# ---- without devices, and on the wrong ones -----------------------------------------------------------------------


def test_without_devices_it_calls_the_module(monkeypatch):
    # `nn.parallel.data_parallel` is the function; its module is found by name only
    monkeypatch.setattr(sys.modules["tritensor.nn.parallel.data_parallel"], "active", lambda: None)
    model = nn.Linear(2, 1)
    parallel = nn.DataParallel(model, device_ids=[4], output_device=7)
    assert parallel.device_ids == []
    x = torch.ones(3, 2)
    assert torch.equal(parallel(x), model(x))


def test_one_device_moves_the_module(two_devices):
    model = nn.Linear(2, 1)
    parallel = nn.DataParallel(model, device_ids=["cuda:1"])
    assert model.weight.device == torch.device("cuda:1")
    assert parallel(torch.ones(3, 2)).device == torch.device("cuda:1")


def test_module_elsewhere_is_refused(two_devices):
    model = nn.Linear(2, 1)
    words = (
        r"module must have its parameters and buffers on device cuda:0 \(device_ids\[0\]\) but found one of "
        "them on device: cpu"
    )
    with pytest.raises(RuntimeError, match=words):
        nn.DataParallel(model)(torch.ones(2, 2))
    with pytest.raises(DeviceError, match="move the module"):
        data_parallel(model, torch.ones(2, 2))


def test_devices_that_are_not_there(two_devices):
    with pytest.raises(DeviceError, match="invalid device ordinal"):
        nn.DataParallel(nn.Linear(2, 1), device_ids=[0, 2])
    with pytest.raises(DeviceError, match="no available devices were found"):
        nn.DataParallel(nn.Linear(2, 1), device_ids=[])
    with pytest.raises(DeviceError, match="Expected a cuda device"):
        scatter(torch.ones(2), ["cpu"])


@pytest.mark.parametrize("field", ["total_memory", "multi_processor_count"])
def test_warns_of_a_weak_device(two_devices, monkeypatch, field):
    driver = require()
    whole = driver.properties(0)
    weak = dataclasses.replace(whole, **{field: getattr(whole, field) // 2})
    monkeypatch.setattr(driver, "properties", lambda index: weak if index == 1 else whole)
    with pytest.warns(UserWarning, match="You may want to exclude GPU 1 which has less than 75%.* of GPU 0"):
        nn.DataParallel(nn.Linear(2, 1))


# ---- what is shared, copied, kept --------------------------------------------------------------------------------


def test_names_have_a_prefix_and_load(two_devices):
    model = make_model()
    parallel = nn.DataParallel(model)
    assert list(parallel.state_dict()) == [f"module.{name}" for name in model.state_dict()]
    other = nn.DataParallel(make_model())
    other.load_state_dict(parallel.state_dict())


def test_buffers_of_the_first_device_stay(two_devices):
    model = make_model()
    with torch.no_grad():
        nn.DataParallel(model)(torch.ones(4, 4))
    assert model.calls.item() == 1


def test_what_forward_assigns_is_lost(two_devices):
    class Counting(nn.Module):
        def __init__(self):
            super().__init__()
            self.count = 0
            self.register_buffer("mean", torch.zeros(1))

        def forward(self, x):
            self.count += 1
            self.mean = self.mean + x.mean()
            return x + self.count + self.mean

    model = Counting().to("cuda")
    out = nn.DataParallel(model)(torch.ones(2, 1))
    assert out.tolist() == [[3.0], [3.0]]
    assert model.count == 0
    assert model.mean.item() == 0


def test_hooks_run_for_every_replica(two_devices):
    model = nn.Linear(2, 1).to("cuda")
    seen = []
    model.register_forward_hook(lambda module, args, output: seen.append(output.device.index))
    nn.DataParallel(model)(torch.ones(2, 2))
    assert sorted(seen) == [0, 1]


def test_replicas_expose_no_parameters_of_their_own(two_devices):
    model = make_model()
    first, second = replicate(model, [0, 1])
    assert list(first.parameters()) == []
    assert first.again is first.inner[0]
    assert second.inner[0].weight.device == torch.device("cuda:1")
    assert not second.inner[0].weight.is_leaf
    assert second.scale.device == torch.device("cuda:1")
    assert not second.scale.requires_grad
    assert second.none is None
    assert second.nothing is None
    assert first.head.weight.data_ptr() == model.head.weight.data_ptr()
    assert len(list(model.parameters())) == 5
    assert repr(second).startswith("Model(")


def test_frozen_parameters_and_buffers_that_are_trained(two_devices):
    model = nn.Linear(2, 1).to("cuda")
    model.bias.requires_grad_(False)
    model.register_buffer("factor", torch.ones(1, device="cuda", requires_grad=True))
    model.register_forward_hook(lambda module, args, output: output * module.factor)
    nn.DataParallel(model)(torch.ones(2, 2)).sum().backward()
    assert model.bias.grad is None
    assert model.weight.grad.tolist() == [[2.0, 2.0]]
    assert model.factor.grad.item() == pytest.approx(2 * (model.weight.sum() + model.bias).item(), rel=1e-5)


def test_parameter_lists_are_replicated(two_devices):
    class Listed(nn.Module):
        def __init__(self):
            super().__init__()
            self.weights = nn.ParameterList([torch.ones(1), torch.full((1,), 2.0)])

        def forward(self, x):
            for weight in self.weights:
                x = x * weight
            return x

    model = Listed().to("cuda")
    nn.DataParallel(model)(torch.ones(4, 1)).sum().backward()
    assert [weight.grad.item() for weight in model.weights] == [8.0, 4.0]


def test_module_without_tensors(two_devices):
    assert nn.DataParallel(nn.ReLU())(torch.tensor([-1.0, 2.0])).tolist() == [0.0, 2.0]


def test_data_parallel_along_another_dimension(two_devices):
    out = nn.DataParallel(nn.ReLU(), dim=1)(torch.tensor([[-1.0, 2.0, 3.0]]))
    assert out.tolist() == [[0.0, 2.0, 3.0]]


def test_arguments_without_tensors(two_devices):
    """A flag beside a batch goes to as many devices as the batch does; a call without arguments to the first alone."""
    assert scatter_kwargs((), {}, [0, 1]) == (((),), ({},))
    assert scatter_kwargs((), {"flag": 1}, [0, 1]) == (((), ()), ({"flag": 1}, {"flag": 1}))
    positional, named = scatter_kwargs((torch.ones(1),), {"flag": 1}, [0, 1])
    assert len(positional) == len(named) == 1

    class Constant(nn.Module):
        def __init__(self):
            super().__init__()
            self.value = nn.Parameter(torch.ones(2))

        def forward(self):
            return self.value * 2

    assert nn.DataParallel(Constant().to("cuda"))().tolist() == [2.0, 2.0]


def test_outputs_in_containers(two_devices):
    class Several(nn.Module):
        def forward(self, x):
            return {"sum": x + x, "pair": Pair(x * 2, [x * 3, None]), "tuple": (x,)}

    out = nn.DataParallel(Several(), output_device=1)(torch.arange(3))
    assert out["sum"].tolist() == [0, 2, 4]
    assert out["sum"].device == torch.device("cuda:1")
    assert isinstance(out["pair"], Pair)
    assert out["pair"].second[0].tolist() == [0, 3, 6]
    assert out["pair"].second[1] is None
    assert out["tuple"][0].tolist() == [0, 1, 2]


def test_the_guide_is_right():
    guide = Path(__file__).resolve().parents[2] / "docs" / "several_devices.md"
    blocks = re.findall(r"```python\n(.*?)```", guide.read_text(encoding="utf-8"), re.DOTALL)
    example = doctest.DocTestParser().get_doctest("\n".join(blocks), {}, guide.name, str(guide), 0)
    report: list[str] = []
    assert example.examples
    assert doctest.DocTestRunner().run(example, out=report.append).failed == 0, "".join(report)
