"""Searching and sorting: the coordinates, the order and the largest of elements."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...autograd.gradients import called
from ...autograd.levels import followed
from ...errors import ShapeError
from ...ground.arguments import whole
from ...ground.public import public
from ...kernels.bounds import places_along, within
from ...kernels.indexing.family import gather, nonzero_positions
from ...kernels.indexing.sorting import extremes
from ...kernels.indexing.sorting import sort as sort_operator
from ...operators.outputs import Into, takes_out
from ...return_types import SortResult, TopkResult
from ...tensors import Tensor, wrap
from ...types import layout


@public(method=True, out=takes_out())
def nonzero(input: Tensor, *, as_tuple: bool = False) -> Any:
    """The coordinates of the elements that are not zero, in order: of shape (n, rank), or as a tuple of `rank` vectors.

    On a CUDA device the host waits for their number.

    >>> import tritensor as torch
    >>> torch.nonzero(torch.tensor([[0, 1], [2, 0]]))
    tensor([[0, 1],
            [1, 0]])
    """
    if as_tuple and input.ndim == 0:
        input = input.reshape(1)
    found = wrap(nonzero_positions(input))
    return found.unbind(1) if as_tuple else found


@public(method=True)
def argwhere(input: Tensor) -> Tensor:
    """The coordinates of the elements that are not zero, of shape (n, rank)."""
    return nonzero(input)


@public(method=True, out=takes_out(Into("same", "partly")))
def sort(input: Tensor, dim: int = -1, descending: bool = False, stable: bool = True) -> SortResult:
    """The elements in ascending (or descending) order along `dim`, and their indices; equal ones keep their order.

    NaN is larger than every number.

    >>> import tritensor as torch
    >>> torch.sort(torch.tensor([3, 1, 2])).indices
    tensor([1, 2, 0])
    """
    values, indices = sort_operator(input, dim=dim, descending=descending)
    return SortResult(values, within(indices, places_along(input, dim)))


def in_order(x: Tensor, dim: int = -1) -> Tensor:
    """The sorted elements, without gradients: without their places NumPy finds them ten times faster."""
    x = x.detach()
    if x.is_cuda or not x.ndim or followed(x):
        return sort(x, dim).values  # type: ignore[no-any-return]
    array = x._host_array()
    wide = array.astype(np.float32) if x.is_floating_point() and array.itemsize == 2 else array
    return wrap(np.sort(wide, dim).astype(array.dtype, copy=False))


@public(method=True)
def argsort(input: Tensor, dim: int = -1, descending: bool = False, stable: bool = True) -> Tensor:
    """The indices of the elements in ascending (or descending) order along `dim`."""
    return sort(input, dim, descending).indices


@public(method=True, out=takes_out(Into("same", "partly")))
def topk(input: Tensor, k: int, dim: int = -1, largest: bool = True, sorted: bool = True) -> TopkResult:
    """The `k` largest (or smallest) elements along `dim`, sorted, and their indices.

    >>> import tritensor as torch
    >>> torch.topk(torch.tensor([3.0, 5.0, 4.0]), 2).values
    tensor([5., 4.])

    Raises:
        ShapeError: there are fewer than `k`.
    """
    dim, k = layout.normalize_dim(dim, input.ndim), whole("topk", "k", k)
    if not 0 <= k <= (input._data.shape[dim] if input.ndim else 1):
        raise ShapeError("selected index k out of range")
    if input.ndim and not input.is_cuda and not followed(input):
        places = extremes(np.moveaxis(input._host_array(), dim, -1), k, largest)
        if places is not None:
            found = wrap(np.ascontiguousarray(np.moveaxis(places, -1, dim)))
            return TopkResult(called("TopkBackward0", gather(input, found, dim=dim)), found)
    values, indices = sort_operator(input, dim=dim, descending=largest)
    if input.ndim == 0:
        return TopkResult(values, indices)
    found = within(indices.narrow(dim, 0, k).clone(), places_along(input, dim))
    chosen = called("TopkBackward0", values.narrow(dim, 0, k).clone())
    return TopkResult(chosen, found)
