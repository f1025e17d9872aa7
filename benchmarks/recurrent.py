"""A recurrent network forward and backward, in the vocabulary that tritensor and torch share."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from benchmarks.training import Arrays

LAYERS = 2


def lstm(torch: Any, tensors: Mapping[str, Any]) -> dict[str, object]:
    """`step()` is a pass forward and backward through an LSTM of x's size, with g for the gradient of its states."""
    x, grad = tensors["x"].detach().requires_grad_(), tensors["g"]
    model = torch.nn.LSTM(x.shape[-1], grad.shape[-1], LAYERS)
    rng = np.random.default_rng(0)
    for parameter in model.parameters():
        drawn = rng.uniform(-1, 1, tuple(parameter.shape)) * grad.shape[-1] ** -0.5
        parameter.data.copy_(torch.from_numpy(drawn.astype(np.float32)))
    model.to(x.device, x.dtype)
    leaves = [x, *model.parameters()]

    def step() -> tuple[Any, ...]:
        for leaf in leaves:
            leaf.grad = None
        out, _ = model(x)
        out.backward(grad)
        return out, *[leaf.grad for leaf in leaves]

    return {"step": step}


def exact_lstm(arrays: Arrays) -> list[np.ndarray]:
    """The same in float64, by tritensor: the tests compare it with PyTorch's."""
    import tritensor

    tensors = {name: tritensor.from_numpy(array.astype(np.float64)) for name, array in arrays.items()}
    found: Any = lstm(tritensor, tensors)["step"]
    return [each.detach().numpy() for each in found()]
