"""Schedules made of others: one after the other, or all at once."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from typing import Any

from ..optimizer import Optimizer
from .base import LRScheduler, rates, set_rate
from .plateau import ReduceLROnPlateau


class _Combined(LRScheduler):
    """A schedule of several."""

    _schedulers: Sequence[LRScheduler]

    def _check(self, schedulers: Sequence[LRScheduler], optimizer: Optimizer) -> None:
        name = type(self).__name__
        for position, each in enumerate(schedulers):
            if not hasattr(each, "optimizer"):
                raise TypeError(f"{name} at index {position} should have `optimizer` as its attribute.")
            if isinstance(each, ReduceLROnPlateau):
                raise ValueError(
                    f"{name} does not support `ReduceLROnPlateau` scheduler as it requires additional kwargs to be "
                    f"specified when calling `step`, but got one at index {position} in the given schedulers sequence."
                )
            if optimizer != each.optimizer:
                raise ValueError(
                    f"{name} expects all schedulers to belong to the same optimizer, but got scheduler "
                    f"{type(each).__name__} at index {position} has {each.optimizer}, which is different from "
                    f"{type(optimizer).__name__}."
                )

    def state_dict(self) -> dict[str, Any]:
        """Everything but the optimizer; of the schedules their states."""
        return {**super().state_dict(), "_schedulers": [each.state_dict() for each in self._schedulers]}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Restore what `state_dict()` returned."""
        super().load_state_dict({key: value for key, value in state_dict.items() if key != "_schedulers"})
        for each, state in zip(self._schedulers, state_dict["_schedulers"], strict=True):
            each.load_state_dict(state)


class SequentialLR(_Combined):
    """Runs schedules one after the other: the next one begins at each of the epochs `milestones`.

    >>> import tritensor as torch
    >>> sgd = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=1.0)
    >>> warm = torch.optim.lr_scheduler.ConstantLR(sgd, factor=0.5, total_iters=9)
    >>> then = torch.optim.lr_scheduler.StepLR(sgd, step_size=1, gamma=0.125)
    >>> schedule = torch.optim.lr_scheduler.SequentialLR(sgd, [warm, then], milestones=[2])
    >>> for _ in range(4):
    ...     print(schedule.get_last_lr())
    ...     sgd.step()
    ...     schedule.step()
    [0.5]
    [0.5]
    [1.0]
    [0.125]

    Raises:
        ValueError: no schedules, one of another optimizer, one that needs a measured quantity, or another number of
            milestones than one less than of schedules.
    """

    def __init__(
        self, optimizer: Optimizer, schedulers: list[LRScheduler], milestones: list[int], last_epoch: int = -1
    ) -> None:
        if len(schedulers) < 1:
            raise ValueError(f"{type(self).__name__} expects at least one scheduler, but got no scheduler.")
        self._check(schedulers, optimizer)
        if len(milestones) != len(schedulers) - 1:
            raise ValueError(
                "Sequential Schedulers expects number of schedulers provided to be one more than the number of "
                f"milestone points, but got number of schedulers {len(schedulers)} and the number of milestones to be "
                f"equal to {len(milestones)}"
            )
        self._schedulers, self._milestones = schedulers, milestones
        self.last_epoch, self.optimizer = last_epoch + 1, optimizer
        # each schedule made its first step when it was made; only the first one's counts
        for group in optimizer.param_groups:
            set_rate(group, group["initial_lr"])
        self.recursive_undo()
        first = schedulers[bisect_right(milestones, 0)]
        first._initial_step()
        self._last_lr = first.get_last_lr()

    def recursive_undo(self, sched: LRScheduler | None = None) -> None:
        """Take back the first steps of all schedules, those of schedules among them too."""
        schedule = self if sched is None else sched
        if isinstance(schedule, _Combined):
            for each in schedule._schedulers:
                self.recursive_undo(each)
        else:
            schedule.last_epoch -= 1

    def step(self) -> None:  # type: ignore[override]
        """Set the rates of the next epoch; to be called after the optimizer's steps."""
        self.last_epoch += 1
        position = bisect_right(self._milestones, self.last_epoch)
        now = self._schedulers[position]
        if position and self._milestones[position - 1] == self.last_epoch:
            now._update_lr(0)
        else:
            now.step()
        self._last_lr = now.get_last_lr()


class ChainedScheduler(_Combined):
    """Chains learning rate schedules: each multiplies the rate that the one before has set.

    Raises:
        ValueError: no schedules, one of another optimizer, or one that needs a measured quantity.
    """

    def __init__(self, schedulers: Sequence[LRScheduler], optimizer: Optimizer | None = None) -> None:
        if len(schedulers) < 1:
            raise ValueError(
                f"{type(self).__name__} expects at least one scheduler to be chained, but got no scheduler."
            )
        optimizer = optimizer or schedulers[0].optimizer
        self._check(schedulers, optimizer)
        self._schedulers, self.optimizer = schedulers, optimizer
        self._last_lr = rates(optimizer)

    def step(self) -> None:  # type: ignore[override]
        """Step all of them; to be called after the optimizer's steps."""
        for each in self._schedulers:
            each.step()
        self._last_lr = rates(self.optimizer)
