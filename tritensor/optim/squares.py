"""Optimizers that scale steps by the squares of gradients."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import KW_ONLY
from typing import Any

from ..errors import require
from ..functional.sparse.coordinates import made
from ..ground.arguments import check_number
from ..kernels.optimizer import rules
from ..tensors import Tensor
from .ruled import Ruled, optimizer


@optimizer(rules.adadelta_numbers, rules.adadelta)
class Adadelta(Ruled):
    """The Adadelta optimizer: steps scaled by the sizes of the steps and gradients so far, by Zeiler (2012).

    Args:
        params, lr, weight_decay, foreach, maximize, differentiable: as for `SGD`.
        rho: how much of the averages of squares is kept at each step.
        eps: added to both averages.
        capturable: as for `Adam`.

    Raises:
        ValueError: a rate or share out of range.
    """

    lr: float | Tensor = 1.0
    rho: float = 0.9
    eps: float = 1e-6
    weight_decay: float = 0
    foreach: bool | None = None
    _: KW_ONLY
    capturable: bool = False
    maximize: bool = False
    differentiable: bool = False

    _ranged = {"eps": "epsilon", "weight_decay": "weight_decay"}  # noqa: RUF012

    def _check(self, options: dict[str, Any]) -> None:
        super()._check(options)
        rho = options["rho"]
        check_number("rho", rho, lambda value: 0.0 <= value <= 1.0, f"Invalid rho value: {rho}")


@optimizer(rules.adagrad_numbers, rules.adagrad)
class Adagrad(Ruled):
    """The Adagrad optimizer: steps scaled by the root of the sum of all squared gradients, by Duchi et al. (2011).

    Args:
        params, lr, weight_decay, foreach, maximize, differentiable, fused: as for `SGD`.
        lr_decay: the rate is divided by 1 + lr_decay * steps.
        initial_accumulator_value: what the sums begin with.
        eps: added to the root.

    Raises:
        ValueError: a rate or share out of range.
    """

    lr: float | Tensor = 1e-2
    lr_decay: float = 0
    weight_decay: float = 0
    initial_accumulator_value: float = 0
    eps: float = 1e-10
    foreach: bool | None = None
    _: KW_ONLY
    maximize: bool = False
    differentiable: bool = False
    fused: bool | None = None

    _begin = {"sum": "initial_accumulator_value"}  # noqa: RUF012
    _ranged = {  # noqa: RUF012
        "lr_decay": "lr_decay",
        "weight_decay": "weight_decay",
        "initial_accumulator_value": "initial_accumulator_value",
        "eps": "epsilon",
    }

    def _declare(self, params: Iterable[Any], options: dict[str, Any]) -> None:
        super()._declare(params, options)
        for group in self.param_groups:
            for param in group["params"]:  # the option of the optimizer, whatever a group says, as in PyTorch
                self._fill(param, {**group, **options}, ("sum",), self.state[param])

    def _step_sparse(self, param: Tensor, grad: Tensor, group: dict[str, Any]) -> None:
        """Change the rows that the gradient has, and their sums."""
        words = "weight_decay option is not compatible with sparse gradients"
        require(not group["weight_decay"], RuntimeError, words)
        state, grad = self.state_of(param), (-grad if group["maximize"] else grad).coalesce()
        rate = float(group["lr"]) / (1 + float(state["step"]) * group["lr_decay"])
        self._keep(param, state, ())
        state["sum"].add_(grad.pow(2))
        roots = state["sum"].sparse_mask(grad).values().sqrt().add_(group["eps"])
        param.add_(made(grad.indices(), grad.values() / roots, grad.shape, True), alpha=-rate)


@optimizer(
    rules.rmsprop_numbers,
    rules.rmsprop,
    rules.rmsprop_momentum,
    rules.rmsprop_centered,
    rules.rmsprop_centered_momentum,
)
class RMSprop(Ruled):
    """The RMSprop optimizer: steps scaled by the root of the gradient's mean square, by Tieleman and Hinton (2012).

    Args:
        params, lr, weight_decay, foreach, maximize, differentiable: as for `SGD`.
        alpha: how much of the mean is kept at each step.
        eps: added to the root.
        momentum: the share of the last direction that is kept.
        centered: scale by the deviation of the gradient from its running mean, by Graves (2013).
        capturable: as for `Adam`.

    Raises:
        ValueError: a rate or share out of range.
    """

    lr: float | Tensor = 1e-2
    alpha: float = 0.99
    eps: float = 1e-8
    weight_decay: float = 0
    momentum: float = 0
    centered: bool = False
    capturable: bool = False
    foreach: bool | None = None
    maximize: bool = False
    differentiable: bool = False

    _switched = {"momentum_buffer": "momentum", "grad_avg": "centered"}  # noqa: RUF012
    _ranged = {  # noqa: RUF012
        "eps": "epsilon",
        "momentum": "momentum",
        "weight_decay": "weight_decay",
        "alpha": "alpha",
    }
