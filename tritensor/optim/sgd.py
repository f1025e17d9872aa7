"""Gradient descent, its average, and resilient propagation."""

from __future__ import annotations

from dataclasses import KW_ONLY
from typing import Any

from ..errors import ArgumentError, require
from ..kernels.optimizer import rules
from ..tensors import Tensor
from .ruled import Ruled, optimizer

__all__ = ["ASGD", "SGD", "Rprop"]


@optimizer(rules.sgd_numbers, rules.sgd, rules.sgd_momentum)
class SGD(Ruled):
    """Stochastic gradient descent, with momentum, Nesterov's look-ahead and weight decay.

    Args:
        params: what to optimize; see `Optimizer`.
        lr: the learning rate, a number or a tensor of one element.
        momentum: the share of the last direction that is kept.
        dampening: the share of the gradient that is left out of the direction.
        weight_decay: the share of the parameter that is added to its gradient.
        nesterov: step by the gradient plus the momentum's next direction.
        maximize: step in the direction of the gradient, not against it.
        foreach, fused: accepted for PyTorch's signature; a step is one fused operator, on CUDA devices one launch for
            all parameters of a group that have the same dtypes.
        differentiable: record the step, so that gradients go through it; parameters must not be leaves then.

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

    lr: float | Tensor = 1e-3
    momentum: float = 0
    dampening: float = 0
    weight_decay: float = 0
    nesterov: bool = False
    _: KW_ONLY
    maximize: bool = False
    foreach: bool | None = None
    differentiable: bool = False
    fused: bool | None = None

    _counted = ()
    _switched = {"momentum_buffer": "momentum"}  # noqa: RUF012
    _ranged = {"momentum": "momentum", "weight_decay": "weight_decay"}  # noqa: RUF012

    def _check(self, options: dict[str, Any]) -> None:
        super()._check(options)
        if options["nesterov"] and (options["momentum"] <= 0 or options["dampening"] != 0):
            raise ValueError("Nesterov momentum requires a momentum and zero dampening")

    @staticmethod
    def _fits(value: float) -> Any:
        return not value < 0.0  # NaN is accepted

    def _step_sparse(self, param: Tensor, grad: Tensor, group: dict[str, Any]) -> None:
        """Change the rows that the gradient has; with momentum the direction is sparse, too, and grows."""
        grad = -grad if group["maximize"] else grad
        if group["weight_decay"]:
            grad = grad.add(param, alpha=group["weight_decay"])  # which is refused, as in PyTorch
        if group["momentum"]:
            state = self.state[param]
            buffer = state.get("momentum_buffer")
            if buffer is None:
                buffer = state["momentum_buffer"] = grad.clone()
            else:
                buffer.mul_(group["momentum"]).add_(grad, alpha=1 - group["dampening"])
            grad = grad.add(buffer, alpha=group["momentum"]) if group["nesterov"] else buffer
        param.add_(grad, alpha=-float(group["lr"]))


@optimizer(rules.asgd_numbers, rules.asgd)
class ASGD(Ruled):
    """Averaged stochastic gradient descent: a decreasing rate, averaged parameters, by Polyak and Juditsky (1992).

    Args:
        params, lr, weight_decay, maximize, foreach, differentiable: as for `SGD`.
        lambd: the decay of parameter and rate.
        alpha: the power by which the rate decreases.
        t0: the step from which on parameters are averaged, in the state "ax".
        capturable: as for `Adam`.

    Raises:
        ValueError: a negative rate or weight decay.
    """

    lr: float | Tensor = 1e-2
    lambd: float = 1e-4
    alpha: float = 0.75
    t0: float = 1e6
    weight_decay: float = 0
    foreach: bool | None = None
    maximize: bool = False
    differentiable: bool = False
    capturable: bool = False

    _counted = ("step", "eta", "mu")
    _begin = {"eta": "lr", "mu": 1.0}  # noqa: RUF012
    _ranged = {"weight_decay": "weight_decay"}  # noqa: RUF012


@optimizer(rules.rprop_numbers, rules.rprop)
class Rprop(Ruled):
    """Resilient backpropagation: steps by gradients' signs, growing while a sign stays, by Riedmiller and Braun (1993).

    Args:
        params, lr, foreach, maximize, differentiable: as for `SGD`; `lr` is the size of the first steps.
        etas: by what the size of a step is multiplied when the sign changes, and when it stays.
        step_sizes: the least and the largest size.
        capturable: as for `Adam`.

    Raises:
        ValueError: a negative rate, or factors that are not 0 < first < 1 < second.
    """

    lr: float | Tensor = 1e-2
    etas: tuple[float, float] = (0.5, 1.2)
    step_sizes: tuple[float, float] = (1e-6, 50)
    _: KW_ONLY
    capturable: bool = False
    foreach: bool | None = None
    maximize: bool = False
    differentiable: bool = False

    _begin = {"step_size": "lr"}  # noqa: RUF012

    def _check(self, options: dict[str, Any]) -> None:
        super()._check(options)
        etas = options["etas"]
        if not isinstance(etas, (tuple, list)) or [isinstance(each, (int, float)) for each in etas] != [True, True]:
            raise ArgumentError(f"Invalid eta values: {etas!r}")
        least, most = etas
        require(0.0 < least < 1.0 < most, ValueError, "Invalid eta values: {}, {}", least, most)
