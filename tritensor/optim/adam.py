"""Adam and its relatives: steps by running averages of the gradient and of its size."""

from __future__ import annotations

from dataclasses import KW_ONLY
from typing import Any

from ..errors import explain
from ..kernels.optimizer import rules
from ..tensors import Tensor
from .ruled import Ruled, optimizer

__all__ = ["Adam", "AdamW", "Adamax", "NAdam", "RAdam"]


@optimizer(rules.adam_numbers, rules.adam, rules.adam_amsgrad)
class Adam(Ruled):
    """The Adam optimizer: steps scaled by running averages of the gradient and of its square, by Kingma and Ba (2015).

    Args:
        params: what to optimize; see `Optimizer`.
        lr: the learning rate, a number or a tensor of one element.
        betas: how much of the two averages is kept at each step.
        eps: added to the root of the second average.
        weight_decay: the share of the parameter that is added to its gradient; with `decoupled_weight_decay` the share
            (times `lr`) that is taken from the parameter itself.
        amsgrad: divide by the largest second average so far.
        maximize: step in the direction of the gradient, not against it.
        decoupled_weight_decay: AdamW's weight decay.
        capturable: keep the step counts of parameters on CUDA devices in device memory and read them there, like a
            learning rate that is a tensor, so that each replay of a captured step increments them.
        foreach, fused: accepted for PyTorch's signature; a step is one fused operator, on CUDA devices one launch for
            all parameters of a group that have the same dtypes.
        differentiable: record the step, so that gradients go through it; parameters must not be leaves then.

    >>> import tritensor as torch
    >>> w = torch.nn.Parameter(torch.ones(2))
    >>> w.grad = torch.tensor([1.0, -5.0])
    >>> torch.optim.Adam([w], lr=0.1).step()
    >>> w
    Parameter containing:
    tensor([0.9000, 1.1000], requires_grad=True)

    Raises:
        ValueError: a rate or share out of range.
    """

    lr: float | Tensor = 1e-3
    betas: tuple[float | Tensor, float | Tensor] = (0.9, 0.999)
    eps: float = 1e-8
    weight_decay: float = 0
    amsgrad: bool = False
    _: KW_ONLY
    foreach: bool | None = None
    maximize: bool = False
    capturable: bool = False
    differentiable: bool = False
    fused: bool | None = None
    decoupled_weight_decay: bool = False

    _switched = {"max_exp_avg_sq": "amsgrad"}  # noqa: RUF012
    _ranged = {"eps": "epsilon", "weight_decay": "weight_decay"}  # noqa: RUF012

    def _check(self, options: dict[str, Any]) -> None:
        super()._check(options)
        betas = options["betas"] = tuple(options["betas"])
        kinds = [Tensor if isinstance(beta, Tensor) else type(beta) for beta in betas]
        if kinds not in ([float] * 2, [Tensor] * 2):
            raise ValueError(explain("betas must be either both floats or both Tensors", f"they are {betas!r}"))
        given = {"lr": options["lr"], "betas[0]": betas[0], "betas[1]": betas[1]}
        for name, value in given.items():
            if isinstance(value, Tensor) and options["foreach"] and not options["capturable"]:
                kind = "lr as a Tensor" if name == "lr" else f"{name} as a Tensor"
                raise ValueError(f"{kind} is not supported for capturable=False and foreach=True")


@optimizer(rules.adam_numbers, rules.adam, rules.adam_amsgrad)
class AdamW(Adam):
    """The AdamW optimizer: Adam with decoupled weight decay, by Loshchilov and Hutter (2019)."""

    weight_decay: float = 1e-2

    _fixed = {"decoupled_weight_decay": True}  # noqa: RUF012


@optimizer(rules.nadam_numbers, rules.nadam)
class NAdam(Ruled):
    """The NAdam optimizer: Adam with Nesterov's momentum, by Dozat (2016).

    Args:
        params, lr, betas, eps, weight_decay, decoupled_weight_decay: as for `Adam`.
        momentum_decay: how fast the momentum reaches its final value.
        foreach, maximize, capturable, differentiable: as for `Adam`.

    Raises:
        ValueError: a rate or share out of range.
    """

    lr: float | Tensor = 2e-3
    betas: tuple[float, float] = (0.9, 0.999)
    eps: float = 1e-8
    weight_decay: float = 0
    momentum_decay: float = 4e-3
    decoupled_weight_decay: bool = False
    _: KW_ONLY
    foreach: bool | None = None
    maximize: bool = False
    capturable: bool = False
    differentiable: bool = False

    _counted = ("step", "mu_product")
    _begin = {"mu_product": 1.0}  # noqa: RUF012
    _ranged = {"eps": "epsilon", "weight_decay": "weight_decay", "momentum_decay": "momentum_decay"}  # noqa: RUF012


@optimizer(rules.radam_numbers, rules.radam)
class RAdam(Ruled):
    """The RAdam optimizer: Adam that scales steps once it has averaged enough squares, by Liu et al. (2020).

    Args:
        params, lr, betas, eps, weight_decay, decoupled_weight_decay: as for `Adam`.
        foreach, maximize, capturable, differentiable: as for `Adam`.

    Raises:
        ValueError: a rate or share out of range.
    """

    lr: float | Tensor = 1e-3
    betas: tuple[float, float] = (0.9, 0.999)
    eps: float = 1e-8
    weight_decay: float = 0
    decoupled_weight_decay: bool = False
    _: KW_ONLY
    foreach: bool | None = None
    maximize: bool = False
    capturable: bool = False
    differentiable: bool = False

    _ranged = {"eps": "epsilon", "weight_decay": "weight_decay"}  # noqa: RUF012


@optimizer(rules.adamax_numbers, rules.adamax)
class Adamax(Ruled):
    """The Adamax optimizer: Adam scaled by the largest gradients, not the mean square, by Kingma and Ba (2015).

    Args:
        params, lr, betas, eps, weight_decay: as for `Adam`.
        foreach, maximize, differentiable, capturable: as for `Adam`.

    Raises:
        ValueError: a rate or share out of range.
    """

    lr: float | Tensor = 2e-3
    betas: tuple[float, float] = (0.9, 0.999)
    eps: float = 1e-8
    weight_decay: float = 0
    foreach: bool | None = None
    _: KW_ONLY
    maximize: bool = False
    differentiable: bool = False
    capturable: bool = False

    _ranged = {"eps": "epsilon", "weight_decay": "weight_decay"}  # noqa: RUF012
