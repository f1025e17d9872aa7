"""One module on several simulated devices: what comes out, what flows back, what is shared and what is refused."""

from __future__ import annotations

import dataclasses
import doctest
import importlib.util
import re
import sys
import threading
from collections import OrderedDict, namedtuple
from pathlib import Path

import numpy as np
import pytest

import tritensor as torch
from tritensor import cuda, nn, settings
from tritensor.drivers import require
from tritensor.errors import ArgumentError, DeviceError, ShapeError
from tritensor.nn.parallel import data_parallel, gather, parallel_apply, replicate, scatter
from tritensor.nn.parallel.scatter_gather import Gather, Scatter, scatter_kwargs

pytestmark = pytest.mark.skipif(importlib.util.find_spec("triton") is None, reason="simulated devices need Triton")

Pair = namedtuple("Pair", ["first", "second"])


@pytest.fixture(params=[1, 2, 3])
def devices(request):
    with cuda.simulate(devices=request.param):
        yield request.param


@pytest.fixture
def two():
    with cuda.simulate(devices=2):
        yield


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


def test_empty_batch(two):
    model = make_model()
    out = nn.DataParallel(model)(torch.zeros(0, 4))
    assert tuple(out.shape) == (0, 3)


def test_function_equals_the_module(devices):
    model = make_model()
    shift = torch.full((5, 3), 0.5, device="cuda")
    expected = run(model, model, 5, shift=shift)
    found = run(lambda x: data_parallel(model, x, module_kwargs={"shift": shift}), model, 5)
    assert_same(found, expected)
    assert data_parallel(model, (torch.ones(3, 4),), output_device="cpu" if devices > 1 else None).shape[0] == 3


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


def test_second_gradients(two):
    model = nn.Linear(3, 2).to("cuda")
    x = torch.linspace(-1, 1, 9).reshape(3, 3).to("cuda").requires_grad_()
    found = []
    for call in (model, nn.DataParallel(model)):
        (first,) = torch.autograd.grad((call(x) ** 3).sum(), x, create_graph=True)
        found.append([host(g) for g in torch.autograd.grad((first**2).sum(), [x, model.weight])])
    for mine, other in zip(*found, strict=True):
        np.testing.assert_allclose(mine, other, rtol=1e-4)


def test_many_calls_at_once(two):
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


def test_one_device_moves_the_module(two):
    model = nn.Linear(2, 1)
    parallel = nn.DataParallel(model, device_ids=["cuda:1"])
    assert model.weight.device == torch.device("cuda:1")
    assert parallel(torch.ones(3, 2)).device == torch.device("cuda:1")


def test_module_elsewhere_is_refused(two):
    model = nn.Linear(2, 1)
    words = (
        r"module must have its parameters and buffers on device cuda:0 \(device_ids\[0\]\) but found one of "
        "them on device: cpu"
    )
    with pytest.raises(RuntimeError, match=words):
        nn.DataParallel(model)(torch.ones(2, 2))
    with pytest.raises(DeviceError, match="move the module"):
        data_parallel(model, torch.ones(2, 2))


def test_devices_that_are_not_there(two):
    with pytest.raises(DeviceError, match="invalid device ordinal"):
        nn.DataParallel(nn.Linear(2, 1), device_ids=[0, 2])
    with pytest.raises(DeviceError, match="no available devices were found"):
        nn.DataParallel(nn.Linear(2, 1), device_ids=[])
    with pytest.raises(DeviceError, match="Expected a cuda device"):
        scatter(torch.ones(2), ["cpu"])


@pytest.mark.parametrize("field", ["total_memory", "multi_processor_count"])
def test_warns_of_a_weak_device(two, monkeypatch, field):
    driver = require()
    whole = driver.properties(0)
    weak = dataclasses.replace(whole, **{field: getattr(whole, field) // 2})
    monkeypatch.setattr(driver, "properties", lambda index: weak if index == 1 else whole)
    with pytest.warns(UserWarning, match="You may want to exclude GPU 1 which has less than 75%.* of GPU 0"):
        nn.DataParallel(nn.Linear(2, 1))


# ---- what is shared, copied, kept --------------------------------------------------------------------------------


def test_names_have_a_prefix_and_load(two):
    model = make_model()
    parallel = nn.DataParallel(model)
    assert list(parallel.state_dict()) == [f"module.{name}" for name in model.state_dict()]
    other = nn.DataParallel(make_model())
    other.load_state_dict(parallel.state_dict())


def test_buffers_of_the_first_device_stay(two):
    model = make_model()
    with torch.no_grad():
        nn.DataParallel(model)(torch.ones(4, 4))
    assert model.calls.item() == 1


def test_what_forward_assigns_is_lost(two):
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


def test_hooks_run_for_every_replica(two):
    model = nn.Linear(2, 1).to("cuda")
    seen = []
    model.register_forward_hook(lambda module, args, output: seen.append(output.device.index))
    nn.DataParallel(model)(torch.ones(2, 2))
    assert sorted(seen) == [0, 1]


def test_replicas_expose_no_parameters_of_their_own(two):
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


def test_frozen_parameters_and_buffers_that_are_trained(two):
    model = nn.Linear(2, 1).to("cuda")
    model.bias.requires_grad_(False)
    model.register_buffer("factor", torch.ones(1, device="cuda", requires_grad=True))
    model.register_forward_hook(lambda module, args, output: output * module.factor)
    nn.DataParallel(model)(torch.ones(2, 2)).sum().backward()
    assert model.bias.grad is None
    assert model.weight.grad.tolist() == [[2.0, 2.0]]
    assert model.factor.grad.item() == pytest.approx(2 * (model.weight.sum() + model.bias).item(), rel=1e-5)


def test_parameter_lists_are_replicated(two):
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


def test_module_without_tensors(two):
    assert nn.DataParallel(nn.ReLU())(torch.tensor([-1.0, 2.0])).tolist() == [0.0, 2.0]


# ---- scatter and gather -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("rows", "count", "sizes"),
    [(7, 3, [3, 3, 1]), (4, 3, [2, 2]), (2, 3, [1, 1]), (6, 3, [2, 2, 2]), (0, 2, [0, 0])],
)
def test_scatter_cuts_as_chunk_does(rows, count, sizes):
    with cuda.simulate(devices=count):
        parts = scatter(torch.arange(rows), range(count))
        assert isinstance(parts, tuple)
        assert [len(part) for part in parts] == sizes
        assert [part.device.index for part in parts] == list(range(len(sizes)))
        assert [row for part in parts for row in part.tolist()] == list(range(rows))


def test_scatter_along_another_dimension_and_gather_there(two):
    x = torch.arange(6).reshape(2, 3)
    for dim in (1, -1):
        parts = scatter(x, [1, 0], dim)
        assert [part.tolist() for part in parts] == [[[0, 1], [3, 4]], [[2], [5]]]
        joined = gather(parts, 1, dim)
        assert joined.device == torch.device("cuda:1")
        assert torch.equal(joined.cpu(), x)


def test_data_parallel_along_another_dimension(two):
    out = nn.DataParallel(nn.ReLU(), dim=1)(torch.tensor([[-1.0, 2.0, 3.0]]))
    assert out.tolist() == [[0.0, 2.0, 3.0]]


def test_scatter_copies_containers_and_shares_the_rest(two):
    shared = object()
    value = {"x": torch.arange(2), "pair": Pair(torch.arange(4), [shared]), "empty": [], "none": None}
    first, second = scatter(OrderedDict(value), [0, 1])
    assert type(first) is OrderedDict
    assert [first["x"].tolist(), second["x"].tolist()] == [[0], [1]]
    assert isinstance(second["pair"], Pair)
    assert second["pair"].first.tolist() == [2, 3]
    assert first["pair"].second is not second["pair"].second
    assert first["pair"].second[0] is shared
    assert first["empty"] == []
    assert first["empty"] is not second["empty"]
    assert first["none"] is None
    assert scatter(3, [0, 1]) == [3, 3]
    assert scatter((1, "a"), [0, 1]) == [(1, "a"), (1, "a")]


def test_scatter_of_what_cannot_be_cut(two):
    with pytest.raises(ShapeError, match="chunk expects at least a 1-dimensional tensor"):
        scatter([torch.ones(4), torch.tensor(1.0)], [0, 1])
    with pytest.raises(ShapeError, match=r"different numbers of parts(.|\n)*shape \(4,\) falls into 2"):
        scatter([torch.ones(4), torch.ones(1)], [0, 1])
    with pytest.raises(IndexError):
        scatter(torch.ones(4), [0, 1], dim=1)


def test_arguments_without_tensors(two):
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


def test_outputs_in_containers(two):
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


def test_gather_on_the_cpu(two):
    parts = scatter(torch.arange(3), [0, 1])
    for target in ("cpu", -1, torch.device("cpu")):
        assert gather(parts, target).tolist() == [0, 1, 2]
    assert nn.DataParallel(nn.ReLU(), output_device="cpu")(torch.ones(2)).device == torch.device("cpu")


def test_scalars_become_a_vector(two):
    model = nn.Linear(2, 1).to("cuda")
    model.register_forward_hook(lambda module, args, output: output.sum())
    with pytest.warns(UserWarning, match="Was asked to gather along dimension 0, but all input tensors were scalars"):
        out = nn.DataParallel(model)(torch.ones(3, 2))
    assert tuple(out.shape) == (2,)
    (out * torch.tensor([1.0, 10.0], device="cuda")).sum().backward()
    assert model.bias.grad.item() == 2 + 10


def test_gather_refuses_what_cannot_be_joined(two):
    with pytest.raises(TypeError, match=r"gather\(\): cannot join values of type int"):
        gather([1, 2], 0)
    with pytest.raises(ArgumentError, match="str"):
        gather([("a",), ("b",)], 0)
    with pytest.raises(ValueError, match="All dicts must have the same number of keys"):
        gather([{"a": torch.ones(1)}, {}], 0)
    with pytest.raises(ValueError, match="zip"):
        gather([[torch.ones(1)], []], 0)
    with pytest.raises(ShapeError, match="Sizes of tensors must match"):
        gather([torch.ones(1, 2), torch.ones(1, 3)], 0)


def test_gather_gives_gradients_back_in_their_dtype_and_place(two):
    first = torch.ones(2, device="cuda:0", dtype=torch.float64, requires_grad=True)
    second = torch.ones(1, device="cuda:1", requires_grad=True)
    out = gather([first, second], 0)
    assert out.dtype is torch.float64
    (out * torch.tensor([1.0, 2.0, 3.0], device="cuda", dtype=torch.float64)).sum().backward()
    assert first.grad.tolist() == [1.0, 2.0]
    assert second.grad.tolist() == [3.0]
    assert second.grad.dtype is torch.float32
    assert second.grad.device == torch.device("cuda:1")


def test_scatter_and_gather_pass_gradcheck(two):
    x = torch.linspace(-1, 1, 5, dtype=torch.float64, device="cuda").requires_grad_()
    places = [torch.device("cuda:1"), torch.device("cuda:0")]
    weights = torch.arange(5).to("cuda", torch.float64)

    def there_and_back(x):
        parts = Scatter.apply(places, [3, 2], 0, x)
        return Gather.apply(torch.device("cuda:0"), 0, *(part**2 for part in parts)) * weights

    assert torch.autograd.gradcheck(there_and_back, x)


# ---- threads ------------------------------------------------------------------------------------------------------


def test_threads_record_as_the_caller_does(two):
    class Mode(nn.Module):
        def forward(self, x):
            modes.append((torch.is_grad_enabled(), torch.is_inference_mode_enabled()))
            return x

    for context, expected in (
        (torch.no_grad, (False, False)),
        (torch.inference_mode, (False, True)),
        (torch.enable_grad, (True, False)),
    ):
        modes: list[tuple[bool, bool]] = []
        with context():
            out = nn.DataParallel(nn.Sequential(nn.Linear(1, 1), Mode()).to("cuda"))(torch.ones(2, 1))
        assert modes == [expected, expected]
        assert out.requires_grad is expected[0]


def test_each_replica_has_its_own_device_thread_and_stream(two):
    side = cuda.Stream(1)
    seen = {}

    class Look(nn.Module):
        def forward(self, x):
            seen[x.device.index] = cuda.current_device(), cuda.current_stream(), threading.current_thread()
            return x

    before = cuda.current_stream(1)
    with cuda.stream(side), cuda.device(0):
        nn.DataParallel(Look())(torch.ones(2))
    assert seen[0][0] == 0
    assert seen[1][0] == 1
    assert seen[1][1] is side
    assert seen[0][1] is cuda.default_stream(0)
    assert len({seen[0][2], seen[1][2], threading.current_thread()}) == 3
    assert cuda.current_stream(1) is before


class Own(Exception):
    def __init__(self, code, detail):
        super().__init__(code, detail)


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (ValueError("bad"), ValueError),
        (KeyError("bad"), KeyError),
        (Own(1, "bad"), RuntimeError),
        (DeviceError("bad"), DeviceError),
    ],
)
def test_errors_carry_their_device(two, error, kind):
    class Fail(nn.Module):
        def forward(self, x):
            if x.device.index == 1:
                raise error
            return x

    with pytest.raises(kind) as caught:
        nn.DataParallel(Fail())(torch.ones(2))
    text = str(caught.value)
    assert text.startswith(f"Caught {type(error).__name__} in replica 1 on device cuda:1.\n")
    assert "bad" in text
    assert "\\n" not in text
    assert caught.value.__cause__ is error


def test_errors_of_all_devices_are_told(two):
    def fail(x):
        raise ValueError(f"on {x.device}")

    with pytest.raises(ValueError, match="in replica 0 on device cuda:0") as caught:
        parallel_apply([fail, fail], scatter(torch.ones(2), [0, 1]), devices=[0, 1])
    assert caught.value.__notes__ == ["also in replica 1 on device cuda:1: ValueError: on cuda:1"]


def test_a_mixed_device_error_names_the_replica(two):
    stray = torch.ones(1, device="cuda:0")
    with pytest.raises(
        RuntimeError, match=r"in replica 1 on device cuda:1(.|\n)*Expected all tensors to be on the same"
    ):
        parallel_apply([lambda x: x + stray] * 2, scatter(torch.ones(2), [0, 1]))


def test_parallel_apply_finds_the_device(two):
    calls = [lambda *args, **kwargs: cuda.current_device()] * 3
    inputs = [({"a": [torch.ones(1, device="cuda:1")]},), torch.ones(1, device="cuda:0"), (1,)]
    keywords = [{}, {}, {"x": torch.ones(1, device="cuda:1")}]
    assert parallel_apply(calls, inputs, keywords) == [1, 0, 1]
    assert parallel_apply(calls[:1], [1], devices=["cuda:1"]) == [1]
    with pytest.raises(RuntimeError, match="in replica 0, no device was provided and no tensor input was found"):
        parallel_apply(calls[:1], [1])


def test_parallel_apply_wants_equal_lengths():
    for arguments in ([[1]], [[1, 1], [{}]], [[1, 1], [{}, {}], [0]]):
        with pytest.raises(AssertionError, match="The number of modules 2 is not equal to the number of"):
            parallel_apply([abs, abs], *arguments)


def test_one_call_needs_no_thread_and_leaves_the_mode_alone():
    with torch.no_grad():
        (found,) = parallel_apply([lambda x: (threading.get_ident(), torch.set_grad_enabled(True))], [torch.ones(1)])
        assert found[0] == threading.get_ident()
        assert not torch.is_grad_enabled()


def test_the_guide_is_right():
    guide = Path(__file__).resolve().parents[2] / "docs" / "several_devices.md"
    blocks = re.findall(r"```python\n(.*?)```", guide.read_text(encoding="utf-8"), re.DOTALL)
    example = doctest.DocTestParser().get_doctest("\n".join(blocks), {}, guide.name, str(guide), 0)
    report: list[str] = []
    assert example.examples
    assert doctest.DocTestRunner().run(example, out=report.append).failed == 0, "".join(report)
