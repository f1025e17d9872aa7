"""Steps on the CPU by native code: the bits of NumPy's passes, and which arrays go to these."""

from __future__ import annotations

import copy
import math
import pickle
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import tritensor as torch
from tritensor import settings
from tritensor.kernels.optimizer import natively
from tritensor.runtime import choice, native_rows

pytestmark = pytest.mark.skipif(not choice.available(), reason="native code needs Triton, llvmlite and Linux on x86-64")

SHAPES: tuple[tuple[int, ...], ...] = ((10,), (3, 7), (1000,), (130, 700), (0,), (), (513,))
OPTIMIZERS: dict[str, tuple[str, dict[str, Any]]] = {
    "AdamW": ("AdamW", {}),
    "Adam amsgrad": ("Adam", {"amsgrad": True, "maximize": True, "weight_decay": 0.1}),
    "SGD": ("SGD", {"lr": 0.1}),
    "SGD momentum": ("SGD", {"lr": 0.1, "momentum": 0.9}),
    "SGD Nesterov": ("SGD", {"lr": 0.1, "momentum": 0.9, "nesterov": True, "weight_decay": 0.1}),
    "NAdam": ("NAdam", {}),
    "RAdam": ("RAdam", {}),
    "Adamax": ("Adamax", {}),
    "Adagrad": ("Adagrad", {}),
    "Adadelta": ("Adadelta", {}),
    "RMSprop": ("RMSprop", {"centered": True, "momentum": 0.9}),
    "ASGD": ("ASGD", {}),
    "Rprop": ("Rprop", {}),
}
QUICK = [
    pytest.param(name, marks=() if name in ("AdamW", "SGD momentum") else pytest.mark.thorough) for name in OPTIMIZERS
]


@pytest.fixture
def ran(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """For each step of native code how many parameters it had."""
    found: list[int] = []
    step = natively.Plans.step

    def noted(self: Any, tag: Any, operator: Any, numbers: Any, columns: Any) -> bool:
        done = step(self, tag, operator, numbers, columns)
        found.extend([len(columns[0])] * done)
        return done

    monkeypatch.setattr(natively.Plans, "step", noted)
    return found


@pytest.fixture
def forced() -> Iterator[None]:
    with settings.native_cpu("force"):
        yield


def parameters(dtype: Any = torch.float32) -> list[Any]:
    random = np.random.default_rng(0)
    return [torch.nn.Parameter(torch.tensor(random.standard_normal(shape)).to(dtype)) for shape in SHAPES]


def stepped(
    params: list[Any], optimizer: Any, steps: int = 8, between: Callable[[int], object] = lambda step: None
) -> Any:
    """What parameters and state hold after some steps."""
    random = np.random.default_rng(1)
    for step in range(steps):
        between(step)
        for param in params:
            param.grad = torch.tensor(random.standard_normal(param.shape)).to(param.dtype)
        optimizer.step()
    state = [each for param in params for _, each in sorted(optimizer.state.get(param, {}).items())]
    return [each.detach().numpy().tobytes() for each in (*params, *state)], [param._version for param in params]


@pytest.mark.sampled(4)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16, torch.float16], ids=str)
@pytest.mark.parametrize("name", QUICK)
def test_steps_have_the_bits_of_the_passes(name: str, dtype: Any, ran: list[int]) -> None:
    kind, options = OPTIMIZERS[name]
    found = []
    for wanted in ("0", "force"):
        with settings.native_cpu(wanted):
            params = parameters(dtype)
            found.append(stepped(params, getattr(torch.optim, kind)(params, **options)))
    assert found[0] == found[1]
    assert len(ran) > 5


def test_a_rate_that_changes_and_state_that_is_loaded(ran: list[int]) -> None:
    found = []
    for wanted in ("0", "force"):
        with settings.native_cpu(wanted):
            params = parameters()
            optimizer: Any = torch.optim.AdamW(params)

            def between(step: int) -> None:
                optimizer.param_groups[0]["lr"] = (0.1, 0.0, 1.0)[step % 3]  # noqa: B023
                if step == 5:
                    optimizer.load_state_dict(copy.deepcopy(optimizer.state_dict()))  # noqa: B023

            found.append(stepped(params, optimizer, between=between))
            optimizer = pickle.loads(pickle.dumps(optimizer))
            assert "_plans" not in vars(optimizer)
    assert found[0] == found[1]
    assert len(ran) > 5


def test_every_number_of_threads_gives_the_same_bits(
    forced: None, ran: list[int], monkeypatch: pytest.MonkeyPatch, same_number_of_threads: None
) -> None:
    monkeypatch.setattr(native_rows, "_PROGRAMS", 3)
    found = []
    for number in (1, 2, 3, 7):
        torch.set_num_threads(number)
        params = parameters()
        found.append(stepped(params, torch.optim.AdamW(params)))
    assert all(each == found[0] for each in found)
    assert ran


@pytest.mark.parametrize("which", ["strided", "gradient", "overlapping", "same memory", "own gradient", "frozen"])
def test_other_arrays_go_to_numpy(which: str, ran: list[int]) -> None:
    found = []
    for wanted in ("0", "force"):
        with settings.native_cpu(wanted):
            memory = torch.tensor(np.random.default_rng(2).standard_normal(4000).astype(np.float32))
            views = {
                "strided": [memory[:2000:2], memory[2000:]],
                "overlapping": [memory[:2000], memory[1000:3000]],
                "same memory": [memory[:2000], memory[:2000]],
            }.get(which, [memory[:2000], memory[2000:]])
            params = [torch.nn.Parameter(view) for view in views]
            optimizer: Any = torch.optim.SGD(params, lr=0.1, momentum=0.9)
            for step in range(6):
                for param in params:
                    gradient = torch.tensor(np.random.default_rng(step).standard_normal((1000, 2)).astype(np.float32))
                    param.grad = gradient.reshape(-1)[: param.numel()]
                    if which == "gradient":
                        param.grad = gradient[:, 0][:1].expand(2000)
                    elif which == "own gradient":
                        param.grad = param.detach()
                optimizer.step()
            found.append((memory.numpy().tobytes(), [param._version for param in params]))
    assert found[0] == found[1]
    assert bool(ran) == (which == "frozen")


def test_parameters_of_another_shape_begin_another_plan(forced: None, ran: list[int]) -> None:
    param = torch.nn.Parameter(torch.zeros(2000))
    optimizer = torch.optim.SGD([param], lr=0.5)
    for step in range(8):
        if step == 4:
            param.data = torch.zeros(40, 30)
        param.grad = torch.ones(*param.shape)
        optimizer.step()
    assert (param.detach().numpy() == -2).all()
    assert len(ran) == 7  # but for the first


def test_a_gradient_of_another_shape_is_refused(forced: None, ran: list[int]) -> None:
    params = parameters()
    optimizer = torch.optim.SGD(params, lr=0.5)
    stepped(params, optimizer, 3)
    before = [param.detach().numpy().copy() for param in params]
    params[2]._grad = torch.ones(1001)
    with pytest.raises((ValueError, RuntimeError)):
        optimizer.step()
    np.testing.assert_array_equal(params[3].detach().numpy(), before[3])


def test_a_kernel_that_disagrees_is_not_used(
    forced: None, ran: list[int], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    rule = torch.optim.SGD._rules[frozenset()]  # type: ignore[attr-defined]
    param = torch.nn.Parameter(torch.zeros(2000))
    optimizer = torch.optim.SGD([param], lr=0.5)
    with settings.debug(1):
        for step in range(5):
            param.grad = torch.ones(2000)
            optimizer.step()
            if not step:  # the passes are made of the right one
                monkeypatch.setattr(rule, "body", lambda param, grad, lr, l2, sign: param + lr * grad)
                monkeypatch.setattr(natively, "_templates", {})
    assert not ran
    assert "sgd is computed by NumPy: new_param has other bits" in capsys.readouterr().err
    assert param.detach().numpy().max() == -2.5


@pytest.mark.sampled(3)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16, torch.float16], ids=str)
@pytest.mark.parametrize("order", [2.0, 1.0, math.inf, 3.0])
def test_gradients_are_clipped_as_by_numpy(order: float, dtype: Any) -> None:
    shapes, runs = [shape for shape in SHAPES if shape != (0,)], []
    for wanted in ("0", "force"):
        with settings.native_cpu(wanted):
            for step in range(4):
                params = [torch.nn.Parameter(torch.zeros(*shape).to(dtype)) for shape in shapes]
                random = np.random.default_rng(step)
                for param in params:
                    param.grad = torch.tensor(random.uniform(-1, 1, param.shape)).to(dtype)
                norm = torch.nn.utils.clip_grad_norm_(params, 3.0 if step else 1e9, order)
                runs.append([norm, *[param.grad for param in params]])
                assert [param.grad._version for param in params] == [1] * len(params)
    assert natively._templates[dtype.numpy, ""].made
    share = 0.02 if dtype.itemsize < 4 else 1e-6
    for one, other in zip(runs[:4], runs[4:], strict=True):
        for x, y in zip(one, other, strict=True):
            assert x.dtype == y.dtype
            np.testing.assert_allclose(x.double().numpy(), y.double().numpy(), share, 1e-6)


def test_a_gradient_that_is_not_a_number_gives_such_norms(forced: None) -> None:
    gradients = [torch.ones(700), torch.ones(3)]
    for order in (2.0, 1.0, math.inf):
        for place in (699, 3, 0):
            x = torch.ones(700)
            x[place] = math.nan
            for _ in range(3):
                found = torch.nn.utils.get_total_norm([*gradients, x], order)
            assert math.isnan(found.item())
    for _ in range(3):
        x = torch.ones(700)
        torch.nn.utils.clip_grads_with_norm_([torch.nn.Parameter(x)], 1.0, torch.tensor(2.0))
        found = torch.nn.utils.get_total_norm([x, x], 2.0)
        assert found.item() == pytest.approx(1400**0.5)
