"""What `FullyShardedDataParallel` is told, under PyTorch's names."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple

from ...types import dtypes

__all__ = ["BackwardPrefetch", "CPUOffload", "FullOptimStateDictConfig", "FullStateDictConfig", "MixedPrecision"]
__all__ += ["OptimStateDictConfig", "OptimStateKeyType", "ShardedOptimStateDictConfig", "ShardedStateDictConfig"]
__all__ += ["ShardingStrategy", "StateDictConfig", "StateDictSettings", "StateDictType"]

# What is divided among ranks: all; all, but whole parameters are kept until backward (SHARD_GRAD_OP); nothing; all
# within a machine, with copies on others (HYBRID_SHARD, and _HYBRID_SHARD_ZERO2 with parameters that are kept).
ShardingStrategy = Enum("ShardingStrategy", "FULL_SHARD SHARD_GRAD_OP NO_SHARD HYBRID_SHARD _HYBRID_SHARD_ZERO2")
# Accepted, unused: the parameters that backward needs next are gathered early in any case.
BackwardPrefetch = Enum("BackwardPrefetch", "BACKWARD_PRE BACKWARD_POST")
# What state dicts hold: whole tensors, this rank's parts as tensors, or DTensors.
StateDictType = Enum("StateDictType", "FULL_STATE_DICT LOCAL_STATE_DICT SHARDED_STATE_DICT")
# By what an optimizer's state is found: a parameter's name, or its number.
OptimStateKeyType = Enum("OptimStateKeyType", "PARAM_NAME PARAM_ID")


@dataclass(frozen=True)
class MixedPrecision:
    """The dtypes of a module of `FullyShardedDataParallel` beside that of its parameters.

    Attributes:
        param_dtype: of gathered parameters and of the computation; the parameters' own unless given.
        reduce_dtype: in which gradients are averaged; `param_dtype` unless given.
        buffer_dtype: to which floating buffers are cast.
        keep_low_precision_grads: accepted, unused: gradients have the parameters' dtype.
        cast_forward_inputs: cast floating inputs of inner wrapped modules to `param_dtype`.
        cast_root_forward_inputs: cast those of the outermost.
        _module_classes_to_ignore: modules that an `auto_wrap_policy` leaves in their dtype; batch normalization unless
            given.
    """

    param_dtype: dtypes.dtype | None = None
    reduce_dtype: dtypes.dtype | None = None
    buffer_dtype: dtypes.dtype | None = None
    keep_low_precision_grads: bool = False
    cast_forward_inputs: bool = False
    cast_root_forward_inputs: bool = True
    _module_classes_to_ignore: tuple[type, ...] | None = None


@dataclass
class CPUOffload:
    """Whether parts of parameters, gradients and optimizer state are in host memory."""

    offload_params: bool = False


@dataclass
class StateDictConfig:
    """How a module's state dict is made; `offload_to_cpu` moves its tensors to the CPU."""

    offload_to_cpu: bool = False


@dataclass
class FullStateDictConfig(StateDictConfig):
    """Whole tensors; with `rank0_only` on rank 0 alone, and an empty state dict on others."""

    rank0_only: bool = False


@dataclass
class ShardedStateDictConfig(StateDictConfig):
    """DTensors; `_use_dtensor` is accepted, unused."""

    _use_dtensor: bool = False


@dataclass
class OptimStateDictConfig:
    """How an optimizer's state dict is made; `offload_to_cpu` moves its tensors to the CPU."""

    offload_to_cpu: bool = True


@dataclass
class FullOptimStateDictConfig(OptimStateDictConfig):
    """Whole tensors; with `rank0_only` on rank 0 alone, and an empty state dict on others."""

    rank0_only: bool = False


@dataclass
class ShardedOptimStateDictConfig(OptimStateDictConfig):
    """DTensors; `_use_dtensor` is accepted, unused."""

    _use_dtensor: bool = False


class StateDictSettings(NamedTuple):
    """What kind of state dicts a model gives, and how they are made."""

    state_dict_type: StateDictType = StateDictType.FULL_STATE_DICT
    state_dict_config: StateDictConfig = FullStateDictConfig()
    optim_state_dict_config: OptimStateDictConfig = FullOptimStateDictConfig()
