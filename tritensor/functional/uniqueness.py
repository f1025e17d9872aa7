"""Which elements there are: each once, and whether others are among them."""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import dtypes, layout
from ..arguments import check_tensor
from ..autograd.mode import no_grad
from ..dtypes import promote_types
from ..errors import ArgumentError, DtypeError, ShapeError, UnsupportedError, explain
from ..kernels.indexing.searching import searchsorted
from ..outputs import takes_out
from ..public import public
from ..tensor import Tensor, wrap
from .joining import cat
from .search import nonzero, sort


@public(method=True)
def unique(
    input: Tensor,
    sorted: bool = True,
    return_inverse: bool = False,
    return_counts: bool = False,
    dim: int | None = None,
) -> Any:
    """Each element once, in rising order; or each slice along `dim`. The host waits for their number.

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
    check_tensor("unique", "input", 1, input)
    x = _comparable("unique", input)
    if dim is None:
        x = x.reshape(-1)
        if x.is_cuda or return_inverse:
            ordered, order = sort(x)
        else:  # NumPy sorts elements alone ten times faster than with their places
            ordered, order = wrap(np.sort(x._host_array())), None
        return _groups(ordered, order, input.shape, return_inverse, return_counts)
    dim, rows = _rows(x, dim)
    if x.is_cuda:
        order = wrap(np.arange(x.shape[dim])).to(x.device)
        for column in reversed(rows.unbind(1)):
            order = order[sort(column[order]).indices]
    else:
        keys = rows._host_array().T[::-1]
        order = wrap(np.lexsort(keys) if len(keys) else np.arange(len(rows)))
    return _groups(x.index_select(dim, order), order, (len(rows),), return_inverse, return_counts, dim)


@public(method=True)
def unique_consecutive(
    input: Tensor, return_inverse: bool = False, return_counts: bool = False, dim: int | None = None
) -> Any:
    """The elements (or slices along `dim`) without those that are equal to the one before them.

    >>> import tritensor as torch
    >>> torch.tensor([1, 1, 2, 1]).unique_consecutive()
    tensor([1, 2, 1])
    """
    check_tensor("unique_consecutive", "input", 1, input)
    x = _comparable("unique_consecutive", input)
    if dim is None:
        return _groups(x.reshape(-1), None, input.shape, return_inverse, return_counts)
    dim, rows = _rows(x, dim)
    return _groups(x, None, (len(rows),), return_inverse, return_counts, dim)


def _comparable(name: str, input: Tensor) -> Tensor:
    if input.is_complex():
        words = f"\"{name}\" not implemented for '{input.dtype.legacy}'"
        raise UnsupportedError(explain(words, "complex numbers have no order"))
    return input.detach()


def _rows(x: Tensor, dim: Any) -> tuple[int, Tensor]:
    """The dimension, counted from the front, and a row for each slice along it."""
    dim = layout.normalize_dim(dim, x.ndim)
    if x._data.shape.count(0) > (not x.shape[dim]):
        raise ShapeError("There are 0 sized dimensions, and they aren't selected, so unique cannot be applied")
    rows = x.movedim(dim, 0)
    return dim, rows.reshape(rows.shape[0], -1) if x.numel() else rows.reshape(0, 1)


def _groups(
    x: Tensor, order: Tensor | None, shape: Any, inverse: bool, counts: bool, dim: int = 0
) -> Tensor | tuple[Tensor, ...]:
    """The first slice of each run of equal ones, and as asked for the runs' numbers, in the original order, and sizes.

    Args:
        order: the place that each slice of `x` came from.
        shape: that of the elements' numbers.
    """
    with no_grad():
        size = x.shape[dim]
        if not size:
            empty = x.new_empty(0, dtype=dtypes.int64)
            numbers = x.new_empty(shape, dtype=dtypes.int64)
            return _chosen(x, numbers, empty, inverse, counts)
        new = x.narrow(dim, 1, size - 1) != x.narrow(dim, 0, size - 1)
        if new.ndim > 1:
            new = new.movedim(dim, 0).reshape(size - 1, x.numel() // size).any(1)
        new = cat([new.new_ones(1), new])
        begins = nonzero(new).reshape(-1)
        values = x.index_select(dim, begins)
        numbers = extents = begins
        if inverse:
            numbers = new.cumsum(0) - 1
            if order is not None:
                numbers = numbers.scatter(0, order, numbers)
            numbers = numbers.reshape(shape)
        if counts:
            extents = cat([begins[1:], begins.new_full((1,), size)]) - begins
    return _chosen(values, numbers, extents, inverse, counts)


def _chosen(values: Tensor, numbers: Tensor, extents: Tensor, inverse: bool, counts: bool) -> Any:
    found = (values, *((numbers,) if inverse else ()), *((extents,) if counts else ()))
    return found if len(found) > 1 else values


@public(out=takes_out())
def isin(elements: Any, test_elements: Any, *, assume_unique: bool = False, invert: bool = False) -> Tensor:
    """Whether each element is among `test_elements`; with `invert` whether it is not. One of them may be a number.

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
        raise ArgumentError(
            explain(f"isin() received an invalid combination of arguments - got {kinds}", "one is a tensor")
        )
    with no_grad():
        x, among = (
            each.detach() if isinstance(each, Tensor) else wrap(np.asarray(each)).to(given.device)
            for each in (elements, test_elements)
        )
        kind = promote_types(x.dtype, among.dtype)
        if kind.is_complex:
            raise DtypeError(f"Unsupported input type encountered for isin(): {kind.legacy}")
        kind = dtypes.uint8 if kind is dtypes.bool_ else kind
        x, among = x.to(kind), among.to(kind).reshape(-1)
        if not among.numel():
            return x.new_full(x.shape, bool(invert), dtype=dtypes.bool_)
        ordered = sort(among).values if among.is_cuda else wrap(np.sort(among._host_array()))
        places = searchsorted(ordered, x).clamp(max=among.numel() - 1)
        found = ordered[places]
        return found != x if invert else found == x
