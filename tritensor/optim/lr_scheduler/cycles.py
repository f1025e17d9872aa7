"""Schedules in which the rate goes up and down."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from ..optimizer import Optimizer
from .base import LRScheduler, attributes_of, check_optimizer, each_group, set_rate, together


class CosineAnnealingWarmRestarts(LRScheduler):
    """Brings the rate down to `eta_min` along half a cosine wave, and begins again at the initial one.

    Args:
        optimizer: the optimizer whose rates are set.
        T_0: the epochs of the first descent.
        T_mult: how many times longer than the one before each later one is.
        eta_min: the lowest rate.
        last_epoch: the last epoch that was trained, to resume.

    Raises:
        ValueError: `T_0` or `T_mult` is no positive whole number, or `eta_min` no number.
    """

    def __init__(
        self, optimizer: Optimizer, T_0: int, T_mult: int = 1, eta_min: float = 0.0, last_epoch: int = -1
    ) -> None:
        if T_0 <= 0 or not isinstance(T_0, int):
            raise ValueError(f"Expected positive integer T_0, but got {T_0}")
        if T_mult < 1 or not isinstance(T_mult, int):
            raise ValueError(f"Expected integer T_mult >= 1, but got {T_mult}")
        if not isinstance(eta_min, (float, int)):
            raise ValueError(f"Expected float or int eta_min, but got {eta_min} of type {type(eta_min)}")
        self.T_0 = self.T_i = T_0
        self.T_mult, self.eta_min, self.T_cur = T_mult, eta_min, last_epoch
        super().__init__(optimizer, last_epoch)

    def _next_rates(self) -> list[Any]:
        height = 1 + math.cos(math.pi * self.T_cur / self.T_i)
        return [self.eta_min + (base - self.eta_min) * height / 2 for base in self.base_lrs]

    def step(self, epoch: float | None = None) -> None:
        """Set the rates of the next epoch, or of an epoch and a part of it: `step(epoch + batch / batches)`.

        Raises:
            ValueError: an epoch below 0.
        """
        if epoch is None and self.last_epoch >= 0:
            epoch = self.last_epoch + 1
            self.T_cur += 1
            if self.T_cur >= self.T_i:
                self.T_cur, self.T_i = self.T_cur % self.T_i, self.T_i * self.T_mult
        else:
            self._go_to(epoch or 0)
        self._update_lr(math.floor(epoch or 0))

    def _go_to(self, epoch: float) -> None:
        if epoch < 0:
            raise ValueError(f"Expected non-negative epoch, but got {epoch}")
        if epoch < self.T_0:
            self.T_cur, self.T_i = epoch, self.T_0  # type: ignore[assignment]
        elif self.T_mult == 1:
            self.T_cur = epoch % self.T_0  # type: ignore[assignment]
        else:
            descents = int(math.log(epoch / self.T_0 * (self.T_mult - 1) + 1, self.T_mult))
            self.T_i = self.T_0 * self.T_mult**descents
            self.T_cur = epoch - self.T_0 * (self.T_mult**descents - 1) / (self.T_mult - 1)


class _WithMomentum(LRScheduler):
    """A schedule that moves momentum, or Adam's first beta, against the rate."""

    def _start_momentum(self, optimizer: Optimizer, base: list[Any], highest: list[Any], last_epoch: int) -> None:
        self.use_beta1 = "betas" in optimizer.defaults
        if last_epoch == -1:
            for low, high, group in zip(base, highest, optimizer.param_groups, strict=True):
                self._set_momentum(group, high)
                group["max_momentum"], group["base_momentum"] = high, low

    def _set_momentum(self, group: dict[str, Any], value: float) -> None:
        if self.use_beta1:
            group["betas"] = (value, *group["betas"][1:])
        else:
            group["momentum"] = value


def _check_momentum(optimizer: Optimizer) -> None:
    if "momentum" not in optimizer.defaults and "betas" not in optimizer.defaults:
        raise ValueError("optimizer must support momentum or beta1 with `cycle_momentum` option enabled")


_SCALES: dict[str, tuple[str, Callable[[float, float], float]]] = {
    "triangular": ("cycle", lambda gamma, x: 1.0),
    "triangular2": ("cycle", lambda gamma, x: 1 / 2.0 ** (x - 1)),
    "exp_range": ("iterations", lambda gamma, x: gamma**x),
}


class CyclicLR(_WithMomentum):
    """Cycles the rate up and down between two bounds, a step for each batch, by Smith (2017).

    Args:
        optimizer: the optimizer whose rates are set.
        base_lr, max_lr: the bounds; one number, or one for each group.
        step_size_up, step_size_down: the batches of a rise and of a descent, the same number unless given.
        mode: "triangular" keeps the height of the cycles, "triangular2" halves it after each, "exp_range" multiplies it
            by `gamma` after each batch.
        scale_fn: the height as a function, in place of the mode's.
        scale_mode: whether that is a function of the number of the "cycle", or of batches ("iterations").
        cycle_momentum: move the momentum from `max_momentum` down to `base_momentum` while the rate rises.
        last_epoch: the last batch, to resume.

    Raises:
        ValueError: an unknown mode, another number of bounds than of groups, or an optimizer without momentum.
    """

    def __init__(
        self,
        optimizer: Optimizer,
        base_lr: float | list[float],
        max_lr: float | list[float],
        step_size_up: int = 2000,
        step_size_down: int | None = None,
        mode: str = "triangular",
        gamma: float = 1.0,
        scale_fn: Callable[[float], float] | None = None,
        scale_mode: str = "cycle",
        cycle_momentum: bool = True,
        base_momentum: float | list[float] = 0.8,
        max_momentum: float | list[float] = 0.9,
        last_epoch: int = -1,
    ) -> None:
        check_optimizer(optimizer)
        lowest, self.max_lrs = each_group("base_lr", optimizer, base_lr), each_group("max_lr", optimizer, max_lr)
        if mode not in _SCALES and scale_fn is None:
            raise ValueError("mode is invalid and scale_fn is None")
        if cycle_momentum:
            _check_momentum(optimizer)
            self.base_momentums = each_group("base_momentum", optimizer, base_momentum)
            self.max_momentums = each_group("max_momentum", optimizer, max_momentum)
            self._start_momentum(optimizer, self.base_momentums, self.max_momentums, last_epoch)
        if last_epoch == -1:
            for rate, group in zip(lowest, optimizer.param_groups, strict=True):
                set_rate(group, rate)
        up = float(step_size_up)
        self.total_size = up + (up if step_size_down is None else float(step_size_down))
        self.step_ratio = up / self.total_size
        self.mode, self.gamma, self._scale_fn_custom, self.cycle_momentum = mode, gamma, scale_fn, cycle_momentum
        self.scale_mode = scale_mode if scale_fn is not None else _SCALES[mode][0]
        super().__init__(optimizer, last_epoch)
        self.base_lrs = lowest

    def scale_fn(self, x: float) -> float:
        """The height of a cycle, by its number or by that of batches."""
        return _SCALES[self.mode][1](self.gamma, x) if self._scale_fn_custom is None else self._scale_fn_custom(x)

    def _next_rates(self) -> list[Any]:
        cycle = math.floor(1 + self.last_epoch / self.total_size)
        x = 1.0 + self.last_epoch / self.total_size - cycle
        share = x / self.step_ratio if x <= self.step_ratio else (x - 1) / (self.step_ratio - 1)
        height = self.scale_fn(cycle if self.scale_mode == "cycle" else self.last_epoch)
        if self.cycle_momentum:
            bounds = zip(self.base_momentums, self.max_momentums, strict=True)
            momenta = [high - (high - low) * share * height for low, high in bounds]
            for group, value in together(self.optimizer.param_groups, momenta):
                self._set_momentum(group, value)
        return [low + (high - low) * share * height for low, high in zip(self.base_lrs, self.max_lrs, strict=True)]

    def state_dict(self) -> dict[str, Any]:
        """Everything but the optimizer and a function; of a callable object its attributes."""
        return {**super().state_dict(), "_scale_fn_custom": attributes_of(self._scale_fn_custom)}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Restore what `state_dict()` returned."""
        super().load_state_dict({key: value for key, value in state_dict.items() if key != "_scale_fn_custom"})
        if state_dict["_scale_fn_custom"] is not None:
            self._scale_fn_custom.__dict__.update(state_dict["_scale_fn_custom"])


class OneCycleLR(_WithMomentum):
    """The 1cycle policy: the rate up to `max_lr`, then far below the start, a step a batch, by Smith and Topin (2018).

    Args:
        optimizer: the optimizer whose rates are set.
        max_lr: the highest rate; one number, or one for each group.
        total_steps: the batches of the cycle; `epochs` times `steps_per_epoch` unless given.
        pct_start: the share of them in which the rate rises.
        anneal_strategy: "cos" or "linear".
        cycle_momentum: move the momentum from `max_momentum` down to `base_momentum` while the rate rises.
        div_factor: how many times lower than `max_lr` it begins.
        final_div_factor: how many times lower than at the beginning it ends.
        three_phase: descend to the first rate in as many steps as it rose in, and then to the last.
        last_epoch: the last batch, to resume.

    Raises:
        ValueError: no number of steps, a share outside 0 to 1, an unknown strategy, another number of rates than of
            groups, or an optimizer without momentum; and when more steps are made.
    """

    def __init__(
        self,
        optimizer: Optimizer,
        max_lr: float | list[float],
        total_steps: int | None = None,
        epochs: int | None = None,
        steps_per_epoch: int | None = None,
        pct_start: float = 0.3,
        anneal_strategy: str = "cos",
        cycle_momentum: bool = True,
        base_momentum: float | list[float] = 0.85,
        max_momentum: float | list[float] = 0.95,
        div_factor: float = 25.0,
        final_div_factor: float = 1e4,
        three_phase: bool = False,
        last_epoch: int = -1,
    ) -> None:
        check_optimizer(optimizer)
        if total_steps is None and (epochs is None or steps_per_epoch is None):
            raise ValueError("You must define either total_steps OR (epochs AND steps_per_epoch)")
        counts = {"total_steps": total_steps}
        if total_steps is None:
            counts = {"epochs": epochs, "steps_per_epoch": steps_per_epoch}
        for name, count in counts.items():
            if count is None or count <= 0 or not isinstance(count, int):
                raise ValueError(f"Expected positive integer {name}, but got {count}")
        self.total_steps = math.prod(counts.values())  # type: ignore[arg-type]
        if pct_start < 0 or pct_start > 1 or not isinstance(pct_start, float):
            raise ValueError(f"Expected float between 0 and 1 pct_start, but got {pct_start}")
        if anneal_strategy not in ("cos", "linear"):
            raise ValueError(f"anneal_strategy must be one of 'cos' or 'linear', instead got {anneal_strategy}")
        highest = each_group("max_lr", optimizer, max_lr)
        self.cycle_momentum, self._anneal_func_type = cycle_momentum, anneal_strategy
        if cycle_momentum:
            _check_momentum(optimizer)
            high = each_group("max_momentum", optimizer, max_momentum)
            self._start_momentum(optimizer, each_group("base_momentum", optimizer, base_momentum), high, last_epoch)
        turn = pct_start * self.total_steps
        ends = [(turn - 1, "max_lr", "base"), (self.total_steps - 1, "min_lr", "max")]
        if three_phase:
            ends.insert(1, (2 * turn - 2, "initial_lr", "max"))
        rate, momentum = "initial_lr", "max"
        self._schedule_phases: list[dict[str, Any]] = []
        for end, next_rate, next_momentum in ends:
            phase: dict[str, Any] = {"end_step": end, "start_lr": rate, "end_lr": next_rate}
            phase |= {"start_momentum": f"{momentum}_momentum", "end_momentum": f"{next_momentum}_momentum"}
            self._schedule_phases.append(phase)
            rate, momentum = next_rate, next_momentum
        if last_epoch == -1:
            for group, top in zip(optimizer.param_groups, highest, strict=True):
                group["initial_lr"], group["max_lr"] = top / div_factor, top
                group["min_lr"] = group["initial_lr"] / final_div_factor
        super().__init__(optimizer, last_epoch)

    def _between(self, start: float, end: float, share: float) -> Any:
        if self._anneal_func_type == "cos":
            return end + (start - end) / 2.0 * (math.cos(math.pi * share) + 1)
        return (end - start) * share + start

    def _next_rates(self) -> list[Any]:
        step, start = self.last_epoch, 0.0
        if step > self.total_steps:
            raise ValueError(f"Tried to step {step} times. The specified number of total steps is {self.total_steps}")
        for phase in self._schedule_phases:
            if step <= phase["end_step"] or phase is self._schedule_phases[-1]:
                break
            start = phase["end_step"]
        share = (step - start) / (phase["end_step"] - start)
        found = []
        for group in self.optimizer.param_groups:
            found.append(self._between(group[phase["start_lr"]], group[phase["end_lr"]], share))
            if self.cycle_momentum:
                ends = group[phase["start_momentum"]], group[phase["end_momentum"]]
                self._set_momentum(group, self._between(*ends, share))
        return found
