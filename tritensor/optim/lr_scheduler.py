"""Schedules for the learning rate: each `step()` sets the rates of the optimizer's groups for the next epoch.

Those that multiply the current rate (all but `LambdaLR`) can be used together on one optimizer.
"""

from __future__ import annotations

import math
import types
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from ..autograd.mode import no_grad
from ..errors import explain, warn
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


def _copied(rate: Any) -> Any:
    """A rate as it is, a number or a tensor, but no tensor that the optimizer changes."""
    return rate.clone() if isinstance(rate, Tensor) else rate


def _set_rate(group: dict[str, Any], rate: Any) -> None:
    """Set a group's rate; a tensor keeps its memory, where a captured step reads it."""
    if isinstance(group["lr"], Tensor):
        with no_grad():
            group["lr"].fill_(rate.squeeze() if isinstance(rate, Tensor) else rate)
    else:
        group["lr"] = rate


def _rates(optimizer: Optimizer, key: str = "lr") -> list[Any]:
    return [_copied(group[key]) for group in optimizer.param_groups]


def _together(groups: Sequence[Any], values: Sequence[Any]) -> Iterable[tuple[Any, Any]]:
    """Pairs of as many values as groups, or the other way round.

    Raises:
        ValueError: groups were added since the schedule was made.
    """
    if len(groups) != len(values):
        how = "longer" if len(values) > len(groups) else "shorter"
        raise ValueError(
            explain(
                f"zip() argument 2 is {how} than argument 1",
                f"the optimizer has other groups than when the schedule was made ({len(groups)} and {len(values)})",
                remedy="make the schedule after the last add_param_group",
            )
        )
    return zip(groups, values, strict=True)


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
                group.setdefault("initial_lr", _copied(group["lr"]))
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

    def get_lr(self) -> list[Any]:
        """The rates of epoch `last_epoch`, one per group."""
        raise NotImplementedError(f"{type(self).__name__} defines no get_lr()")

    def get_last_lr(self) -> list[Any]:
        """The rates that were set last, one per group: copies where they are tensors."""
        return self._last_lr

    def step(self) -> None:
        """Set the rates of the next epoch; to be called after the optimizer's steps."""
        if self._step_count == 1 and not self.optimizer._stepped:
            warn(
                "Detected call of `lr_scheduler.step()` before `optimizer.step()`. Call them in the opposite order: "
                "otherwise the first value of the schedule is skipped."
            )
        self._step_count += 1
        self.last_epoch += 1
        self._get_lr_called_within_step = True
        try:
            rates = self.get_lr()
        finally:
            self._get_lr_called_within_step = False
        for group, rate in _together(self.optimizer.param_groups, rates):
            _set_rate(group, rate)
        self._last_lr = _rates(self.optimizer)

    def state_dict(self) -> dict[str, Any]:
        """Everything but the optimizer."""
        return {key: value for key, value in self.__dict__.items() if key != "optimizer"}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Restore what `state_dict()` returned; the optimizer's rates are part of its own state dict."""
        self.__dict__.update(state_dict)

    def _scaled(self, factor: float) -> list[Any]:
        return [group["lr"] * factor for group in self.optimizer.param_groups]


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
        if isinstance(lr_lambda, (list, tuple)):
            if len(lr_lambda) != groups:
                raise ValueError(f"Expected {groups} lr_lambdas, but got {len(lr_lambda)}")
            self.lr_lambdas: list[Callable[[int], float]] = list(lr_lambda)
        else:
            self.lr_lambdas = [lr_lambda] * groups  # type: ignore[list-item]
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[Any]:
        """The rates of epoch `last_epoch`."""
        return [base * factor(self.last_epoch) for factor, base in _together(self.lr_lambdas, self.base_lrs)]

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

    def get_lr(self) -> list[Any]:
        """The rates of epoch `last_epoch`."""
        if self.last_epoch == 0 or self.last_epoch % self.step_size != 0:
            return _rates(self.optimizer)
        return self._scaled(self.gamma)


class MultiStepLR(LRScheduler):
    """Multiplies the rate by `gamma` at each of the epochs `milestones`."""

    def __init__(
        self, optimizer: Optimizer, milestones: Iterable[int], gamma: float = 0.1, last_epoch: int = -1
    ) -> None:
        self.milestones = Counter(milestones)
        self.gamma = gamma
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[Any]:
        """The rates of epoch `last_epoch`."""
        if self.last_epoch not in self.milestones:
            return _rates(self.optimizer)
        return self._scaled(self.gamma ** self.milestones[self.last_epoch])


class ExponentialLR(LRScheduler):
    """Multiplies the rate by `gamma` at every epoch."""

    def __init__(self, optimizer: Optimizer, gamma: float, last_epoch: int = -1) -> None:
        self.gamma = gamma
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[Any]:
        """The rates of epoch `last_epoch`."""
        return _rates(self.optimizer) if self._is_initial else self._scaled(self.gamma)


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
        if start_factor > 1.0 or start_factor <= 0:
            raise ValueError("Starting multiplicative factor expected to be greater than 0 and less or equal to 1.")
        if end_factor > 1.0 or end_factor < 0:
            raise ValueError("Ending multiplicative factor expected to be between 0 and 1.")
        self.start_factor = start_factor
        self.end_factor = end_factor
        self.total_iters = total_iters
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[Any]:
        """The rates of epoch `last_epoch`."""
        if self.last_epoch == 0:
            return self._scaled(self.start_factor)
        if self._is_initial or self.last_epoch > self.total_iters:
            return _rates(self.optimizer)
        rise = self.end_factor - self.start_factor
        before = self.total_iters * self.start_factor + (self.last_epoch - 1) * rise
        return self._scaled(1.0 + rise / before)


class CosineAnnealingLR(LRScheduler):
    """Brings the rate down to `eta_min` in `T_max` epochs along half a cosine wave, then up again, and so on."""

    def __init__(self, optimizer: Optimizer, T_max: int, eta_min: float = 0.0, last_epoch: int = -1) -> None:
        self.T_max = T_max
        self.eta_min = eta_min
        super().__init__(optimizer, last_epoch)

    def _height(self, epoch: int) -> float:
        return 1 + math.cos(math.pi * epoch / self.T_max)

    def get_lr(self) -> list[Any]:
        """The rates of epoch `last_epoch`."""
        rates = _rates(self.optimizer)
        if self._is_initial:
            return rates
        if (self.last_epoch - 1 - self.T_max) % (2 * self.T_max) == 0:
            # at the bottom of the wave the rate's distance from `eta_min` is 0 and cannot be scaled
            rise = 1 - math.cos(math.pi / self.T_max)
            return [rate + (base - self.eta_min) * rise / 2 for base, rate in _together(self.base_lrs, rates)]
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
            raise ValueError("mode " + mode + " is unknown!")
        if threshold_mode not in ("rel", "abs"):
            raise ValueError("threshold mode " + threshold_mode + " is unknown!")
        groups = len(optimizer.param_groups)
        bounds = list(min_lr) if isinstance(min_lr, (list, tuple)) else None
        if bounds is not None and len(bounds) != groups:
            raise ValueError(f"expected {groups} min_lrs, got {len(bounds)}")
        # in PyTorch's order, which is that of the keys of a state dict
        self.factor, self.optimizer = factor, optimizer
        self.default_min_lr = min_lr if bounds is None else None
        self.min_lrs: list[Any] = [min_lr] * groups if bounds is None else bounds
        self.patience, self.cooldown, self.eps = patience, cooldown, eps
        self.last_epoch, self._last_lr = 0, _rates(optimizer)
        self.mode_worse = math.inf if mode == "min" else -math.inf
        self.mode, self.threshold, self.threshold_mode = mode, threshold, threshold_mode
        self.best = self.mode_worse
        self.cooldown_counter = self.num_bad_epochs = 0

    @property
    def in_cooldown(self) -> bool:
        """Whether a reduction was made less than `cooldown` epochs ago."""
        return self.cooldown_counter > 0

    def _is_better(self, value: float) -> bool:
        lower, threshold = self.mode == "min", self.threshold
        if self.threshold_mode == "rel":
            bound = self.best * (1.0 - threshold if lower else threshold + 1.0)
        else:
            bound = self.best - threshold if lower else self.best + threshold
        return value < bound if lower else value > bound

    def step(self, metrics: Any) -> None:  # type: ignore[override]
        """Evaluate the measured quantity of an epoch, a number or a tensor with one element."""
        value = float(metrics)
        self.last_epoch += 1
        if better := self._is_better(value):
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
