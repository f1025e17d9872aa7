"""`ZeroRedundancyOptimizer`: each process has the optimizer's state of a share of the parameters."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from .. import distributed as dist
from ..distributed.algorithms.join import Join, Joinable, JoinHook
from ..errors import UnsupportedError
from ..func.trees import tree_map
from ..nn.parallel.agreement import broadcast
from ..tensors import Tensor
from ..types import devices
from .optimizer import Optimizer

__all__ = ["ZeroRedundancyOptimizer"]

_LIMIT = 1 << 28  # bytes of parameters that are sent together


class _Steps(JoinHook):
    """Steps its share in the iterations of processes that still have inputs."""

    def __init__(self, optimizer: ZeroRedundancyOptimizer) -> None:
        self.optimizer = optimizer

    def main_hook(self) -> None:
        """One step of the others."""
        self.optimizer.step()


class ZeroRedundancyOptimizer(Optimizer, Joinable):
    """Let each process step its share of the parameters, and send them to the others (ZeRO, stage 1).

    The state of an optimizer is divided so among processes that have the same parameters and gradients, as those of
    `DistributedDataParallel`.

    Args:
        params: parameters, or groups of them.
        optimizer_class: the class of the optimizer of a share.
        process_group: the processes; all unless given.
        parameters_as_bucket_view: accepted, unused: parameters are sent from where they lie.
        overlap_with_ddp: not supported.
        defaults: options of `optimizer_class`.

    Attributes:
        optim: the optimizer of this process's share.

    Raises:
        UnsupportedError: `overlap_with_ddp` is set.
    """

    def __init__(
        self,
        params: Iterable[Any],
        optimizer_class: Callable[..., Optimizer],
        process_group: dist.ProcessGroup | None = None,
        parameters_as_bucket_view: bool = False,
        overlap_with_ddp: bool = False,
        **defaults: Any,
    ) -> None:
        if overlap_with_ddp:
            raise UnsupportedError("overlap_with_ddp is not supported", remedy="leave it False, and call step()")
        Joinable.__init__(self)
        self.process_group: Any = process_group or dist.group.WORLD
        self.rank, self.world_size = dist.get_rank(self.process_group), dist.get_world_size(self.process_group)
        self.optim: Optimizer | None = None
        self._gathered: list[dict[str, Any]] = []
        super().__init__(params, defaults)
        own = [{**group, "params": shares[self.rank]} for group, shares in zip(*self._shares(), strict=True)]
        self.optim = optimizer_class(own, **defaults)
        self.state = self.optim.state
        self._take_options(self.optim.param_groups, self.param_groups)

    def _shares(self) -> tuple[list[dict[str, Any]], list[list[list[Tensor]]]]:
        """The groups, and for each the parameters of every rank: from the largest on that which has least so far."""
        sizes, shares = [0] * self.world_size, []
        for group in self.param_groups:
            ranks: list[list[Tensor]] = [[] for _ in sizes]
            for param in sorted(group["params"], key=lambda p: p.numel(), reverse=True):
                rank = sizes.index(min(sizes))
                ranks[rank].append(param)
                sizes[rank] += param.numel()
            shares.append(ranks)
        return self.param_groups, shares

    @staticmethod
    def _take_options(given: list[dict[str, Any]], groups: list[dict[str, Any]]) -> None:
        for source, group in zip(given, groups, strict=True):
            group.update({key: value for key, value in source.items() if key not in ("params", "param_names")})

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """Add a group; its parameters are divided among the processes, too."""
        super().add_param_group(param_group)
        if self.optim is not None:
            self.optim.add_param_group({**param_group, "params": self._shares()[1][-1][self.rank]})
            self._take_options(self.optim.param_groups[-1:], self.param_groups[-1:])

    def step(self, closure: Callable[[], Any] | None = None, **kwargs: Any) -> Any:
        """Step this process's share, and take those of the others; all processes call it."""
        assert self.optim is not None
        Join.notify_join_context(self)
        self._take_options(self.param_groups, self.optim.param_groups)  # schedules change those here
        loss = self.optim.step(closure, **kwargs) if closure is not None else self.optim.step(**kwargs)
        self._take_options(self.optim.param_groups, self.param_groups)
        shares = self._shares()[1]
        for rank in range(self.world_size):
            broadcast([param for ranks in shares for param in ranks[rank]], self.process_group, _LIMIT, rank)
        return loss

    # ---- state ------------------------------------------------------------------------------------------------

    def consolidate_state_dict(self, to: int = 0) -> None:
        """Send the state of all shares to a rank, for `state_dict()` there; all processes call it."""
        assert self.optim is not None
        state = tree_map(lambda x: x.cpu() if isinstance(x, Tensor) else x, self.optim.state_dict())
        found: list[Any] = [None] * self.world_size
        dist.all_gather_object(found, state, self.process_group)
        self._gathered = found if self.rank == to else []

    def _numbers(self, rank: int) -> list[int]:
        """The positions of a rank's parameters among all, in the order of its share."""
        every = {id(param): at for at, param in enumerate(p for group in self.param_groups for p in group["params"])}
        return [every[id(param)] for ranks in self._shares()[1] for param in ranks[rank]]

    def state_dict(self) -> dict[str, Any]:
        """The state of all shares, as one optimizer of all parameters has it.

        Raises:
            RuntimeError: `consolidate_state_dict` has not sent it to this rank.
        """
        if not self._gathered:
            raise RuntimeError(
                f"Optimizer state has not been consolidated on this rank. Please call `consolidate_state_dict(to="
                f"{self.rank})` on all ranks beforehand if you meant to save the global state."
            )
        found: dict[int, Any] = {}
        for rank, own in enumerate(self._gathered):
            numbers = self._numbers(rank)
            found |= {numbers[at]: value for at, value in own["state"].items()}
        return {**super().state_dict(), "state": dict(sorted(found.items()))}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Load what `state_dict()` gave; each process takes what belongs to its share."""
        assert self.optim is not None
        super().load_state_dict({**state_dict, "state": {}})
        own = self.optim.state_dict()
        self._take_options(self.param_groups, own["param_groups"])
        given, numbers = state_dict["state"], self._numbers(self.rank)
        own["state"] = {at: given[number] for at, number in enumerate(numbers) if number in given}
        self.optim.load_state_dict(own)
        self.state = self.optim.state

    # ---- uneven inputs ----------------------------------------------------------------------------------------

    def join_hook(self, **kwargs: Any) -> JoinHook:
        """The hook of `Join` for a process whose inputs are used up: it steps its share with the others."""
        return _Steps(self)

    @property
    def join_device(self) -> devices.device:
        """The device of the first parameter."""
        place: devices.device = self.param_groups[0]["params"][0].device
        return place

    @property
    def join_process_group(self) -> dist.ProcessGroup:
        """The processes that have shares."""
        group: dist.ProcessGroup = self.process_group
        return group
