"""Searching and sorting: nonzero, sort, topk, unique and isin."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...autograd.gradients import called, underived
from ...autograd.levels import followed
from ...autograd.mode import no_grad
from ...errors import ArgumentError, DtypeError, ShapeError, UnsupportedError
from ...ground.arguments import check_tensor, whole
from ...ground.public import public
from ...kernels.bounds import places_along, within
from ...kernels.indexing.family import gather, nonzero_positions
from ...kernels.indexing.searching import searchsorted
from ...kernels.indexing.sorting import extremes
from ...kernels.indexing.sorting import sort as sort_operator
from ...operators.outputs import Into, takes_out
from ...tensors import Tensor, wrap
from ...tensors.results import SortResult, TopkResult
from ...types import dtypes, layout
from ...types.dtypes import common
from ..views.joining import cat


@public(method=True, out=takes_out())
def nonzero(input: Tensor, *, as_tuple: bool = False) -> Any:
    """The indices of the nonzero elements, in order: of shape (n, rank), or as a tuple of `rank` vectors.

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
    """The indices of the nonzero elements, of shape (n, rank)."""
    return nonzero(input)


@public(method=True, out=takes_out(Into("same", "partly")))
def sort(input: Tensor, dim: int = -1, descending: bool = False, stable: bool = True) -> SortResult:
    """Sorts along `dim` in ascending (or descending) order, with the indices; equal elements keep their order.

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
    if x._off_host or not x.ndim or followed(x):
        return sort(x, dim).values
    array = x._host_array()
    wide = array.astype(np.float32) if x.is_floating_point() and array.itemsize == 2 else array
    return wrap(np.sort(wide, dim).astype(array.dtype, copy=False))


@public(method=True)
def argsort(input: Tensor, dim: int = -1, descending: bool = False, stable: bool = True) -> Tensor:
    """The indices that sort the elements along `dim`, in ascending (or descending) order."""
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
    if input.ndim and not input._off_host and not followed(input):
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


@public(method=True)
def unique(
    input: Tensor,
    sorted: bool = True,
    return_inverse: bool = False,
    return_counts: bool = False,
    dim: int | None = None,
) -> Any:
    """The unique elements, in rising order; or the unique slices along `dim`. The host waits for their number.

    >>> import tritensor as torch
    >>> torch.tensor([3, 1, 3, 2]).unique(return_inverse=True, return_counts=True)
    (tensor([1, 2, 3]), tensor([2, 0, 2, 1]), tensor([1, 1, 2]))

    Args:
        sorted: they are, also without it.
        return_inverse: also the place of each element (or slice) in the result.
        return_counts: also how often each is there. NaN is equal to nothing, not even NaN.

    Raises:
        UnsupportedError: the dtype is complex. ShapeError: slices without elements.
    """
    x, along, rows = _slices("unique", input, dim)
    order = None
    if dim is not None:
        if x._off_host:
            order = wrap(np.arange(len(rows))).to(x.device)
            for column in reversed(rows.unbind(1)):
                order = order[sort(column[order]).indices]
        else:
            order = wrap(np.lexsort(rows._host_array().T[::-1]) if rows.numel() else np.arange(len(rows)))
        x = x.index_select(along, order)
    elif return_inverse:
        x, order = sort(x)
    else:
        x = in_order(x)
    found = _groups(x, along, order, input.shape if dim is None else (len(rows),), return_inverse, return_counts)
    function, node = ("_unique2", "Unique2Backward0") if dim is None else ("unique_dim", "UniqueDimBackward0")
    return underived(function, found, input, name=node)


@public(method=True)
def unique_consecutive(
    input: Tensor, return_inverse: bool = False, return_counts: bool = False, dim: int | None = None
) -> Any:
    """The unique consecutive elements (or slices along `dim`): those that differ from the one before.

    >>> import tritensor as torch
    >>> torch.tensor([1, 1, 2, 1]).unique_consecutive()
    tensor([1, 2, 1])
    """
    x, along, rows = _slices("unique_consecutive", input, dim)
    found = _groups(x, along, None, input.shape if dim is None else (len(rows),), return_inverse, return_counts)
    return underived("unique_consecutive", found, input, name="UniqueConsecutiveBackward0")


def _slices(name: str, input: Tensor, dim: int | None) -> tuple[Tensor, int, Tensor]:
    """The elements in one dimension, or the tensor itself; the dimension; and as rows what lies at each place of it."""
    check_tensor(name, "input", 1, input)
    if input.is_complex():
        words = f"\"{name}\" not implemented for '{input.dtype.legacy}'"
        raise UnsupportedError(words, "complex numbers have no order")
    x = input.detach()
    if dim is None:
        return x.reshape(-1), 0, x
    dim = layout.normalize_dim(dim, x.ndim)
    if x._data.shape.count(0) > (not x.shape[dim]):
        raise ShapeError("There are 0 sized dimensions, and they aren't selected, so unique cannot be applied")
    return x, dim, x.movedim(dim, 0).reshape(x.shape[dim], x.numel() // max(x.shape[dim], 1))


def _groups(x: Tensor, dim: int, order: Tensor | None, shape: Any, inverse: bool, counts: bool) -> Any:
    """The first slice of each run of equal ones, and as asked for the runs' numbers, in the original order, and sizes.

    Args:
        order: the place that each slice of `x` came from.
        shape: that of the runs' numbers.
    """
    size = x.shape[dim]
    rest = max(size - 1, 0)
    new = x.narrow(dim, size - rest, rest) != x.narrow(dim, 0, rest)
    if new.ndim > 1:
        new = new.movedim(dim, 0).reshape(rest, x.numel() // max(size, 1)).any(1)
    new = cat([new.new_ones(size - rest), new])
    begins = nonzero(new).reshape(-1)
    found = [x.index_select(dim, begins)]
    if inverse:
        numbers = new.cumsum(0) - 1
        found.append((numbers if order is None else numbers.scatter(0, order, numbers)).reshape(shape))
    if counts:
        found.append(cat([begins[1:], begins.new_full((size - rest,), size)]) - begins)
    return tuple(found) if len(found) > 1 else found[0]


@public(out=takes_out())
def isin(elements: Any, test_elements: Any, *, assume_unique: bool = False, invert: bool = False) -> Tensor:
    """Tests if each element is among `test_elements`; with `invert` if it is not. One of them may be a number.

    >>> import tritensor as torch
    >>> torch.isin(torch.tensor([[1, 2], [3, 4]]), torch.tensor([2, 3]))
    tensor([[False,  True],
            [ True, False]])

    Args:
        assume_unique: taken for PyTorch's sake; it changes nothing.

    Raises:
        DtypeError: the dtype is complex. ArgumentError: both are numbers.
    """
    given = elements if isinstance(elements, Tensor) else test_elements
    if not isinstance(given, Tensor):
        kinds = f"({type(elements).__name__}, {type(test_elements).__name__})"
        raise ArgumentError(f"isin() received an invalid combination of arguments - got {kinds}", "one is a tensor")
    with no_grad():
        x, among = (
            each.detach() if isinstance(each, Tensor) else wrap(np.asarray(each)).to(given.device)
            for each in (elements, test_elements)
        )
        kind = common(x.dtype, among.dtype)
        if kind.is_complex:
            raise DtypeError(f"Unsupported input type encountered for isin(): {kind.legacy}")
        kind = dtypes.uint8 if kind is dtypes.bool_ else kind
        x, among = x.to(kind), among.to(kind).reshape(-1)
        if not among.numel():
            return x.new_full(x.shape, bool(invert), dtype=dtypes.bool_)
        ordered = in_order(among)
        places = searchsorted(ordered, x).clamp(max=among.numel() - 1)
        found = ordered[places]
        return found != x if invert else found == x
