"""The largest and smallest elements of a tensor or along dimensions, and where they are."""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from ...operators.outputs import SAME
from ...operators.rules import REAL, Places
from ...runtime.source import device_function
from ...tensors import Tensor, wrap
from ...types import dtypes
from ..elementwise.arithmetic import where
from ..elementwise.maximum import larger, smaller
from .family import Place, folded, reduction, restore
from .kernel import highest, lowest, state_dtype
from .reference import first_places
from .sums import sum

if TYPE_CHECKING:
    import triton.language as tl


PLACES = Places("places", dtypes.INTEGER, dtypes.FLOATING, result=dtypes.int64)


# From this many elements on `first_places` is faster than a copy with the reduced dimension last.
_MANY = 1 << 12


def _rows(x: np.ndarray, dims: tuple[int, ...]) -> np.ndarray:
    """The reduced dimensions merged into one, moved to the end."""
    if dims == (x.ndim - 1,):
        return x
    kept = tuple([dim for dim in range(x.ndim) if dim not in dims])
    count = prod([x.shape[dim] for dim in dims])
    return x.transpose(kept + dims).reshape(*[x.shape[dim] for dim in kept], count)


def _places(x: np.ndarray, dims: tuple[int, ...], keepdim: bool, best: Any, index_of: Any) -> np.ndarray:
    """The index of the first best element among those along `dims`."""
    if len(dims) == 1 and dims[0] < x.ndim - 1 and x.size >= _MANY:
        found = first_places(x, best.reduce(x, dims, keepdims=True), dims[0])
        return found if keepdim else found.squeeze(dims)
    result = index_of(_rows(x, dims), -1)
    return np.expand_dims(result, dims) if keepdim and dims else np.asarray(result)


class _PlacesOfParts:
    """The two stages of `argmax` and the like: the best element of each block with its index, then the best of them."""

    def __init__(self, best: Any, index_of: Any, values: bool) -> None:
        self.best, self.index_of, self.values = best, index_of, values

    def part(self, block: np.ndarray, place: Place, dim: tuple[int, ...], metadata: Any) -> tuple[np.ndarray, ...]:
        """The best elements of a block, and their indices among all elements along `dim`."""
        if len(dim) == 1 and dim[0] < block.ndim - 1:
            values = self.best.reduce(block, dim, keepdims=True)
            return values, first_places(block, values, dim[0], place.new) + place.start[dim[0]]
        rows = _rows(block, dim)
        flat = rows.reshape(-1, rows.shape[-1])
        index = self.index_of(flat, -1)
        shape = [1 if each in dim else size for each, size in enumerate(block.shape)]
        values = flat[np.arange(len(flat)), index].reshape(shape)
        # not np.unravel_index, which is wrong for more than 8192 indices of shape (..., 1) (NumPy 2.4)
        found, step = 0, 1
        for each in reversed(dim):
            index, inner = np.divmod(index, block.shape[each])
            found = found + (inner + place.start[each]) * step
            step *= place.shape[each]
        return values, np.reshape(found, shape)

    def whole(self, parts: list[np.ndarray], metadata: dict[str, Any], count: int) -> Any:
        """The best of the blocks' elements, the first of equal ones."""
        values, indices = parts
        best = self.best.reduce(values, 0)
        found = (values == best) | ((values != values) & (best != best))
        index = np.minimum.reduce(np.where(found, indices, _BEHIND), 0).astype(np.int64, "C")
        return (best, index) if self.values else index


_INTO = SAME._replace(
    words="Expected the dtype for input and out to match, but got {kind.legacy} for input's dtype and {wanted.legacy} "
    "for out's dtype."
)


@reduction(REAL, refuses_empty=True, out=_INTO)
def amax(x, *, dim=None, keepdim=False):
    """The maximum of all elements, or along `dim`; the gradient is divided evenly among equal elements.

    Raises:
        ShapeError, RangeError: there are no elements to choose from.
    """
    return np.maximum.reduce(x, dim, keepdims=keepdim)


@reduction(REAL, refuses_empty=True, out=_INTO)
def amin(x, *, dim=None, keepdim=False):
    """The minimum of all elements, or along `dim`; the gradient is divided evenly among equal elements."""
    return np.minimum.reduce(x, dim, keepdims=keepdim)


amax.in_parts()
amin.in_parts()
amax.kernel(folded(larger), larger, lambda compute: ((lowest(compute), state_dtype(compute)),))
amin.kernel(folded(smaller), smaller, lambda compute: ((highest(compute), state_dtype(compute)),))


largest = reduction(REAL, amax.reference, name="largest", refuses_empty=True, function=False)
smallest = reduction(REAL, amin.reference, name="smallest", refuses_empty=True, function=False)
for _whole, _along in ((largest, amax), (smallest, amin)):
    _whole.in_parts()
    _whole.parts, _whole.body = _along.parts, _along.body


def _among_ties(
    grad: Tensor, out: Tensor, x: Tensor, dim: tuple[int, ...], keepdim: bool, of_nans: bool = False
) -> Tensor:
    """The gradient of an extreme value, divided evenly among all elements that are equal to it.

    Where it is NaN, so are the gradients; with `of_nans` the elements that are NaN get them, and all others 0.
    """
    shape = x.shape
    value = restore(out, shape, dim, keepdim)
    best = x == value
    if of_nans:
        best = best | (x.isnan() & value.isnan())
    share = restore(grad, shape, dim, keepdim) / sum(best, dim=dim, keepdim=True)
    return where(best, share, 0 if of_nans else share * 0)


amax.gradient(lambda grad, out, x, dim, keepdim: _among_ties(grad, out, x, dim, keepdim))
amin.gradient(lambda grad, out, x, dim, keepdim: _among_ties(grad, out, x, dim, keepdim))

largest.gradient(lambda grad, out, x, dim, keepdim: _among_ties(grad, out, x, dim, keepdim, True))
smallest.gradient(lambda grad, out, x, dim, keepdim: _among_ties(grad, out, x, dim, keepdim, True))


@device_function
def _first_larger(x, index, y, other):
    """The larger of two elements with its index; the first of equal ones, and a NaN is larger than any number."""
    wins = (x > y) | ((x != x) & (y == y)) | (((x == y) | ((x != x) & (y != y))) & (index < other))
    return tl.where(wins, x, y), tl.where(wins, index, other)


@device_function
def _first_smaller(x, index, y, other):
    """The smaller of two elements with its index; the first of equal ones, and a NaN is smaller than any number."""
    wins = (x < y) | ((x != x) & (y == y)) | (((x == y) | ((x != x) & (y != y))) & (index < other))
    return tl.where(wins, x, y), tl.where(wins, index, other)


_with_index = device_function(lambda values, index, numbers: (values[0], index))
_index_alone = device_function(lambda state, count, numbers: (state[1],))

_BEHIND = 2**63 - 1  # an index beyond all elements, for the identity


def _nothing_larger(compute: dtypes.dtype):
    return (lowest(compute), state_dtype(compute)), (_BEHIND, dtypes.int64)


def _nothing_smaller(compute):
    return (highest(compute), state_dtype(compute)), (_BEHIND, dtypes.int64)


@reduction(PLACES, refuses_empty=True, one_dim=True)
def argmax(x, *, dim=None, keepdim=False):
    """The index of the maximum of all elements (counted through them), or along `dim`; the first of equals.

    >>> import tritensor as torch
    >>> x = torch.tensor([[1, 5], [7, 2]])
    >>> x.argmax(), x.argmax(1)
    (tensor(2), tensor([1, 0]))
    """
    return _places(x, dim, keepdim, np.maximum, np.argmax)


@reduction(PLACES, refuses_empty=True, one_dim=True)
def argmin(x, *, dim=None, keepdim=False):
    """The index of the minimum of all elements (counted through them), or along `dim`; the first of equals."""
    return _places(x, dim, keepdim, np.minimum, np.argmin)


_argmax = _PlacesOfParts(np.maximum, np.argmax, False)
argmax.in_parts(_argmax.part, _argmax.whole)
argmax.kernel(folded(_first_larger), _first_larger, _nothing_larger, start=_with_index, finish=_index_alone)
_argmin = _PlacesOfParts(np.minimum, np.argmin, False)
argmax.native, argmin.native = None, None  # type: ignore[assignment]
argmin.in_parts(_argmin.part, _argmin.whole)
argmin.kernel(folded(_first_smaller), _first_smaller, _nothing_smaller, start=_with_index, finish=_index_alone)


@reduction(REAL, outputs=("values", "indices"), refuses_empty=True, function=False)
def max_dim(x: np.ndarray, *, dim: tuple[int, ...] | None = None, keepdim: bool = False):
    """The largest elements along `dim` and their indices."""
    return amax.reference(x, dim=dim, keepdim=keepdim), argmax.reference(x, dim=dim, keepdim=keepdim)


@reduction(REAL, outputs=("values", "indices"), refuses_empty=True, function=False)
def min_dim(x: np.ndarray, *, dim: tuple[int, ...] | None = None, keepdim: bool = False):
    """The smallest elements along `dim` and their indices."""
    return amin.reference(x, dim=dim, keepdim=keepdim), argmin.reference(x, dim=dim, keepdim=keepdim)


def _at_index(grad: Tensor, indices: Tensor, x_shape: tuple[int, ...], dim: tuple[int, ...], keepdim: bool) -> Tensor:
    """The gradient of the elements at `indices`: these get all of it."""
    if not dim:
        return grad
    # the indices are flat, over all reduced dimensions together
    extents = [x_shape[each] if each in dim else 1 for each in range(len(x_shape))]
    places = wrap(np.arange(prod(extents)).reshape(extents)).to(grad.device)
    return where(places == restore(indices, x_shape, dim, keepdim), restore(grad, x_shape, dim, keepdim), 0)


_max_dim = _PlacesOfParts(np.maximum, np.argmax, True)
max_dim.node = "max"
max_dim.in_parts(_max_dim.part, _max_dim.whole)
max_dim.kernel(folded(_first_larger), _first_larger, _nothing_larger, start=_with_index)
_min_dim = _PlacesOfParts(np.minimum, np.argmin, True)
min_dim.node = "min"
min_dim.in_parts(_min_dim.part, _min_dim.whole)
min_dim.kernel(folded(_first_smaller), _first_smaller, _nothing_smaller, start=_with_index)
max_dim.gradient(lambda grad, indices, x_shape, dim, keepdim: _at_index(grad, indices, x_shape, dim, keepdim))
min_dim.gradient(lambda grad, indices, x_shape, dim, keepdim: _at_index(grad, indices, x_shape, dim, keepdim))
