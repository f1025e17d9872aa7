"""Clipping many gradients on a device at once, against what the CPU does with one tensor after the other."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import tritensor as torch
from tritensor import nn, settings
from tritensor.kernels.optimizer import clipping as gradient_clipping
from tritensor.nn.utils import clip_grad_norm_, get_total_norm
from tritensor.runtime.launch import compile_ahead

from ..needs import HAS_TRITON
from ..sampling import some

if not HAS_TRITON:
    pytest.skip("running kernels needs Triton", allow_module_level=True)

SHAPES = [(3, 5), (1,), (2, 1, 2), (), (700,), (64, 16), (33,)]


@pytest.fixture(autouse=True, params=[0, 16])
def devices(request: pytest.FixtureRequest) -> Iterator[None]:
    with torch.cuda.simulate(devices=2), settings.block(request.param):
        yield


@pytest.fixture
def launched(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of the launches of the kernels for many tensors."""
    found: list[str] = []
    run = gradient_clipping.launch

    def noted(*arguments: Any, **options: Any) -> None:
        found.append(options["name"])
        run(*arguments, **options)

    monkeypatch.setattr(gradient_clipping, "launch", noted)
    return found


def parameters(device: str, dtype: Any = torch.float32, shapes: Any = SHAPES, **values: float) -> list[nn.Parameter]:
    rng = np.random.default_rng(3)
    made = []
    for shape in shapes:
        parameter = nn.Parameter(torch.zeros(shape, dtype=dtype, device=device))
        gradient = rng.standard_normal(shape) * 2
        if shape == (700,):
            for place, value in values.items():
                gradient[int(place[1:])] = value
        parameter.grad = torch.from_numpy(np.asarray(gradient)).to(device, dtype)
        made.append(parameter)
    return made


def gradients(made: list[nn.Parameter]) -> list[np.ndarray]:
    return [parameter.grad.cpu().double().numpy() for parameter in made]


@pytest.mark.sampled(1)
@pytest.mark.parametrize(
    ("order", "dtype"),
    some(
        [
            (order, dtype)
            for order in (1, 2, math.inf, 3)
            for dtype in (torch.float32, torch.float16, torch.bfloat16, torch.float64)
        ],
        4,
        ["2 float32", "2 float16", "inf float64", "3 bfloat16"],
    ),
    ids=str,
)
def test_many_gradients_are_clipped_as_one_after_the_other(order: float, dtype: Any, launched: list[str]) -> None:
    ours, theirs = parameters("cuda", dtype), parameters("cpu", dtype)
    versions = [parameter.grad._version for parameter in ours]
    found, expected = clip_grad_norm_(ours, 1.5, order), clip_grad_norm_(theirs, 1.5, order)
    assert launched == (["clip_norm"] if order != 3 else []) + ["clip_scale"]
    assert (found.dtype, found.device.type) == (dtype, "cuda")
    close = {torch.float32: 1e-6, torch.float64: 1e-13, torch.float16: 2e-3, torch.bfloat16: 1.6e-2}[dtype]
    assert found.item() == pytest.approx(expected.item(), rel=close)
    for one, other in zip(gradients(ours), gradients(theirs), strict=True):
        np.testing.assert_allclose(one, other, rtol=2 * close, atol=close)
    assert all(parameter.grad._version > before for parameter, before in zip(ours, versions) if parameter.grad.numel())


@pytest.mark.sampled(1)
@pytest.mark.parametrize("values", [{"_5": math.nan}, {"_699": math.inf}, {"_0": -math.inf, "_698": math.nan}], ids=str)
@pytest.mark.parametrize("order", some([1, 2, math.inf], 8, ["2"]))
def test_norms_of_what_is_not_finite(order: float, values: dict[str, float], launched: list[str]) -> None:
    ours, theirs = parameters("cuda", **values), parameters("cpu", **values)
    assert str(get_total_norm([p.grad for p in ours], order).item()) == str(
        get_total_norm([p.grad for p in theirs], order).item()
    )
    assert launched == ["clip_norm"]
    with pytest.raises(RuntimeError, match="non-finite"):
        clip_grad_norm_(ours, 1.0, order, error_if_nonfinite=True)
    assert np.array_equal(gradients(ours)[4], gradients(theirs)[4], equal_nan=True)


@pytest.mark.sampled(1)
def test_several_devices_and_dtypes_have_one_norm(launched: list[str]) -> None:
    kinds = ("cuda:0", torch.float32), ("cuda:1", torch.float32), ("cuda:0", torch.float64)
    ours = [parameter for device, dtype in kinds for parameter in parameters(device, dtype)]
    theirs = [parameter for _, dtype in kinds for parameter in parameters("cpu", dtype)]
    assert clip_grad_norm_(ours, 1.0).item() == pytest.approx(clip_grad_norm_(theirs, 1.0).item(), rel=1e-6)
    assert launched == ["clip_norm"] * 3 + ["clip_scale"] * 3
    for one, other in zip(gradients(ours), gradients(theirs), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-6)


def test_what_is_not_for_the_kernels_goes_one_after_the_other(launched: list[str]) -> None:
    shapes = [(4, 6), (5,)]
    for spoil in (
        lambda made: setattr(made[0], "grad", made[0].grad.t().contiguous().t()),
        lambda made: setattr(made[1], "grad", made[0].grad.view(-1)[:5]),
        lambda made: made.append(parameters("cpu", shapes=[(3,)])[0]),
        lambda made: made.append(parameters(made[0].device, shapes=[(0,)])[0]),
        lambda made: made.pop(),
    ):
        ours, theirs = parameters("cuda", shapes=shapes), parameters("cpu", shapes=shapes)
        spoil(ours)
        spoil(theirs)
        assert clip_grad_norm_(ours, 1.0).item() == pytest.approx(clip_grad_norm_(theirs, 1.0).item(), rel=1e-6)
        for one, other in zip(gradients(ours), gradients(theirs), strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-5)
    assert launched == []


@pytest.mark.sampled(1)
def test_clipping_is_captured(launched: list[str]) -> None:
    made = parameters("cuda")
    graph = torch.cuda.CUDAGraph()
    before = [parameter.grad.clone() for parameter in made]
    clip_grad_norm_(made, 1.0)
    expected = gradients(made)
    with torch.cuda.graph(graph):
        total = clip_grad_norm_(made, 1.0)
    for factor in (1, 3):
        for parameter, value in zip(made, before, strict=True):
            parameter.grad.copy_(value * factor)
        graph.replay()
        assert total.item() == pytest.approx(factor * get_total_norm(before).item(), rel=1e-6)
        for one, other in zip(gradients(made), expected, strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-7)


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("kind", "target"),
    [
        pytest.param(kind, target, marks=[pytest.mark.slow] * ((first + second) % 4 > 0), id=f"{kind}-{target}")
        for first, kind in enumerate((torch.float32, torch.bfloat16, torch.float64))
        for second, target in enumerate((("cuda", 90), ("cuda", 80), ("cuda", 100), ("hip", "gfx942")))
    ],
)
def test_the_kernels_read_vectors_and_do_not_spill(kind: Any, target: Any, devices: None) -> None:
    if settings.block.value:
        pytest.skip("the block is the compiler's test's own")
    compute = torch.float64 if kind is torch.float64 else torch.float32
    constants = {"KIND": kind, "COMPUTE": compute, "ALIGNED": True}
    constants["BLOCK"] = gradient_clipping._BYTES // kind.itemsize
    signature = ("*i64:16", f"*{compute.triton}:16")
    norms = [{**constants, "ORDER": order} for order in gradient_clipping.ORDERS.values()]
    made = [compile_ahead(gradient_clipping.norm_kernel, signature, each, target, 8) for each in norms]
    made.append(compile_ahead(gradient_clipping.scale_kernel, signature, constants, target, 8))
    for facts in made:
        assert facts.local_bytes == 0
        if target[0] == "cuda":
            assert re.search(r"ld\.global\.(v4\.b32|v2\.b64)", facts.asm["ptx"])
