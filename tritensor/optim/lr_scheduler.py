"""Schedules for the learning rate: each `step()` sets the rates of the optimizer's groups for the next epoch.

Those that multiply the current rate (all but `LambdaLR`) can be used together on one optimizer.
"""

from __future__ import annotations

import math
import types
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from ..autograd.mode import no_grad
from ..tensor import Tensor
from .optimizer import Optimizer

__all__ = [
    "CosineAnnealingLR",
    "ExponentialLR",
    "LRScheduler",
    "LambdaLR",
    "LinearLR",
    "MultiStepLR",
    "ReduceLROnPlateau",
    "StepLR",
]


def _number(rate: Any) -> Any:
    return float(rate) if isinstance(rate, Tensor) else rate


def _set_rate(group: dict[str, Any], rate: float) -> None:
    """Set a group's rate; a tensor keeps its memory, where a captured step reads it."""
    if isinstance(group["lr"], Tensor):
        with no_grad():
            group["lr"].fill_(rate)
    else:
        group["lr"] = rate


def _rates(optimizer: Optimizer, key: str = "lr") -> list[float]:
    return [_number(group[key]) for group in optimizer.param_groups]


class LRScheduler:
    """The base of schedules: a subclass defines `get_lr()`, which reads `last_epoch` and `base_lrs`.

    Making one sets the rates of epoch `last_epoch + 1`.

    Args:
        optimizer: the optimizer whose rates are set.
        last_epoch: the last epoch that was trained, to resume; -1 to start.

    Raises:
        TypeError: `optimizer` is none.
        KeyError: resuming an optimizer whose groups have no "initial_lr".
    """

    # PyTorch's names, which are keys of the state dict; subclasses read them in `get_lr()`
    _is_initial = False
    _get_lr_called_within_step = False

    def __init__(self, optimizer: Optimizer, last_epoch: int = -1) -> None:
        if not isinstance(optimizer, Optimizer):
            raise TypeError(f"{type(optimizer).__name__} is not an Optimizer")
        for position, group in enumerate(optimizer.param_groups):
            if last_epoch == -1:
                group.setdefault("initial_lr", _number(group["lr"]))
            elif "initial_lr" not in group:
                raise KeyError(
                    f"param 'initial_lr' is not specified in param_groups[{position}] when resuming scheduler with "
                    "last_epoch >= 0: load the optimizer's state dict first, or start with last_epoch=-1"
                )
        self.optimizer = optimizer
        self.base_lrs = _rates(optimizer, "initial_lr")
        self.last_epoch = last_epoch
        self._step_count = 0
        self._is_initial = True
        try:
            self.step()
        finally:
            self._is_initial = False

    def get_lr(self) -> list[float]:
        """The rates of epoch `last_epoch`, one per group."""
        raise NotImplementedError(f"{type(self).__name__} defines no get_lr()")

    def get_last_lr(self) -> list[float]:
        """The rates that were set last, one per group."""
        return self._last_lr

    def step(self) -> None:
        """Set the rates of the next epoch; to be called after the optimizer's steps."""
        if self._step_count == 1 and not self.optimizer._stepped:
            warnings.warn(
                "Detected call of `lr_scheduler.step()` before `optimizer.step()`. Call them in the opposite order: "
                "otherwise the first value of the schedule is skipped.",
                stacklevel=2,
            )
        self._step_count += 1
        self.last_epoch += 1
        self._get_lr_called_within_step = True
        try:
            rates = self.get_lr()
        finally:
            self._get_lr_called_within_step = False
        for group, rate in zip(self.optimizer.param_groups, rates, strict=True):
            _set_rate(group, rate)
        self._last_lr = _rates(self.optimizer)

    def state_dict(self) -> dict[str, Any]:
        """Everything but the optimizer."""
        return {key: value for key, value in self.__dict__.items() if key != "optimizer"}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Restore what `state_dict()` returned; the optimizer's rates are part of its own state dict."""
        self.__dict__.update(state_dict)

    def _scaled(self, factor: float) -> list[float]:
        return [rate * factor for rate in _rates(self.optimizer)]


class LambdaLR(LRScheduler):
    """The initial rate times `lr_lambda(epoch)`; one function, or one for each group.

    >>> import tritensor as torch
    >>> sgd = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=0.5)
    >>> torch.optim.lr_scheduler.LambdaLR(sgd, lambda epoch: 1 / (epoch + 2)).get_last_lr()
    [0.25]

    Raises:
        ValueError: the number of functions is not that of the groups.
    """

    def __init__(
        self,
        optimizer: Optimizer,
        lr_lambda: Callable[[int], float] | Sequence[Callable[[int], float]],
        last_epoch: int = -1,
    ) -> None:
        groups = len(optimizer.param_groups)
        if isinstance(lr_lambda, Sequence):
            if len(lr_lambda) != groups:
                raise ValueError(f"Expected {groups} lr_lambdas, but got {len(lr_lambda)}")
            self.lr_lambdas = list(lr_lambda)
        else:
            self.lr_lambdas = [lr_lambda] * groups
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float]:
        """The rates of epoch `last_epoch`."""
        return [base * factor(self.last_epoch) for base, factor in zip(self.base_lrs, self.lr_lambdas, strict=True)]

    def state_dict(self) -> dict[str, Any]:
        """Everything but the optimizer and functions; of callable objects, their attributes."""
        state = {key: value for key, value in super().state_dict().items() if key != "lr_lambdas"}
        state["lr_lambdas"] = [
            None if isinstance(factor, types.FunctionType) else factor.__dict__.copy() for factor in self.lr_lambdas
        ]
        return state

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Restore what `state_dict()` returned."""
        self.__dict__.update({key: value for key, value in state_dict.items() if key != "lr_lambdas"})
        for factor, attributes in zip(self.lr_lambdas, state_dict["lr_lambdas"], strict=True):
            if attributes is not None:
                factor.__dict__.update(attributes)


class StepLR(LRScheduler):
    """Multiplies the rate by `gamma` every `step_size` epochs."""

    def __init__(self, optimizer: Optimizer, step_size: int, gamma: float = 0.1, last_epoch: int = -1) -> None:
        self.step_size = step_size
        self.gamma = gamma
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float]:
        """The rates of epoch `last_epoch`."""
        return self._scaled(1 if self._is_initial or self.last_epoch % self.step_size else self.gamma)


class MultiStepLR(LRScheduler):
    """Multiplies the rate by `gamma` at each of the epochs `milestones`."""

    def __init__(
        self, optimizer: Optimizer, milestones: Iterable[int], gamma: float = 0.1, last_epoch: int = -1
    ) -> None:
        self.milestones = Counter(milestones)
        self.gamma = gamma
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float]:
        """The rates of epoch `last_epoch`."""
        reached = 0 if self._is_initial else self.milestones[self.last_epoch]
        return self._scaled(self.gamma**reached if reached else 1)


class ExponentialLR(LRScheduler):
    """Multiplies the rate by `gamma` at every epoch."""

    def __init__(self, optimizer: Optimizer, gamma: float, last_epoch: int = -1) -> None:
        self.gamma = gamma
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float]:
        """The rates of epoch `last_epoch`."""
        return self._scaled(1 if self._is_initial else self.gamma)


class LinearLR(LRScheduler):
    """Brings the rate from `start_factor` to `end_factor` times the initial one in `total_iters` equal steps.

    Raises:
        ValueError: a start factor that is not above 0 and at most 1, or an end factor outside 0 to 1.
    """

    def __init__(
        self,
        optimizer: Optimizer,
        start_factor: float = 1.0 / 3,
        end_factor: float = 1.0,
        total_iters: int = 5,
        last_epoch: int = -1,
    ) -> None:
        if not 0 < start_factor <= 1:
            raise ValueError("Starting multiplicative factor expected to be greater than 0 and less or equal to 1.")
        if not 0 <= end_factor <= 1:
            raise ValueError("Ending multiplicative factor expected to be between 0 and 1.")
        self.start_factor = start_factor
        self.end_factor = end_factor
        self.total_iters = total_iters
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float]:
        """The rates of epoch `last_epoch`."""
        if self._is_initial:
            return self._scaled(self.start_factor if self.last_epoch == 0 else 1)
        if self.last_epoch > self.total_iters:
            return self._scaled(1)
        # the quotient of two factors, rounded as PyTorch rounds it
        change = self.end_factor - self.start_factor
        return self._scaled(1.0 + change / (self.total_iters * self.start_factor + (self.last_epoch - 1) * change))


class CosineAnnealingLR(LRScheduler):
    """Brings the rate down to `eta_min` in `T_max` epochs along half a cosine wave, then up again, and so on."""

    def __init__(self, optimizer: Optimizer, T_max: int, eta_min: float = 0.0, last_epoch: int = -1) -> None:
        self.T_max = T_max
        self.eta_min = eta_min
        super().__init__(optimizer, last_epoch)

    def _height(self, epoch: int) -> float:
        return (1 + math.cos(math.pi * epoch / self.T_max)) / 2

    def get_lr(self) -> list[float]:
        """The rates of epoch `last_epoch`."""
        rates = _rates(self.optimizer)
        if self._is_initial:
            return rates
        if (self.last_epoch - 1 - self.T_max) % (2 * self.T_max) == 0:
            # at the bottom of the wave the rate's distance from `eta_min` is 0 and cannot be scaled
            height = self._height(self.last_epoch)
            return [rate + (base - self.eta_min) * height for rate, base in zip(rates, self.base_lrs, strict=True)]
        ratio = self._height(self.last_epoch) / self._height(self.last_epoch - 1)
        return [ratio * (rate - self.eta_min) + self.eta_min for rate in rates]


class ReduceLROnPlateau(LRScheduler):
    """Multiplies the rate by `factor` when a measured quantity has not improved for more than `patience` epochs.

    Args:
        optimizer: the optimizer whose rates are set.
        mode: "min" if lower is better, "max" if higher is.
        factor: below 1.
        patience: how many epochs without improvement are allowed.
        threshold: how much better a value has to be to count.
        threshold_mode: whether the threshold is relative ("rel") to the best value or absolute ("abs").
        cooldown: epochs after a reduction that are not counted.
        min_lr: a lower bound for the rates, one or one for each group.
        eps: reductions by less than this are not made.

    Raises:
        ValueError: a factor of 1 or more, an unknown mode, or bounds for another number of groups.
        TypeError: `optimizer` is none.
    """

    def __init__(
        self,
        optimizer: Optimizer,
        mode: str = "min",
        factor: float = 0.1,
        patience: int = 10,
        threshold: float = 1e-4,
        threshold_mode: str = "rel",
        cooldown: int = 0,
        min_lr: float | Sequence[float] = 0,
        eps: float = 1e-8,
    ) -> None:
        if factor >= 1.0:
            raise ValueError("Factor should be < 1.0.")
        if not isinstance(optimizer, Optimizer):
            raise TypeError(f"{type(optimizer).__name__} is not an Optimizer")
        if mode not in ("min", "max"):
            raise ValueError(f"mode {mode} is unknown!")
        if threshold_mode not in ("rel", "abs"):
            raise ValueError(f"threshold mode {threshold_mode} is unknown!")
        groups = len(optimizer.param_groups)
        if isinstance(min_lr, Sequence) and len(min_lr) != groups:
            raise ValueError(f"expected {groups} min_lrs, got {len(min_lr)}")
        self.optimizer = optimizer
        self.mode, self.factor, self.patience = mode, factor, patience
        self.threshold, self.threshold_mode = threshold, threshold_mode
        self.cooldown, self.eps = cooldown, eps
        several = isinstance(min_lr, Sequence)
        self.default_min_lr = None if several else min_lr
        self.min_lrs: list[Any] = list(min_lr) if several else [min_lr] * groups  # type: ignore[arg-type]
        self.best = self.mode_worse = math.inf if mode == "min" else -math.inf
        self.last_epoch = self.cooldown_counter = self.num_bad_epochs = 0
        self._last_lr = _rates(optimizer)

    @property
    def in_cooldown(self) -> bool:
        """Whether a reduction was made less than `cooldown` epochs ago."""
        return self.cooldown_counter > 0

    def _is_better(self, value: float) -> bool:
        margin = self.threshold * self.best if self.threshold_mode == "rel" else self.threshold
        return value < self.best - margin if self.mode == "min" else value > self.best + margin

    def step(self, metrics: Any) -> None:  # type: ignore[override]
        """Evaluate the measured quantity of an epoch, a number or a tensor with one element."""
        value = float(metrics)
        self.last_epoch += 1
        better = self._is_better(value) if math.isfinite(self.best) else abs(self.best - value) > 0
        if better:
            self.best = value
        self.num_bad_epochs = 0 if better else self.num_bad_epochs + 1
        if self.in_cooldown:
            self.cooldown_counter -= 1
            self.num_bad_epochs = 0
        if self.num_bad_epochs > self.patience:
            self._reduce()
            self.cooldown_counter = self.cooldown
            self.num_bad_epochs = 0
        self._last_lr = _rates(self.optimizer)

    def _reduce(self) -> None:
        groups = self.optimizer.param_groups
        if len(groups) != len(self.min_lrs):
            if self.default_min_lr is None:
                raise RuntimeError(
                    f"The number of param groups in the `optimizer` ({len(groups)}) differs from when "
                    f"`ReduceLROnPlateau` was initialized ({len(self.min_lrs)}), usually due to a new param group "
                    "being added to the optimizer. Please modify the `min_lrs` field to match the length of the "
                    "`optimizer` param groups."
                )
            self.min_lrs = [self.default_min_lr] * len(groups)
        for group, bound in zip(groups, self.min_lrs, strict=True):
            old = float(group["lr"])
            new = max(old * self.factor, bound)
            if old - new > self.eps:
                _set_rate(group, new)
