"""Clipping gradients, and parameters as one vector."""

from __future__ import annotations

import math

import numpy as np
import pytest

import tritensor as torch
from tritensor import cuda, nn
from tritensor.nn.utils import (
    clip_grad_norm_,
    clip_grad_value_,
    get_total_norm,
    parameters_to_vector,
    vector_to_parameters,
)

from ..needs import needs_triton

INF = float("inf")
GRADIENTS = [np.array([3.0, -4.0, 0.0], np.float32), None, np.array([[1.0], [-2.0]], np.float32)]


def parameters(device: str = "cpu") -> list[nn.Parameter]:
    made = [nn.Parameter(torch.ones(3)), nn.Parameter(torch.ones(2)), nn.Parameter(torch.ones(2, 1))]
    for parameter, gradient in zip(made, GRADIENTS):
        parameter.data = parameter.data.to(device)
        if gradient is not None:
            parameter.grad = torch.from_numpy(gradient.copy()).to(device)
    return made


@pytest.mark.parametrize("order", [1, 2, 3.0, INF, "inf", 0, -1])
@pytest.mark.parametrize("most", [0.5, 3.0, 100.0])
def test_gradients_are_scaled_to_the_norm(order: float | str, most: float) -> None:
    made = parameters()
    with np.errstate(divide="ignore"):
        parts = [np.linalg.norm(g.ravel(), float(order)) for g in GRADIENTS if g is not None]
        expected = np.linalg.norm(parts, float(order))
    total = clip_grad_norm_(iter(made), most, norm_type=order)
    assert total.shape == () and math.isclose(total.item(), expected, rel_tol=1e-6)
    scale = min(1.0, most / (expected + 1e-6))
    for parameter, gradient in zip(made, GRADIENTS):
        if gradient is None:
            assert parameter.grad is None
        else:
            np.testing.assert_allclose(parameter.grad.numpy(), gradient * scale, rtol=1e-6)


def test_one_tensor_and_none() -> None:
    (first, without, _) = parameters()
    assert clip_grad_norm_(first, 1.0).item() == 5
    assert clip_grad_norm_([], 1.0).item() == clip_grad_norm_([without], 1.0).item() == 0
    assert get_total_norm(first.grad).item() == pytest.approx(1)


@pytest.mark.parametrize("bad", [math.nan, math.inf])
def test_norms_that_are_not_finite(bad: float) -> None:
    made = parameters()
    made[2].grad[0] = bad
    with pytest.raises(
        RuntimeError, match=r"^The total norm of order 2.0 for gradients from `parameters` is non-finite"
    ):
        clip_grad_norm_(made, 1.0, error_if_nonfinite=True)
    assert made[0].grad.tolist() == [3, -4, 0]
    assert not math.isfinite(clip_grad_norm_(made, 1.0).item())
    assert made[0].grad.abs().tolist() == ([0, 0, 0] if bad == INF else pytest.approx([math.nan] * 3, nan_ok=True))


def test_gradients_are_clipped_by_value() -> None:
    made = parameters()
    clip_grad_value_(made, 1.5)
    assert made[0].grad.tolist() == [1.5, -1.5, 0] and made[2].grad.tolist() == [[1], [-1.5]]
    clip_grad_value_(made[0], 1)
    assert made[0].grad.tolist() == [1, -1, 0]


def test_half_gradients_stay_half() -> None:
    parameter = nn.Parameter(torch.ones(4, dtype=torch.bfloat16))
    parameter.grad = torch.full((4,), 2.0, dtype=torch.bfloat16)
    assert clip_grad_norm_([parameter], 2.0).item() == 4
    assert parameter.grad.dtype is torch.bfloat16 and parameter.grad.tolist() == [1.0] * 4


@needs_triton
def test_clipping_on_devices_waits_for_nothing() -> None:
    with cuda.simulate(devices=2):
        made = [*parameters("cuda:1"), *parameters("cuda:0"), *parameters()]
        on_cpu = [*parameters(), *parameters(), *parameters()]
        with cuda.transfers() as t:
            clip_grad_value_(made, 2.5)
            total = clip_grad_norm_(made[:6], 1.0)
        t.assert_at_most(h2d=2, d2h=0, syncs=0)  # for each device a table of addresses
        assert t.nbytes("h2d") <= 16 * 6
        clip_grad_value_(on_cpu, 2.5)
        assert str(total.device) == "cuda:1"
        assert total.item() == pytest.approx(clip_grad_norm_(on_cpu[:6], 1.0).item())
        clip_grad_norm_(made, 0.5)
        clip_grad_norm_(on_cpu, 0.5)
        for one, other in zip(made, on_cpu):
            assert (one.grad is None) == (other.grad is None)
            if one.grad is not None:
                np.testing.assert_allclose(one.grad.cpu().numpy(), other.grad.numpy(), rtol=1e-6)


def test_a_vector_of_all_parameters() -> None:
    model = nn.Sequential(nn.Linear(3, 2), nn.Linear(2, 2, bias=False))
    vector = parameters_to_vector(model.parameters())
    assert vector.shape == (12,) and vector.requires_grad
    (vector * torch.arange(12.0)).sum().backward()
    assert model[0].bias.grad.tolist() == [6, 7]
    values = torch.arange(12.0)
    identities = [id(parameter) for parameter in model.parameters()]
    vector_to_parameters(values, model.parameters())
    assert model[0].weight.tolist() == [[0, 1, 2], [3, 4, 5]] and model[1].weight.tolist() == [[8, 9], [10, 11]]
    assert identities == [id(parameter) for parameter in model.parameters()]
    assert all(p.requires_grad and p.is_leaf for p in model.parameters())
    values[0] = 50
    assert model[0].weight[0, 0].item() == 50


def test_vectors_that_do_not_fit_change_nothing() -> None:
    model = nn.Linear(2, 2)
    before = parameters_to_vector(model.parameters()).tolist()
    with pytest.raises(TypeError, match=r"^expected torch.Tensor, but got: list"):
        vector_to_parameters([1.0], model.parameters())  # type: ignore[arg-type]
    for short in (torch.ones(5), torch.ones(6, 1)):
        with pytest.raises(RuntimeError, match=r"^shape '\[6\]' is invalid for input of size"):
            vector_to_parameters(short, model.parameters())
    with cuda.simulate(), pytest.raises(TypeError, match=r"^Found two parameters on different devices"):
        parameters_to_vector([torch.ones(1), torch.ones(1, device="cuda")])
    assert parameters_to_vector(model.parameters()).tolist() == before


def test_skip_init_makes_a_module() -> None:
    made = nn.utils.skip_init(nn.Linear, 2, 3, bias=False, dtype=torch.float64)
    assert made.weight.shape == (3, 2) and made.weight.dtype is torch.float64 and made.bias is None
    with pytest.raises(RuntimeError, match="Expected a Module; got"):
        nn.utils.skip_init(int)
    with pytest.raises(RuntimeError, match="Module must support a 'device' arg to skip initialization"):
        nn.utils.skip_init(nn.ReLU)


def test_the_older_name_of_clip_grad_norm() -> None:
    parameter = nn.Parameter(torch.zeros(2))
    parameter.grad = torch.tensor([3.0, 4.0])
    words = "`torch.nn.utils.clip_grad_norm` is now deprecated in favor of `torch.nn.utils.clip_grad_norm_`."
    with pytest.warns(FutureWarning, match=words):
        assert nn.utils.clip_grad_norm([parameter], 10.0).item() == 5
