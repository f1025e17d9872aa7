"""Functions of the standard that search, sort, take elements by their places, and treat arrays as sets."""

from __future__ import annotations

from typing import Literal, NamedTuple

from .. import dtypes, functional
from ..arguments import check_tensor
from ..errors import explain
from ..tensor import Tensor
from .data_types import promoted
from .statistics import Axes, reduced

__all__ = [
    "argmax",
    "argmin",
    "argsort",
    "count_nonzero",
    "nonzero",
    "searchsorted",
    "sort",
    "take",
    "take_along_axis",
    "unique_all",
    "unique_counts",
    "unique_inverse",
    "unique_values",
    "where",
]


def argmax(x: Tensor, /, *, axis: int | None = None, keepdims: bool = False) -> Tensor:
    """The place of the greatest element along an axis, or among all in row-major order; int64, the first of several."""
    return reduced("argmax", x, axis, keepdims)


def argmin(x: Tensor, /, *, axis: int | None = None, keepdims: bool = False) -> Tensor:
    """The place of the smallest element along an axis, or among all in row-major order; int64, the first of several."""
    return reduced("argmin", x, axis, keepdims)


def count_nonzero(x: Tensor, /, *, axis: Axes | None = None, keepdims: bool = False) -> Tensor:
    """How many elements are not zero along axes, or among all; int64."""
    check_tensor("count_nonzero", "x", 1, x)
    return reduced("sum", x != 0, axis, keepdims)


def nonzero(x: Tensor, /) -> tuple[Tensor, ...]:
    """The places of the elements that are not zero: a 1-dim int64 tensor for each axis.

    Raises:
        ValueError: `x` has no axes.
    """
    check_tensor("nonzero", "x", 1, x)
    if not x.ndim:
        raise ValueError(explain("nonzero: a 0-dim tensor has no places", remedy="compare it with 0"))
    return functional.nonzero(x, as_tuple=True)  # type: ignore[no-any-return]


def searchsorted(
    x1: Tensor, x2: Tensor, /, *, side: Literal["left", "right"] = "left", sorter: Tensor | None = None
) -> Tensor:
    """Where the elements of `x2` belong in the 1-dim tensor `x1`, which is sorted, or is by the places `sorter`."""
    x1, x2 = promoted("searchsorted", x1, x2)
    return functional.searchsorted(x1, x2, side=side, sorter=sorter if sorter is None else sorter.long())


def where(condition: Tensor, x1: Tensor | complex, x2: Tensor | complex, /) -> Tensor:
    """The elements of `x1` where `condition` is true, those of `x2` elsewhere, in their common dtype."""
    return functional.where(condition, *promoted("where", x1, x2))  # type: ignore[no-any-return]


def sort(x: Tensor, /, *, axis: int = -1, descending: bool = False, stable: bool = True) -> Tensor:
    """The elements in order along an axis."""
    return functional.sort(x, axis, descending, stable=stable).values


def argsort(x: Tensor, /, *, axis: int = -1, descending: bool = False, stable: bool = True) -> Tensor:
    """The places that put the elements in order along an axis; int64."""
    return functional.argsort(x, axis, descending, stable=stable)


def take(x: Tensor, indices: Tensor, /, *, axis: int | None = None) -> Tensor:
    """The elements (or slices along an axis) at the places in a 1-dim tensor; negative ones count from the end.

    Raises:
        ValueError: `axis` is None, and `x` has not one axis.
    """
    check_tensor("take", "x", 1, x)
    if axis is None and x.ndim != 1:
        raise ValueError(explain(f"take: which axis of {x.ndim}?", remedy="pass axis"))
    places = indices.to(dtypes.int64)
    return functional.index_select(x, axis or 0, _positive(x, places, axis or 0))


def take_along_axis(x: Tensor, indices: Tensor, /, *, axis: int = -1) -> Tensor:
    """The elements at places along an axis, each for its row; the other extents of `x` and `indices` broadcast."""
    check_tensor("take_along_axis", "x", 1, x)
    return functional.take_along_dim(x, _positive(x, indices.to(dtypes.int64), axis), axis)


def _positive(x: Tensor, places: Tensor, axis: int) -> Tensor:
    return functional.where(places < 0, places + x.shape[axis], places)  # type: ignore[no-any-return]


class UniqueAll(NamedTuple):
    """The result of `unique_all`."""

    values: Tensor
    indices: Tensor
    inverse_indices: Tensor
    counts: Tensor


class UniqueCounts(NamedTuple):
    """The result of `unique_counts`."""

    values: Tensor
    counts: Tensor


class UniqueInverse(NamedTuple):
    """The result of `unique_inverse`."""

    values: Tensor
    inverse_indices: Tensor


def unique_all(x: Tensor, /) -> UniqueAll:
    """The distinct elements in order, the first place of each in row-major order, the number of each element's among
    them, and how often each is there. Every NaN is distinct."""
    values, inverse, counts = functional.unique(x, return_inverse=True, return_counts=True)
    order = functional.argsort(inverse.reshape(-1))
    return UniqueAll(values, order[counts.cumsum(0) - counts], inverse, counts)


def unique_counts(x: Tensor, /) -> UniqueCounts:
    """The distinct elements in order, and how often each is there. Every NaN is distinct."""
    return UniqueCounts(*functional.unique(x, return_counts=True))


def unique_inverse(x: Tensor, /) -> UniqueInverse:
    """The distinct elements in order, and of each element of `x` which of these it is. Every NaN is distinct."""
    return UniqueInverse(*functional.unique(x, return_inverse=True))


def unique_values(x: Tensor, /) -> Tensor:
    """The distinct elements in order. Every NaN is distinct."""
    return functional.unique(x)  # type: ignore[no-any-return]
