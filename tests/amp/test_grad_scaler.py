"""The scaler of losses: its numbers, where it waits, and what it refuses."""

from __future__ import annotations

import pickle
import re
from typing import Any

import numpy as np
import pytest

import tritensor as torch
from tritensor import amp, cuda, nn, optim, settings
from tritensor.amp import grad_scaler
from tritensor.kernels.optimizer import scaling

from ..needs import needs_triton

PLACES = ["cpu", pytest.param("cuda", marks=needs_triton)]
KINDS = [torch.float32, torch.float64, torch.bfloat16]


def made(device: str, *shapes: tuple[int, ...], kind: Any = torch.float32) -> list[nn.Parameter]:
    params = [nn.Parameter(torch.ones(shape, dtype=kind, device=device)) for shape in shapes]
    for number, param in enumerate(params, 1):
        param.grad = torch.full(param.shape, 8.0 * number, dtype=kind, device=device)
    return params


def scaled(device: str, scale: float = 8.0, **options: Any) -> amp.GradScaler:
    """A scaler that has scaled a loss."""
    scaler = amp.GradScaler(device, init_scale=scale, **options)
    scaler.scale(torch.ones((), device=device))
    return scaler


@pytest.mark.parametrize("kind", KINDS, ids=str)
@pytest.mark.parametrize("device", PLACES)
def test_gradients_are_divided_by_the_scale(device: str, kind: Any) -> None:
    with cuda.simulate(devices=1):
        params = made(device, (3, 5), (7,), (0,), (40, 30), kind=kind)
        params[1].grad = torch.full((7, 2), 16.0, dtype=kind, device=device)[:, 0]  # not contiguous
        params.append(nn.Parameter(torch.ones(2, device=device)))  # without a gradient
        sgd, scaler = optim.SGD(params, lr=1.0), scaled(device)
        versions = [param.grad._version for param in params[:4]]
        scaler.unscale_(sgd)
        assert [param.grad.flatten()[:1].tolist() for param in params[:4]] == [[1.0], [2.0], [], [4.0]]
        assert all(param.grad.min() == param.grad.max() for param in params[:4] if param.grad.numel())
        changed = [param.grad._version > version for param, version in zip(params, versions, strict=False)]
        assert changed == [True, True, False, True]
        scaler.step(sgd)
        scaler.update()
        assert params[0][0, 0].item() == 0 and scaler.get_scale() == 8 and scaler._get_growth_tracker() == 1


@pytest.mark.parametrize("value", [float("inf"), float("-inf"), float("nan")])
@pytest.mark.parametrize("place", [0, -1])
@pytest.mark.parametrize("device", PLACES)
def test_one_infinite_element_skips_the_step(device: str, place: int, value: float) -> None:
    with cuda.simulate(devices=1):
        params = made(device, (3,), (70, 60))
        params[1].grad.view(-1)[place] = value
        sgd, scaler = optim.SGD(params, lr=1.0), scaled(device)
        assert scaler.step(sgd) is None
        assert params[0].tolist() == [1.0] * 3 and params[0].grad.tolist() == [1.0] * 3
        scaler.update()
        assert scaler.get_scale() == 4 and scaler._get_growth_tracker() == 0


@pytest.mark.parametrize("device", PLACES)
def test_the_scale_grows_after_steps_and_not_beyond_what_float32_holds(device: str) -> None:
    with cuda.simulate(devices=1):
        sgd = optim.SGD(made(device, (2,)), lr=0.0)
        scaler = scaled(device, 2.0**126, growth_interval=2)
        seen = []
        for _ in range(6):
            scaler.step(sgd)
            scaler.update()
            seen.append((scaler.get_scale() / 2.0**126, scaler._get_growth_tracker()))
        assert seen == [(1, 1), (2, 0), (2, 1), (2, 0), (2, 1), (2, 0)]


@pytest.mark.parametrize("device", PLACES)
def test_a_loss_and_lists_of_losses_are_scaled(device: str) -> None:
    with cuda.simulate(devices=1):
        scaler, x = amp.GradScaler(device, init_scale=4.0), torch.ones(2, device=device)
        assert scaler.scale(x).tolist() == [4, 4] and scaler.scale(x.bfloat16()).dtype is torch.bfloat16
        listed = scaler.scale([x, (x, x * 2)])
        assert type(listed) is list and type(listed[1]) is tuple and listed[1][1].tolist() == [8, 8]
        assert [each.tolist() for each in scaler.scale(each for each in (x,))] == [[4, 4]]
        with pytest.raises(ValueError, match="outputs must be a Tensor or an iterable of Tensors"):
            scaler.scale(3)


@needs_triton
def test_only_the_step_waits_for_the_device(monkeypatch: pytest.MonkeyPatch) -> None:
    launches: list[str] = []

    def noted(kernel: Any, *arguments: Any, **options: Any) -> None:
        launches.append(options["name"])
        run(kernel, *arguments, **options)

    from tritensor.kernels.optimizer import clipping

    run = clipping.launch
    for module in (clipping, scaling):
        monkeypatch.setattr(module, "launch", noted)
    with cuda.simulate(devices=1):
        params = made("cuda", *[(5,)] * 20)
        sgd, scaler = optim.SGD(params, lr=1.0), scaled("cuda")
        with cuda.transfers() as moved:
            scaler.unscale_(sgd)
        assert launches == ["unscale"]
        moved.assert_at_most(h2d=1, d2h=0, syncs=0)  # the table of addresses
        with cuda.transfers() as moved:
            scaler.step(sgd)
        assert moved.count("d2h") == 1
        with cuda.transfers() as moved:
            scaler.update()
        assert launches == ["unscale", "update_scale"]
        moved.assert_at_most(h2d=0, d2h=0, syncs=0)


@needs_triton
def test_parameters_on_several_devices() -> None:
    with cuda.simulate(devices=2):
        params = [*made("cuda:0", (3,)), *made("cuda:1", (4,)), *made("cpu", (2,))]
        sgd, scaler = optim.SGD(params, lr=1.0), scaled("cuda")
        scaler.step(sgd)
        assert [param[0].item() for param in params] == [0.0] * 3
        scaler.update()
        params[1].grad[2] = float("nan")
        scaler.step(sgd)
        scaler.update()
        assert scaler.get_scale() == 4 and params[0][0].item() == 0


@needs_triton
def test_one_gradient_of_two_parameters_is_divided_for_each() -> None:
    with cuda.simulate(devices=1):
        params = made("cuda", (3,), (3,))
        params[1].grad = params[0].grad
        scaled("cuda").unscale_(optim.SGD(params))
        assert params[0].grad.tolist() == [0.125] * 3


class Scaling(optim.Optimizer):
    """An optimizer that divides by the scale itself."""

    _step_supports_amp_scaling = True

    def __init__(self, params: Any) -> None:
        super().__init__(params, {"differentiable": False})
        self.seen: list[Any] = []

    def step(self, closure: Any = None) -> str:
        self.seen.append((None if self.grad_scale is None else self.grad_scale.item(), self.found_inf.item()))
        return "stepped"


def test_an_optimizer_that_scales_gets_scale_and_infinities() -> None:
    params = made("cpu", (3,), kind=torch.float16)
    own, scaler = Scaling(params), scaled("cpu")
    assert scaler.step(own) == "stepped"
    scaler.update()
    assert params[0].grad.tolist() == [8.0] * 3
    params[0].grad[0] = float("inf")
    scaler.step(own)
    scaler.update()
    params[0].grad = None
    params[0].data = params[0].data.float()
    params[0].grad = torch.ones(3)
    scaler.unscale_(own)
    scaler.step(own)
    assert own.seen == [(8.0, 0.0), (8.0, 1.0), (None, 0.0)]
    assert not hasattr(own, "grad_scale") and not hasattr(own, "found_inf")


def test_a_scale_that_is_set() -> None:
    sgd, scaler = optim.SGD(made("cpu", (2,))), scaled("cpu")
    scaler.update(32.0)
    assert scaler.get_scale() == 32
    scaler.update(torch.tensor([16.0]))
    assert scaler.get_scale() == 16
    with pytest.raises(AssertionError, match=r"new_scale should be a float or a 1-element torch.cuda.FloatTensor or"):
        scaler.update(torch.ones(2))
    scaler.unscale_(sgd)
    assert sgd.param_groups[0]["params"][0].grad.tolist() == [0.5, 0.5]


def test_numbers_are_read_and_set() -> None:
    scaler = amp.GradScaler("cpu", growth_factor=3.0, backoff_factor=0.25, growth_interval=5)
    assert (scaler.get_growth_factor(), scaler.get_backoff_factor(), scaler.get_growth_interval()) == (3.0, 0.25, 5)
    scaler.set_growth_factor(4.0)
    scaler.set_backoff_factor(0.5)
    scaler.set_growth_interval(7)
    assert scaler.state_dict() == {
        "scale": 65536.0,
        "growth_factor": 4.0,
        "backoff_factor": 0.5,
        "growth_interval": 7,
        "_growth_tracker": 0,
    }
    assert scaler.is_enabled()


def test_state_goes_to_another_scaler_and_into_a_file() -> None:
    sgd, scaler = optim.SGD(made("cpu", (2,))), scaled("cpu")
    scaler.step(sgd)
    with pytest.raises(AssertionError, match="A GradScaler instance may only be pickled at the beginning"):
        pickle.dumps(scaler)
    scaler.update()
    for other in (amp.GradScaler("cpu"), scaled("cpu", 2.0)):
        other.load_state_dict(scaler.state_dict())
        assert other.state_dict() == scaler.state_dict() and other._get_growth_tracker() == 1
    loaded = pickle.loads(pickle.dumps(scaler))
    assert loaded.state_dict() == scaler.state_dict()
    assert loaded.scale(torch.ones(1)).item() == 8
    with pytest.raises(RuntimeError, match="The source state dict is empty, possibly because it was saved from"):
        scaler.load_state_dict({})


def test_a_disabled_scaler_does_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    params = made("cpu", (2,))
    sgd, scaler = optim.SGD(params, lr=0.125), amp.GradScaler("cpu", enabled=False, growth_factor=0.5)
    x = torch.ones(2)
    assert scaler.scale(x) is x and scaler.get_scale() == 1 and scaler._get_growth_tracker() == 0
    scaler.unscale_(sgd)
    assert scaler.step(sgd, lambda: 3) == 3
    scaler.update()
    scaler.load_state_dict({})
    assert params[0].tolist() == [0.0, 0.0] and scaler.state_dict() == {} and not scaler.is_enabled()
    assert not pickle.loads(pickle.dumps(scaler)).is_enabled()
    monkeypatch.setattr(grad_scaler, "active", lambda: None)
    with pytest.warns(
        UserWarning, match=r"torch.cuda.amp.GradScaler is enabled, but CUDA is not available.  Disabling"
    ):
        assert not amp.GradScaler().is_enabled()


def test_use_out_of_order_raises_pytorchs_words() -> None:
    params = made("cpu", (2,))
    sgd, fresh = optim.SGD(params), amp.GradScaler("cpu")
    for name, call in (("unscale_", fresh.unscale_), ("step", fresh.step)):
        with pytest.raises(AssertionError, match=f"Attempted {name} but _scale is None.  This may indicate your"):
            call(sgd)
    with pytest.raises(AssertionError, match="Attempted update but _scale is None"):
        fresh.update()
    scaler = scaled("cpu")
    with pytest.raises(AssertionError, match=r"No inf checks were recorded prior to update."):
        scaler.update()
    with pytest.raises(RuntimeError, match=r"Closure use is not currently supported if GradScaler is enabled."):
        scaler.step(sgd, closure=lambda: 1)
    scaler.unscale_(sgd)
    with pytest.raises(RuntimeError, match=r"unscale_\(\) has already been called on this optimizer since the last"):
        scaler.unscale_(sgd)
    scaler.step(sgd)
    with pytest.raises(RuntimeError, match=r"step\(\) has already been called since the last update\(\)."):
        scaler.step(sgd)
    with pytest.raises(RuntimeError, match=r"unscale_\(\) is being called after step\(\)."):
        scaler.unscale_(sgd)
    scaler.update()
    params[0].grad = None
    with pytest.raises(AssertionError, match=r"No inf checks were recorded for this optimizer."):
        scaler.step(sgd)
    params[0].data = params[0].data.half()
    params[0].grad = torch.ones(2, dtype=torch.float16)
    with pytest.raises(ValueError, match=r"Attempting to unscale FP16 gradients."):
        scaled("cpu").unscale_(sgd)
    assert params[0].grad.tolist() == [1.0, 1.0]
    with pytest.raises(AssertionError, match=r"The growth factor must be > 1.0."):
        amp.GradScaler("cpu", growth_factor=1.0)
    with pytest.raises(AssertionError, match=r"The backoff factor must be < 1.0."):
        amp.GradScaler("cpu", backoff_factor=1.0)
    sgd.param_groups[0]["params"] = [np.ones(2)]
    with pytest.raises(AssertionError, match=r"expected param to be torch.Tensor, got ndarray"):
        scaled("cpu").unscale_(sgd)


@needs_triton
def test_scaling_is_captured() -> None:
    with cuda.simulate(devices=1):
        params = made("cuda", (3,), (5,))
        sgd, scaler = optim.SGD(params), scaled("cuda")
        scaler.unscale_(sgd)
        scaler.update()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            scaler.unscale_(sgd)
            scaler.update()
        for value, scale in ((4.0, 8.0), (float("inf"), 4.0), (4.0, 4.0)):
            before = scaler.get_scale()
            params[0].grad.fill_(value)
            graph.replay()
            assert params[0].grad.tolist() == [value / before] * 3 and scaler.get_scale() == scale


@needs_triton
@pytest.mark.parametrize("block", [16, 64])
def test_blocks_of_any_size(block: int) -> None:
    with cuda.simulate(devices=1), settings.block(block):
        for place in (0, 33, 69):
            params = made("cuda", (70,), (3,))
            params[0].grad[place] = float("inf")
            sgd, scaler = optim.SGD(params), scaled("cuda")
            scaler.unscale_(sgd)
            assert params[0].grad.sum().item() == float("inf") and params[0].grad[place - 1].item() == 1
            scaler.step(sgd)
            scaler.update()
            assert scaler.get_scale() == 4


@pytest.mark.thorough
@needs_triton
@pytest.mark.parametrize(
    ("kind", "target"),
    [
        pytest.param(kind, target, marks=[pytest.mark.slow] * (first + second > 0), id=f"{kind}-{target}")
        for first, kind in enumerate(KINDS)
        for second, target in enumerate((("cuda", 90), ("cuda", 80), ("cuda", 100), ("hip", "gfx942")))
    ],
)
def test_the_kernels_read_vectors_and_do_not_spill(kind: Any, target: Any) -> None:
    from tritensor.kernels.optimizer import clipping
    from tritensor.runtime.launch import compile_ahead

    compute = torch.float64 if kind is torch.float64 else torch.float32
    constants = {"KIND": kind, "COMPUTE": compute, "ALIGNED": True, "BLOCK": clipping._BYTES // kind.itemsize}
    facts = compile_ahead(scaling.unscale_kernel, ("*i64:16", "*fp32:16", "*fp32:16"), constants, target, 8)
    assert facts.local_bytes == 0
    if target[0] == "cuda":
        assert re.search(r"ld\.global\.(v4\.b32|v2\.b64)", facts.asm["ptx"])
    signature = ("*fp32:16", "*i32:16", "*fp32:16", "fp64", "fp64", "i32")
    assert compile_ahead(scaling.update_kernel, signature, {}, target, 4).local_bytes == 0


@pytest.mark.parametrize("device", PLACES)
def test_large_gradients_are_finite(device: str) -> None:
    with cuda.simulate(devices=1):
        params = made(device, (3,), (4,))
        params[0].grad.fill_(3e38)
        sgd, scaler = optim.SGD(params, lr=0.0), scaled(device)
        scaler.step(sgd)
        scaler.update()
        assert scaler.get_scale() == 8 and scaler._get_growth_tracker() == 1
