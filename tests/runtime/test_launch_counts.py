"""How many kernels a training step launches, beside the operators of PyTorch's eager step: a kernel each or more."""

from __future__ import annotations

from collections.abc import Callable

import pytest

import tritensor as torch
from tritensor import drivers, nn
from tritensor.vision import models

from ..needs import HAS_TRITON

if not HAS_TRITON:
    pytest.skip("kernels need Triton", allow_module_level=True)


def count(
    monkeypatch: pytest.MonkeyPatch, model: nn.Module, x: torch.Tensor, optimizer: Callable[..., torch.optim.Optimizer]
) -> int:
    """The launches of the second step; none is run."""
    launched: list[str] = []
    monkeypatch.setattr(type(drivers.require()), "launch", lambda self, stream, request: launched.append(request.name))
    stepping, labels = optimizer(model.parameters()), torch.zeros(len(x), dtype=torch.int64, device="cuda")

    def step() -> None:
        stepping.zero_grad()
        nn.functional.cross_entropy(model(x), labels).backward()
        stepping.step()

    step()
    launched.clear()
    step()
    return len(launched)


def adam(parameters: object) -> torch.optim.Optimizer:
    return torch.optim.Adam(parameters)


def momentum(parameters: object) -> torch.optim.Optimizer:
    return torch.optim.SGD(parameters, lr=0.1, momentum=0.9)


@pytest.mark.parametrize(("optimizer", "theirs"), [(adam, 22), (momentum, 17)])
def test_a_step_of_a_perceptron_launches_no_more_than_pytorch(monkeypatch, optimizer, theirs):
    """Theirs: 14 operators and Adam or SGD by `foreach`."""
    with torch.cuda.simulate(1):
        model = nn.Sequential(nn.Linear(20, 16), nn.ReLU(), nn.Linear(16, 10)).to("cuda")
        assert count(monkeypatch, model, torch.ones(8, 20, device="cuda"), optimizer) <= theirs


@pytest.mark.thorough
@pytest.mark.parametrize("format", [torch.contiguous_format, torch.channels_last], ids=str)
def test_a_step_of_a_resnet(monkeypatch, format):
    """PyTorch's step is 185 operators, of which batch norm is one kernel each way, here three. Layers in place copy
    nothing, channels stay last, and all parameters are stepped by one launch: 494 launches before."""
    with torch.cuda.simulate(1):
        model = models.resnet18(num_classes=10).to("cuda").to(memory_format=format)
        x = torch.ones(2, 3, 32, 32, device="cuda").to(memory_format=format)
        assert count(monkeypatch, model, x, momentum) <= 345
