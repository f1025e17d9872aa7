"""Sorting along a dimension: the elements in order, and where each came from. Always stable."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from ...operators import Dtypes
from ...operators.rules import REAL, compute_dtype
from ...runtime.call import Call
from ...types import dtypes
from ..reduction.scan import AlongDim


class Sorting(AlongDim):
    """The sorted elements and their indices; NaN is larger than every number, as in PyTorch."""

    family = "sorting"
    deferrable = False  # NumPy says how the results are laid out
    about = "Blocks are sorted in place, then merged; equal elements keep their order."

    def resolve_dtypes(self, call: Call) -> Dtypes:
        """Values keep their dtype; indices are int64."""
        self.rule(self.name, call.inputs)
        kind = call.inputs[0].dtype
        return compute_dtype(kind), (kind, dtypes.int64)

    def launch(self, call: Call) -> None:
        """Radix sort by the elements' bits, then by row."""
        from .sorting_kernel import sort_along

        sort_along(call.outs[0], call.outs[1], call.arrays[0], call.metadata["dim"], call.metadata["descending"])


def _stable_order(x: np.ndarray) -> np.ndarray:
    """The indices that sort along the last dimension; equal elements keep their order.

    NumPy's quick sort is three times faster than its stable one, and gives the same result if no elements are equal.
    """
    if x.dtype.char not in "fdilq" or x.shape[-1] < _SHORT:
        return np.argsort(x, -1, kind="stable")
    order = np.argsort(x, -1)
    found = np.take_along_axis(x, order, -1)
    different = found[..., :-1] < found[..., 1:]  # false beside NaN as well
    again = ~different.all(-1)
    if again.any():
        order[again] = np.argsort(x[again], -1, kind="stable")
    return order


# Shorter rows are sorted by insertion either way.
_SHORT = 32


def _sort(x: np.ndarray, *, dim: int = -1, descending: bool = False):
    """The elements along `dim` in rising (or falling) order, and their indices; equal ones stay in their order."""
    if x.ndim == 0:
        return x.copy(), np.zeros((), np.int64)
    rows = np.moveaxis(x, dim, -1)
    if descending:
        # from the last element on, so that equal elements are in their original order when the result is reversed
        order = x.shape[dim] - 1 - np.flip(_stable_order(np.flip(rows, -1)), -1)
    else:
        order = _stable_order(rows)
    order = np.moveaxis(order, -1, dim)
    return np.take_along_axis(x, order, dim), order


def extremes(x: np.ndarray, count: int, largest: bool) -> np.ndarray | None:
    """Where the `count` largest (or smallest) elements along the last dimension are, in the order of `sort`.

    The last of them is found by partition, six times faster than sorting. None where that has no advantage, or where
    there is a NaN.
    """
    size = x.shape[-1]
    if x.dtype.char not in "fdilq" or count == 0 or size < 4 * count or size < _SHORT:
        return None
    if not largest:
        x = -x if x.dtype.kind == "f" else ~x  # reverses the order, also for the smallest integer
    last = np.partition(x, size - count, -1)[..., size - count :].min(-1, keepdims=True)
    chosen = x >= last
    if np.count_nonzero(chosen) != chosen.size // size * count:
        # several are equal to the last one: take as many of them, from the left, as are missing
        above = x > last
        chosen &= ~above
        room = count - np.count_nonzero(above, -1, keepdims=True)
        if (np.count_nonzero(chosen, -1, keepdims=True) < room).any():
            return None  # NaN
        chosen &= np.cumsum(chosen, -1) <= room
        chosen |= above
    places = np.nonzero(chosen)[-1].reshape(*x.shape[:-1], count)
    order = _sort(np.take_along_axis(x, places, -1), descending=True)[1]
    return np.take_along_axis(places, order, -1)


sort = Sorting("sort", _sort, REAL, outputs=("values", "indices"))


@sort.samples
def _(draw: Any) -> Iterator[tuple[Any, ...]]:
    for shape, dim in (((37,), 0), ((3, 4), 0), ((3, 4), -1), ((2, 5, 3), 1), ((0, 3), 1), ((), 0)):
        x = draw(shape)
        if draw.dtype.is_floating_point:
            # distinct elements, so that the differences of a gradient check do not change the order
            x = np.asarray((draw.rng.permutation(x.size) - 5) / 4).reshape(shape).astype(x.dtype)
        for descending in (False, True):
            yield [x], {"dim": dim, "descending": descending}


@sort.gradient
def _(grad: Any, indices: Any, x_shape: tuple[int, ...], dim: int) -> Any:
    return grad.new_zeros(x_shape).scatter(dim, indices, grad)
