"""How a model is made, and how its parameters start."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ... import nn
from ...errors import explain

__all__ = ["initialise", "made"]


def made(name: str, weights: Any, kind: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """`kind(*args, **kwargs)`, unless weights are asked for: there are none here to give."""
    if weights is not None:
        fact = f"weights={weights!r} would have to be fetched, and tritensor has no weights to fetch"
        remedy = f'model = {name}(); model.load_state_dict(tritensor.load("checkpoint.pth")) takes one of torchvision'
        raise ValueError(explain(f"{name} has no pretrained weights", fact, remedy=remedy))
    return kind(*args, **kwargs)


def initialise(model: nn.Module, linear: bool = True) -> None:
    """Convolutions from normal numbers by their fan-out (He et al., https://arxiv.org/abs/1502.01852), norms to 1 and 0
    and, if `linear`, linear layers from normal numbers of deviation 0.01."""
    for module in model.modules():
        if isinstance(module, nn.Conv2d):
            nn.init.kaiming_normal_(module.weight, mode="fan_out", nonlinearity="relu")
        elif isinstance(module, (nn.BatchNorm2d, nn.GroupNorm)) and module.weight is not None:
            nn.init.ones_(module.weight)
        elif isinstance(module, nn.Linear) and linear:
            nn.init.normal_(module.weight, 0, 0.01)
        else:
            continue
        if module.bias is not None:
            nn.init.zeros_(module.bias)
