"""Stochastic weight averaging (SWA) and exponential moving averages (EMA) of a model.

From Izmailov et al., "Averaging Weights Leads to Wider Optima and Better Generalization", 2018.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from copy import deepcopy
from itertools import chain
from typing import Any

from ..autograd.mode import no_grad
from ..functional.creation.creation import tensor
from ..kernels.optimizer.averaging import average
from ..kernels.optimizer.multi_tensor import Tables
from ..nn.batch_normalization import _BatchNorm
from ..nn.module import Module
from ..tensors import Tensor
from ..types import Device
from ..types.dtypes import int64
from .lr_scheduler.base import LRScheduler, each_group
from .optimizer import Optimizer

__all__ = ["SWALR", "AveragedModel", "get_ema_avg_fn", "get_ema_multi_avg_fn", "get_swa_avg_fn", "get_swa_multi_avg_fn"]
__all__ += ["update_bn"]

Average = Callable[[Tensor, Tensor, Any], Tensor]
Averages = Callable[[list[Tensor], list[Tensor], Any], None]


def _check_decay(decay: float) -> None:
    if decay < 0.0 or decay > 1.0:
        raise ValueError(f"Invalid decay value {decay} provided. Please provide a value in [0,1] range.")


def _moved(tables: Tables, averages: list[Tensor], values: list[Tensor], weight: float, kept: float) -> None:
    """Move averages, all of one device and dtype, towards values by a share of the way, of which `kept` is the rest."""
    first = averages[0]
    if first.is_cuda and first.is_floating_point():
        entries: Any = list(zip(averages, values, strict=True))
        tables.step((first.device, first.dtype), average, {"weight": weight}, entries, lambda: entries)
        return
    for each, value in zip(averages, values, strict=True):
        if each.is_floating_point():
            each.lerp_(value, weight)
        else:
            each.copy_(each * kept + value * weight)


def get_ema_multi_avg_fn(decay: float = 0.999) -> Averages:
    """The function that moves averages in place to `decay` of themselves and the rest of the values.

    Raises:
        ValueError: a decay outside 0 to 1.
    """
    _check_decay(decay)
    tables = Tables()

    @no_grad()
    def ema_update(ema_param_list: list[Tensor], current_param_list: list[Tensor], _: Any) -> None:
        _moved(tables, ema_param_list, current_param_list, 1 - decay, decay)

    return ema_update


def get_swa_multi_avg_fn() -> Averages:
    """The function that adds values to the means of as many as its last argument says, in place."""
    tables = Tables()

    @no_grad()
    def swa_update(averaged_param_list: list[Tensor], current_param_list: list[Tensor], num_averaged: Any) -> None:
        count = int(num_averaged)
        _moved(tables, averaged_param_list, current_param_list, 1 / (count + 1), count / (count + 1))

    return swa_update


def get_ema_avg_fn(decay: float = 0.999) -> Average:
    """The function that returns `decay` of an average and the rest of a value.

    Raises:
        ValueError: a decay outside 0 to 1.
    """
    _check_decay(decay)

    @no_grad()
    def ema_update(ema_param: Tensor, current_param: Tensor, num_averaged: Any) -> Tensor:
        return decay * ema_param + (1 - decay) * current_param

    return ema_update


def get_swa_avg_fn() -> Average:
    """The function that returns the mean of so many values and one more."""

    @no_grad()
    def swa_update(averaged_param: Tensor, current_param: Tensor, num_averaged: Any) -> Tensor:
        return averaged_param + (current_param - averaged_param) / (num_averaged + 1)

    return swa_update


class AveragedModel(Module):
    """A copy of a model whose parameters are the average of the model's at each call of `update_parameters`.

    >>> import tritensor as torch
    >>> model = torch.nn.Linear(1, 1, bias=False)
    >>> averaged = torch.optim.swa_utils.AveragedModel(model)
    >>> for value in (1.0, 3.0):
    ...     _ = torch.nn.init.constant_(model.weight, value)
    ...     averaged.update_parameters(model)
    >>> averaged.module.weight.item()
    2.0

    Args:
        model: the model; its first update is a copy.
        device: where the copy is; where the model is unless given.
        avg_fn: of an average, a parameter and the number of updates, the next average; the mean unless given.
        multi_avg_fn: the same for lists of one device and dtype, in place.
        use_buffers: average the buffers too, which are copied otherwise.

    Raises:
        AssertionError: both functions are given.
    """

    n_averaged: Tensor

    def __init__(
        self,
        model: Module,
        device: Device = None,
        avg_fn: Average | None = None,
        multi_avg_fn: Averages | None = None,
        use_buffers: bool = False,
    ) -> None:
        super().__init__()
        if avg_fn is not None and multi_avg_fn is not None:
            raise AssertionError("Only one of avg_fn and multi_avg_fn should be provided")
        self.module = deepcopy(model)
        if device is not None:
            self.module = self.module.to(device)
        self.register_buffer("n_averaged", tensor(0, dtype=int64, device=device))
        self.avg_fn, self.multi_avg_fn, self.use_buffers = avg_fn, multi_avg_fn, use_buffers

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Returns what the averaged model does."""
        return self.module(*args, **kwargs)

    def update_parameters(self, model: Module) -> None:
        """Take the parameters of a model into the average."""

        def parts(whole: Module) -> Iterable[Tensor]:
            return chain(whole.parameters(), whole.buffers()) if self.use_buffers else whole.parameters()

        pairs = [
            (ours.detach(), theirs.detach().to(ours.device))
            for ours, theirs in zip(parts(self.module), parts(model), strict=False)
        ]
        groups: dict[Any, tuple[list[Tensor], list[Tensor]]] = {}
        for ours, theirs in pairs:
            group = groups.setdefault((ours.device, ours.dtype), ([], []))
            group[0].append(ours)
            group[1].append(theirs)
        first = bool(self.n_averaged == 0)
        for (place, _), (averages, values) in groups.items():
            self._average(averages, values, None if first else self.n_averaged.to(place))
        if not self.use_buffers:
            for kept, given in zip(self.module.buffers(), model.buffers(), strict=True):
                kept.detach().copy_(given.detach().to(kept.device))
        self.n_averaged += 1

    def _average(self, averages: list[Tensor], values: list[Tensor], count: Tensor | None) -> None:
        """Take values of one device and dtype into their averages, after `count` others."""
        if count is not None and self.avg_fn is None and (self.multi_avg_fn is not None or averages[0].is_cuda):
            (self.multi_avg_fn or get_swa_multi_avg_fn())(averages, values, count)
            return
        mean = self.avg_fn or get_swa_avg_fn()
        for each, value in zip(averages, values, strict=True):
            each.copy_(value if count is None else mean(each, value, count))


@no_grad()
def update_bn(loader: Iterable[Any], model: Module, device: Device = None) -> None:
    """Compute the running statistics of a model's batch normalizations anew, from one pass over its data.

    Args:
        loader: batches, or lists and tuples whose first item is the batch.
        model: the model; it is called in training mode and left in its own.
        device: where batches are moved to; nowhere unless given.
    """
    momenta: dict[_BatchNorm, Any] = {}
    for module in model.modules():
        if isinstance(module, _BatchNorm):
            module.reset_running_stats()
            momenta[module] = module.momentum
    if not momenta:
        return
    training = model.training
    model.train()
    for module in momenta:
        module.momentum = None
    for batch in loader:
        batch = batch[0] if isinstance(batch, (list, tuple)) else batch
        model(batch if device is None else batch.to(device))
    for module, momentum in momenta.items():
        module.momentum = momentum
    model.train(training)


class SWALR(LRScheduler):
    """Anneals the rate to a constant one in some epochs, for stochastic weight averaging (SWA).

    Args:
        optimizer: the optimizer whose rates are set.
        swa_lr: the constant rate; one number, or one for each group.
        anneal_epochs: how many epochs it takes.
        anneal_strategy: "cos" or "linear".
        last_epoch: the last epoch that was trained, to resume.

    Raises:
        ValueError: another number of rates than of groups, an unknown strategy, or epochs below 0.
    """

    def __init__(
        self,
        optimizer: Optimizer,
        swa_lr: float | list[float],
        anneal_epochs: int = 10,
        anneal_strategy: str = "cos",
        last_epoch: int = -1,
    ) -> None:
        for rate, group in zip(each_group("swa_lr", optimizer, swa_lr), optimizer.param_groups, strict=True):
            group["swa_lr"] = rate
        if anneal_strategy not in ("cos", "linear"):
            raise ValueError(f"anneal_strategy must be one of 'cos' or 'linear', instead got {anneal_strategy}")
        if not isinstance(anneal_epochs, int) or anneal_epochs < 0:
            raise ValueError(f"anneal_epochs must be equal or greater than 0, got {anneal_epochs}")
        self._anneal_strategy, self.anneal_epochs = anneal_strategy, anneal_epochs
        super().__init__(optimizer, last_epoch)

    def _share(self, step: int) -> float:
        t = max(0, min(1, step / max(1, self.anneal_epochs)))
        return (1 - math.cos(math.pi * t)) / 2 if self._anneal_strategy == "cos" else t

    def _next_rates(self) -> list[Any]:
        step = max(1, self._step_count - 1) if self.anneal_epochs == 0 else self._step_count - 1
        before, now = self._share(step - 1), self._share(step)
        found = []
        for group in self.optimizer.param_groups:
            rate, last = group["lr"], group["swa_lr"]
            first = last if before == 1 else (rate - before * last) / (1 - before)
            found.append(last * now + first * (1 - now))
        return found
