"""One model in several processes, each with its own part of the data."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from ... import distributed as dist
from ...autograd.mode import is_grad_enabled, no_grad
from ...errors import DistError, explain
from ...functional.creation.creation import tensor, zeros
from ...functional.views.joining import cat
from ...tensors import Tensor
from ...types import devices as places
from ...types.dtypes import int64
from ..module import Module
from .reducer import Reducer, split
from .scatter_gather import cuda_device

__all__ = ["DistributedDataParallel"]

# The first bucket is small, so that the first message is sent early.
_FIRST_BUCKET = 1 << 20
_MEGABYTE = 1 << 20


class DistributedDataParallel(Module):
    """Train one module in all processes of a job, each on its own part of every batch.

    All start with the parameters and buffers of rank 0. In the backward pass the gradients are averaged over the
    processes, in buckets that are sent while others are still being computed; equal optimizers then keep the modules
    equal. With batches of equal size and a loss that is a mean, a step equals one on all data in one process.

        torch.distributed.init_process_group("mpi")
        model = torch.nn.parallel.DistributedDataParallel(model)

    Args:
        module: its parameters are on one device; call it through this wrapper and not by itself.
        device_ids: a list of the one CUDA device that inputs are moved to, or None to leave them where they are.
        output_device: not used; outputs stay where the module puts them.
        dim: not used; accepted for PyTorch's order of arguments.
        broadcast_buffers: copy the buffers of rank 0 to all before each forward pass.
        init_sync: start with the state of rank 0.
        process_group: None, for all processes.
        bucket_cap_mb: how many megabytes of gradients are sent together; 25 unless given.
        find_unused_parameters: find in each pass the parameters that the outputs do not depend on. Without it, the
            gradients of a pass in which some parameter gets none are not averaged, and the next forward pass raises.

    Attributes:
        module: the wrapped module; the state dict has a `module.` in front of every name.
        require_backward_grad_sync: false within `no_sync()`.

    Raises:
        ValueError: no process group, parameters on several devices, or several `device_ids`.
        RuntimeError: nothing to train.
        DistError: the modules of the processes differ; the message names the first parameter that does.
    """

    def __init__(
        self,
        module: Module,
        device_ids: Sequence[Any] | None = None,
        output_device: Any = None,
        dim: int = 0,
        broadcast_buffers: bool = True,
        init_sync: bool = True,
        process_group: dist.ProcessGroup | None = None,
        bucket_cap_mb: float | None = None,
        find_unused_parameters: bool = False,
    ) -> None:
        super().__init__()
        self.process_group = dist.groups.default_group(process_group)
        trained = [(name, x) for name, x in module.named_parameters() if x.requires_grad]
        if not trained:
            raise RuntimeError(
                "DistributedDataParallel is not needed when a module doesn't have any parameters that require a "
                "gradient."
            )
        self.device = _one_device(module)
        self.device_ids = None if device_ids is None else _one_device_id(device_ids, self.device)
        self.module = module
        self.broadcast_buffers = broadcast_buffers
        self.find_unused_parameters = find_unused_parameters
        self.require_backward_grad_sync = True
        limit = int((25 if bucket_cap_mb is None else bucket_cap_mb) * _MEGABYTE)
        _check_same(trained, self.process_group)
        if init_sync:
            _broadcast([*module.parameters(), *module.buffers()], self.process_group, limit)
        self._reducer = Reducer(
            [x for _, x in trained],
            [name for name, _ in trained],
            self.process_group,
            (min(_FIRST_BUCKET, limit), limit),
            find_unused_parameters,
        )
        self._bucket_limit = limit

    def forward(self, *inputs: Any, **kwargs: Any) -> Any:
        """Call the module; the gradients of its outputs' parameters are averaged in the backward pass.

        Raises:
            RuntimeError: the backward pass before left parameters without a gradient. DistError: see `all_reduce`.
        """
        if self.broadcast_buffers and self.require_backward_grad_sync:
            _broadcast(list(self.module.buffers()), self.process_group, self._bucket_limit)
        if self.device_ids is not None:
            inputs, kwargs = _moved((inputs, kwargs), self.device)
        outputs = self.module(*inputs, **kwargs)
        if is_grad_enabled():
            if self.require_backward_grad_sync:
                self._reducer.prepare(outputs)
            else:
                self._reducer.ignore()
        return outputs

    @contextmanager
    def no_sync(self) -> Iterator[None]:
        """Do not average the gradients of forward passes in the block: they add up until the first pass after it.

        ::

            with model.no_sync():
                loss_of(model(first)).backward()
            loss_of(model(second)).backward()  # the averages of both
        """
        before, self.require_backward_grad_sync = self.require_backward_grad_sync, False
        try:
            yield
        finally:
            self.require_backward_grad_sync = before


def _one_device(module: Module) -> places.device:
    """The device that all parameters are on."""
    found = {x.device for x in module.parameters()}
    if len(found) > 1:
        raise ValueError(
            explain(
                "DistributedDataParallel's input module must be on the same type of devices, but input module "
                f"parameters locate in {sorted(map(str, found))}.",
                remedy="move the module to one device with .to()",
            )
        )
    return found.pop()


def _one_device_id(device_ids: Sequence[Any], device: places.device) -> list[places.device]:
    if len(device_ids) != 1 or device.type != "cuda" or cuda_device(device_ids[0]) != device:
        raise ValueError(
            "DistributedDataParallel device_ids and output_device arguments only work with "
            "single-device/multiple-device GPU modules or CPU modules, but got device_ids "
            f"{list(device_ids)}, and module parameters {{{device}}}."
        )
    return [device]


def _check_same(parameters: Sequence[tuple[str, Tensor]], group: dist.ProcessGroup) -> None:
    """Raise in all processes unless all have parameters of the same names, shapes and dtypes."""
    facts = [f"{name} of shape {tuple(x.shape)}, {x.dtype}" for name, x in parameters]
    digests = [int.from_bytes(hashlib.sha256(fact.encode()).digest()[:7], "big") for fact in facts]
    counts = [zeros(1, dtype=int64) for _ in range(group.size())]
    dist.all_gather(counts, tensor([len(facts)], dtype=int64), group)
    for rank, count in enumerate(counts):
        if int(count) != int(counts[0]):
            raise DistError(
                f"DDP expects same model across all ranks, but Rank 0 has {int(counts[0])} params, while rank {rank} "
                f"has inconsistent {int(count)} params."
            )
    rows = [zeros(len(facts), dtype=int64) for _ in range(group.size())]
    dist.all_gather(rows, tensor(digests, dtype=int64), group)
    for place, fact in enumerate(facts):
        differing = [rank for rank, row in enumerate(rows) if int(row[place]) != int(rows[0][place])]
        if differing:
            raise DistError(
                f"DDP expects same model across all ranks, but params[{place}] of rank {differing[0]} appears not "
                "to match the same param in process 0.",
                f"in rank {group.rank()} it is {fact}",
            )


def _broadcast(tensors: Sequence[Tensor], group: dist.ProcessGroup, limit: int) -> None:
    """Copy tensors of rank 0 to all processes, many in one message."""
    with no_grad():
        for positions in split(tensors, (limit,)):
            own = [tensors[position].detach() for position in positions]
            flat = own[0] if len(own) == 1 else cat([x.reshape(-1) for x in own])
            dist.broadcast(flat, group=group, group_src=0)
            start = 0
            for x in own if len(own) > 1 and group.rank() != 0 else ():
                x.copy_(flat.narrow(0, start, x.numel()).reshape(x.shape))
                start += x.numel()


def _moved(value: object, device: places.device) -> Any:
    """The tensors in nested tuples, lists and dicts on a device; other values unchanged."""
    if isinstance(value, Tensor):
        return value.to(device, non_blocking=True)
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return type(value)(*(_moved(entry, device) for entry in value))
    if isinstance(value, (tuple, list)):
        return type(value)(_moved(entry, device) for entry in value)
    if isinstance(value, dict):
        return type(value)((key, _moved(entry, device)) for key, entry in value.items())
    return value
