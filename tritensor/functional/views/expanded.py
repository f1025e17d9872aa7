"""In-place writes to expanded tensors, whose elements share memory: the few that PyTorch allows.

A write to an expanded tensor is a write to the tensor before it was expanded, at the places that the elements have
there. Where several values are written to one place, the last one stays.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...errors import warn
from ...kernels.indexing.family import check_bounds, mark_checked_range
from ...kernels.indexing.reference import indexed_shape
from ...memory.array import DeviceArray
from ...operators.inplace import OverlapError, in_place_form
from ...tensors import Tensor
from ...types import dtypes, layout
from ..indexing.index_keys import Places
from .joining import stack
from .views import basic_index


def collapsed(x: Tensor) -> tuple[Tensor, tuple[int, ...]]:
    """The view with one element of each expanded dimension, and these dimensions."""
    data = x._data if x._data.__class__ is DeviceArray else x._host_array()
    pairs = enumerate(zip(data.strides, data.shape, strict=True))
    dims = tuple([dim for dim, (stride, extent) in pairs if stride == 0 and extent > 1])
    return basic_index(x, tuple([slice(0, 1) if dim in dims else slice(None) for dim in range(data.ndim)])), dims


def form(write: Callable[..., Any]) -> Callable[..., Any]:
    """Makes the in-place form of a function that PyTorch allows on expanded tensors; `write` is that case."""

    def made(function: Callable[..., Tensor]) -> Callable[..., Tensor]:
        plain = in_place_form(function)

        def call(self: Tensor, *args: Any, **metadata: Any) -> Tensor:
            try:
                return plain(self, *args, **metadata)
            except OverlapError:
                _warn(plain.__name__, "tensor[mask] = scalar")
                write(function, self, *args, **metadata)
                return self

        call.__name__, call.__doc__ = plain.__name__, plain.__doc__
        call.__wrapped__ = function  # type: ignore[attr-defined]  # its signature is the function's
        return call

    return made


def _warn(name: str, example: str) -> None:
    warn(
        f"Use of {name} on expanded tensors is deprecated. Please clone() the tensor before performing this operation. "
        f"This also applies to advanced indexing e.g. {example}"
    )


def masked_fill(function: Callable[..., Any], x: Tensor, mask: Tensor, value: object) -> None:
    """`masked_fill_` of an expanded tensor: an element is filled if the mask holds for one that shares its memory."""
    view, dims = collapsed(x)
    function(x, mask, value)  # for its errors
    view.masked_fill_(mask.expand(x.shape).any(dims, keepdim=True), value)


def index_fill(function: Callable[..., Any], x: Tensor, dim: int, index: Tensor, value: object) -> None:
    """`index_fill_` of an expanded tensor."""
    view, dims = collapsed(x)
    function(x, dim, index, value)  # for its errors
    view.index_fill_(dim, index * 0 if layout.normalize_dim(dim, x.ndim) in dims else index, value)


def put(write: Callable[..., Any], places: Places, value: Any, accumulate: bool) -> None:
    """`write(places, value, accumulate)` to an expanded tensor."""
    _warn("index_put_", "tensor[indices] = tensor")
    x, positions, dims, of_mask = places
    assert positions is not None
    for row, dim in zip(positions.unbind(0), dims, strict=True):
        check_bounds(row, x._data.shape[dim], dim)
    view, expanded = collapsed(x)
    shape = positions._data.shape[1:]
    target = indexed_shape(x._data.shape, shape, dims)
    first = dims[0] if dims == tuple(range(dims[0], dims[0] + len(dims))) else 0
    rest = [dim for dim in range(x.ndim) if dim not in dims]
    # the dimensions of the value that are not indexed, but expanded
    along = [place + (place >= first) * len(shape) for place, dim in enumerate(rest) if dim in expanded]
    if isinstance(value, Tensor) and along:
        value = value.expand(target)
        if accumulate:
            value = value.sum(along, keepdim=True, dtype=value.dtype)
        else:
            key = [slice(extent - 1, extent) if at in along else slice(None) for at, extent in enumerate(target)]
            value = basic_index(value, tuple(key))
    rows = [row * 0 if dim in expanded else row for row, dim in zip(positions.unbind(0), dims, strict=True)]
    moved = stack([row.to(dtypes.int64) for row in rows])
    mark_checked_range(moved)
    write(Places(view, moved, dims, of_mask), value, accumulate)
