"""searchsorted, bucketize, bincount, histc and histogram: elements sorted into bins."""

from __future__ import annotations

from math import isfinite, prod
from typing import Any

import numpy as np

from ...autograd.gradients import underived
from ...autograd.mode import no_grad
from ...errors import ArgumentError, DtypeError, ShapeError, UnsupportedError, explain
from ...ground.arguments import check_tensor, whole
from ...ground.public import public
from ...kernels.elementwise.arithmetic import where
from ...kernels.indexing.family import check_bounds, value_range
from ...kernels.indexing.searching import searchsorted as search
from ...operators.outputs import takes_out
from ...tensors import Tensor, wrap
from ...tensors.results import HistogramddResult, HistogramResult
from ...types import dtypes
from ..creation.ranges import linspace


def _check(good: list[int] | int, words: str, error: type[Exception] = ShapeError) -> None:
    if not good:
        raise error(words)


def _check_kind(good: bool, name: str, x: Tensor) -> None:
    words = f"\"{name}\" not implemented for '{x.dtype.legacy}'"
    _check(
        good, explain(words, f"the dtype is {x.dtype}", remedy="convert the tensor with .to(dtype)"), UnsupportedError
    )


@public(out=takes_out())
def searchsorted(
    sorted_sequence: Tensor,
    input: object,
    *,
    out_int32: bool = False,
    right: bool = False,
    side: str | None = None,
    sorter: Tensor | None = None,
) -> Tensor:
    """The indices at which to insert values into a sorted sequence so that it stays sorted (binary search).

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
    _check(side in (None, "left", "right"), f"{name} side can only be 'left' or 'right' but got {side}")
    words = f"{name} side and right can't be set to opposites, got side of left while right was True"
    _check(not right or side != "left", words)
    x, shape = _looked_up(input, sorted_sequence), list(sorted_sequence.shape)
    _check(shape, f"{name} boundaries tensor should have positive dimension, but got 0 dimension")
    words = f"but we got boundaries tensor dim({len(shape)}) and input value's dim(0) numel(1)"
    words = f"{name} input value can be a scalar only when boundaries tensor dimension is 1, {words}"
    _check(x.ndim or len(shape) == 1, words)
    fits = len(shape) == 1 or (x.ndim == len(shape) and shape[:-1] == list(x.shape[:-1]))
    words = "boundaries tensor should be 1 dimension or the first N-1 dimensions of boundaries tensor and input value"
    words = f"{words} tensor must match, but we got boundaries tensor {shape} and input value tensor {list(x.shape)}"
    _check(fits, f"{name} {words}")
    if sorter is not None:
        words = f"but got boundary tensor {shape}and got sorter tensor {list(sorter.shape)}"
        _check(list(sorter.shape) == shape, f"{name} boundary and sorter must have the same size, {words}")
        words = f"{name} sorter must be a tensor of long dtype but got dtype {sorter.dtype.legacy}"
        _check(sorter.dtype is dtypes.int64, words, DtypeError)
        check_bounds(sorter, max(shape[-1], 1), 0, 0, f"{name} sorter index out of range", ShapeError)
    return _searched(sorted_sequence, x, sorter, right or side == "right", out_int32)


@public(out=takes_out())
def bucketize(input: object, boundaries: Tensor, *, out_int32: bool = False, right: bool = False) -> Tensor:
    """The index of the bucket, an interval between sorted boundaries, that each element is in.

    A boundary belongs to the interval below it, with `right` to the one above.

    >>> import tritensor as torch
    >>> torch.bucketize(torch.tensor([0.5, 1.0, 2.5]), torch.tensor([1.0, 2.0]))
    tensor([0, 0, 2])

    Raises:
        ShapeError: the boundaries have not one dimension. UnsupportedError: boolean or complex dtypes.
    """
    check_tensor("bucketize", "boundaries", 2, boundaries)
    _check(boundaries.ndim == 1, f"boundaries tensor must be 1 dimension, but got dim({boundaries.ndim})")
    return _searched(boundaries, _looked_up(input, boundaries), None, right, out_int32)


def _looked_up(x: Any, boundaries: Tensor) -> Tensor:
    if isinstance(x, Tensor):
        return x
    return wrap(np.asarray(x, np.float32 if type(x) is float else None)).to(boundaries.device)


def _searched(boundaries: Tensor, x: Tensor, sorter: Tensor | None, right: bool, narrow: bool) -> Tensor:
    with no_grad():
        return search(boundaries, x, sorter, right=bool(right), narrow=bool(narrow))


@public(method=True)
def bincount(input: Tensor, weights: Tensor | None = None, minlength: int = 0) -> Tensor:
    """Counts the occurrences of each number from 0 on in a vector of integers, or sums their weights.

    The host waits for the largest.

    >>> import tritensor as torch
    >>> torch.bincount(torch.tensor([0, 2, 2]), minlength=4)
    tensor([1, 0, 2, 0])

    Raises:
        ShapeError: not one dimension, a negative element, weights of another shape. UnsupportedError: no integers.
    """
    check_tensor("bincount", "input", 1, input)
    _check_kind(input.dtype.category == dtypes.INTEGER, "bincount_cpu", input)
    _check(whole("bincount", "minlength", minlength) >= 0, "minlength should be >= 0")
    if input.is_meta:
        raise UnsupportedError("bincount: a meta tensor has no largest element, which is the size of the result")
    low, high = value_range(input)
    seen = f"the shape is {tuple(input.shape)}, the smallest element {low}"
    _check(input.ndim == 1 and low >= 0, explain("bincount only supports 1-d non-negative integral inputs.", seen))
    words = "weights should be 1-d and have the same length as input"
    _check(weights is None or weights.shape == input.shape, words)
    count, kind = max(high + 1, minlength), dtypes.int64
    if weights is not None and input.numel():
        kind = dtypes.float32 if weights.dtype is dtypes.float32 else dtypes.float64
    if input._off_host:
        ones = input.new_ones(input.shape, dtype=kind) if weights is None else weights.detach().to(kind)
        found = input.new_zeros(count, dtype=kind).scatter_add(0, input.long(), ones)
    else:
        given = None if weights is None else weights.detach().to(dtypes.float64)._host_array()
        found = wrap(np.bincount(input._host_array(), given, count).astype(kind.numpy, copy=False))
    return underived("bincount", found, weights)


# ---- histograms -----------------------------------------------------------------------------------------------


@public(method=True, out=takes_out())
def histc(input: Tensor, bins: int = 100, min: float = 0, max: float = 0) -> Tensor:
    """The histogram: counts in `bins` equal intervals from `min` to `max`, or of all elements if these are equal.

    >>> import tritensor as torch
    >>> torch.histc(torch.tensor([1.0, 2.0, 1.0]), bins=4, min=0, max=3)
    tensor([0., 2., 1., 0.])

    Raises:
        ShapeError: no bins, or bounds in the wrong order or not finite. UnsupportedError: the dtype is not floating.
    """
    check_tensor("histc", "input", 1, input)
    bins = whole("histc", "bins", bins)
    _check(bins > 0, f"torch.histogram(): bins must be > 0, but got {bins} for dimension 0")
    _check(max >= min, explain("torch.histc: max must be larger than min", f"they are {min} and {max}"))
    _check_kind(input.dtype.is_floating_point, "histogram_cpu", input)
    x = input.detach().reshape(-1)
    low, high = _range(x, None if min == max else (min, max), "torch.histc: range of", 1.0)
    inside = (x >= low) & (x <= high)
    places = ((where(inside, x, low) - low) * bins / (high - low)).long().clamp(max=bins - 1)
    return _counted(places, inside, bins, None, x.dtype)


@public(method=True, out=takes_out())
def histogram(
    input: Tensor, bins: Any, *, range: Any = None, weight: Tensor | None = None, density: bool = False
) -> HistogramResult:
    """The histogram, the number of elements in each bin (or the sum of their weights), and the bins' edges.

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
    words = "histogram() received an invalid combination of arguments - got (Tensor, Tensor, range=tuple)"
    _check(range is None or not isinstance(bins, Tensor), explain(words, "the edges have a range"), ArgumentError)
    words = f"torch.histogram(): bins must be > 0, but got {bins} for dimension 0"
    _check(isinstance(bins, Tensor) or whole("histogram", "bins", bins) > 0, words)
    weight = weight if weight is None else weight.reshape(-1)
    hist, (edges,) = histogramdd(input.reshape(-1, 1), [bins], range=range, weight=weight, density=density)
    return underived("histogram", HistogramResult(hist, edges), input, bins, weight)


@public()
def histogramdd(
    input: Tensor, bins: Any, *, range: Any = None, weight: Tensor | None = None, density: bool = False
) -> HistogramddResult:
    """The histogram of points of D coordinates, (..., D), with the arguments of `histogram` for each of them.

    >>> import tritensor as torch
    >>> torch.histogramdd(torch.tensor([[0.0, 1.0], [1.0, 0.0]]), bins=[2, 2]).hist
    tensor([[0., 1.],
            [1., 0.]])

    Args:
        bins: for all dimensions or for each the number of bins, or for each their edges.
        range: the first and the last edge of each dimension, one after the other, if bins are numbers.
    """
    name = "torch.histogramdd:"
    check_tensor("histogramdd", "input", 1, input)
    _check_kind(input.dtype.is_floating_point, "histogramdd", input)
    _check(input.ndim >= 2, f"{name} input tensor should have at least 2 dimensions")
    count, dims = input.shape[-1], [*enumerate(input.detach().reshape(-1, input.shape[-1]).unbind(1))]
    bins = [bins] * count if isinstance(bins, int) else list(bins)
    words = "histogramdd: The size of bins must be equal to the innermost dimension of the input."
    _check(len(bins) == count, words)
    words = f"{name} for a {count}-dimensional histogram range should have {2 * count} elements"
    _check(range is None or len(range) == 2 * count, f"{words}, but got {len(range or ())}")
    if weight is not None:
        words = (
            "it should have the same shape as the input tensor excluding its innermost dimension, but got input with"
        )
        words = f"{words} shape {list(input.shape)} and weight with shape {list(weight.shape)}"
        _check(weight.shape == input.shape[:-1], f"{name} if weight tensor is provided {words}")
        words = f"input tensor and weight tensor should have the same dtype, but got input({input.dtype.cpp}),"
        words = f"{name} if weight tensor is provided, {words} and weight({weight.dtype.cpp})"
        _check(weight.dtype is input.dtype, words, DtypeError)
    edges = [_edges(x, bins[dim], range and range[2 * dim : 2 * dim + 2], dim) for dim, x in dims]
    sizes = [each.shape[0] - 1 for each in edges]
    places: Any = 0
    inside: Any = True
    for (_, x), each, size in zip(dims, edges, sizes, strict=True):
        inside = (x >= each[0]) & (x <= each[-1]) & inside
        places = places * size + (search(each, x, None, right=True) - 1).clamp(max=size - 1)
    hist = _counted(places, inside, prod(sizes), weight, input.dtype).reshape(sizes)
    if density:
        hist = hist / hist.sum()
        for dim, each in enumerate(edges):
            hist = hist / (each[1:] - each[:-1]).reshape([-1 if axis == dim else 1 for axis, _ in dims])
    return underived("histogramdd", HistogramddResult(hist, tuple(edges)), input, *bins, weight)


def _range(x: Tensor, given: Any, words: str, margin: float) -> tuple[float, float]:
    """The first and the last edge; by default the elements', for which the host waits, of a meta tensor 0 and 1."""
    given = (0, 1) if given is None and x.is_meta else given
    low, high = map(
        float, given if given is not None else (x.amin(), x.amax()) if x.numel() else (0, 1 - (margin == 1))
    )
    _check(isfinite(low) and isfinite(high), f"{words} [{low:g}, {high:g}] is not finite")
    return (low - margin, high + margin) if low == high else (low, high)


def _edges(x: Tensor, bins: Tensor | int, given: Any, dim: int) -> Tensor:
    name = "torch.histogramdd:"
    if isinstance(bins, Tensor):
        words = f"{x.dtype.cpp} and bins for dimension {dim} with dtype {bins.dtype.cpp}"
        words = f"{name} input tensor and bins tensors should have the same dtype, but got input with dtype {words}"
        _check(bins.dtype is x.dtype, words, DtypeError)
        words = f"dimensions in the bins tensor for dimension {dim}"
        _check(bins.ndim == 1, f"{name} bins tensor should have one dimension, but got {bins.ndim} {words}")
        words = f"at least 1 element, but got 0 elements in the bins tensor for dimension {dim}"
        _check(bins.numel(), f"{name} bins tensor should have {words}")
        return bins.detach()
    _check(whole("histogramdd", "bins", bins) > 0, f"{name} bins must be > 0, but got {bins} for dimension {dim}")
    low, high = _range(x, given, f"{name} dimension {dim}'s range", 0.5)
    _check(low < high, f"{name} min should not exceed max, but got min {low:g} max {high:g} for dimension {dim}")
    return linspace(low, high, bins + 1, dtype=x.dtype, device=x.device)


def _counted(places: Tensor, inside: Tensor, count: int, weight: Tensor | None, kind: dtypes.dtype) -> Tensor:
    """The number, or the weight, of the places that are inside, in the dtype of the result."""
    weight = weight if weight is None else weight.detach().reshape(-1)
    if places.is_meta:
        return places.new_empty(count, dtype=kind)
    return bincount(where(inside, places, count), weight, count + 1)[:count].to(kind).contiguous()
