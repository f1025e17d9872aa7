"""Functions of the standard that search, sort, take elements by their places, and treat arrays as sets."""

from __future__ import annotations

from typing import Any, NamedTuple

from .. import functional
from ..errors import explain
from ..tensor import Tensor
from .arrays import declared
from .data_types import promoted
from .statistics import reduced

_TEXTS = """
argmax: The place of the greatest element along an axis, or among all in row-major order; int64, the first of several.
argmin: The place of the smallest element along an axis, or among all in row-major order; int64, the first of several.
argsort: The places that put the elements in order along an axis; int64.
count_nonzero: How many elements are not zero along axes, or among all; int64.
searchsorted: Where the elements of `x2` belong in the 1-dim tensor `x1`, which is sorted, or is by the places `sorter`.
sort: The elements in order along an axis.
take_along_axis: The elements at places along an axis, each for its row; the other extents broadcast.
where: The elements of `x1` where `condition` is true, those of `x2` elsewhere, in the dtype that both promote to.
unique_counts: The distinct elements in order, and how often each is there. Every NaN is distinct.
unique_inverse: The distinct elements in order, and for each element of `x` which of these it is. Every NaN is distinct.
unique_values: The distinct elements in order. Every NaN is distinct.
"""


def nonzero(x: Tensor, /) -> tuple[Tensor, ...]:
    """The places of the elements that are not zero: a 1-dim int64 tensor for each axis.

    Raises:
        ValueError: `x` has no axes.
    """
    if not x.ndim:
        raise ValueError(explain("nonzero: a 0-dim tensor has no places", remedy="compare it with 0"))
    return functional.nonzero(x, as_tuple=True)  # type: ignore[no-any-return]


def take(x: Tensor, indices: Tensor, /, *, axis: int | None = None) -> Tensor:
    """The elements (or slices along an axis) at the places in a 1-dim tensor; negative ones count from the end.

    Raises:
        ValueError: `axis` is None, and `x` has not one axis.
    """
    if axis is None and x.ndim != 1:
        raise ValueError(explain(f"take: which axis of {x.ndim}?", remedy="pass axis"))
    return functional.index_select(x, axis or 0, _positive(x, indices, axis or 0))


def _positive(x: Tensor, indices: Tensor, axis: int) -> Tensor:
    places = indices.long()
    return functional.where(places < 0, places + x.shape[axis], places)  # type: ignore[no-any-return]


UniqueAll = NamedTuple(
    "UniqueAll", [("values", Tensor), ("indices", Tensor), ("inverse_indices", Tensor), ("counts", Tensor)]
)
UniqueCounts = NamedTuple("UniqueCounts", [("values", Tensor), ("counts", Tensor)])
UniqueInverse = NamedTuple("UniqueInverse", [("values", Tensor), ("inverse_indices", Tensor)])


def unique_all(x: Tensor, /) -> UniqueAll:
    """The distinct elements in order, the first place of each in row-major order, which of them each element is, and how
    often each is there. Every NaN is distinct."""
    values, inverse, counts = functional.unique(x, return_inverse=True, return_counts=True)
    order = functional.argsort(inverse.reshape(-1))
    return UniqueAll(values, order[counts.cumsum(0) - counts], inverse, counts)


def _searched(x1: Any, x2: Any, side: str, sorter: Tensor | None) -> Tensor:
    x1, x2 = promoted("searchsorted", x1, x2)
    return functional.searchsorted(x1, x2, side=side, sorter=None if sorter is None else sorter.long())


_made = declared(
    __name__,
    {
        "argmax": lambda x, /, *, axis=None, keepdims=False: reduced("argmax", x, axis, keepdims),
        "argmin": lambda x, /, *, axis=None, keepdims=False: reduced("argmin", x, axis, keepdims),
        "argsort": lambda x, /, *, axis=-1, descending=False, stable=True: functional.argsort(
            x, axis, descending, stable
        ),
        "count_nonzero": lambda x, /, *, axis=None, keepdims=False: reduced("sum", x != 0, axis, keepdims),
        "nonzero": nonzero,
        "searchsorted": lambda x1, x2, /, *, side="left", sorter=None: _searched(x1, x2, side, sorter),
        "sort": lambda x, /, *, axis=-1, descending=False, stable=True: functional.sort(
            x, axis, descending, stable
        ).values,
        "take": take,
        "take_along_axis": lambda x, indices, /, *, axis=-1: functional.take_along_dim(
            x, _positive(x, indices, axis), axis
        ),
        "unique_all": unique_all,
        "unique_counts": lambda x, /: UniqueCounts(*functional.unique(x, return_counts=True)),
        "unique_inverse": lambda x, /: UniqueInverse(*functional.unique(x, return_inverse=True)),
        "unique_values": lambda x, /: functional.unique(x),
        "where": lambda condition, x1, x2, /: functional.where(condition, *promoted("where", x1, x2)),
    },
    _TEXTS,
)
globals().update(_made)

__all__ = list(_made)
