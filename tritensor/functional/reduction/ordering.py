"""Order statistics: medians, the k-th smallest, the most frequent, quantiles."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from ...autograd.gradients import called
from ...autograd.levels import followed
from ...autograd.mode import no_grad
from ...errors import DtypeError, ShapeError, UnsupportedError, require
from ...ground.arguments import check_tensor, whole
from ...ground.public import public
from ...kernels.elementwise.arithmetic import where
from ...kernels.reduction import extremes
from ...kernels.reduction.family import refuse_empty
from ...kernels.reduction.functions import as_flag, as_one_dim
from ...operators.outputs import SAME, takes_out
from ...tensors import Tensor, wrap
from ...tensors.results import KthvalueResult, MedianResult, ModeResult, NanmedianResult
from ...types import dtypes, layout
from ..indexing.search import in_order, sort

_PARTLY = SAME._replace(apart="partly")
_LARGEST = 16_000_000  # PyTorch's limit for quantiles
_WAYS = {"linear": "", "midpoint": "", "lower": "floor", "higher": "ceil", "nearest": "round"}

Rank = Callable[[int, Any], Any]  # of the number of elements and of NaNs among them: where in their order


def _checked(name: str, input: Tensor, dim: int, lowest: int = dtypes.INTEGER) -> int:
    """The dimension, counted from the front."""
    check_tensor(name, "input", 1, input)
    if not lowest <= input.dtype.category <= dtypes.FLOATING:
        words = f"\"{name}_cpu\" not implemented for '{input.dtype.legacy}'"
        raise UnsupportedError(words, f"the dtype is {input.dtype}", remedy="convert the input with .to(dtype)")
    dim = layout.normalize_dim(as_one_dim(name, dim), input.ndim)
    if input.ndim and not input.shape[dim]:
        refuse_empty(name, tuple(input.shape), (dim,), False)
    return dim


def _places(x: Tensor, dim: int, rank: Rank) -> Tensor:
    """The index along `dim`, of size 1 in the result, of the element of that rank; the first of those equal to it."""
    if x._off_host or followed(x):
        nans = x.isnan().sum(dim, True)
        wanted = (rank(x.shape[dim], nans) + nans * 0).expand([1 if i == dim else n for i, n in enumerate(x.shape)])
        chosen = in_order(x, dim).gather(dim, wanted)
        return ((x == chosen) | (x.isnan() & chosen.isnan())).to(dtypes.uint8).argmax(dim, True)
    rows = np.moveaxis(x._host_array(), dim, -1)
    if rows.dtype.itemsize == 2 and x.is_floating_point():
        rows = rows.astype(np.float32)
    missing = np.isnan(rows) if rows.dtype.kind == "f" else np.zeros((), bool)
    if missing.any():
        k = rank(rows.shape[-1], missing.sum(-1, keepdims=True))
        there = np.take_along_axis(np.sort(rows, -1), np.broadcast_to(k, (*rows.shape[:-1], 1)), -1)
        found = (rows == there) | (missing & np.isnan(there))
    else:  # six times faster than sorting
        k = int(rank(rows.shape[-1], 0))
        found = rows == np.partition(rows, k, -1)[..., k : k + 1]
    return wrap(np.moveaxis(found.argmax(-1, keepdims=True), -1, dim))


def _selected(kind: type, input: Tensor, dim: int, keepdim: bool, places: Callable[[Tensor, int], Tensor]) -> Any:
    """The elements at places along `dim`, and these."""
    name, x = kind.__name__, input if input.ndim else input.reshape(1)
    with no_grad():
        found = places(x.detach(), dim)
    values = x.gather(dim, found)
    if not (as_flag(name, keepdim) and input.ndim):
        values, found = (
            each.squeeze(dim).clone() for each in (values, found)
        )  # no views, whose nodes have other names
    return kind(called(f"{name.capitalize()}Backward{int('median' in name)}", values), found)


def _median(kind: type, input: Tensor, dim: int | None, keepdim: bool, rank: Rank) -> Any:
    name = kind.__name__
    if dim is not None:
        return _selected(kind, input, _checked(name, input, dim), keepdim, partial(_places, rank=rank))
    check_tensor(name, "input", 1, input)
    flat = input.reshape(-1)
    if not flat.numel():
        return input.new_full((), float("nan") if input.is_floating_point() else np.iinfo(input.dtype.numpy).min)
    with no_grad():
        chosen = flat.detach().gather(0, _places(flat.detach(), _checked(name, flat, 0), rank)).reshape(())
    if not followed(input):
        return chosen
    # the largest of those that are not above it, whose gradient is divided among equal ones
    kept = ~(flat > chosen) if name == "median" else (flat <= chosen) | chosen.isnan()
    found = extremes.largest.reduce(where(kept, flat, -float("inf")), None, False)
    return called(f"{name.capitalize()}Backward0", found)


@public(method=True, out=takes_out(_PARTLY))
def median(input: Tensor, dim: int | None = None, keepdim: bool = False) -> Any:
    """The median of all elements, or along `dim` with indices; of an even number the lower one in the middle.

    NaN if there is one. The gradient of the median of all is divided among equal elements.

    >>> import tritensor as torch
    >>> torch.tensor([3.0, 1.0, 2.0, 4.0]).median(), torch.tensor([[3, 1, 2]]).median(1).indices
    (tensor(2.), tensor([2]))

    Raises:
        UnsupportedError: the dtype is boolean or complex. RangeError: there are no elements along `dim`.
    """

    def rank(size: int, nans: Any) -> Any:
        middle = (size - 1) // 2
        return middle + (nans > 0) * (size - nans - middle)

    return _median(MedianResult, input, dim, keepdim, rank)


@public(method=True, out=takes_out(_PARTLY))
def nanmedian(input: Tensor, dim: int | None = None, keepdim: bool = False) -> Any:
    """The median of the elements that are not NaN; NaN if there are none.

    >>> import tritensor as torch
    >>> torch.tensor([float("nan"), 1.0, 2.0]).nanmedian()
    tensor(1.)
    """
    return _median(NanmedianResult, input, dim, keepdim, lambda size, nans: (size - nans - (nans < size) * 1) // 2)


@public(method=True, out=takes_out(_PARTLY))
def kthvalue(input: Tensor, k: int, dim: int = -1, keepdim: bool = False) -> KthvalueResult:
    """The `k`-th smallest element along `dim`, counted from 1, and its index. NaN is larger than every number.

    >>> import tritensor as torch
    >>> torch.tensor([3.0, 1.0, 2.0]).kthvalue(2).values
    tensor(2.)

    Raises:
        ShapeError: there are fewer elements. UnsupportedError: the dtype is boolean or complex.
    """
    dim, k = _checked("kthvalue", input, dim), whole("kthvalue", "k", k)
    if not 1 <= k <= (input.shape[dim] if input.ndim else 1):
        words = f"kthvalue(): selected number k out of range for dimension {dim}"
        raise ShapeError(words, f"k is {k}, and the shape {tuple(input.shape)}")
    places = partial(_places, rank=lambda size, nans: k - 1)
    return _selected(KthvalueResult, input, dim, keepdim, places)


@public(method=True, out=takes_out(_PARTLY))
def mode(input: Tensor, dim: int = -1, keepdim: bool = False) -> ModeResult:
    """The mode (most frequent element) along `dim`, of several the smallest, and the last index where it is.

    >>> import tritensor as torch
    >>> torch.tensor([3, 1, 3, 1, 2]).mode()
    torch.return_types.mode(
    values=tensor(1),
    indices=tensor(3))
    """

    def most_frequent(x: Tensor, dim: int) -> Tensor:
        values, rest = in_order(x, dim), x.shape[dim] - 1
        again = values.narrow(dim, 1, rest) == values.narrow(dim, 0, rest)
        places = wrap(np.arange(1, rest + 1)).to(x.device).reshape([-1 if i == dim else 1 for i in range(x.ndim)])
        run = x.new_zeros(x.shape, dtype=dtypes.int64)  # how many of the elements before each are equal to it
        run.narrow(dim, 1, rest).copy_(places - where(again, 0, places).cummax(dim).values)
        found = x == values.gather(dim, run.argmax(dim, True))
        return rest - found.flip(dim).to(dtypes.uint8).argmax(dim, True)

    dim = _checked("mode", input, dim, dtypes.BOOLEAN)
    return _selected(ModeResult, input, dim, keepdim, most_frequent)


@public(method=True, out=takes_out(_PARTLY))
def msort(input: Tensor) -> Tensor:
    """Sorts along the first dimension in ascending order."""
    return sort(input, 0).values


@public(method=True, out=takes_out(_PARTLY), autocast={"cpu": "float32"})
def quantile(
    input: Tensor, q: Any, dim: int | None = None, keepdim: bool = False, *, interpolation: str = "linear"
) -> Tensor:
    """The `q`-th quantiles of all elements, or along `dim`; of several `q` along a new first dimension.

    Between two elements the quantile is interpolated: "linear", "lower", "higher", "midpoint" or "nearest". NaN if
    there is one.

    >>> import tritensor as torch
    >>> torch.arange(5.0).quantile(torch.tensor([0.25, 0.9]))
    tensor([1.0000, 3.6000])

    Raises:
        ShapeError: `q` is out of [0, 1] or has two dimensions; there are no elements. DtypeError: another dtype than
            float32 and float64, or another one of `q`.
    """
    return _quantile("quantile", input, q, dim, as_flag("quantile", keepdim), interpolation)


@public(method=True, out=takes_out(_PARTLY), autocast={"cpu": "float32"})
def nanquantile(
    input: Tensor, q: Any, dim: int | None = None, keepdim: bool = False, *, interpolation: str = "linear"
) -> Tensor:
    """The quantiles (`quantile`) of the elements that are not NaN; NaN if there are none.

    >>> import tritensor as torch
    >>> torch.tensor([float("nan"), 1.0, 2.0]).nanquantile(0.5)
    tensor(1.5000)
    """
    return _quantile("nanquantile", input, q, dim, as_flag("nanquantile", keepdim), interpolation)


def _quantile(name: str, input: Tensor, q: Any, dim: Any, keepdim: bool, way: str) -> Tensor:
    q = _checked_quantile(name, input, q, way)
    rank, dims = input.ndim, range(input.ndim)
    dim = None if dim is None else layout.normalize_dim(as_one_dim(name, dim), rank)
    x = input.reshape(-1) if dim is None or not rank else input.movedim(dim, -1)
    shape = [1 if dim in (None, i) else input.shape[i] for i in dims if keepdim or dim not in (None, i)]
    last = x.shape[-1] - 1
    if last >= _LARGEST:
        raise ShapeError(f"{name}() input tensor is too large")
    if name == "nanquantile":
        ranks = q.reshape(-1) * (last - x.isnan().sum(-1, True)).clamp(min=0).to(x.dtype)
    else:
        ranks = where(x.isnan().any(-1, True), float(last), q.reshape(-1) * last)
    ranks = getattr(ranks, _WAYS[way])() if _WAYS[way] else ranks
    below, above = ranks.floor().long(), ranks.ceil().long()
    if name == "nanquantile" or x._off_host or followed(x):
        ordered = sort(x).values
    else:  # with a NaN at the end of its row, if there is one
        wanted = {*below._host_array().flat, *above._host_array().flat, last}
        ordered = wrap(np.partition(x._host_array(), sorted(wanted), -1))
    found = ordered.gather(-1, below)
    if not _WAYS[way]:
        found = found.lerp(ordered.gather(-1, above), 0.5 if way == "midpoint" else ranks - below)
    found = found.movedim(-1, 0).reshape((*q.shape, *shape)).clone()  # no view, whose node has another name
    return called("SqueezeBackward4", found)


def _checked_quantile(name: str, input: Tensor, q: Tensor | float, way: str) -> Tensor:
    """`q` as a tensor."""
    check_tensor(name, "input", 1, input)
    require(input.numel(), ShapeError, "{}() input tensor must be non-empty", name)
    if input.dtype not in (dtypes.float32, dtypes.float64):
        raise DtypeError(f"{name}() input tensor must be either float or double dtype", f"it is {input.dtype}")
    if way not in _WAYS:
        words = "linear, lower, higher, midpoint or nearest"
        raise ShapeError(f"{name}() interpolation must be one of {words}, but got {way}")
    if not isinstance(q, Tensor):
        require(0 <= q <= 1, ShapeError, "{}() q must be in the range [0, 1] but got {:g}", name, q)
        return wrap(np.asarray(q, input.dtype.numpy)).to(input.device)
    require(q.ndim <= 1, ShapeError, "{}() q must be a scalar or 1D tensor", name)
    if q.dtype is not input.dtype:
        words = f"{name}() q tensor must be same dtype as the input tensor"
        raise DtypeError(words, f"they are {q.dtype} and {input.dtype}")
    require(q.device == input.device, ShapeError, "{}() q tensor must be on the same device as the input tensor", name)
    if not q._off_host and not bool(((q >= 0) & (q <= 1)).all()):
        raise ShapeError(f"{name}() q values must be in the range [0, 1]")
    return q
