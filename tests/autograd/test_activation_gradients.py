"""Gradients of activations: first and second derivatives, in one launch each."""

from __future__ import annotations

from typing import Any

import pytest

import tritensor as torch
from tritensor.nn import functional as F

from ..needs import needs_triton

ACTIVATIONS: dict[str, Any] = {
    "relu": F.relu,
    "sigmoid": torch.sigmoid,
    "tanh": torch.tanh,
    "leaky_relu": lambda x: F.leaky_relu(x, 0.2),
    "elu": lambda x: F.elu(x, 1.5),
    "softplus": lambda x: F.softplus(x, 2.0, 3.0),
    "gelu": F.gelu,
    "gelu_tanh": lambda x: F.gelu(x, approximate="tanh"),
    "silu": F.silu,
    "selu": F.selu,
    "celu": lambda x: F.celu(x, 0.7),
    "hardsigmoid": F.hardsigmoid,
    "hardswish": F.hardswish,
    "hardshrink": lambda x: F.hardshrink(x, 0.3),
    "softshrink": lambda x: F.softshrink(x, 0.3),
    "threshold": lambda x: F.threshold(x, -0.5, 2.0),
    "rrelu": F.rrelu,
    "prelu": lambda x: F.prelu(x, torch.tensor([0.3], dtype=x.dtype, device=x.device)),
}
# Those whose gradient is another operator's.
SHARED = {
    **dict.fromkeys(("selu", "celu"), "elu_gradient"),
    **dict.fromkeys(("hardshrink", "softshrink", "threshold"), "hardshrink"),
    **dict.fromkeys(("rrelu", "prelu"), "leaky_relu_gradient"),
}


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_activations_have_first_and_second_derivatives(name: str) -> None:
    x = torch.tensor([-4.0, -1.3, -0.2, 0.4, 1.1, 2.6], dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(ACTIVATIONS[name], (x,))

    def slope(x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
        (found,) = torch.autograd.grad((ACTIVATIONS[name](x) * weight).sum(), x, create_graph=True)
        return found

    weight = torch.tensor([0.3, -1.0, 2.0, 0.7, 1.0, -0.4], dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(slope, (x, weight))


@needs_triton
@pytest.mark.parametrize("name", ACTIVATIONS)
def test_an_activations_gradient_is_one_launch(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    from tritensor.kernels.elementwise import kernel as elementwise_kernel

    launched: list[str] = []
    run = elementwise_kernel.launch_elementwise

    def noted(call: Any) -> None:
        launched.append(call.operator.name)
        run(call)

    values = torch.tensor([-4.0, -1.3, 0.0, 0.4, 25.0, torch.nan], dtype=torch.bfloat16)
    found = []
    with torch.cuda.simulate():
        for device in ("cpu", "cuda"):
            x = values.clone().to(device).requires_grad_()
            out = ACTIVATIONS[name](x)
            ones = torch.ones_like(out)
            with monkeypatch.context() as patch:
                patch.setattr(elementwise_kernel, "launch_elementwise", noted)
                out.backward(ones)
            found.append(x.grad.float().cpu())
    assert launched == [SHARED.get(name, f"{name}_gradient")]
    assert torch.allclose(found[0], found[1], rtol=1e-2, atol=1e-3, equal_nan=True)
