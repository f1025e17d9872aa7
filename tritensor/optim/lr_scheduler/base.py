"""The base class of learning rate schedules, and functions that read and set rates."""

from __future__ import annotations

import types
from collections.abc import Iterable, Sequence
from typing import Any

from ...autograd.mode import no_grad
from ...errors import explain, require, warn
from ...tensors import Tensor
from ..optimizer import Optimizer


def copied(rate: Any) -> Any:
    """A rate as it is, a number or a tensor, but no tensor that the optimizer changes."""
    return rate.clone() if isinstance(rate, Tensor) else rate


def set_rate(group: dict[str, Any], rate: Any) -> None:
    """Set a group's rate; a tensor keeps its memory, where a captured step reads it."""
    if isinstance(group["lr"], Tensor):
        with no_grad():
            group["lr"].fill_(rate.squeeze() if isinstance(rate, Tensor) else rate)
    else:
        group["lr"] = rate


def rates(optimizer: Optimizer, key: str = "lr") -> list[Any]:
    """The rates of an optimizer's groups."""
    return [copied(group[key]) for group in optimizer.param_groups]


def each_group(name: str, optimizer: Optimizer, value: Any) -> list[Any]:
    """An option's value for each group, of one value or of one for each.

    Raises:
        ValueError: another number of values.
    """
    groups = len(optimizer.param_groups)
    if not isinstance(value, (list, tuple)):
        value = [value] * groups
    elif len(value) != groups:
        raise ValueError(
            f"{name} must have the same length as optimizer.param_groups. {name} has {len(value)} values, "
            f"param_groups has {groups}."
        )
    return [copied(each) for each in value]


def together(groups: Sequence[Any], values: Sequence[Any]) -> Iterable[tuple[Any, Any]]:
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


def check_optimizer(value: object) -> None:
    """Raise TypeError for what is no optimizer."""
    require(isinstance(value, Optimizer), TypeError, "{} is not an Optimizer", type(value).__name__)


def attributes_of(function: Any) -> dict[str, Any] | None:
    """The attributes of a callable object that are saved; none of a function."""
    return None if function is None or isinstance(function, types.FunctionType) else function.__dict__.copy()


def warn_of_epoch() -> None:
    """Warn of the argument `epoch` of `step`."""
    warn(
        "The epoch parameter in `scheduler.step()` was not necessary and is being deprecated where possible. Please "
        "use `scheduler.step()` to step the scheduler. During the deprecation, if epoch is different from None, the "
        "closed form is used instead of the new chainable form, where available."
    )


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
    optimizer: Optimizer
    _last_lr: list[Any]

    def __init__(self, optimizer: Optimizer, last_epoch: int = -1) -> None:
        check_optimizer(optimizer)
        for position, group in enumerate(optimizer.param_groups):
            if last_epoch == -1:
                group.setdefault("initial_lr", copied(group["lr"]))
            elif "initial_lr" not in group:
                raise KeyError(
                    f"param 'initial_lr' is not specified in param_groups[{position}] when resuming scheduler with "
                    "last_epoch >= 0: load the optimizer's state dict first, or start with last_epoch=-1"
                )
        self.optimizer = optimizer
        self.base_lrs = rates(optimizer, "initial_lr")
        self.last_epoch = last_epoch
        self._initial_step()

    def _initial_step(self) -> None:
        self._step_count = 0
        self._is_initial = True
        try:
            self.step()
        finally:
            self._is_initial = False

    def get_lr(self) -> list[Any]:
        """The rates of epoch `last_epoch`, one per group: what `step` sets. `get_last_lr` says what was set."""
        if not self._get_lr_called_within_step:
            warn("To get the last learning rate computed by the scheduler, please use `get_last_lr()`.")
        return self._next_rates()

    def _next_rates(self) -> list[Any]:
        raise NotImplementedError(f"{type(self).__name__} defines no get_lr()")

    def get_last_lr(self) -> list[Any]:
        """The rates that were set last, one per group: copies where they are tensors."""
        return self._last_lr

    def step(self, epoch: int | None = None) -> None:
        """Set the rates of the next epoch; to be called after the optimizer's steps.

        Args:
            epoch: the epoch, where it is not the next one; deprecated.
        """
        if self._step_count == 1 and not self.optimizer._stepped:
            warn(
                "Detected call of `lr_scheduler.step()` before `optimizer.step()`. Call them in the opposite order: "
                "otherwise the first value of the schedule is skipped."
            )
        self._step_count += 1
        if epoch is not None:
            warn_of_epoch()
        self._update_lr(epoch)

    def _update_lr(self, epoch: int | None = None) -> None:
        self.last_epoch = self.last_epoch + 1 if epoch is None else epoch
        closed = None if epoch is None else getattr(self, "_get_closed_form_lr", None)
        self._get_lr_called_within_step = True
        try:
            found = self.get_lr() if closed is None else closed()
        finally:
            self._get_lr_called_within_step = False
        for group, rate in together(self.optimizer.param_groups, found):
            set_rate(group, rate)
        self._last_lr = rates(self.optimizer)

    def state_dict(self) -> dict[str, Any]:
        """Everything but the optimizer."""
        return {key: value for key, value in self.__dict__.items() if key != "optimizer"}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Restore what `state_dict()` returned; the optimizer's rates are part of its own state dict."""
        self.__dict__.update(state_dict)

    def _scaled(self, factor: float) -> list[Any]:
        return [group["lr"] * factor for group in self.optimizer.param_groups]


class _LRScheduler(LRScheduler):
    """The base by the name that it had before PyTorch 2.0, from which older programs derive theirs."""
