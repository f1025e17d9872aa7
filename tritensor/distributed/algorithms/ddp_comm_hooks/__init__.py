"""Communication hooks for `DistributedDataParallel.register_comm_hook`: averaging gradients with fewer bytes."""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum, member
from functools import partial
from typing import Any, Protocol

from ...process_group import ProcessGroup
from . import default_hooks, powerSGD_hook

__all__ = ["DDPCommHookType", "register_ddp_comm_hook"]


class _Model(Protocol):
    def register_comm_hook(self, state: object, hook: Callable[..., Any]) -> None:
        """As that of `DistributedDataParallel`."""


def _register(
    hook: Callable[..., Any], rank: int, model: _Model, state: ProcessGroup | None = None, **options: Any
) -> None:
    model.register_comm_hook(powerSGD_hook.PowerSGDState(state, rank, **options) if rank else state, hook)


_SGD, _BATCHED = powerSGD_hook.powerSGD_hook, powerSGD_hook.batched_powerSGD_hook


class DDPCommHookType(Enum):
    """Hooks by name: functions of the arguments `model` and `state`, a process group, that register them."""

    ALLREDUCE = member(partial(_register, default_hooks.allreduce_hook, 0))
    FP16_COMPRESS = member(partial(_register, default_hooks.fp16_compress_hook, 0))
    BF16_COMPRESS = member(partial(_register, default_hooks.bf16_compress_hook, 0))
    POWER_SGD = member(partial(_register, _SGD, 1))
    POWER_SGD_RANK2 = member(partial(_register, _SGD, 2))
    BATCHED_POWER_SGD = member(partial(_register, _BATCHED, 1))
    BATCHED_POWER_SGD_RANK2 = member(partial(_register, _BATCHED, 2))


def register_ddp_comm_hook(comm_hook_type: DDPCommHookType, model: _Model, state: ProcessGroup | None = None) -> None:
    """Register a hook by its name; `state` is a process group, None for all processes."""
    comm_hook_type.value(model=model, state=state)
