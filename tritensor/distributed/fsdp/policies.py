"""What `fully_shard` is told: dtypes to compute and to reduce in, and where parameters are kept."""

from __future__ import annotations

from dataclasses import dataclass

from ...types import dtypes

__all__ = ["CPUOffloadPolicy", "MixedPrecisionPolicy", "OffloadPolicy"]


@dataclass(frozen=True)
class MixedPrecisionPolicy:
    """The dtypes that a module of `fully_shard` uses beside that of its parameters.

    Attributes:
        param_dtype: of gathered parameters and of the computation; the parameters' own unless given.
        reduce_dtype: in which gradients are averaged; theirs unless given.
        output_dtype: to which floating outputs of forward are cast, if given.
        cast_forward_inputs: cast floating inputs of forward to `param_dtype`.
    """

    param_dtype: dtypes.dtype | None = None
    reduce_dtype: dtypes.dtype | None = None
    output_dtype: dtypes.dtype | None = None
    cast_forward_inputs: bool = True


@dataclass(frozen=True)
class OffloadPolicy:
    """Parameters, gradients and optimizer state stay on the device."""


@dataclass(frozen=True)
class CPUOffloadPolicy(OffloadPolicy):
    """Sharded parameters, gradients and optimizer state are in host memory; parameters are copied to be gathered.

    Attributes:
        pin_memory: whether in page-locked memory, which is copied while the device computes.
    """

    pin_memory: bool = True
