"""Elements sorted into bins: where they belong, and how many are in each."""

from __future__ import annotations

from math import isfinite, prod
from typing import Any

import numpy as np

from .. import dtypes
from ..arguments import check_tensor, whole
from ..autograd.mode import no_grad
from ..errors import ArgumentError, DtypeError, ShapeError, UnsupportedError, explain
from ..kernels.elementwise.arithmetic import where
from ..kernels.indexing.family import value_range
from ..kernels.indexing.searching import searchsorted as search
from ..outputs import SAME, takes_out
from ..public import public
from ..return_types import HistogramddResult, HistogramResult
from ..tensor import Tensor, wrap

_RANGE = range  # which a parameter of histograms hides


@public(out=takes_out())
def searchsorted(
    sorted_sequence: Tensor,
    input: Any,
    *,
    out_int32: bool = False,
    right: bool = False,
    side: str | None = None,
    sorter: Tensor | None = None,
) -> Tensor:
    """Where each element has to be inserted so that the sequence stays sorted: before equal ones, or after them.

    >>> import tritensor as torch
    >>> torch.searchsorted(torch.tensor([1, 3, 5, 7]), torch.tensor([3, 6, 9]))
    tensor([1, 3, 4])

    Args:
        sorted_sequence: (n), or (..., n) with a row for each row of `input`, (..., m).
        input: a tensor, or a number if the sequence has one dimension.
        right: after equal ones; as is `side="right"`.
        sorter: the indices that sort an unsorted sequence.

    Raises:
        ShapeError: the shapes do not fit, or an index of `sorter` is out of bounds. DtypeError: that of `sorter` is not
            int64. UnsupportedError: boolean or complex dtypes.
    """
    name = "torch.searchsorted():"
    check_tensor("searchsorted", "sorted_sequence", 1, sorted_sequence)
    if side not in (None, "left", "right"):
        raise ShapeError(f"{name} side can only be 'left' or 'right' but got {side}")
    if right and side == "left":
        raise ShapeError(f"{name} side and right can't be set to opposites, got side of left while right was True")
    x, shape = _looked_up(input, sorted_sequence), list(sorted_sequence.shape)
    if not shape:
        raise ShapeError(f"{name} boundaries tensor should have positive dimension, but got 0 dimension")
    if not x.ndim and len(shape) > 1:
        raise ShapeError(
            f"{name} input value can be a scalar only when boundaries tensor dimension is 1, but we got boundaries "
            f"tensor dim({len(shape)}) and input value's dim(0) numel(1)"
        )
    if len(shape) > 1 and (x.ndim != len(shape) or shape[:-1] != list(x.shape[:-1])):
        raise ShapeError(
            f"{name} boundaries tensor should be 1 dimension or the first N-1 dimensions of boundaries tensor and input "
            f"value tensor must match, but we got boundaries tensor {shape} and input value tensor {list(x.shape)}"
        )
    if sorter is not None:
        if sorter.shape != sorted_sequence.shape:
            raise ShapeError(
                f"{name} boundary and sorter must have the same size, but got boundary tensor {shape}"
                f"and got sorter tensor {list(sorter.shape)}"
            )
        if sorter.dtype is not dtypes.int64:
            raise DtypeError(f"{name} sorter must be a tensor of long dtype but got dtype {sorter.dtype.legacy}")
        low, high = value_range(sorter)
        if low < 0 or high >= max(shape[-1], 1):
            raise ShapeError(f"{name} sorter index out of range")
    return _searched(sorted_sequence, x, sorter, right or side == "right", out_int32)


@public(out=takes_out())
def bucketize(input: Any, boundaries: Tensor, *, out_int32: bool = False, right: bool = False) -> Tensor:
    """The number of the interval between sorted boundaries that each element is in.

    A boundary belongs to the interval below it, with `right` to the one above.

    >>> import tritensor as torch
    >>> torch.bucketize(torch.tensor([0.5, 1.0, 2.5]), torch.tensor([1.0, 2.0]))
    tensor([0, 0, 2])

    Raises:
        ShapeError: the boundaries have another number of dimensions than one. UnsupportedError: boolean or complex dtypes.
    """
    check_tensor("bucketize", "boundaries", 2, boundaries)
    if boundaries.ndim != 1:
        raise ShapeError(f"boundaries tensor must be 1 dimension, but got dim({boundaries.ndim})")
    return _searched(boundaries, _looked_up(input, boundaries), None, right, out_int32)


def _looked_up(x: Any, boundaries: Tensor) -> Tensor:
    return (
        x
        if isinstance(x, Tensor)
        else wrap(np.asarray(x, np.float32 if type(x) is float else None)).to(boundaries.device)
    )


def _searched(boundaries: Tensor, x: Tensor, sorter: Tensor | None, right: bool, narrow: bool) -> Tensor:
    with no_grad():
        return search(boundaries, x, sorter, right=bool(right), narrow=bool(narrow))  # type: ignore[no-any-return]


@public(method=True)
def bincount(input: Tensor, weights: Tensor | None = None, minlength: int = 0) -> Tensor:
    """How often each number from 0 on is in a vector of integers; or the sums of the weights of its elements.

    The host waits for the largest.

    >>> import tritensor as torch
    >>> torch.bincount(torch.tensor([0, 2, 2]), minlength=4)
    tensor([1, 0, 2, 0])

    Raises:
        ShapeError: another number of dimensions, a negative element, weights of another shape. UnsupportedError: the dtype
            is not an integer dtype.
    """
    check_tensor("bincount", "input", 1, input)
    if input.dtype.category != dtypes.INTEGER:
        words = f"\"bincount_cpu\" not implemented for '{input.dtype.legacy}'"
        raise UnsupportedError(explain(words, f"it takes integer dtypes, got {input.dtype}"))
    if minlength < 0:
        raise ShapeError("minlength should be >= 0")
    low, high = value_range(input)
    if input.ndim != 1 or low < 0:
        raise ShapeError(
            explain(
                "bincount only supports 1-d non-negative integral inputs.",
                f"the shape is {tuple(input.shape)}, the smallest element {low}",
            )
        )
    if weights is not None and weights.shape != input.shape:
        raise ShapeError("weights should be 1-d and have the same length as input")
    kind = dtypes.int64
    if weights is not None and input.numel():
        kind = dtypes.float32 if weights.dtype is dtypes.float32 else dtypes.float64
    count = max(high + 1, whole("bincount", "minlength", minlength))
    if input.is_cuda:
        ones = input.new_ones(input.shape, dtype=kind) if weights is None else weights.detach().to(kind)
        return input.new_zeros(count, dtype=kind).scatter_add(0, input.long(), ones)
    given = None if weights is None else weights.detach().to(dtypes.float64)._host_array()
    return wrap(np.bincount(input._host_array(), given, count).astype(kind.numpy, copy=False))


# ---- histograms -----------------------------------------------------------------------------------------------


@public(method=True, out=takes_out())
def histc(input: Tensor, bins: int = 100, min: float = 0, max: float = 0) -> Tensor:
    """How many elements are in each of `bins` equal intervals from `min` to `max`; of all elements if these are equal.

    >>> import tritensor as torch
    >>> torch.histc(torch.tensor([1.0, 2.0, 1.0]), bins=4, min=0, max=3)
    tensor([0., 2., 1., 0.])

    Raises:
        ShapeError: no bins, or bounds in the wrong order or not finite. UnsupportedError: the dtype is not floating.
    """
    bins = whole("histc", "bins", bins)
    if bins <= 0:
        raise ShapeError(f"torch.histogram(): bins must be > 0, but got {bins} for dimension 0")
    if max < min:
        raise ShapeError(explain("torch.histc: max must be larger than min", f"they are {min} and {max}"))
    x = _binned("histogram_cpu", input).reshape(-1)
    low, high = (float(min), float(max)) if min != max else _bounds(x, "torch.histc:")
    if not (isfinite(low) and isfinite(high)):
        raise ShapeError(f"torch.histc: range of [{low:g}, {high:g}] is not finite")
    if low == high:
        low, high = low - 1, high + 1
    inside = (x >= low) & (x <= high)
    places = ((where(inside, x, low) - low) * bins / (high - low)).long().clamp(max=bins - 1)
    return _counted(places, inside, bins, None, x.dtype)


@public(method=True, out=takes_out(SAME))
def histogram(
    input: Tensor,
    bins: Any,
    *,
    range: Any = None,
    weight: Tensor | None = None,
    density: bool = False,
) -> HistogramResult:
    """How many elements are in each bin, or the sums of their weights; and the bins' edges.

    >>> import tritensor as torch
    >>> torch.histogram(torch.tensor([1.0, 2.0, 1.0]), bins=4, range=(0.0, 3.0)).hist
    tensor([0., 2., 1., 0.])

    Args:
        bins: the number of equal bins, or their edges in rising order. The last bin has both of its edges.
        range: the first and the last edge, if `bins` is a number; by default the smallest and the largest element.
        density: divided by their sum and by the widths of the bins.

    Raises:
        ShapeError: no bins, a range in the wrong order or not finite, weights of another shape. DtypeError: dtypes that
            differ. UnsupportedError: the dtype is not floating.
    """
    check_tensor("histogram", "input", 1, input)
    if isinstance(bins, Tensor) and range is not None:
        raise ArgumentError(
            explain(
                "histogram() received an invalid combination of arguments - got (Tensor, Tensor, range=tuple)",
                "the edges say what the range is",
            )
        )
    if not isinstance(bins, Tensor) and whole("histogram", "bins", bins) <= 0:
        raise ShapeError(f"torch.histogram(): bins must be > 0, but got {bins} for dimension 0")
    weight = weight if weight is None else weight.reshape(-1)
    hist, (edges,) = histogramdd(input.reshape(-1, 1), [bins], range=range, weight=weight, density=density)
    return HistogramResult(hist, edges)


@public()
def histogramdd(
    input: Tensor, bins: Any, *, range: Any = None, weight: Tensor | None = None, density: bool = False
) -> HistogramddResult:
    """The histogram of points of D coordinates, (..., D): how many are in each of the bins, or the sums of their weights.

    >>> import tritensor as torch
    >>> torch.histogramdd(torch.tensor([[0.0, 1.0], [1.0, 0.0]]), bins=[2, 2]).hist
    tensor([[0., 1.],
            [1., 0.]])

    Args:
        bins: for all dimensions or for each the number of bins, or for each their edges.
        range: the first and the last edge of each dimension, one after the other, if bins are numbers.
        density: divided by their sum and by the sizes of the bins.

    Raises:
        As `histogram`.
    """
    name = "torch.histogramdd:"
    x = _binned("histogramdd", input)
    if x.ndim < 2:
        raise ShapeError(f"{name} input tensor should have at least 2 dimensions")
    count = x.shape[-1]
    bins = [bins] * count if isinstance(bins, int) else list(bins)
    if len(bins) != count:
        raise ShapeError("histogramdd: The size of bins must be equal to the innermost dimension of the input.")
    if range is not None and len(range) != 2 * count:
        raise ShapeError(
            f"{name} for a {count}-dimensional histogram range should have {2 * count} elements, but got {len(range)}"
        )
    _check_weight(x, weight)
    x = x.reshape(-1, count)
    edges = [
        _edges(x.select(1, dim), each, None if range is None else range[2 * dim : 2 * dim + 2], dim)
        for dim, each in enumerate(bins)
    ]
    sizes = [each.shape[0] - 1 for each in edges]
    places, inside = x.new_zeros(len(x), dtype=dtypes.int64), x.new_ones(len(x), dtype=dtypes.bool_)
    for dim, each in enumerate(edges):
        values = x.select(1, dim).contiguous()
        inside = inside & (values >= each[0]) & (values <= each[-1])
        places = places * sizes[dim] + (search(each, values, None, right=True) - 1).clamp(max=sizes[dim] - 1)
    hist = _counted(places, inside, prod(sizes), weight, x.dtype).reshape(sizes)
    if density:
        hist = hist / hist.sum()
        for dim, each in enumerate(edges):
            width = each[1:] - each[:-1]
            hist = hist / width.reshape([-1 if axis == dim else 1 for axis in _RANGE(count)])
    return HistogramddResult(hist, tuple(edges))


def _binned(name: str, input: Tensor) -> Tensor:
    check_tensor("histogram", "input", 1, input)
    if not input.dtype.is_floating_point:
        words = f"\"{name}\" not implemented for '{input.dtype.legacy}'"
        raise UnsupportedError(explain(words, f"it takes floating dtypes, got {input.dtype}"))
    return input.detach()


def _check_weight(x: Tensor, weight: Tensor | None) -> None:
    if weight is None:
        return
    if weight.shape != x.shape[:-1]:
        raise ShapeError(
            "torch.histogramdd: if weight tensor is provided it should have the same shape as the input tensor excluding "
            f"its innermost dimension, but got input with shape {list(x.shape)} and weight with shape {list(weight.shape)}"
        )
    if weight.dtype is not x.dtype:
        raise DtypeError(
            "torch.histogramdd: if weight tensor is provided, input tensor and weight tensor should have the same dtype, "
            f"but got input({x.dtype.cpp}), and weight({weight.dtype.cpp})"
        )


def _bounds(x: Tensor, name: str) -> tuple[float, float]:
    """The smallest and the largest element; the host waits for them."""
    return (float(x.amin()), float(x.amax())) if x.numel() else (0.0, 1.0 if "dd" in name else 0.0)


def _edges(x: Tensor, bins: Any, range: Any, dim: int) -> Tensor:
    name = "torch.histogramdd:"
    if isinstance(bins, Tensor):
        if bins.dtype is not x.dtype:
            raise DtypeError(
                f"{name} input tensor and bins tensors should have the same dtype, but got input with dtype {x.dtype.cpp} "
                f"and bins for dimension {dim} with dtype {bins.dtype.cpp}"
            )
        if bins.ndim != 1:
            raise ShapeError(
                f"{name} bins tensor should have one dimension, but got {bins.ndim} dimensions in the bins tensor for "
                f"dimension {dim}"
            )
        if not bins.numel():
            raise ShapeError(
                f"{name} bins tensor should have at least 1 element, but got 0 elements in the bins tensor for "
                f"dimension {dim}"
            )
        return bins.detach()
    if whole("histogramdd", "bins", bins) <= 0:
        raise ShapeError(f"{name} bins must be > 0, but got {bins} for dimension {dim}")
    low, high = map(float, range) if range is not None else _bounds(x, name)
    if not (isfinite(low) and isfinite(high)):
        raise ShapeError(f"{name} dimension {dim}'s range [{low:g}, {high:g}] is not finite")
    if low > high:
        raise ShapeError(f"{name} min should not exceed max, but got min {low:g} max {high:g} for dimension {dim}")
    if low == high:
        low, high = low - 0.5, high + 0.5
    return wrap(_spaced(low, high, bins + 1, x.dtype)).to(x.device)


def _spaced(low: float, high: float, count: int, kind: Any) -> np.ndarray:
    """PyTorch's `linspace`: from both ends to the middle."""
    step = kind.numpy.type((high - low) / (count - 1))
    places = np.arange(count, dtype=kind.numpy)
    first, last = kind.numpy.type(low), kind.numpy.type(high)
    return np.where(places < count // 2, first + places * step, last - (count - 1 - places) * step).astype(kind.numpy)


def _counted(places: Tensor, inside: Tensor, count: int, weight: Tensor | None, kind: Any) -> Tensor:
    """The number, or the weight, of the places that are inside, in the dtype of the result."""
    kept = where(inside, places, count).reshape(-1)  # the others in one more bin
    weight = weight if weight is None else weight.detach().reshape(-1)
    return bincount(kept, weight, count + 1)[:count].to(kind).contiguous()
