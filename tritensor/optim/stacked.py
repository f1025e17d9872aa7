"""Optimizers that compute with matrices: all parameters of one shape are stacked, so that each operator runs once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY
from math import sqrt
from typing import Any, ClassVar

import numpy as np

from ..autograd.mode import no_grad
from ..errors import explain, require
from ..functional.creation.creation import zeros
from ..functional.views.joining import stack
from ..ground.arguments import check_number
from ..kernels.optimizer import rules
from ..kernels.optimizer.factored import step_factored
from ..kernels.optimizer.multi_tensor import Tables
from ..kernels.optimizer.rates import Given
from ..kernels.optimizer.steps import CHUNK, Large, Step
from ..tensors import Tensor, wrap
from ..types.dtypes import bfloat16, finfo
from .optimizer import new_state
from .ruled import Declared, check_rate, optimizer


class Stacked(Declared):
    """Base of these optimizers; a subclass begins a parameter's state, and makes the step of a stack.

    Attributes:
        _words: of which options numbers that do not fit are refused, and PyTorch's words.
    """

    _words: ClassVar[dict[str, tuple[Callable[[Any], bool], str]]] = {}

    def _check(self, options: dict[str, Any]) -> None:
        check_rate(options["lr"], self._fits, "Learning rate should be >= 0 but is: {}")
        for name, (fits, words) in self._words.items():
            check_number(name, options[name], fits, words.format(options[name]))

    @no_grad()
    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Change every parameter that has a gradient; returns the closure's loss."""
        loss = self._loss_of(closure)
        for number, group in enumerate(self.param_groups):
            stacks: dict[Any, list[Tensor]] = {}
            for param in group["params"]:
                if param._grad is None:
                    continue
                if param.is_complex():
                    raise RuntimeError(f"{type(self).__name__} does not support complex parameters")
                if param._grad.is_sparse:
                    raise RuntimeError(f"{type(self).__name__} does not support sparse gradients")
                state = self.state.get(param)
                if not state:
                    state = self.state[param] = self._begun(param)
                self.state_of(param)
                key = (param.device, param.dtype, param._grad.dtype, tuple(param.shape), float(state.get("step", 0)))
                stacks.setdefault(key, []).append(param)
            for place, (key, params) in enumerate(stacks.items()):
                # on the CPU as many as stay in a cache
                most = len(params) if params[0]._off_host else max(1, CHUNK // max(1, params[0].numel()))
                for start in range(0, len(params), most):
                    with np.errstate(all="ignore"):
                        self._step_stack((number, place, start), group, params[start : start + most], key[-1] + 1)
        return loss

    def _begun(self, param: Tensor) -> dict[str, Any]:
        raise NotImplementedError

    def _step_stack(self, tag: Any, group: dict[str, Any], params: list[Tensor], step: float) -> None:
        raise NotImplementedError

    def _change(self, tag: Any, rule: Any, tensors: Sequence[Tensor], by: Tensor, *numbers: Any) -> None:
        """Change tensors by the parts of a stack: one launch on a device, where the first number may be in memory."""
        parts = by.unbind(0)
        if not tensors[0]._off_host:
            large = Large()
            for position, (tensor, part) in enumerate(zip(tensors, parts, strict=True)):
                first = numbers[0][position].item() if isinstance(numbers[0], Tensor) else numbers[0]
                Step(rule, [first, *numbers[1:]])(tensor, part, (), large)
            large.run()
            return
        rates = Given(next(iter(rule.metadata)), numbers[0]) if isinstance(numbers[0], Tensor) else None
        values = dict(zip(rule.metadata, [0.0 if rates else numbers[0], *numbers[1:]], strict=True))
        entries = list(zip(tensors, parts, strict=True))
        tables = self.__dict__.setdefault("_tables", Tables())
        tables.step((*tag, rule.name), rule, values, entries, lambda: entries, rates)


def _direct(*tensors: Tensor | None) -> bool:
    """True if NumPy can compute with tensors as they are, and write into them."""
    arrays = [tensor._data for tensor in tensors if tensor is not None]
    kind = arrays[0].dtype
    return (
        kind.kind == "f"
        and kind.itemsize > 2
        and all(array.__class__ is np.ndarray and array.dtype is kind and array.flags.writeable for array in arrays)
    )


@optimizer()
class Adafactor(Stacked):
    """The Adafactor optimizer: Adam's scaling by means over rows and columns, by Shazeer and Stern (2018).

    On a device it takes about 25 launches for all parameters of one shape; the host does not wait for it.

    Args:
        params, weight_decay, maximize: as for `AdamW`.
        lr: the largest share of a parameter's size by which it changes in a step.
        beta2_decay: the power of the step that is the share of new squares in the means.
        eps: the least mean of squares, by default the dtype's epsilon, and the least size of a parameter.
        d: updates larger than this are scaled down.
        foreach: accepted for PyTorch's signature.

    Raises:
        ValueError: an option out of range. RuntimeError: a complex parameter has a gradient.
    """

    lr: float | Tensor = 1e-2
    beta2_decay: float = -0.8
    eps: tuple[float | None, float] = (None, 1e-3)
    d: float = 1.0
    weight_decay: float = 0.0
    _: KW_ONLY
    foreach: bool | None = None
    maximize: bool = False

    _words: ClassVar[dict[str, tuple[Callable[[Any], bool], str]]] = {
        "beta2_decay": (lambda value: value <= 0.0, "beta2_decay should be <= 0 but is: {}"),
        "d": (lambda value: value >= 1.0, "Clipping threshold d should be >= 1 but is: {}"),
        "weight_decay": (lambda value: value >= 0.0, "weight_decay should be >= 0 but is: {}"),
    }

    def _check(self, options: dict[str, Any]) -> None:
        super()._check(options)
        for number, value in enumerate(options["eps"], 1):
            if number == 2 or value is not None:
                check_number("eps", value, self._fits, f"epsilon{number} should be >= 0 but is: {value}")

    def _begun(self, param: Tensor) -> dict[str, Any]:
        state: dict[str, Any] = {"step": wrap(np.array(0.0, np.float32))}
        if param.dim() < 2:
            return state | {"variance": new_state(param)}
        *before, rows, columns = param.shape
        options: dict[str, Any] = {"dtype": param.dtype, "device": param.device}
        return state | {
            "row_var": zeros((*before, rows, 1), **options),
            "col_var": zeros((*before, 1, columns), **options),
        }

    def _step_stack(self, tag: Any, group: dict[str, Any], params: list[Tensor], step: float) -> None:
        lr, decay = float(group["lr"]), float(group["weight_decay"])
        least, smallest = group["eps"]
        least = finfo(params[0].dtype).eps if least is None else float(least)
        share, names = step ** group["beta2_decay"], ["row_var", "col_var"] if params[0].dim() > 1 else ["variance"]
        means = [[self.state[param][name] for name in names] for param in params]
        if all(_direct(param, param._grad, *each) for param, each in zip(params, means, strict=True)):
            rate = min(lr, 1 / sqrt(step)) * (-1 if group["maximize"] else 1)
            for param, each in zip(params, means, strict=True):
                grad_data: Any = param._grad._data  # type: ignore[union-attr]
                numbers: Any = share, least, float(smallest), float(group["d"]), rate, 1 - lr * decay
                step_factored(param._data, grad_data, [x._data for x in each], *numbers)
                self.state[param]["step"].fill_(step)
                for x in (param, *each):
                    x._count_change()
            return
        grad = stack([param._grad for param in params if param._grad is not None])
        grad = -grad if group["maximize"] else grad
        inner = tuple(range(1, grad.dim()))

        def size(x: Tensor) -> Tensor:  # the root of the mean square of each
            return ((x * x).mean(inner) if inner else x * x) ** 0.5

        rates = size(stack([param.detach() for param in params])).clamp(min=smallest) * min(lr, 1 / sqrt(step))
        square = grad * grad
        joining: list[Any] = [square] if len(names) == 1 else [square.mean(-1, True), square.mean(-2, True)]
        for position, each in enumerate(joining):
            old = [of_one[position] for of_one in means]
            self._change((*tag, position), rules.average, old, each, 1 - share, share)
            joining[position] = stack(old)
        estimate = joining[0]
        if len(names) > 1:
            estimate = estimate @ joining[1] / estimate.mean(-2, True).clamp(min=least)
        update = estimate.clamp(min=least * least).rsqrt() * grad
        rates = rates / (size(update) / group["d"]).clamp(min=1.0)
        self._change(tag, rules.descend, params, update, rates, 1 - lr * decay)
        for param in params:
            self.state[param]["step"].fill_(step)


@optimizer()
class Muon(Stacked):
    """The Muon optimizer: momentum made orthogonal by Newton-Schulz iteration, by Jordan (2024); for matrices alone.

    On a device it takes about 20 launches for all parameters of one shape; products are of bfloat16, as in PyTorch.

    Args:
        params, lr, weight_decay: as for `AdamW`.
        momentum: the share of the average gradient that is kept at each step.
        nesterov: look ahead by the momentum's next direction.
        ns_coefficients: of the polynomial of fifth degree that is iterated.
        eps: the least norm that a direction is divided by.
        ns_steps: how often it is iterated.
        adjust_lr_fn: "original" (the default) for a rate by the ratio of sides, "match_rms_adamw" by the larger side.

    Raises:
        ValueError: an option out of range, or a parameter that is no matrix. RuntimeError: a complex parameter has a
        gradient.
    """

    lr: float | Tensor = 1e-3
    weight_decay: float = 0.1
    momentum: float = 0.95
    nesterov: bool = True
    ns_coefficients: tuple[float, float, float] = (3.4445, -4.7750, 2.0315)
    eps: float = 1e-7
    ns_steps: int = 5
    adjust_lr_fn: str | None = None

    _words: ClassVar[dict[str, tuple[Callable[[Any], bool], str]]] = {
        "momentum": (lambda value: value >= 0.0, "momentum should be >= 0 but is: {}"),
        "weight_decay": (lambda value: value >= 0.0, "weight decay should be >= 0 but is: {}"),
        "adjust_lr_fn": (
            lambda value: value in (None, "original", "match_rms_adamw"),
            "Adjust learning rate function {} is not supported",
        ),
    }
    _counted = ()
    _shaped_state = ("momentum_buffer",)

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """Add a group of matrices; see `Optimizer`."""
        super().add_param_group(param_group)
        for param in self.param_groups[-1]["params"]:
            if param.dim() != 2:
                self.param_groups.pop()
                words = f"Muon only supports 2D parameters whereas we found a parameter with size: {param.size()}"
                raise ValueError(explain(words, remedy="leave vectors and kernels to another optimizer, such as AdamW"))

    def _begun(self, param: Tensor) -> dict[str, Any]:
        return {"momentum_buffer": new_state(param)}

    def _step_stack(self, tag: Any, group: dict[str, Any], params: list[Tensor], step: float) -> None:
        if group["ns_steps"] >= 100:
            raise ValueError("Number of steps must be less than 100 for computational efficiency")
        require(len(group["ns_coefficients"]) == 3, ValueError, "Coefficients must be a tuple of exactly 3 values")
        momentum, lr = float(group["momentum"]), float(group["lr"])
        grad = stack([param._grad for param in params if param._grad is not None])
        buffers = [self.state[param]["momentum_buffer"] for param in params]
        self._change((*tag, "momentum"), rules.average, buffers, grad, momentum, 1 - momentum)
        direction = stack(buffers)
        if group["nesterov"]:
            direction = grad.lerp(direction, momentum)
        rows, columns = params[0].shape
        update = _orthogonal(direction, group["ns_coefficients"], group["ns_steps"], group["eps"])
        ratio = sqrt(max(1, rows / columns))
        if group["adjust_lr_fn"] == "match_rms_adamw":
            ratio = 0.2 * sqrt(max(rows, columns))
        self._change(tag, rules.descend, params, update, lr * ratio, 1 - lr * float(group["weight_decay"]))


def _orthogonal(x: Tensor, coefficients: Sequence[float], steps: int, eps: float) -> Tensor:
    """About the nearest matrices with orthogonal rows or columns: a polynomial moves the singular values towards 1."""
    a, b, c = coefficients
    high = x.shape[-2] > x.shape[-1]
    x = x.to(bfloat16)
    x = x.mT if high else x
    x = x / (x.float() ** 2).sum((-2, -1), True).sqrt().to(bfloat16).clamp(min=eps)
    for _ in range(steps):
        gram = x @ x.mT
        x = (a * x).add((b * gram).add(gram @ gram, alpha=c) @ x)
    return x.mT if high else x
