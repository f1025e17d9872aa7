"""Reductions and running sums of the standard, and its functions that search, sort, and treat arrays as sets.

`axis` of a reduction is one, a tuple of them (which may be empty), or None for all.
"""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Callable
from typing import Any, NamedTuple

from .. import functional
from ..errors import explain
from ..functional.views.complex_views import view_as_complex, view_as_real
from ..ground.public import PACKAGE
from ..tensors import Tensor
from ..types import Dtype, dtypes, layout
from .declaring import functions_of

_TABLE = """
all(x, /, *, axis=None, keepdims=False): Tests if all elements along axes are true, or not zero; bool.
any(x, /, *, axis=None, keepdims=False): Tests if any element along axes is true, or not zero; bool.
argmax(x, /, *, axis=None, keepdims=False): The place of the greatest element along an axis, or among all; int64.
argmin(x, /, *, axis=None, keepdims=False): The place of the smallest element along an axis, or among all; int64.
argsort(x, /, *, axis=-1, descending=False, stable=True): The places that put elements in order along an axis; int64.
count_nonzero(x, /, *, axis=None, keepdims=False): Counts elements that are not zero along axes, or among all; int64.
cumulative_prod(x, /, *, axis=None, dtype=None, include_initial=False): The products up to each element, 1 first.
cumulative_sum(x, /, *, axis=None, dtype=None, include_initial=False): The sums up to each element, 0 first.
diff(x, /, n=1, axis=-1, *, prepend=None, append=None): The differences of neighbours along an axis, `n` times.
max(x, /, *, axis=None, keepdims=False) = amax: The greatest element along axes, NaN if one is.
mean(x, /, *, axis=None, keepdims=False): The mean of floating or complex numbers along axes.
min(x, /, *, axis=None, keepdims=False) = amin: The smallest element along axes, NaN if one is.
nonzero(x, /): The places of the elements that are not 0, a 1-dim int64 tensor for each axis; ValueError for 0-dim x.
prod(x, /, *, axis=None, dtype=None, keepdims=False): The product along axes; of integers int64, of unsigned uint64.
searchsorted(x1, x2, /, *, side='left', sorter=None): The index of `x2` in `x1`, which is sorted, or by `sorter`.
sort(x, /, *, axis=-1, descending=False, stable=True): The elements in order along an axis.
std(x, /, *, axis=None, correction=0.0, keepdims=False): The standard deviation along axes, see `var`.
sum(x, /, *, axis=None, dtype=None, keepdims=False): The sum along axes; of integers int64, of unsigned ones uint64.
unique_all(x, /): The distinct elements in order, their first places, which of them each element is, and their counts.
unique_counts(x, /): The distinct elements in order, and how often each is there. Every NaN is distinct.
unique_inverse(x, /): The distinct elements in order, and which of them each element is. Every NaN is distinct.
unique_values(x, /): The distinct elements in order. Every NaN is distinct.
var(x, /, *, axis=None, correction=0.0, keepdims=False): The squares of distances over their number less `correction`.
where(condition, x1=None, x2=None, /): `x1` where `condition` holds, `x2` elsewhere, as they promote; alone `nonzero`.
"""
_FLAT = frozenset(["prod", "argmax", "argmin"])  # those that go along one dimension
_OPTIONS: dict[str, dict[str, Any]] = {"std": {"correction": 0.0}, "var": {"correction": 0.0}}


def _reduced(name: str, x: Tensor, axis: Any = None, keepdims: bool = False, **options: Any) -> Tensor:
    axes = layout.normalize_dims(axis, x.ndim)
    kept = [1 if dim in axes else extent for dim, extent in enumerate(x.shape)]
    function, options = getattr(functional, name), _OPTIONS.get(name, {}) | options
    if name in ("sum", "prod"):
        options["dtype"] = _sum_dtype(x, options.get("dtype"))
    x = x.bool() if name in ("all", "any") else x  # PyTorch's are uint8 for uint8
    if not axes:  # PyTorch takes no axes for all of them
        found = function(x.unsqueeze(-1), -1, **options)
    elif len(axes) > 1 and name in _FLAT:
        last = list(range(x.ndim - len(axes), x.ndim))
        found = function(x.movedim(axes, last).flatten(last[0]), -1, **options)
    else:
        found = function(x, axes[0] if len(axes) == 1 else axes, **options)
    return found.reshape(kept) if keepdims else found


def _sum_dtype(x: Tensor, dtype: Dtype) -> Any:
    if dtype is not None or x.dtype.category != dtypes.INTEGER:
        return dtype
    return dtypes.int64 if x.dtype.is_signed else dtypes.uint64


def one_axis(name: str, x: Tensor, axis: int | None) -> int:
    """The axis along which a function goes, which only 1-dim tensors may leave out."""
    if axis is None and x.ndim != 1:
        raise ValueError(explain(f"{name}: which axis of {x.ndim}?", remedy="pass axis"))
    return layout.normalize_dim(axis or 0, x.ndim)


def _running(name: str, first: int) -> Callable[..., Tensor]:
    def call(x: Tensor, *, axis: int | None = None, dtype: Dtype = None, include_initial: bool = False) -> Tensor:
        along = one_axis(name, x, axis)
        found = getattr(functional, name)(x, along, dtype=_sum_dtype(x, dtype))
        if not include_initial:
            return found
        begin = found.new_full([1 if dim == along else extent for dim, extent in enumerate(x.shape)], first)
        return functional.cat([begin, found], along)

    return call


def reduction(name: str) -> Callable[..., Tensor]:
    """A reduction along axes, by PyTorch's name."""
    return lambda x, **named: _reduced(name, x, **named)


def _nonzero(x: Tensor) -> Any:
    if not x.ndim:
        raise ValueError(explain("nonzero: a 0-dim tensor has no places", remedy="compare it with 0"))
    return functional.nonzero(x, as_tuple=True)


def _unique(x: Tensor) -> Any:
    if not x.is_complex():
        return functional.unique(x, return_inverse=True, return_counts=True)
    pairs = view_as_real(x.reshape(-1))  # PyTorch puts complex numbers in no order
    values, inverse, counts = functional.unique(pairs, dim=0, return_inverse=True, return_counts=True)
    return view_as_complex(values), inverse.reshape(x.shape), counts


UniqueAll = NamedTuple(  # noqa: UP014
    "UniqueAll", [("values", Tensor), ("indices", Tensor), ("inverse_indices", Tensor), ("counts", Tensor)]
)
UniqueCounts = NamedTuple("UniqueCounts", [("values", Tensor), ("counts", Tensor)])  # noqa: UP014
UniqueInverse = NamedTuple("UniqueInverse", [("values", Tensor), ("inverse_indices", Tensor)])  # noqa: UP014


def _unique_all(x: Tensor) -> UniqueAll:
    values, inverse, counts = _unique(x)
    order = functional.argsort(inverse.reshape(-1))
    return UniqueAll(values, order[counts.cumsum(0) - counts], inverse, counts)


_REDUCTIONS = ("all", "any", "amax", "amin", "argmax", "argmin", "mean", "prod", "std", "sum", "var")
_OWN = {
    **{name: reduction(name) for name in _REDUCTIONS},
    "count_nonzero": lambda x, **named: _reduced("sum", x != 0, **named),
    "cumulative_prod": _running("cumprod", 1),
    "cumulative_sum": _running("cumsum", 0),
    "nonzero": _nonzero,
    "searchsorted": lambda x1, x2, *, side="left", sorter=None: functional.searchsorted(
        x1, x2, side=side, sorter=None if sorter is None else sorter.long()
    ),
    "sort": lambda x, *, axis=-1, **named: functional.sort(x, axis, **named).values,
    "unique_all": _unique_all,
    "unique_counts": lambda x: UniqueCounts(*_unique(x)[::2]),
    "unique_inverse": lambda x: UniqueInverse(*_unique(x)[:2]),
    "unique_values": lambda x: _unique(x)[0],
}
FUNCTIONS = functions_of(__name__, _TABLE, ChainMap(_OWN, PACKAGE))
