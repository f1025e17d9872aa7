"""Adam and AdamW."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import chain
from math import inf
from typing import Any

import numpy as np

from ..arguments import check_number
from ..autograd.mode import no_grad
from ..drivers.capture import capturing
from ..dtypes import float32
from ..errors import ArgumentError, DeviceError, RangeError, explain
from ..functional.creation import tensor, zeros
from ..kernels.optimizer.rates import AdamRates
from ..kernels.optimizer.steps import Large, Step, adam, adam_amsgrad
from ..memory.array import DeviceArray
from ..tensor import Tensor, wrap
from .optimizer import Optimizer, check_rate, check_ways, new_state, no_numbers

__all__ = ["Adam", "AdamW"]


def _not_negative(value: Any) -> bool:
    return bool(0.0 <= value <= inf)  # compared as PyTorch does, which is what an error says


def _pair(betas: Any) -> tuple[Any, ...]:
    """Both betas, each found to be at least 0 and below 1.

    Raises:
        RangeError: there are fewer, which Python tells in the same words as in PyTorch. ValueError: there are more, or
        one is out of range. ArgumentError: a number, or a beta that is none.
    """
    fact, remedy = f"betas is {betas!r}", "pass two numbers, as betas=(0.9, 0.999)"
    try:
        for position in (0, 1):
            words = f"Invalid beta parameter at index {position}: {betas[position]}"
            check_number(f"betas[{position}]", betas[position], lambda value: 0.0 <= value < 1.0, words)
    except IndexError as error:
        raise RangeError(explain(str(error), fact, remedy=remedy)) from None
    except ArgumentError:
        raise
    except (KeyError, TypeError) as error:
        raise ArgumentError(explain(str(error), fact, remedy=remedy)) from None
    if len(betas) > 2:  # PyTorch raises this at the first step
        raise ValueError(explain("too many values to unpack (expected 2)", fact, remedy=remedy))
    return tuple(betas)


class Adam(Optimizer):
    """Steps scaled by running averages of the gradient and of its square, by Kingma and Ba (2015).

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
        differentiable: a step with it is refused.

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

    _shaped_state = ("exp_avg", "exp_avg_sq", "max_exp_avg_sq")

    def __init__(
        self,
        params: Iterable[Any],
        lr: float | Tensor = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        amsgrad: bool = False,
        *,
        foreach: bool | None = None,
        maximize: bool = False,
        capturable: bool = False,
        differentiable: bool = False,
        fused: bool | None = None,
        decoupled_weight_decay: bool = False,
    ) -> None:
        check_rate(lr, _not_negative)
        check_number("eps", eps, _not_negative, f"Invalid epsilon value: {eps}")
        pair = _pair(betas)
        check_number("weight_decay", weight_decay, _not_negative, f"Invalid weight_decay value: {weight_decay}")
        check_ways(foreach, fused, differentiable)
        defaults = {
            "lr": lr,
            "betas": pair,
            "eps": eps,
            "weight_decay": weight_decay,
            "amsgrad": amsgrad,
            "maximize": maximize,
            "foreach": foreach,
            "capturable": capturable,
            "differentiable": differentiable,
            "fused": fused,
            "decoupled_weight_decay": decoupled_weight_decay,
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
                    self._step_group(position, group, large)
            finally:
                large.run()
        return loss

    def _step_group(self, position: int, group: dict[str, Any], large: Large) -> None:
        amsgrad, states, capturable = group["amsgrad"], self.state, group["capturable"]
        # parameters of a group mostly have the same step count, and then share a Step
        shared: dict[float, Step] = {}
        on_devices: dict[float, list[Tensor]] = {}
        captured: list[Tensor] = []
        for param in group["params"]:
            grad = param._grad
            if grad is None:
                continue
            state = states[param] or self._start(param, capturable)
            if amsgrad and "max_exp_avg_sq" not in state:
                state["max_exp_avg_sq"] = new_state(param)
            there = param._data.__class__ is DeviceArray
            if there and capturable:
                captured.append(param)
                continue
            counter = state["step"]
            if counter.__class__ is not Tensor or counter._data.__class__ is not np.ndarray:
                counter = state["step"] = wrap(np.array(float(counter), np.float32))
            count = counter._data.item() + 1
            step = shared.get(count)
            if step is None:
                step = shared[count] = Step(adam_amsgrad if amsgrad else adam, _numbers(group, count))
            if there:
                on_devices.setdefault(count, []).append(param)
                continue
            if not step.in_place(param, grad, _averages(state, amsgrad), large):
                step(param, grad, _averages(self.state_of(param), amsgrad), large)
            # incremented after the step has been made; in place, as in PyTorch
            counter._data.fill(count)
        if on_devices:
            self._refuse_capture(chain(*on_devices.values()))
        for number, (count, params) in enumerate(on_devices.items()):
            self._step_these((position, number), group, shared[count], params)
            for param in params:
                states[param]["step"]._data.fill(count)
        if captured:
            self._step_capturable(position, group, captured)

    def _refuse_capture(self, params: Iterable[Tensor]) -> None:
        """Raise if a step that the host counts is being captured."""
        for array in {param._data.device: param._data for param in params}.values():
            capture = capturing(array.buffer.driver, array.device.index)
            if capture is None:
                continue
            capture.failed = capture.failed or f"{type(self).__name__}.step"
            raise DeviceError(
                explain(
                    f"Attempting CUDA graph capture of step() for an instance of {type(self).__name__} but "
                    "param_groups' capturable is False.",
                    "the host counts its steps, and each replay would repeat the same one",
                    remedy=f"make it with {type(self).__name__}(..., capturable=True)",
                )
            )

    def _step_these(
        self, tag: Any, group: dict[str, Any], step: Step, params: list[Tensor], rates: AdamRates | None = None
    ) -> None:
        amsgrad, states = group["amsgrad"], self.state

        def placed(param: Tensor) -> tuple[Tensor, ...]:
            return _averages(self.state_of(param), amsgrad)

        self._step_on_devices(tag, step, params, [_averages(states[param], amsgrad) for param in params], placed, rates)

    def _step_capturable(self, position: int, group: dict[str, Any], params: list[Tensor]) -> None:
        """A step whose counts, and the learning rate if it is a tensor, are in device memory and are read there."""
        lr, numbers = group["lr"], _numbers({**group, "lr": 0.0}, 1)
        rate = lr if isinstance(lr, Tensor) and lr.is_cuda else float(lr)
        step = Step(adam_amsgrad if group["amsgrad"] else adam, numbers)
        decay = float(group["weight_decay"]) if group["decoupled_weight_decay"] else 0.0
        for device in {param._data.device: None for param in params}:  # in order
            these = [param for param in params if param._data.device is device]
            there = rate.to(device) if isinstance(rate, Tensor) else rate
            counters = [_counter_on(device, self.state[param]) for param in these]
            self._step_these((position, device), group, step, these, AdamRates(there, decay, counters))

    def _start(self, param: Tensor, capturable: bool) -> dict[str, Any]:
        """The state of a parameter that has not been stepped yet."""
        state: dict[str, Any] = {
            "step": zeros((), device=param.device) if capturable else wrap(np.array(0.0, np.float32)),
            "exp_avg": new_state(param),
            "exp_avg_sq": new_state(param),
        }
        self.state[param] = state
        return state


def _counter_on(device: Any, state: dict[str, Any]) -> Tensor:
    """The step count in a parameter's state, moved to a device as one float32."""
    counter = state["step"]
    data = counter._data if counter.__class__ is Tensor else None
    if data.__class__ is not DeviceArray or data.device is not device or data.dtype != float32.numpy:
        counter = state["step"] = tensor(float(counter), device=device)
    return counter


def _averages(state: dict[str, Any], amsgrad: bool) -> tuple[Tensor, ...]:
    """The state tensors that are inputs of the operator, in its order."""
    if amsgrad:
        return state["exp_avg"], state["exp_avg_sq"], state["max_exp_avg_sq"]
    return state["exp_avg"], state["exp_avg_sq"]


def _numbers(group: dict[str, Any], steps: float) -> dict[str, float]:
    """The operator's numbers for a group's options at a step count."""
    try:
        beta1, beta2 = float(group["betas"][0]), float(group["betas"][1])
        lr, decay, eps = float(group["lr"]), float(group["weight_decay"]), float(group["eps"])
    except (TypeError, ValueError) as error:
        raise no_numbers(group, error) from None
    decoupled = group["decoupled_weight_decay"]
    return {
        "lr": lr,
        "beta1": beta1,
        "beta2": beta2,
        "rest1": 1 - beta1,
        "rest2": 1 - beta2,
        "eps": eps,
        "l2": 0.0 if decoupled else decay,
        "shrink": 1 - lr * decay if decoupled else 1.0,
        "correction1": 1 - beta1**steps,
        "correction2": 1 - beta2**steps,
        "sign": -1.0 if group["maximize"] else 1.0,
    }


class AdamW(Adam):
    """Adam whose weight decay is taken from the parameter itself, by Loshchilov and Hutter (2019)."""

    def __init__(
        self,
        params: Iterable[Any],
        lr: float | Tensor = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 1e-2,
        amsgrad: bool = False,
        *,
        maximize: bool = False,
        foreach: bool | None = None,
        capturable: bool = False,
        differentiable: bool = False,
        fused: bool | None = None,
    ) -> None:
        super().__init__(
            params,
            lr,
            betas,
            eps,
            weight_decay,
            amsgrad,
            foreach=foreach,
            maximize=maximize,
            capturable=capturable,
            differentiable=differentiable,
            fused=fused,
            decoupled_weight_decay=True,
        )
