"""Means without NaN, covariances and correlations."""

from __future__ import annotations

from typing import Any

from ...errors import DtypeError, ShapeError, require, warn
from ...ground.arguments import check_tensor
from ...ground.public import public
from ...kernels.reduction.functions import Dim
from ...operators.outputs import Into, takes_out
from ...tensors import Tensor
from ...types import Dtype, dtypes


@public(method=True, out=takes_out(Into("cast")))
def nanmean(input: Tensor, dim: Dim = None, keepdim: bool = False, *, dtype: Dtype = None) -> Tensor:
    """The mean of the elements that are not NaN, of all or along `dim`; NaN if there are none.

    >>> import tritensor as torch
    >>> torch.tensor([float("nan"), 1.0, 3.0]).nanmean()
    tensor(2.)

    Raises:
        DtypeError: the dtype is neither floating nor complex.
    """
    check_tensor("nanmean", "input", 1, input)
    if input.dtype.category < dtypes.FLOATING:
        words = "nanmean(): expected input to have floating point or complex dtype but got "
        raise DtypeError(words + input.dtype.legacy, remedy="convert the input first, as in x.float()")
    return input.nansum(dim, keepdim, dtype=dtype) / (~input.isnan()).sum(dim, keepdim)


@public(method=True)
def cov(
    input: Tensor, *, correction: int = 1, fweights: Tensor | None = None, aweights: Tensor | None = None
) -> Tensor:
    """The covariance matrix of variables, the rows of `input`, of which each column is an observation.

    >>> import tritensor as torch
    >>> torch.tensor([[0.0, 1.0, 2.0], [2.0, 1.0, 0.0]]).cov()
    tensor([[ 1., -1.],
            [-1.,  1.]])

    Args:
        correction: what is taken from the number of observations in the divisor.
        fweights: how often each observation was made. aweights: how much each counts.

    Raises:
        ShapeError: more than two dimensions, weights of another shape, negative ones, or ones whose sum is zero.
        DtypeError: the dtype is boolean, that of `fweights` no integer one, or that of `aweights` no floating one.
    """
    _check("cov", input)
    require(input.dtype is not dtypes.bool_, DtypeError, "cov(): bool dtype is not supported for input")
    x = input if input.ndim == 2 else input.reshape(1, -1)
    count: Any = x.shape[1]
    for name, each in (("fweights", fweights), ("aweights", aweights)):
        if each is not None:
            _check_weights(name, each, count)
    weights = fweights if aweights is None else aweights if fweights is None else fweights * aweights
    if weights is None:
        mean, norm = x.sum(1) / count, count - correction
    else:
        total = weights.sum()
        if not total._off_host and not total.item():  # a device is not waited for
            raise ShapeError("cov(): weights sum to zero, can't be normalized")
        mean, norm = (x * weights).sum(1) / total, total - correction
        if aweights is not None and correction:
            norm = total - correction * (weights * aweights).sum() / total
    if not x._off_host and norm <= 0:
        warn("cov(): degrees of freedom is <= 0. Correction should be strictly less than the number of observations.")
    norm = norm.clamp(min=0) if isinstance(norm, Tensor) else max(norm, 0)
    apart = x - mean.unsqueeze(1)
    # what the mean was rounded by, which beside a small deviation is not small
    drift = apart.sum(1) / count if weights is None else (apart * weights).sum(1) / total
    apart = apart - drift.unsqueeze(1)
    return (apart @ (apart if weights is None else apart * weights).t().conj() / norm).squeeze()


def _check(name: str, x: Tensor) -> None:
    check_tensor(name, "input", 1, x)
    if x.ndim > 2:
        words = "expected input to have two or fewer dimensions but got an input with"
        raise ShapeError(f"{name}(): {words} {x.ndim} dimensions")


def _check_weights(name: str, weights: Tensor, count: int) -> None:
    category, kind = (dtypes.INTEGER, "integral") if name == "fweights" else (dtypes.FLOATING, "floating point")
    if weights.ndim > 1:
        words = f"cov(): expected {name} to have one or fewer dimensions but got {name} with"
        raise ShapeError(f"{words} {weights.ndim} dimensions")
    if weights.dtype.category != category:
        words = f"cov(): expected {name} to have {kind} dtype but got {name} with"
        raise DtypeError(f"{words} {weights.dtype.legacy} dtype")
    if weights.numel() != count:
        words = f"cov(): expected {name} to have the same numel as there are observations in the input but got"
        raise ShapeError(f"{words} {weights.numel()} != {count}")
    require(weights._off_host or not bool((weights < 0).any()), ShapeError, "cov(): {} cannot be negative", name)


@public(method=True)
def corrcoef(input: Tensor) -> Tensor:
    """The correlation coefficients of variables, the rows of `input`, of which each column is an observation.

    >>> import tritensor as torch
    >>> torch.tensor([[0.0, 1.0, 2.0], [2.0, 1.0, 0.0]]).corrcoef()
    tensor([[ 1., -1.],
            [-1.,  1.]])

    Raises:
        ShapeError: more than two dimensions.
    """
    _check("corrcoef", input)
    found = cov(input)
    if not found.ndim:
        return found / found
    variance = found.reshape(-1)[:: found.shape[0] + 1]
    if found.is_complex():  # not cut to 1: rounding may leave an absolute value above it
        variance = variance.abs()
    deviation = variance.sqrt()
    found = found / deviation.unsqueeze(1) / deviation.unsqueeze(0)
    return found if found.is_complex() else found.clip(-1, 1)
