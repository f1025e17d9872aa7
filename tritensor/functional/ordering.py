"""Elements by their rank: medians, the k-th smallest, the most frequent, quantiles."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .. import dtypes, layout
from ..arguments import check_tensor, whole
from ..autograd.gradients import called
from ..autograd.levels import followed
from ..autograd.mode import no_grad
from ..errors import DtypeError, ShapeError, UnsupportedError, explain
from ..kernels.elementwise.arithmetic import where
from ..kernels.reduction import extremes
from ..kernels.reduction.family import refuse_empty
from ..kernels.reduction.functions import as_flag, as_one_dim
from ..outputs import SAME, takes_out
from ..public import public
from ..return_types import KthvalueResult, MedianResult, ModeResult, NanmedianResult
from ..tensor import Tensor, wrap
from .search import sort

_PARTLY = SAME._replace(apart="partly")

Rank = Callable[[Any, Any], Any]  # of the number of elements and of NaNs, arrays or tensors: where in their order


def _refuse_dtype(name: str, input: Tensor, lowest: int) -> None:
    check_tensor(name, "input", 1, input)
    if not lowest <= input.dtype.category <= dtypes.FLOATING:
        words = f"\"{name}_cpu\" not implemented for '{input.dtype.legacy}'"
        raise UnsupportedError(
            explain(words, f"the dtype is {input.dtype}", remedy="convert the input with .to(dtype)")
        )


def _places(x: Tensor, dim: int, rank: Rank) -> Tensor:
    """Where along `dim`, of size 1 in the result, the element of that rank is; the first of those equal to it."""
    if x.is_cuda or followed(x):
        nans = x.isnan().sum(dim, True) if x.is_floating_point() else x.new_zeros((), dtype=dtypes.int64)
        wanted = rank(x.shape[dim], nans) + nans * 0
        wanted = wanted.expand([1 if each == dim else n for each, n in enumerate(x.shape)])
        chosen = sort(x, dim).values.gather(dim, wanted)
        return ((x == chosen) | (x.isnan() & chosen.isnan())).to(dtypes.uint8).argmax(dim, True)
    rows = _widened(np.moveaxis(x._host_array(), dim, -1))
    missing = np.isnan(rows) if rows.dtype.kind == "f" else np.zeros((), bool)
    if missing.any():
        k = rank(rows.shape[-1], missing.sum(-1, keepdims=True))
        chosen = np.take_along_axis(np.sort(rows, -1), np.broadcast_to(k, (*rows.shape[:-1], 1)), -1)
        found = (rows == chosen) | (missing & np.isnan(chosen))
    else:  # six times faster than sorting
        k = int(rank(rows.shape[-1], 0))
        found = rows == np.partition(rows, k, -1)[..., k : k + 1]
    return wrap(np.moveaxis(found.argmax(-1, keepdims=True), -1, dim))


def _widened(x: np.ndarray) -> np.ndarray:
    return (
        x
        if x.dtype.kind in "fiub" and x.dtype.itemsize != 2
        else x.astype(np.float32 if x.dtype.kind in "fV" else x.dtype)
    )


def _selected(kind: Any, input: Tensor, dim: int, keepdim: bool, places: Callable[[Tensor, int], Tensor]) -> Any:
    """The elements at places along `dim`, and these."""
    name = kind.__name__
    x = input if input.ndim else input.reshape(1)
    with no_grad():
        found = places(x.detach(), dim)
    values = x.gather(dim, found)
    if not (as_flag(name, keepdim) and input.ndim):
        values, found = (each.squeeze(dim).clone() for each in (values, found))  # no views, whose nodes have other names
    return kind(called(f"{name.capitalize()}Backward{int('median' in name)}", values), found)


def _median(kind: Any, input: Tensor, dim: Any, keepdim: bool, rank: Rank) -> Any:
    name = kind.__name__
    _refuse_dtype(name, input, dtypes.INTEGER)
    if dim is not None:
        dim = layout.normalize_dim(as_one_dim(name, dim), input.ndim)
        shape = input._data.shape
        if shape and not shape[dim]:
            refuse_empty(name, shape, (dim,), False)
        return _selected(kind, input, dim, keepdim, lambda x, dim: _places(x, dim, rank))
    flat = input.reshape(-1)
    if not flat.numel():
        whole_number = input.dtype.category < dtypes.FLOATING
        return input.new_full((), np.iinfo(input.dtype.numpy).min if whole_number else float("nan"))
    with no_grad():
        x = flat.detach()
        chosen = x.gather(0, _places(x, 0, rank)).reshape(())
    if not followed(input):
        return chosen
    # the largest of those that are not above it, whose gradient is divided among equal ones
    kept = ~(flat > chosen) if name == "median" else (flat <= chosen) | chosen.isnan()
    below = where(kept, flat, -float("inf"))
    return called(f"{name.capitalize()}Backward0", extremes.largest.reduce(below, None, False))


@public(method=True, out=takes_out(_PARTLY))
def median(input: Tensor, dim: int | None = None, keepdim: bool = False) -> Any:
    """The median of all elements; or along `dim`, with indices: of an even number the lower one of the two in the middle.

    NaN if there is one. The gradient of the median of all is divided among equal elements.

    >>> import tritensor as torch
    >>> torch.tensor([3.0, 1.0, 2.0, 4.0]).median(), torch.tensor([[3, 1, 2]]).median(1).indices
    (tensor(2.), tensor([2]))

    Raises:
        UnsupportedError: the dtype is boolean or complex. RangeError: there are no elements along `dim`.
    """
    return _median(MedianResult, input, dim, keepdim, _middle)


@public(method=True, out=takes_out(_PARTLY))
def nanmedian(input: Tensor, dim: int | None = None, keepdim: bool = False) -> Any:
    """The median of the elements that are not NaN; NaN if there are none.

    >>> import tritensor as torch
    >>> torch.tensor([float("nan"), 1.0, 2.0]).nanmedian()
    tensor(1.)
    """
    return _median(NanmedianResult, input, dim, keepdim, lambda size, nans: (_clipped(size - nans - 1)) // 2)


def _middle(size: int, nans: Any) -> Any:
    return (size - 1) // 2 + (nans > 0) * (size - nans - (size - 1) // 2)


def _clipped(k: Any) -> Any:
    return k * (k > 0)


@public(method=True, out=takes_out(_PARTLY))
def kthvalue(input: Tensor, k: int, dim: int = -1, keepdim: bool = False) -> KthvalueResult:
    """The `k`-th smallest element along `dim`, counted from 1, and its index. NaN is larger than every number.

    >>> import tritensor as torch
    >>> torch.tensor([3.0, 1.0, 2.0]).kthvalue(2).values
    tensor(2.)

    Raises:
        ShapeError: there are fewer elements. UnsupportedError: the dtype is boolean or complex.
    """
    _refuse_dtype("kthvalue", input, dtypes.INTEGER)
    dim, k = layout.normalize_dim(as_one_dim("kthvalue", dim), input.ndim), whole("kthvalue", "k", k)
    shape = input._data.shape
    if shape and not shape[dim]:
        refuse_empty("kthvalue", shape, (dim,), False)
    if not 1 <= k <= (shape[dim] if shape else 1):
        words = "kthvalue(): selected number k out of range for dimension "
        raise ShapeError(explain(f"{words}{dim}", f"k is {k}, and the shape {shape}"))
    rank: Rank = lambda size, nans: k - 1  # noqa: E731
    return _selected(KthvalueResult, input, dim, keepdim, lambda x, dim: _places(x, dim, rank))  # type: ignore[no-any-return]


@public(method=True, out=takes_out(_PARTLY))
def mode(input: Tensor, dim: int = -1, keepdim: bool = False) -> ModeResult:
    """The element along `dim` that is there most often, of several the smallest, and the last index where it is.

    >>> import tritensor as torch
    >>> torch.tensor([3, 1, 3, 1, 2]).mode()
    torch.return_types.mode(
    values=tensor(1),
    indices=tensor(3))
    """
    _refuse_dtype("mode", input, dtypes.BOOLEAN)
    dim = layout.normalize_dim(as_one_dim("mode", dim), input.ndim)
    shape = input._data.shape
    if shape and not shape[dim]:
        refuse_empty("mode", shape, (dim,), False)
    return _selected(ModeResult, input, dim, keepdim, _most_frequent)  # type: ignore[no-any-return]


def _most_frequent(x: Tensor, dim: int) -> Tensor:
    """The last index of the longest run of equal elements in rising order, the first of these runs."""
    (values, indices), rest = sort(x, dim), x.shape[dim] - 1
    again = values.narrow(dim, 1, rest) == values.narrow(dim, 0, rest)
    places = wrap(np.arange(1, rest + 1)).to(x.device).reshape([-1 if each == dim else 1 for each in range(x.ndim)])
    run = indices.new_zeros(x.shape)  # how many of the elements before each are equal to it
    run.narrow(dim, 1, rest).copy_(places - where(again, 0, places).cummax(dim).values)
    return indices.gather(dim, run.argmax(dim, True))


@public(method=True, out=takes_out(_PARTLY))
def msort(input: Tensor) -> Tensor:
    """The elements in rising order along the first dimension."""
    return sort(input, 0).values


# ---- quantiles ------------------------------------------------------------------------------------------------

_LARGEST = 16_000_000  # PyTorch's limit
_WAYS = ("linear", "lower", "higher", "midpoint", "nearest")


@public(method=True, out=takes_out(_PARTLY))
def quantile(
    input: Tensor, q: Any, dim: int | None = None, keepdim: bool = False, *, interpolation: str = "linear"
) -> Tensor:
    """The `q`-th quantiles of all elements, or along `dim`; of several `q` along a new first dimension.

    Between two elements the quantile is interpolated: "linear", "lower", "higher", "midpoint" or "nearest". NaN if there
    is one.

    >>> import tritensor as torch
    >>> torch.arange(5.0).quantile(torch.tensor([0.25, 0.9]))
    tensor([1.0000, 3.6000])

    Raises:
        ShapeError: `q` is out of [0, 1] or has two dimensions; there are no elements. DtypeError: another dtype than
            float32 and float64, or another one of `q`.
    """
    return _quantile("quantile", input, q, dim, keepdim, interpolation)


@public(method=True, out=takes_out(_PARTLY))
def nanquantile(
    input: Tensor, q: Any, dim: int | None = None, keepdim: bool = False, *, interpolation: str = "linear"
) -> Tensor:
    """`quantile` of the elements that are not NaN; NaN if there are none.

    >>> import tritensor as torch
    >>> torch.tensor([float("nan"), 1.0, 2.0]).nanquantile(0.5)
    tensor(1.5000)
    """
    return _quantile("nanquantile", input, q, dim, keepdim, interpolation)


def _quantile(name: str, input: Tensor, q: Any, dim: Any, keepdim: bool, way: str) -> Tensor:
    x, shape = _checked(name, input, dim, as_flag(name, keepdim), way)
    if not isinstance(q, Tensor):
        if not 0 <= q <= 1:
            raise ShapeError(f"{name}() q must be in the range [0, 1] but got {q:g}")
        q = wrap(np.asarray(q, x.dtype.numpy)).to(x.device)
    if q.ndim > 1:
        raise ShapeError(f"{name}() q must be a scalar or 1D tensor")
    if q.dtype is not x.dtype:
        raise DtypeError(
            explain(f"{name}() q tensor must be same dtype as the input tensor", f"they are {q.dtype} and {x.dtype}")
        )
    if q.device != x.device:
        raise ShapeError(f"{name}() q tensor must be on the same device as the input tensor")
    if not q.is_cuda and not bool(((q >= 0) & (q <= 1)).all()):
        raise ShapeError(f"{name}() q values must be in the range [0, 1]")
    last = x.shape[-1] - 1
    missing = x.isnan()
    if name == "nanquantile":
        ranks = q.reshape(-1) * (last - missing.sum(-1, True)).clamp(min=0).to(x.dtype)
    else:
        ranks = where(missing.any(-1, True), float(last), q.reshape(-1) * last)
    round_to = {"lower": "floor", "higher": "ceil", "nearest": "round"}.get(way)
    ranks = getattr(ranks, round_to)() if round_to else ranks
    below, above = ranks.floor().long(), ranks.ceil().long()
    ordered = _in_place(x, below, above) if name == "quantile" else sort(x).values
    found = ordered.gather(-1, below)
    if not round_to:
        found = found.lerp(ordered.gather(-1, above), 0.5 if way == "midpoint" else ranks - below)
    found = found.movedim(-1, 0) if q.ndim else found.squeeze(-1)
    return called("SqueezeBackward4", found.reshape((*q.shape, *shape)).clone())  # type: ignore[no-any-return]


def _checked(name: str, input: Tensor, dim: Any, keepdim: bool, way: str) -> tuple[Tensor, tuple[int, ...]]:
    """The elements with the dimension that is reduced as the last one, and the shape of the result."""
    check_tensor(name, "input", 1, input)
    if not input.numel():
        raise ShapeError(f"{name}() input tensor must be non-empty")
    if input.dtype not in (dtypes.float32, dtypes.float64):
        raise DtypeError(explain(f"{name}() input tensor must be either float or double dtype", f"it is {input.dtype}"))
    if way not in _WAYS:
        raise ShapeError(
            f"{name}() interpolation must be one of linear, lower, higher, midpoint or nearest, but got {way}"
        )
    if dim is None:
        x, shape = input.reshape(-1), (1,) * input.ndim if keepdim else ()
    else:
        dim = layout.normalize_dim(as_one_dim(name, dim), input.ndim)
        x = input.movedim(dim, -1) if input.ndim else input.reshape(1)
        shape = tuple([1 if each == dim else size for each, size in enumerate(input.shape) if keepdim or each != dim])
    if x.shape[-1] > _LARGEST:
        raise ShapeError(f"{name}() input tensor is too large")
    return x, shape


def _in_place(x: Tensor, *ranks: Tensor) -> Tensor:
    """The rows with the elements of these ranks where sorting brings them, and a NaN at the end."""
    if x.is_cuda or followed(x):
        return sort(x).values
    wanted = np.unique([each._host_array() for each in ranks])
    return wrap(np.partition(x._host_array(), [*wanted, x.shape[-1] - 1], -1))
