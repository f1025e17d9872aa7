"""Running sums, products and extremes under PyTorch's names, as functions and as methods of Tensor."""

from __future__ import annotations

from typing import Any

from ...errors import ArgumentError, require
from ...ground.arguments import check_tensor
from ...ground.public import public
from ...kernels.reduction import running
from ...kernels.reduction.functions import as_one_dim, keywords
from ...operators.inplace import in_place_form
from ...operators.outputs import COMPUTED, SAME, takes_out
from ...tensors import Tensor
from ...tensors.results import CummaxResult, CumminResult
from ...types import Dtype


def _dim(name: str, input: Any, dim: Any, others: dict[str, Any]) -> Any:
    check_tensor(name, "input", 1, input)
    dim, _ = keywords(name, dim, False, others)
    require(dim is not None, ArgumentError, '{}() missing 1 required positional arguments: "dim"', name)
    return as_one_dim(name, dim)


@public(method=True, in_place=in_place_form, out=takes_out(COMPUTED._replace(apart="partly")))
def cumsum(input: Tensor, dim: int | None = None, *, dtype: Dtype = None, **others: Any) -> Tensor:
    """The cumulative sums along `dim`; integers and booleans add up in int64.

    >>> import tritensor as torch
    >>> torch.tensor([1, 2, 3]).cumsum(0)
    tensor([1, 3, 6])

    Raises:
        ArgumentError: no dimension is given.
    """
    return running.cumsum(input, dim=_dim("cumsum", input, dim, others), dtype=dtype)


@public(
    method=True, in_place=in_place_form, out=takes_out(COMPUTED._replace(apart="partly")), autocast={"cuda": "float32"}
)
def cumprod(input: Tensor, dim: int | None = None, *, dtype: Dtype = None, **others: Any) -> Tensor:
    """The cumulative products along `dim`; integers and booleans multiply in int64.

    The gradient is right beside zeros, too, where PyTorch's is.

    >>> import tritensor as torch
    >>> torch.tensor([1, 2, 3]).cumprod(0)
    tensor([1, 2, 6])
    """
    return running.cumprod(input, dim=_dim("cumprod", input, dim, others), dtype=dtype)


@public(method=True, out=takes_out(SAME._replace(apart="partly")))
def cummax(input: Tensor, dim: int | None = None) -> CummaxResult:
    """The cumulative maxima along `dim`, and their indices; of equal ones the last.

    NaN is larger than every number.

    >>> import tritensor as torch
    >>> torch.tensor([1, 3, 2, 3]).cummax(0).indices
    tensor([0, 1, 1, 3])
    """
    return CummaxResult(*running.cummax(input, dim=_dim("cummax", input, dim, {})))


@public(method=True, out=takes_out(SAME._replace(apart="partly")))
def cummin(input: Tensor, dim: int | None = None) -> CumminResult:
    """The cumulative minima along `dim`, and their indices; of equal ones the last.

    NaN is smaller than every number.
    """
    return CumminResult(*running.cummin(input, dim=_dim("cummin", input, dim, {})))


@public(method=True, out=takes_out(SAME._replace(apart="partly")))
def logcumsumexp(input: Tensor, dim: int | None = None) -> Tensor:
    """The logarithm of the cumulative sum of exponentials along `dim`, without overflow.

    Raises:
        UnsupportedError: the dtype is neither floating nor complex.
    """
    return running.logcumsumexp(input, dim=_dim("logcumsumexp", input, dim, {}))
