"""Layers that normalise each channel of (N, C, ...): over the batch, or in each example."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .. import functional as F
from ..errors import warn
from ..functional.creation.creation import ones, tensor, zeros
from ..tensors import Tensor
from ..types import Device, Dtype
from ..types.dtypes import int64
from .layer import OfRank, add_parameters, one_and_zero
from .module import Module
from .parameter import Parameter

__all__ = ["BatchNorm1d", "BatchNorm2d", "BatchNorm3d", "InstanceNorm1d", "InstanceNorm2d", "InstanceNorm3d"]


class _NormBase(OfRank, Module):
    """Base of the layers that have a scale, a shift and running statistics for each channel."""

    _version = 2
    _alone = False  # whether the input may be one example

    num_features: int
    eps: float
    momentum: float | None
    affine: bool
    track_running_stats: bool
    weight: Parameter | Any  # or None
    bias: Parameter | Any  # or None
    running_mean: Tensor | Any  # or None
    running_var: Tensor | Any  # or None
    num_batches_tracked: Tensor | Any  # or None

    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float | None = 0.1,
        affine: bool = True,
        track_running_stats: bool = True,
        device: Device = None,
        dtype: Dtype = None,
        *,
        bias: bool = True,
    ) -> None:
        super().__init__()
        self.num_features, self.eps, self.momentum = num_features, eps, momentum
        self.affine, self.track_running_stats = affine, track_running_stats
        shape, tracked = (num_features,), track_running_stats
        add_parameters(self, device, dtype, weight=shape if affine else None, bias=shape if affine and bias else None)
        self.register_buffer("running_mean", zeros(shape, device=device, dtype=dtype) if tracked else None)
        self.register_buffer("running_var", ones(shape, device=device, dtype=dtype) if tracked else None)
        self.register_buffer("num_batches_tracked", tensor(0, dtype=int64, device=device) if tracked else None)
        self.reset_parameters()

    def reset_running_stats(self) -> None:
        """Set the running mean to zero, the running variance to one, and the count to zero."""
        if self.track_running_stats:
            self.running_mean.zero_()
            self.running_var.fill_(1)
            self.num_batches_tracked.zero_()

    def reset_parameters(self) -> None:
        """Forget the statistics, and set the scale to one and the shift to zero."""
        self.reset_running_stats()
        one_and_zero(self)

    def _check_input_dim(self, input: Tensor) -> None:
        """Raise for an input without the layer's dimensions, those of one example where it takes that, or (N, C)."""
        alone = self._alone or self._rank == 1
        if input.ndim - self._rank not in ((1, 2) if alone else (2,)):
            wanted = f"{self._rank + 1}D or " * alone + f"{self._rank + 2}D"
            raise ValueError(f"expected {wanted} input (got {input.ndim}D input)")

    def extra_repr(self) -> str:
        """The arguments."""
        return (
            f"{self.num_features}, eps={self.eps}, momentum={self.momentum}, affine={self.affine}, "
            f"bias={self.bias is not None}, track_running_stats={self.track_running_stats}"
        )

    def _load_from_state_dict(
        self, state_dict: Mapping[str, Any], prefix: str, local_metadata: dict[str, Any], *rest: Any
    ) -> None:
        version, key = local_metadata.get("version"), f"{prefix}num_batches_tracked"
        if (version is None or version < 2) and self.track_running_stats and key not in state_dict:
            # the count is there from version 2 on
            state_dict[key] = self.num_batches_tracked  # type: ignore[index]
        self._load_older(state_dict, prefix, version, rest[-1])
        super()._load_from_state_dict(state_dict, prefix, local_metadata, *rest)

    def _load_older(self, state: Mapping[str, Any], prefix: str, version: int | None, errors: list[str]) -> None:
        """Read the entries of an older version."""


class _BatchNorm(_NormBase):
    """Base of the layers that normalise over the batch."""

    def _tracked(self) -> tuple[Tensor | None, Tensor | None, bool, Any]:
        """Running statistics to use or to change, whether the batch's are used, and its share in the running ones."""
        momentum: Any = 0.0 if self.momentum is None else self.momentum
        if self.training and self.track_running_stats and self.num_batches_tracked is not None:
            self.num_batches_tracked.add_(1)
            if self.momentum is None:  # the mean of all batches; a tensor, so that a device is not waited for
                momentum = 1.0 / self.num_batches_tracked.double()
        by_batch = self.training or (self.running_mean is None and self.running_var is None)
        kept = not self.training or self.track_running_stats
        running = (self.running_mean, self.running_var) if kept else (None, None)
        return *running, by_batch, momentum

    def forward(self, input: Tensor) -> Tensor:
        """The shape of the input."""
        self._check_input_dim(input)
        mean, var, by_batch, momentum = self._tracked()
        return F.batch_norm(input, mean, var, self.weight, self.bias, by_batch, momentum, self.eps)


class BatchNorm1d(_BatchNorm, rank=1):
    """Batch normalisation: each channel of (N, C) or (N, C, L) gets zero mean and unit variance over the batch.

    In training statistics are the batch's, and running ones move towards them; in evaluation the running ones are used.

    >>> import tritensor as torch
    >>> torch.nn.BatchNorm1d(4)
    BatchNorm1d(4, eps=1e-05, momentum=0.1, affine=True, bias=True, track_running_stats=True)

    Args:
        momentum: the share of a batch in the running statistics; None for the mean of all batches.
        affine: whether there are a scale and a shift; `bias=False` leaves out the shift.
        track_running_stats: without running statistics, those of the batch are used in evaluation too.

    Raises:
        ValueError: an input of another rank, or one value per channel in training.
    """


class BatchNorm2d(_BatchNorm, rank=2):
    """Batch normalisation of (N, C, H, W); see `BatchNorm1d`.

    >>> import tritensor as torch
    >>> torch.nn.BatchNorm2d(3)(torch.ones(2, 3, 4, 4)).shape
    tritensor.Size([2, 3, 4, 4])
    """


class BatchNorm3d(_BatchNorm, rank=3):
    """Batch normalisation of (N, C, D, H, W); see `BatchNorm1d`.

    >>> import tritensor as torch
    >>> torch.nn.BatchNorm3d(3, momentum=None, affine=False)
    BatchNorm3d(3, eps=1e-05, momentum=None, affine=False, bias=False, track_running_stats=True)
    """


class _InstanceNorm(_NormBase):
    """Base of the layers that normalise in each example."""

    _alone = True

    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float = 0.1,
        affine: bool = False,
        track_running_stats: bool = False,
        device: Device = None,
        dtype: Dtype = None,
        *,
        bias: bool = True,
    ) -> None:
        super().__init__(num_features, eps, momentum, affine, track_running_stats, device, dtype, bias=bias)

    def _load_older(self, state: Mapping[str, Any], prefix: str, version: int | None, errors: list[str]) -> None:
        if version is not None or self.track_running_stats:
            return
        found = [f"{prefix}{name}" for name in ("running_mean", "running_var") if f"{prefix}{name}" in state]
        if found:
            names = " and ".join([f'"{name}"' for name in found])
            kind = type(self).__name__
            errors.append(
                f"Unexpected running stats buffer(s) {names} for {kind} with track_running_stats=False. If state_dict "
                f"is a checkpoint saved before 0.4.0, this may be expected because {kind} does not track running stats "
                f"by default since 0.4.0. Please remove these keys from state_dict."
            )

    def forward(self, input: Tensor) -> Tensor:
        """The shape of the input, which may be that of one example, without N."""
        self._check_input_dim(input)
        alone = input.ndim == self._rank + 1
        dim = 0 if alone else 1
        if input.shape[dim] != self.num_features:
            if self.affine:
                raise ValueError(
                    f"expected input's size at dim={dim} to match num_features ({self.num_features}), but got: "
                    f"{input.shape[dim]}."
                )
            warn(
                f"input's size at dim={dim} does not match num_features. You can silence this warning by not passing "
                "in num_features, which is not used because affine=False"
            )
        out = F.instance_norm(
            input.unsqueeze(0) if alone else input,
            self.running_mean,
            self.running_var,
            self.weight,
            self.bias,
            self.training or not self.track_running_stats,
            0.0 if self.momentum is None else self.momentum,
            self.eps,
        )
        return out.squeeze(0) if alone else out


class InstanceNorm1d(_InstanceNorm, rank=1):
    """Instance normalisation: each channel of each example of (N, C, L) or (C, L) gets zero mean and unit variance.

    >>> import tritensor as torch
    >>> torch.nn.InstanceNorm1d(4)
    InstanceNorm1d(4, eps=1e-05, momentum=0.1, affine=False, bias=False, track_running_stats=False)

    Args:
        affine: whether there are a scale and a shift; `bias=False` leaves out the shift.
        track_running_stats: keep running statistics with a share of `momentum` for each batch, and use them in
            evaluation.

    Raises:
        ValueError: an input of another rank, of other than `num_features` channels, or with one element in each.
    """


class InstanceNorm2d(_InstanceNorm, rank=2):
    """Instance normalisation of (N, C, H, W) or (C, H, W); see `InstanceNorm1d`.

    >>> import tritensor as torch
    >>> torch.nn.InstanceNorm2d(3)(torch.ones(3, 4, 4)).shape
    tritensor.Size([3, 4, 4])
    """


class InstanceNorm3d(_InstanceNorm, rank=3):
    """Instance normalisation of (N, C, D, H, W) or (C, D, H, W); see `InstanceNorm1d`.

    >>> import tritensor as torch
    >>> torch.nn.InstanceNorm3d(3, affine=True)
    InstanceNorm3d(3, eps=1e-05, momentum=0.1, affine=True, bias=True, track_running_stats=False)
    """
