"""Batch and instance norm layers that take the number of channels from their first input."""

from __future__ import annotations

from ..tensors import Tensor
from .batch_normalization import (
    BatchNorm1d,
    BatchNorm2d,
    BatchNorm3d,
    InstanceNorm1d,
    InstanceNorm2d,
    InstanceNorm3d,
    _NormBase,
)
from .lazy import LazyLayer, without_size

__all__ = ["LazyBatchNorm1d", "LazyBatchNorm2d", "LazyBatchNorm3d"]
__all__ += ["LazyInstanceNorm1d", "LazyInstanceNorm2d", "LazyInstanceNorm3d"]


class _LazyNorm(LazyLayer, _NormBase):
    @without_size(_NormBase.__init__)
    def __init__(self) -> None: ...

    def _shapes(self, input: Tensor | None) -> dict[str, tuple[int, ...]]:
        if input is None:  # of a state that was loaded, or there are no parameters
            self.num_features = 0 if self.weight is None else self.weight.shape[0]
        else:
            self.num_features = input.shape[1]
        return dict.fromkeys(("weight", "bias", "running_mean", "running_var"), (self.num_features,))


class LazyBatchNorm1d(_LazyNorm, BatchNorm1d):
    """`BatchNorm1d` that takes `num_features` from its first input.

    >>> import tritensor as torch
    >>> layer = torch.nn.LazyBatchNorm1d()
    >>> out = layer(torch.ones(2, 3))
    >>> layer
    BatchNorm1d(3, eps=1e-05, momentum=0.1, affine=True, bias=True, track_running_stats=True)
    """


class LazyBatchNorm2d(_LazyNorm, BatchNorm2d):
    """`BatchNorm2d` that takes `num_features` from its first input."""


class LazyBatchNorm3d(_LazyNorm, BatchNorm3d):
    """`BatchNorm3d` that takes `num_features` from its first input."""


class LazyInstanceNorm1d(_LazyNorm, InstanceNorm1d):
    """`InstanceNorm1d` that takes `num_features` from its first input, (N, C, L), with `affine` by default."""


class LazyInstanceNorm2d(_LazyNorm, InstanceNorm2d):
    """`InstanceNorm2d` that takes `num_features` from its first input, (N, C, H, W), with `affine` by default."""


class LazyInstanceNorm3d(_LazyNorm, InstanceNorm3d):
    """`InstanceNorm3d` that takes `num_features` from its first input, (N, C, D, H, W), with `affine` by default."""
