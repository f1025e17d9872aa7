"""Schedules in which the rate falls by a formula."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from ...errors import require
from ..optimizer import Optimizer
from .base import LRScheduler, attributes_of, rates, together

Functions = Callable[[int], float] | Sequence[Callable[[int], float]]


class _Computed(LRScheduler):
    """A schedule of functions of the epoch, one for each group."""

    def __init__(self, optimizer: Optimizer, lr_lambda: Functions, last_epoch: int = -1) -> None:
        groups = len(optimizer.param_groups)
        if isinstance(lr_lambda, (list, tuple)):
            require(len(lr_lambda) == groups, ValueError, "Expected {} lr_lambdas, but got {}", groups, len(lr_lambda))
            self.lr_lambdas: list[Callable[[int], float]] = list(lr_lambda)
        else:
            self.lr_lambdas = [lr_lambda] * groups  # type: ignore[list-item]
        super().__init__(optimizer, last_epoch)

    def state_dict(self) -> dict[str, Any]:
        """Everything but the optimizer and functions; of callable objects, their attributes."""
        return {**super().state_dict(), "lr_lambdas": [attributes_of(factor) for factor in self.lr_lambdas]}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Restore what `state_dict()` returned."""
        super().load_state_dict({key: value for key, value in state_dict.items() if key != "lr_lambdas"})
        for factor, attributes in zip(self.lr_lambdas, state_dict["lr_lambdas"], strict=True):
            if attributes is not None:
                factor.__dict__.update(attributes)


class LambdaLR(_Computed):
    """The initial rate times `lr_lambda(epoch)`; one function, or one for each group.

    >>> import tritensor as torch
    >>> sgd = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=0.5)
    >>> torch.optim.lr_scheduler.LambdaLR(sgd, lambda epoch: 1 / (epoch + 2)).get_last_lr()
    [0.25]

    Raises:
        ValueError: the number of functions is not that of the groups.
    """

    def _next_rates(self) -> list[Any]:
        return [base * factor(self.last_epoch) for factor, base in together(self.lr_lambdas, self.base_lrs)]


class MultiplicativeLR(_Computed):
    """Multiplies the rate by `lr_lambda(epoch)` at every epoch; one function, or one for each group.

    Raises:
        ValueError: the number of functions is not that of the groups. TypeError: one is no function.
    """

    def __init__(self, optimizer: Optimizer, lr_lambda: Functions, last_epoch: int = -1) -> None:
        for each in lr_lambda if isinstance(lr_lambda, (list, tuple)) else (lr_lambda,):
            require(callable(each), TypeError, "lr_lambda should be a function, but got {}", type(each).__name__)
        super().__init__(optimizer, lr_lambda, last_epoch)

    def _next_rates(self) -> list[Any]:
        if self._is_initial:
            return rates(self.optimizer)
        pairs = together(self.lr_lambdas, self.optimizer.param_groups)
        return [group["lr"] * factor(self.last_epoch) for factor, group in pairs]


class _Scaled(LRScheduler):
    """A schedule whose rate at an epoch is the initial one times a factor."""

    def _factor(self) -> float:
        raise NotImplementedError

    def _get_closed_form_lr(self) -> list[Any]:
        factor = self._factor()
        return [base * factor for base in self.base_lrs]


class StepLR(_Scaled):
    """Multiplies the rate by `gamma` every `step_size` epochs."""

    def __init__(self, optimizer: Optimizer, step_size: int, gamma: float = 0.1, last_epoch: int = -1) -> None:
        self.step_size, self.gamma = step_size, gamma
        super().__init__(optimizer, last_epoch)

    def _next_rates(self) -> list[Any]:
        if self.last_epoch == 0 or self.last_epoch % self.step_size != 0:
            return rates(self.optimizer)
        return self._scaled(self.gamma)

    def _factor(self) -> float:
        return self.gamma ** (self.last_epoch // self.step_size)


class MultiStepLR(_Scaled):
    """Multiplies the rate by `gamma` at each of the epochs `milestones`."""

    def __init__(
        self, optimizer: Optimizer, milestones: Iterable[int], gamma: float = 0.1, last_epoch: int = -1
    ) -> None:
        self.milestones, self.gamma = Counter(milestones), gamma
        super().__init__(optimizer, last_epoch)

    def _next_rates(self) -> list[Any]:
        if self.last_epoch not in self.milestones:
            return rates(self.optimizer)
        return self._scaled(self.gamma ** self.milestones[self.last_epoch])

    def _factor(self) -> float:
        passed = bisect_right(sorted(self.milestones.elements()), self.last_epoch)
        return self.gamma**passed


class ConstantLR(_Scaled):
    """The initial rate times `factor` for `total_iters` epochs, then the initial rate.

    Raises:
        ValueError: a factor outside 0 to 1.
    """

    def __init__(
        self, optimizer: Optimizer, factor: float = 1.0 / 3, total_iters: int = 5, last_epoch: int = -1
    ) -> None:
        if factor > 1.0 or factor < 0:
            raise ValueError("Constant multiplicative factor expected to be between 0 and 1.")
        self.factor, self.total_iters = factor, total_iters
        super().__init__(optimizer, last_epoch)

    def _next_rates(self) -> list[Any]:
        if self.last_epoch == 0:
            return self._scaled(self.factor)
        return rates(self.optimizer) if self.last_epoch != self.total_iters else self._scaled(1.0 / self.factor)

    def _factor(self) -> float:
        return self.factor + (self.last_epoch >= self.total_iters) * (1 - self.factor)


class LinearLR(_Scaled):
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
        self.start_factor, self.end_factor, self.total_iters = start_factor, end_factor, total_iters
        super().__init__(optimizer, last_epoch)

    def _next_rates(self) -> list[Any]:
        if self.last_epoch == 0:
            return self._scaled(self.start_factor)
        if self._is_initial or self.last_epoch > self.total_iters:
            return rates(self.optimizer)
        rise = self.end_factor - self.start_factor
        before = self.total_iters * self.start_factor + (self.last_epoch - 1) * rise
        return self._scaled(1.0 + rise / before)

    def _factor(self) -> float:
        share = min(self.total_iters, self.last_epoch) / self.total_iters
        return self.start_factor + (self.end_factor - self.start_factor) * share


class ExponentialLR(_Scaled):
    """Multiplies the rate by `gamma` at every epoch."""

    def __init__(self, optimizer: Optimizer, gamma: float, last_epoch: int = -1) -> None:
        self.gamma = gamma
        super().__init__(optimizer, last_epoch)

    def _next_rates(self) -> list[Any]:
        return rates(self.optimizer) if self._is_initial else self._scaled(self.gamma)

    def _factor(self) -> float:
        return self.gamma**self.last_epoch


class PolynomialLR(_Scaled):
    """Brings the rate to zero in `total_iters` epochs: times the share of them that is left, to the power `power`."""

    def __init__(self, optimizer: Optimizer, total_iters: int = 5, power: float = 1.0, last_epoch: int = -1) -> None:
        self.total_iters, self.power = total_iters, power
        super().__init__(optimizer, last_epoch)

    def _next_rates(self) -> list[Any]:
        if self._is_initial or self.last_epoch > self.total_iters:
            return rates(self.optimizer)
        left, before = (1.0 - epoch / self.total_iters for epoch in (self.last_epoch, self.last_epoch - 1))
        return self._scaled((left / before) ** self.power)

    def _factor(self) -> float:
        share = min(self.total_iters, self.last_epoch) / self.total_iters
        return (1.0 - share) ** self.power


class CosineAnnealingLR(LRScheduler):
    """Brings the rate down to `eta_min` in `T_max` epochs along half a cosine wave, then up again, and so on."""

    def __init__(self, optimizer: Optimizer, T_max: int, eta_min: float = 0.0, last_epoch: int = -1) -> None:
        self.T_max, self.eta_min = T_max, eta_min
        super().__init__(optimizer, last_epoch)

    def _height(self, epoch: int) -> float:
        return 1 + math.cos(math.pi * epoch / self.T_max)

    def _next_rates(self) -> list[Any]:
        found = rates(self.optimizer)
        if self._is_initial:
            return found
        if self._step_count == 1 and self.last_epoch > 0:
            return self._get_closed_form_lr()
        if (self.last_epoch - 1 - self.T_max) % (2 * self.T_max) == 0:
            # at the bottom of the wave the rate's distance from `eta_min` is 0 and cannot be scaled
            rise = 1 - math.cos(math.pi / self.T_max)
            return [rate + (base - self.eta_min) * rise / 2 for base, rate in together(self.base_lrs, found)]
        ratio = self._height(self.last_epoch) / self._height(self.last_epoch - 1)
        return [ratio * (rate - self.eta_min) + self.eta_min for rate in found]

    def _get_closed_form_lr(self) -> list[Any]:
        height = self._height(self.last_epoch)
        return [self.eta_min + (base - self.eta_min) * height / 2 for base in self.base_lrs]
