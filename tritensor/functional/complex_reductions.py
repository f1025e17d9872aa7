"""What is made of other operators for complex tensors: the spread around the mean, logsumexp and rms_norm."""

from __future__ import annotations

from typing import Any

from ..autograd.gradients import called
from ..kernels.reduction.host import reduced_count
from ..operators import registry
from ..tensors import Tensor
from ..types import layout
from ..types.dtypes import finfo
from .views.complex_views import real

__all__ = ["logsumexp", "rms_norm", "spread"]


def spread(name: str, input: Tensor, dim: Any, keepdim: bool, correction: float) -> Tensor:
    """The variance ("var") or its root ("std"): real, the mean of the squared distances from the mean."""
    dims = layout.normalize_dims(dim, input.ndim) if input.ndim else ()
    left = max(0, reduced_count(input._data.shape, dims) - correction)
    apart = input - input.mean(dim, True)
    distance = (apart - apart.mean(dim, True)).abs()  # the second time for what the mean was rounded by
    squares = (distance * distance).sum(dim, keepdim)
    found = squares / left
    if name == "std":
        flat, where = found == 0, registry["where"]
        found = where(flat, found, where(flat, 1, found).sqrt())  # where it is 0, so is its gradient
    return called(f"{name.capitalize()}Backward0", found)  # type: ignore[no-any-return]


def logsumexp(input: Tensor, dim: Any, keepdim: bool) -> Tensor:
    """log(sum(exp(x))); the largest real part is taken out first."""
    dims = layout.normalize_dims(dim, input.ndim) if input.ndim else ()
    if input.numel() == 0:
        found = input.exp().sum(dim, keepdim).log()
    else:
        top = registry["amax"](real(input.detach()), dim=dims, keepdim=True)
        top = registry["where"](top.isinf(), 0, top)
        found = (input - top).exp().sum(dim, keepdim).log()
        found = found + (top if keepdim else top.squeeze(dims))
    return called("LogsumexpBackward0", found)  # type: ignore[no-any-return]


def rms_norm(input: Tensor, dims: int, weight: Tensor | None, eps: float | None) -> Tensor:
    """The last `dims` dimensions over the root of the mean of their squares, which are complex."""
    added = finfo(input.dtype).eps if eps is None else eps
    squares = (input * input).mean(tuple(range(-dims, 0)), True) + added
    found = input * squares.rsqrt()
    return found if weight is None else (found * weight).to(input.dtype)
