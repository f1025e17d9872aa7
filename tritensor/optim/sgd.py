"""Stochastic gradient descent."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from ..arguments import check_number
from ..autograd.mode import no_grad
from ..kernels.optimizer.rates import GivenRate
from ..kernels.optimizer.steps import Large, Step, sgd, sgd_momentum
from ..tensor import Tensor
from .optimizer import Optimizer, check_rate, check_ways, new_state, no_numbers

__all__ = ["SGD"]


def _not_negative(value: Any) -> bool:
    return not value < 0.0  # compared as PyTorch does, which is what an error says: NaN is accepted


class SGD(Optimizer):
    """Gradient descent, with momentum, Nesterov's look-ahead and weight decay.

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
        differentiable: a step with it is refused.

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
        lr: float | Tensor = 1e-3,
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
        check_rate(lr, _not_negative)
        check_number("momentum", momentum, _not_negative, f"Invalid momentum value: {momentum}")
        check_number("weight_decay", weight_decay, _not_negative, f"Invalid weight_decay value: {weight_decay}")
        if nesterov and (momentum <= 0 or dampening != 0):
            raise ValueError("Nesterov momentum requires a momentum and zero dampening")
        check_ways(foreach, fused, differentiable)
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
        large = Large()
        with np.errstate(all="ignore"):
            try:
                for position, group in enumerate(self.param_groups):
                    if group["momentum"] == 0:
                        self._step_plainly(position, group, large)
                    else:
                        self._step_with_momentum(position, group, large)
            finally:
                large.run()
        return loss

    def _step_plainly(self, position: int, group: dict[str, Any], large: Large) -> None:
        step = Step(sgd, _numbers(group))
        on_devices: list[Tensor] = []
        for param in group["params"]:
            if param._grad is None:
                continue
            if param.is_cuda:
                on_devices.append(param)
            else:
                step(param, param._grad, (), large)
        if on_devices:
            self._step_these((position, "plain"), group, step, on_devices, [()] * len(on_devices), lambda param: ())

    def _step_with_momentum(self, position: int, group: dict[str, Any], large: Large) -> None:
        numbers = _numbers(group)
        later = Step(sgd_momentum, numbers)
        # a parameter's first direction is its whole gradient
        first = Step(sgd_momentum, {**numbers, "dampening": 0.0})
        on_devices: dict[bool, list[Tensor]] = {True: [], False: []}
        new: dict[Tensor, tuple[Tensor, ...]] = {}
        params = [param for param in group["params"] if param._grad is not None]
        # all are looked up before the first step: a parameter that is there twice starts twice, as in PyTorch
        buffers = [self.state[param].get("momentum_buffer") for param in params]
        for param, buffer in zip(params, buffers, strict=True):
            grad: Any = param._grad
            if param.is_cuda:
                if buffer is None:
                    new[param] = (new_state(param),)
                on_devices[buffer is None].append(param)
            elif buffer is None:
                buffer = new_state(param)
                first(param, grad, (buffer,), large)
                self.state[param]["momentum_buffer"] = buffer
            elif not later.in_place(param, grad, (buffer,), large):
                later(param, grad, (self.state_of(param)["momentum_buffer"],), large)
        if on_devices[True]:
            states = [new[param] for param in on_devices[True]]
            self._step_these((position, "first"), group, first, on_devices[True], states, new.__getitem__)
            for param, (buffer,) in new.items():
                self.state[param]["momentum_buffer"] = buffer
        if on_devices[False]:
            states = [(self.state[param]["momentum_buffer"],) for param in on_devices[False]]
            self._step_these(
                (position, "later"),
                group,
                later,
                on_devices[False],
                states,
                lambda param: (self.state_of(param)["momentum_buffer"],),
            )

    def _step_these(
        self,
        tag: Any,
        group: dict[str, Any],
        step: Step,
        params: list[Tensor],
        states: list[tuple[Tensor, ...]],
        placed: Callable[[Tensor], tuple[Tensor, ...]],
    ) -> None:
        """A step on CUDA devices; a learning rate in device memory is read there."""
        lr = group["lr"]
        if not (isinstance(lr, Tensor) and lr.is_cuda):
            self._step_on_devices(tag, step, params, states, placed)
            return
        for device in dict.fromkeys(param.device for param in params):
            these = [(param, state) for param, state in zip(params, states, strict=True) if param.device is device]
            self._step_on_devices(
                (*tag, device),
                step,
                [param for param, _ in these],
                [state for _, state in these],
                placed,
                GivenRate(lr.to(device)),
            )


def _numbers(group: dict[str, Any]) -> dict[str, float]:
    """The operator's numbers for a group's options."""
    lr = group["lr"]
    # a rate in device memory is read there
    there = isinstance(lr, Tensor) and lr.is_cuda and all(p.is_cuda for p in group["params"])
    try:
        numbers = {
            "lr": 0.0 if there else float(lr),
            "weight_decay": float(group["weight_decay"]),
            "sign": -1.0 if group["maximize"] else 1.0,
        }
        if group["momentum"] != 0:
            numbers["momentum"] = float(group["momentum"])
            numbers["dampening"] = float(group["dampening"])
            numbers["nesterov"] = 1.0 if group["nesterov"] else 0.0
    except (TypeError, ValueError) as error:
        raise no_numbers(group, error) from None
    return numbers
