"""The schedule that waits for a measured quantity to get no better."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from ..optimizer import Optimizer
from .base import LRScheduler, check_optimizer, rates, set_rate, warn_of_epoch


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
        check_optimizer(optimizer)
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
        self.last_epoch, self._last_lr = 0, rates(optimizer)
        self.mode_worse = math.inf if mode == "min" else -math.inf
        self.mode, self.threshold, self.threshold_mode = mode, threshold, threshold_mode
        self.best = self.mode_worse
        self.cooldown_counter = self.num_bad_epochs = 0

    @property
    def in_cooldown(self) -> bool:
        """True if a reduction was made less than `cooldown` epochs ago."""
        return self.cooldown_counter > 0

    def _is_better(self, value: float) -> bool:
        lower, threshold = self.mode == "min", self.threshold
        if self.threshold_mode == "rel":
            bound = self.best * (1.0 - threshold if lower else threshold + 1.0)
        else:
            bound = self.best - threshold if lower else self.best + threshold
        return value < bound if lower else value > bound

    def step(self, metrics: Any, epoch: int | None = None) -> None:  # type: ignore[override]
        """Evaluate the measured quantity of an epoch, a number or a tensor with one element.

        Args:
            epoch: the epoch, where it is not the next one; deprecated.
        """
        value = float(metrics)
        if epoch is not None:
            warn_of_epoch()
        self.last_epoch = self.last_epoch + 1 if epoch is None else epoch
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
        self._last_lr = rates(self.optimizer)

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
                set_rate(group, new)
