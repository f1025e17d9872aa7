"""Stochastic gradient descent."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from ..autograd import no_grad
from ..kernels.optimizers import Step, sgd, sgd_momentum
from .optimizer import Optimizer, new_state

__all__ = ["SGD"]


class SGD(Optimizer):
    """Gradient descent, with momentum, Nesterov's look-ahead and weight decay.

    Args:
        params: what to optimize; see `Optimizer`.
        lr: the learning rate.
        momentum: the share of the last direction that is kept.
        dampening: the share of the gradient that is left out of the direction.
        weight_decay: the share of the parameter that is added to its gradient.
        nesterov: step by the gradient plus the momentum's next direction.
        maximize: climb.
        foreach, differentiable, fused: accepted for PyTorch's signature; each step is one fused operator per parameter.

    >>> import tritensor as torch
    >>> w = torch.nn.Parameter(torch.ones(2))
    >>> w.grad = torch.ones(2)
    >>> torch.optim.SGD([w], lr=0.1).step()
    >>> w
    Parameter containing:
    tensor([0.9000, 0.9000], requires_grad=True)

    Raises:
        ValueError: a negative rate, or Nesterov without momentum or with dampening.
    """

    _shaped_state = ("momentum_buffer",)

    def __init__(
        self,
        params: Iterable[Any],
        lr: float = 1e-3,
        momentum: float = 0,
        dampening: float = 0,
        weight_decay: float = 0,
        nesterov: bool = False,
        *,
        maximize: bool = False,
        foreach: bool | None = None,
        differentiable: bool = False,
        fused: bool | None = None,
    ) -> None:
        if not float(lr) >= 0:
            raise ValueError(f"Invalid learning rate: {lr}")
        if not momentum >= 0:
            raise ValueError(f"Invalid momentum value: {momentum}")
        if not weight_decay >= 0:
            raise ValueError(f"Invalid weight_decay value: {weight_decay}")
        if nesterov and (momentum <= 0 or dampening != 0):
            raise ValueError("Nesterov momentum requires a momentum and zero dampening")
        defaults = {
            "lr": lr,
            "momentum": momentum,
            "dampening": dampening,
            "weight_decay": weight_decay,
            "nesterov": nesterov,
            "maximize": maximize,
            "foreach": foreach,
            "differentiable": differentiable,
            "fused": fused,
        }
        super().__init__(params, defaults)

    @no_grad()
    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Change every parameter that has a gradient; returns the closure's loss."""
        loss = self._loss_of(closure)
        with np.errstate(all="ignore"):
            for group in self.param_groups:
                numbers = _numbers(group)
                if group["momentum"] == 0:
                    plain = Step(sgd, numbers)
                    for param in group["params"]:
                        if param._grad is not None:
                            plain(param, param._grad, ())
                else:
                    self._step_with_momentum(group, numbers)
        return loss

    def _step_with_momentum(self, group: dict[str, Any], numbers: dict[str, float]) -> None:
        later = Step(sgd_momentum, numbers)
        # a parameter's first direction is its whole gradient
        first = Step(sgd_momentum, {**numbers, "dampening": 0.0})
        for param in group["params"]:
            grad = param._grad
            if grad is None:
                continue
            buffer = self.state[param].get("momentum_buffer")
            if buffer is None:
                buffer = new_state(param)
                first(param, grad, (buffer,))
                self.state[param]["momentum_buffer"] = buffer
            elif not later.quick(param, grad, (buffer,)):
                later(param, grad, (self.state_of(param)["momentum_buffer"],))


def _numbers(group: dict[str, Any]) -> dict[str, float]:
    """The operator's numbers for a group's options."""
    numbers = {
        "lr": float(group["lr"]),
        "weight_decay": float(group["weight_decay"]),
        "sign": -1.0 if group["maximize"] else 1.0,
    }
    if group["momentum"] != 0:
        numbers["momentum"] = float(group["momentum"])
        numbers["dampening"] = float(group["dampening"])
        numbers["nesterov"] = float(group["nesterov"])
    return numbers
