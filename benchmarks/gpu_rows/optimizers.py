"""One step of an optimizer on the parameters of a model."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from math import prod
from types import ModuleType
from typing import Any

import numpy as np

import tritensor
from benchmarks.cases import Case
from benchmarks.training import Arrays

from .row import Row, Target

_RATE, _DECAY, _STEPS = 1e-3, 1e-2, 3


def pieces(total: int) -> list[int]:
    """Sizes of 300 parameters (6 of a toy): of three, two matrices and a vector."""
    count = 300 if total > 1_000_000 else 6
    vector = min(1000, total // (2 * count))
    matrix = (total - vector * count // 3) // (2 * count // 3)
    sizes = [matrix, matrix, vector] * (count // 3)
    return [*sizes[:-1], total - sum(sizes[:-1])]


def _optimizer(kind: str, option: str, torch: ModuleType, tensors: Mapping[str, Any]) -> dict[str, object]:
    """`step()` is one step of all parameters; `trained()` is by how much `_STEPS` move them."""
    sizes = pieces(tensors["w"].numel())
    weights, grads = ([part.clone() for part in tensors[name].split(sizes)] for name in "wg")
    params = [weight.requires_grad_() for weight in weights]
    for param, grad in zip(params, grads, strict=True):
        param.grad = grad
    chosen: dict[str, Any] = {option: True} if option else {}
    decay = {} if kind == "Rprop" else {"weight_decay": _DECAY}
    optimizer = getattr(torch.optim, kind)(params, lr=1.0 if kind == "Adadelta" else _RATE, **decay, **chosen)

    def trained() -> tuple[Any, ...]:
        for _ in range(_STEPS):
            optimizer.step()
        before = tensors["w"].split(sizes)
        return tuple(after.detach() - was for after, was in zip(params, before, strict=True))

    return {"step": optimizer.step, "trained": trained}


def _exact_optimizer(kind: str, arrays: Arrays) -> np.ndarray:
    start, grad = (arrays[name].astype(np.float64) for name in "wg")
    weight, mean, square = start.copy(), np.zeros_like(start), np.zeros_like(start)
    for count in range(1, _STEPS + 1):
        g = grad
        if kind == "AdamW":
            weight *= 1 - _RATE * _DECAY
        else:
            g = grad + _DECAY * weight
        mean, square = 0.9 * mean + 0.1 * g, 0.999 * square + 0.001 * g * g
        weight -= _RATE / (1 - 0.9**count) * mean / (np.sqrt(square / (1 - 0.999**count)) + 1e-8)
    return weight - start


def _exact_steps(kind: str, arrays: Arrays) -> np.ndarray:
    """By steps in float64 on the CPU; `tests.samples` compares those with PyTorch's."""
    tensors = {name: tritensor.from_numpy(array.astype(np.float64)) for name, array in arrays.items()}
    trained: Any = _optimizer(kind, "", tritensor, tensors)["trained"]
    return np.concatenate([each.numpy() for each in trained()])


def _row(name: str, kind: str, exact: Any, targets: dict[str, Target], states: int, **options: Any) -> Row:
    # small weights, so that the change of three steps is not lost in their rounding
    case = Case(
        name,
        f"{kind}, 100 M parameters in 300 tensors, fp32",
        "step()",
        {"w": (100_000_000,), "g": (100_000_000,)},
        {},
        numpy=None,
        prepare=partial(_optimizer, kind, ""),
        check="trained()",
        exact=partial(exact, kind),
        nonfinite=False,
        scale=0.05,
        **options,
    )
    return Row(
        case,
        {"w": (30_000,), "g": (30_000,)},
        targets,
        peers=tuple(targets),
        prepares={peer: partial(_optimizer, kind, peer.removeprefix("torch ")) for peer in targets},
        moved=lambda shapes: (12 + 8 * states) * prod(shapes["w"]),
    )


def _adam(kind: str) -> Row:
    targets = {"torch fused": Target(0.97, 1.03), "torch foreach": Target(1.8, 2.2)}
    return _row(kind.lower(), kind, _exact_optimizer, targets, 2)


def _other(kind: str, states: int) -> Row:
    targets = {"torch foreach": Target(0.75, 1.0)}
    # the rounding is that of a change that is small beside the parameter
    return _row(f"{kind.lower()}_step", kind, _exact_steps, targets, states, rounding=5e-6)


# How many tensors of state each has; Adafactor and Muon compute with matrices, which these parameters are not.
_STATES = {
    "Adadelta": 2,
    "Adagrad": 1,
    "Adamax": 2,
    "ASGD": 1,
    "NAdam": 2,
    "RAdam": 2,
    "RMSprop": 1,
    "Rprop": 2,
    "SGD": 0,
}
OPTIMIZERS = (_adam("Adam"), _adam("AdamW"), *(_other(kind, states) for kind, states in _STATES.items()))
