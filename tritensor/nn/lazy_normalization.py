"""Batch and instance norm layers that take the number of channels from their first input."""

from __future__ import annotations

from typing import Any

from ..dtypes import int64
from ..functional.creation import tensor
from ..tensor import Tensor
from .batch_normalization import (
    BatchNorm1d,
    BatchNorm2d,
    BatchNorm3d,
    InstanceNorm1d,
    InstanceNorm2d,
    InstanceNorm3d,
    _NormBase,
)
from .lazy import LazyModuleMixin, UninitializedBuffer, UninitializedParameter

__all__ = [
    "LazyBatchNorm1d",
    "LazyBatchNorm2d",
    "LazyBatchNorm3d",
    "LazyInstanceNorm1d",
    "LazyInstanceNorm2d",
    "LazyInstanceNorm3d",
]


class _LazyNorm(LazyModuleMixin, _NormBase):
    def __init__(
        self,
        eps: float = 1e-5,
        momentum: float | None = 0.1,
        affine: bool = True,
        track_running_stats: bool = True,
        device: Any = None,
        dtype: Any = None,
        *,
        bias: bool = True,
    ) -> None:
        super().__init__(0, eps, momentum, False, False, device, dtype, bias=False)
        self.affine = affine
        self.track_running_stats = track_running_stats
        if affine:
            self.weight = UninitializedParameter(device=device, dtype=dtype)
            if bias:
                self.bias = UninitializedParameter(device=device, dtype=dtype)
        if track_running_stats:
            self.running_mean = UninitializedBuffer(device=device, dtype=dtype)
            self.running_var = UninitializedBuffer(device=device, dtype=dtype)
            self.num_batches_tracked = tensor(0, dtype=int64, device=device)

    def initialize_parameters(self, input: Tensor) -> None:
        """Give parameters and statistics the size of the input's second dimension."""
        if not self.has_uninitialized_params():  # those of a state that was loaded, or none
            self.num_features = 0 if self.weight is None else self.weight.shape[0]
            return
        self.num_features = input.shape[1]
        for each in (self.weight, self.bias, self.running_mean, self.running_var):
            if isinstance(each, (UninitializedParameter, UninitializedBuffer)):
                each.materialize((self.num_features,))
        self.reset_parameters()


class LazyBatchNorm1d(_LazyNorm, BatchNorm1d):
    """`BatchNorm1d` that takes `num_features` from its first input.

    >>> import tritensor as torch
    >>> layer = torch.nn.LazyBatchNorm1d()
    >>> out = layer(torch.ones(2, 3))
    >>> layer
    BatchNorm1d(3, eps=1e-05, momentum=0.1, affine=True, bias=True, track_running_stats=True)
    """

    cls_to_become = BatchNorm1d


class LazyBatchNorm2d(_LazyNorm, BatchNorm2d):
    """`BatchNorm2d` that takes `num_features` from its first input."""

    cls_to_become = BatchNorm2d


class LazyBatchNorm3d(_LazyNorm, BatchNorm3d):
    """`BatchNorm3d` that takes `num_features` from its first input."""

    cls_to_become = BatchNorm3d


class LazyInstanceNorm1d(_LazyNorm, InstanceNorm1d):
    """`InstanceNorm1d` that takes `num_features` from its first input, (N, C, L), with `affine` by default."""

    cls_to_become = InstanceNorm1d


class LazyInstanceNorm2d(_LazyNorm, InstanceNorm2d):
    """`InstanceNorm2d` that takes `num_features` from its first input, (N, C, H, W), with `affine` by default."""

    cls_to_become = InstanceNorm2d


class LazyInstanceNorm3d(_LazyNorm, InstanceNorm3d):
    """`InstanceNorm3d` that takes `num_features` from its first input, (N, C, D, H, W), with `affine` by default."""

    cls_to_become = InstanceNorm3d
