"""The cases that need more than an expression: training steps, an optimizer's, and the backward pass of a long chain.

Each has a version in the vocabulary that tritensor and torch share, and one in float64 NumPy, derived by hand, that
both are compared with.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

LINKS = 333  # of three nodes each, and one for the sum: a graph of 1,000 nodes
STEPS = 10  # of training, before the weights are compared
RATE, BETA1, BETA2, EPSILON = 1e-3, 0.9, 0.999, 1e-8  # Adam's defaults
DECAY = 0.01  # AdamW's

Arrays = Mapping[str, np.ndarray]


def chain(torch: Any, tensors: Mapping[str, Any]) -> dict[str, object]:
    """A recurrence of small operators, recorded once; `backward()` walks it."""
    h, w, b = (tensors[name].detach().requires_grad_() for name in "hwb")
    out = h
    for _ in range(LINKS):
        out = (out * w + b).tanh()
    out = out.sum()

    def backward() -> tuple[Any, ...]:
        h.grad = w.grad = b.grad = None
        out.backward(retain_graph=True)
        return h.grad, w.grad, b.grad

    return {"backward": backward}


def exact_chain(arrays: Arrays) -> tuple[np.ndarray, ...]:
    h, w, b = (arrays[name].astype(np.float64) for name in "hwb")
    states = [h]
    for _ in range(LINKS):
        states.append(np.tanh(states[-1] * w + b))
    grad, grad_w, grad_b = np.ones_like(h), np.zeros_like(w), np.zeros_like(b)
    for before, after in zip(states[-2::-1], states[:0:-1], strict=True):
        through = grad * (1 - after * after)
        grad, grad_w, grad_b = through * w, grad_w + through * before, grad_b + through
    return grad, grad_w, grad_b


def perceptron(
    torch: Any, tensors: Mapping[str, Any], optimizer: str = "Adam", rate: float = RATE
) -> dict[str, object]:
    """`step()` is one training step; `trained()` is by how much `STEPS` steps move the weights."""
    weights = [tensors[name] for name in ("w0", "b0", "w1", "b1")]
    (hidden, features), classes = weights[0].shape, len(weights[3])
    model = torch.nn.Sequential(
        torch.nn.Linear(features, hidden), torch.nn.ReLU(), torch.nn.Linear(hidden, classes)
    ).to(weights[0].device)
    model.load_state_dict(dict(zip(model.state_dict(), weights, strict=True)))
    stepping = getattr(torch.optim, optimizer)(model.parameters(), lr=rate)
    criterion = torch.nn.CrossEntropyLoss()
    x, labels = tensors["x"], tensors["scores"].argmax(1)

    def step() -> None:
        stepping.zero_grad()
        criterion(model(x), labels).backward()
        stepping.step()

    return {"step": step, "trained": moved(step, list(model.parameters()))}


def moved(step: Callable[[], None], parameters: list[Any]) -> Callable[[], tuple[Any, ...]]:
    """A function that says by how much `STEPS` steps move the parameters."""

    def trained() -> tuple[Any, ...]:
        before = [parameter.detach().clone() for parameter in parameters]
        for _ in range(STEPS):
            step()
        return tuple(after - start for after, start in zip(parameters, before, strict=True))

    return trained


def exact_perceptron(arrays: Arrays, optimizer: str = "Adam", rate: float = RATE) -> tuple[np.ndarray, ...]:
    x, *start = (arrays[name].astype(np.float64) for name in ("x", "w0", "b0", "w1", "b1"))
    truth = np.eye(start[3].size)[arrays["scores"].argmax(1)]

    def gradients(weights: list[np.ndarray]) -> list[np.ndarray]:
        w0, b0, w1, b1 = weights
        hidden = x @ w0.T + b0
        active = np.maximum(hidden, 0)
        scores = np.exp(active @ w1.T + b1)
        grad = (scores / scores.sum(1, keepdims=True) - truth) / len(x)
        back = grad @ w1 * (hidden > 0)
        return [back.T @ x, back.sum(0), grad.T @ active, grad.sum(0)]

    if optimizer == "Adam":
        return exact_adam(start, gradients, rate)
    weights = start
    for _ in range(STEPS):
        weights = [weight - rate * g for weight, g in zip(weights, gradients(weights), strict=True)]
    return tuple(after - before for after, before in zip(weights, start, strict=True))


def exact_adam(
    start: list[np.ndarray],
    gradients: Callable[[list[np.ndarray]], list[np.ndarray]],
    rate: float = RATE,
    decay: float = 0.0,
) -> tuple[np.ndarray, ...]:
    """By how much `STEPS` steps of Adam, or of AdamW with its `decay`, move weights."""
    weights = list(start)
    mean, square = ([np.zeros_like(weight) for weight in weights] for _ in range(2))
    for count in range(1, STEPS + 1):
        for i, g in enumerate(gradients(weights)):
            mean[i] = BETA1 * mean[i] + (1 - BETA1) * g
            square[i] = BETA2 * square[i] + (1 - BETA2) * g * g
            scale = np.sqrt(square[i] / (1 - BETA2**count)) + EPSILON
            weights[i] = weights[i] * (1 - rate * decay) - rate * mean[i] / (1 - BETA1**count) / scale
    return tuple(after - before for after, before in zip(weights, start, strict=True))


def adamw(torch: Any, tensors: Mapping[str, Any]) -> dict[str, object]:
    """`step()` is a step for each row of `w` as a parameter, whose gradient is the row of `g`."""
    parameters = [torch.nn.Parameter(part.clone()) for part in tensors["w"]]
    for parameter, grad in zip(parameters, tensors["g"], strict=True):
        parameter.grad = grad.clone()
    step = torch.optim.AdamW(parameters, lr=RATE, weight_decay=DECAY).step
    return {"step": step, "trained": moved(step, parameters)}


def exact_adamw(arrays: Arrays) -> tuple[np.ndarray, ...]:
    w, g = (list(arrays[name].astype(np.float64)) for name in "wg")
    return exact_adam(w, lambda weights: g, decay=DECAY)


Prepare = Callable[[Any, Mapping[str, Any]], dict[str, object]]
