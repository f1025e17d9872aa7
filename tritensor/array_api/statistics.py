"""Reductions and running sums of the standard; `axis` is one, a tuple of them (which may be empty), or None for all."""

from __future__ import annotations

from typing import Any

from .. import dtypes, functional, layout
from ..dtypes import dtype
from ..errors import explain
from ..tensor import Tensor
from .arrays import declared

_FLAT = frozenset(["prod", "argmax", "argmin"])  # those that go along one dimension
_TEXTS = """
all: Whether all elements along axes are true, or not zero; bool.
any: Whether an element along axes is true, or not zero; bool.
cumulative_prod: The products of the elements up to each along an axis, after 1 if `include_initial`; dtypes as in `prod`.
cumulative_sum: The sums of the elements up to each along an axis, after 0 if `include_initial`; dtypes as in `sum`.
diff: The differences of neighbours along an axis, `n` times, with `prepend` and `append` at its ends.
max: The greatest element along axes, NaN if one is.
mean: The mean of floating or complex numbers along axes.
min: The smallest element along axes, NaN if one is.
prod: The product along axes; of integers int64, of unsigned ones uint64, unless `dtype` is given.
std: The standard deviation of floating numbers along axes, see `var`.
sum: The sum along axes; of integers int64, of unsigned ones uint64, unless `dtype` is given.
var: The variance of floating numbers along axes: squares of distances divided by their number less `correction`.
"""


def reduced(name: str, x: Tensor, axis: int | tuple[int, ...] | None, keepdims: bool, **options: Any) -> Tensor:
    """What a reduction makes of the elements along axes, which stay with extent 1 if `keepdims`."""
    axes = layout.normalize_dims(axis, x.ndim)
    kept = [1 if dim in axes else extent for dim, extent in enumerate(x.shape)]
    function = getattr(functional, name)
    if not axes:  # PyTorch takes no axes for all of them
        found = function(x.unsqueeze(-1), -1, **options)
    elif len(axes) > 1 and name in _FLAT:
        last = list(range(x.ndim - len(axes), x.ndim))
        found = function(x.movedim(axes, last).flatten(last[0]), -1, **options)
    else:
        found = function(x, axes[0] if len(axes) == 1 else axes, **options)
    return found.reshape(kept) if keepdims else found  # type: ignore[no-any-return]


def _summed(name: str, x: Tensor, axis: Any, dtype: dtype | None, keepdims: bool) -> Tensor:
    return reduced(name, x, axis, keepdims, dtype=_sum_dtype(x, dtype))


def _sum_dtype(x: Tensor, dtype: dtype | None) -> dtype | None:
    if dtype is not None or x.dtype.category != dtypes.INTEGER:
        return dtype
    return dtypes.int64 if x.dtype.is_signed else dtypes.uint64


def _running(name: str, x: Tensor, axis: int | None, dtype: dtype | None, first: int | None) -> Tensor:
    if axis is None and x.ndim != 1:
        raise ValueError(explain(f"{name}: which axis of {x.ndim}?", remedy="pass axis"))
    along = layout.normalize_dim(axis or 0, x.ndim)
    found = getattr(functional, name)(x, along, dtype=_sum_dtype(x, dtype))
    if first is None:
        return found  # type: ignore[no-any-return]
    begin = found.new_full([1 if dim == along else extent for dim, extent in enumerate(x.shape)], first)
    return functional.cat([begin, found], along)


def _extreme(name: str) -> Any:
    return lambda x, /, *, axis=None, keepdims=False: reduced(name, x, axis, keepdims)


def _truth(name: str) -> Any:
    return lambda x, /, *, axis=None, keepdims=False: reduced(name, x, axis, keepdims).bool()


def _sum(name: str) -> Any:
    return lambda x, /, *, axis=None, dtype=None, keepdims=False: _summed(name, x, axis, dtype, keepdims)


def _spread(name: str) -> Any:
    return lambda x, /, *, axis=None, correction=0.0, keepdims=False: reduced(
        name, x, axis, keepdims, correction=correction
    )


def _up_to(name: str, first: int) -> Any:
    return lambda x, /, *, axis=None, dtype=None, include_initial=False: _running(
        name, x, axis, dtype, first if include_initial else None
    )


_made = declared(
    __name__,
    {
        **{"all": _truth("all"), "any": _truth("any")},
        **{"cumulative_prod": _up_to("cumprod", 1), "cumulative_sum": _up_to("cumsum", 0)},
        "diff": lambda x, /, *, axis=-1, n=1, prepend=None, append=None: functional.diff(x, n, axis, prepend, append),
        **{"max": _extreme("amax"), "mean": _extreme("mean"), "min": _extreme("amin")},
        **{"prod": _sum("prod"), "std": _spread("std"), "sum": _sum("sum"), "var": _spread("var")},
    },
    _TEXTS,
)
globals().update(_made)

__all__ = list(_made)
