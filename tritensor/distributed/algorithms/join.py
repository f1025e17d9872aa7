"""Uneven inputs: processes that have run out of them take part in the collectives of those that have not."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, NamedTuple

from ...errors import require, warn
from ...functional.creation.creation import full
from ...types import devices
from ..collectives import all_reduce
from ..groups import get_rank
from ..process_group import ProcessGroup, Work

__all__ = ["Join", "JoinHook", "Joinable"]
_MANY = 1000  # iterations that a process runs for others without a warning


class JoinHook:
    """The actions of a process for a `Joinable` once its own inputs are used up."""

    def main_hook(self) -> None:
        """Start the collectives of one iteration; called for every iteration of the processes that have inputs."""

    def post_hook(self, is_last_joiner: bool) -> None:
        """Called once when no process has inputs any more; `is_last_joiner` in those that had the most."""


class _Config(NamedTuple):
    enable: bool = False
    throw_on_early_termination: bool = False
    is_first_joinable: bool = False


class Joinable(ABC):
    """A class with collectives in every iteration, which calls `Join.notify_join_context(self)` before them."""

    @abstractmethod
    def __init__(self) -> None:
        super().__init__()
        self._join_config = _Config()

    @abstractmethod
    def join_hook(self, **kwargs: Any) -> JoinHook:
        """The hook of this object; `kwargs` are those of `Join`, for all of its objects."""

    @property
    @abstractmethod
    def join_device(self) -> devices.device:
        """The device of the tensors by which processes tell each other whether they have inputs."""

    @property
    @abstractmethod
    def join_process_group(self) -> Any:
        """The processes."""


class Join:
    """A block of training in which processes may have different numbers of inputs.

        with Join([model]):
            for input in inputs:
                loss_of(model(input)).backward()

    Args:
        joinables: objects with collectives in every iteration; the first one tells the others of each iteration.
        enable: false for a block without any of this, where inputs are even.
        throw_on_early_termination: raise RuntimeError in all processes as soon as one has no more inputs.
        kwargs: for `join_hook` of each object.

    Raises:
        ValueError: no objects, or objects of different process groups.
    """

    def __init__(
        self,
        joinables: Sequence[Joinable],
        enable: bool = True,
        throw_on_early_termination: bool = False,
        **kwargs: Any,
    ) -> None:
        require(joinables, ValueError, "The join context manager requires at least one joinable")
        self._joinables, self._hooks = joinables, [each.join_hook(**kwargs) for each in joinables]
        for place, each in enumerate(joinables):
            each._join_config = _Config(enable, throw_on_early_termination, place == 0)
        self._group, self._device = joinables[0].join_process_group, joinables[0].join_device
        same = all(each.join_process_group == self._group for each in joinables)
        require(same, ValueError, "Using join context manager with multiple process groups")

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: type[BaseException] | None, *error: object) -> None:
        enable, throws, _ = self._joinables[0]._join_config
        rounds = 0
        while enable and kind is None and _total(0, self._group, self._device):
            if throws:
                _total(1, self._group, self._device)
                raise RuntimeError(f"Rank {get_rank(self._group)} exhausted all inputs.")
            if rounds == _MANY:
                warn(
                    f"Detected uneven input skew of greater than {_MANY}. This means that rank "
                    f"{get_rank(self._group)} has at least {_MANY} fewer inputs than other currently-active ranks. "
                    "This level of skew could lead to performance degradation during training."
                )
            rounds += 1
            for hook in self._hooks:
                hook.main_hook()
        for hook in self._hooks if enable and kind is None else ():
            hook.post_hook(rounds == 0)
        for each in self._joinables:
            each._join_config = _Config()

    @staticmethod
    def notify_join_context(joinable: Joinable) -> Work | None:
        """Tell processes without inputs that this one begins an iteration; to be called before its collectives.

        Returns a collective for the first object of an enabled `Join`, whose result is the number of processes with
        inputs, and None for others. Raises RuntimeError if there are any without, with `throw_on_early_termination`.
        """
        enable, throws, is_first = joinable._join_config
        if not (enable and is_first):
            return None
        group, device = joinable.join_process_group, joinable.join_device
        work = all_reduce(full((1,), 1.0, device=device), group=group, async_op=True)
        if throws and _total(0, group, device):
            raise RuntimeError("Detected at least one rank that exhausted inputs. Throwing across all ranks.")
        return work


def _total(value: float, group: ProcessGroup, device: devices.device) -> float:
    """The sum over all processes."""
    total = full((1,), float(value), device=device)
    all_reduce(total, group=group)
    return float(total.item())
