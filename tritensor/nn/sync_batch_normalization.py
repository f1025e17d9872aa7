"""Batch normalisation whose statistics are those of the batches of all processes."""

from __future__ import annotations

from typing import Any

from .. import functional as F
from ..autograd.mode import no_grad
from ..errors import require
from ..functional.creation.creation import full, zeros
from ..functional.views.joining import cat
from ..kernels.rowwise.channel_norm import move_average, normalize_channels
from ..operators.function import Function
from ..operators.rules import compute_dtype
from ..tensors import Tensor
from ..types import Device, Dtype
from ..types.dtypes import float64
from .batch_normalization import _BatchNorm
from .module import Module

__all__ = ["SyncBatchNorm"]


class _Synchronized(Function):
    """The layer's computation: processes exchange (mean, variance, count), and two sums for the gradient."""

    @staticmethod
    def forward(
        ctx: Any,
        x: Tensor,
        weight: Tensor | None,
        bias: Tensor | None,
        running_mean: Tensor | None,
        running_var: Tensor | None,
        eps: float,
        momentum: Any,
        group: Any,
    ) -> Tensor:
        """The input normalised by the moments of all processes' inputs, which move the running statistics."""
        from .. import distributed as dist

        wide, channels = x.to(compute_dtype(x.dtype)), x.shape[1]
        dims, shape = (0, *range(2, x.ndim)), (-1,) + (1,) * (x.ndim - 2)
        if x.numel():
            count = full((1,), x.numel() // channels, dtype=float64, device=x.device)
            mean = wide.mean(dims, keepdim=True)
            low = (wide - mean).mean(dims)  # what the mean lost when it was rounded
            local = cat([mean.reshape(-1).double() + low, wide.var(dims, correction=0).double(), count])
        else:  # this process still takes part
            local = zeros(2 * channels + 1, dtype=float64, device=x.device)
        found = zeros((dist.get_world_size(group), 2 * channels + 1), dtype=float64, device=x.device)
        dist.all_gather_into_tensor(found, local, group=group)
        means, variances, counts = found[:, :channels], found[:, channels:-1], found[:, -1:]
        total = counts.sum()
        exact = (means * counts).sum(0) / total
        var = (((variances + (means - exact).square()) * counts).sum(0) / total).to(wide.dtype)
        mean, total = exact.to(wide.dtype), total.to(wide.dtype)
        low = (exact - mean).to(wide.dtype)
        if running_mean is not None and running_var is not None:
            move_average(running_mean, mean, momentum, 1.0)
            move_average(running_var, var, momentum, total / (total - 1))
        ctx.save_for_backward(x, weight, mean, var, low, total)
        ctx.eps, ctx.group = eps, group
        scale, shift = (
            missing if each is None else each.reshape(shape) for each, missing in ((weight, 1.0), (bias, 0.0))
        )
        mean, var, low = (each.reshape(shape) for each in (mean, var, low))
        return normalize_channels(x, mean, var, scale, shift, low, eps=eps)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Any, ...]:
        """The gradients of input, weight and bias; those of the parameters are this process's share."""
        from .. import distributed as dist

        x, weight, mean, var, low, total = ctx.saved_tensors
        dims, shape = (0, *range(2, x.ndim)), (-1,) + (1,) * (x.ndim - 2)
        grad, wide = grad.to(mean.dtype), x.to(mean.dtype)
        mean, low = mean.reshape(shape), low.reshape(shape)
        normal = normalize_channels(wide, mean, var.reshape(shape), 1.0, 0.0, low, eps=ctx.eps)
        sums, products = grad.sum(dims), (grad * normal).sum(dims)
        found = None
        if ctx.needs_input_grad[0]:
            both = cat([sums, products])
            dist.all_reduce(both, group=ctx.group)
            level, slope = (each.reshape(shape) / total for each in both.chunk(2))
            scale = (var + ctx.eps).rsqrt() if weight is None else (var + ctx.eps).rsqrt() * weight
            found = ((grad - level - normal * slope) * scale.reshape(shape)).to(x.dtype)
        needs = ctx.needs_input_grad[1:3]
        return found, products if needs[0] else None, sums if needs[1] else None, *[None] * 5


class SyncBatchNorm(_BatchNorm):
    """Synchronised batch normalisation of (N, C, ...): over the batches of all processes of `process_group`.

    Statistics are exchanged in training only, and where `tritensor.distributed` has joined several processes.

    >>> import tritensor as torch
    >>> torch.nn.SyncBatchNorm(4)
    SyncBatchNorm(4, eps=1e-05, momentum=0.1, affine=True, bias=True, track_running_stats=True)

    Args:
        process_group: the processes; None for all. The others are those of `BatchNorm1d`.

    Raises:
        ValueError: fewer than two dimensions, no channels, or one value per channel in a single process.
    """

    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float | None = 0.1,
        affine: bool = True,
        track_running_stats: bool = True,
        process_group: Any = None,
        device: Device = None,
        dtype: Dtype = None,
        *,
        bias: bool = True,
    ) -> None:
        super().__init__(num_features, eps, momentum, affine, track_running_stats, device, dtype, bias=bias)
        self.process_group = process_group

    def forward(self, input: Tensor) -> Tensor:
        """The shape of the input."""
        from .. import distributed as dist

        require(input.ndim >= 2, ValueError, "expected at least 2D input (got {}D input)", input.ndim)
        require(input.shape[1] != 0, ValueError, "SyncBatchNorm number of input channels should be non-zero")
        together = self.training and dist.is_initialized() and dist.get_world_size(self.process_group) > 1
        mean, var, by_batch, momentum = self._tracked()
        if not together:
            return F.batch_norm(input, mean, var, self.weight, self.bias, by_batch, momentum, self.eps)
        return _Synchronized.apply(input, self.weight, self.bias, mean, var, self.eps, momentum, self.process_group)

    @classmethod
    def convert_sync_batchnorm(cls, module: Module, process_group: Any = None) -> Module:
        """The module with every batch norm layer replaced by a SyncBatchNorm of the same parameters and statistics.

        >>> import tritensor as torch
        >>> layers = torch.nn.Sequential(torch.nn.Linear(2, 3), torch.nn.BatchNorm1d(3, affine=False))
        >>> torch.nn.SyncBatchNorm.convert_sync_batchnorm(layers)[1]
        SyncBatchNorm(3, eps=1e-05, momentum=0.1, affine=False, bias=False, track_running_stats=True)
        """
        made = module
        if isinstance(module, _BatchNorm):
            options = module.num_features, module.eps, module.momentum, module.affine, module.track_running_stats
            made = cls(*options, process_group, bias=module.bias is not None)
            with no_grad():
                made.weight, made.bias = module.weight, module.bias
            for name in ("running_mean", "running_var", "num_batches_tracked"):
                setattr(made, name, getattr(module, name))
            made.training = module.training
        for name, child in module.named_children():
            made.add_module(name, cls.convert_sync_batchnorm(child, process_group))
        return made
