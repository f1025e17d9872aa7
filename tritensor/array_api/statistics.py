"""Reductions and running sums of the standard. `axis` is an axis, a tuple of them (which may be empty), or None for all."""

from __future__ import annotations

from typing import Any

from .. import dtypes, functional, layout
from ..arguments import check_tensor
from ..dtypes import dtype
from ..errors import explain
from ..tensor import Tensor

__all__ = [
    "all",
    "any",
    "cumulative_prod",
    "cumulative_sum",
    "diff",
    "max",
    "mean",
    "min",
    "prod",
    "std",
    "sum",
    "var",
]

Axes = int | tuple[int, ...]
_FLAT = frozenset(["prod", "argmax", "argmin"])  # those that go along one dimension


def reduced(name: str, x: Tensor, axis: Axes | None, keepdims: bool, **options: Any) -> Tensor:
    """What a reduction makes of the elements along axes, which stay with extent 1 if `keepdims`."""
    check_tensor(name, "x", 1, x)
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


def _sum_dtype(x: Tensor, dtype: dtype | None) -> dtype | None:
    """The dtype of sums: 64 bits for integers, unsigned for unsigned ones."""
    check_tensor("sum", "x", 1, x)
    if dtype is not None or x.dtype.category != dtypes.INTEGER:
        return dtype
    return dtypes.int64 if x.dtype.is_signed else dtypes.uint64


def sum(x: Tensor, /, *, axis: Axes | None = None, dtype: dtype | None = None, keepdims: bool = False) -> Tensor:
    """The sum along axes; integers are added in 64 bits, unsigned ones as uint64, unless `dtype` is given."""
    return reduced("sum", x, axis, keepdims, dtype=_sum_dtype(x, dtype))


def prod(x: Tensor, /, *, axis: Axes | None = None, dtype: dtype | None = None, keepdims: bool = False) -> Tensor:
    """The product along axes; integers are multiplied in 64 bits, unsigned ones as uint64, unless `dtype` is given."""
    return reduced("prod", x, axis, keepdims, dtype=_sum_dtype(x, dtype))


def max(x: Tensor, /, *, axis: Axes | None = None, keepdims: bool = False) -> Tensor:
    """The greatest element along axes, NaN if one is."""
    return reduced("amax", x, axis, keepdims)


def min(x: Tensor, /, *, axis: Axes | None = None, keepdims: bool = False) -> Tensor:
    """The smallest element along axes, NaN if one is."""
    return reduced("amin", x, axis, keepdims)


def mean(x: Tensor, /, *, axis: Axes | None = None, keepdims: bool = False) -> Tensor:
    """The mean of floating or complex numbers along axes."""
    return reduced("mean", x, axis, keepdims)


def var(x: Tensor, /, *, axis: Axes | None = None, correction: float = 0.0, keepdims: bool = False) -> Tensor:
    """The variance of floating numbers along axes: squares of distances divided by their number less `correction`."""
    return reduced("var", x, axis, keepdims, correction=correction)


def std(x: Tensor, /, *, axis: Axes | None = None, correction: float = 0.0, keepdims: bool = False) -> Tensor:
    """The standard deviation of floating numbers along axes, see `var`."""
    return reduced("std", x, axis, keepdims, correction=correction)


def all(x: Tensor, /, *, axis: Axes | None = None, keepdims: bool = False) -> Tensor:
    """Whether all elements along axes are true, or not zero; bool."""
    return reduced("all", x, axis, keepdims).bool()  # type: ignore[no-any-return]


def any(x: Tensor, /, *, axis: Axes | None = None, keepdims: bool = False) -> Tensor:
    """Whether an element along axes is true, or not zero; bool."""
    return reduced("any", x, axis, keepdims).bool()  # type: ignore[no-any-return]


def _running(name: str, x: Tensor, axis: int | None, dtype: dtype | None, first: int | None) -> Tensor:
    kind = _sum_dtype(x, dtype)
    if axis is None and x.ndim != 1:
        raise ValueError(explain(f"{name}: which axis of {x.ndim}?", remedy="pass axis"))
    found = getattr(functional, name)(x, axis or 0, dtype=kind)
    if first is None:
        return found  # type: ignore[no-any-return]
    begin = found.new_full([1 if dim == (axis or 0) % x.ndim else n for dim, n in enumerate(x.shape)], first)
    return functional.cat([begin, found], axis or 0)


def cumulative_sum(
    x: Tensor, /, *, axis: int | None = None, dtype: dtype | None = None, include_initial: bool = False
) -> Tensor:
    """The sums of all elements up to each along an axis, in the dtype of `sum`; with `include_initial` 0 comes first."""
    return _running("cumsum", x, axis, dtype, 0 if include_initial else None)


def cumulative_prod(
    x: Tensor, /, *, axis: int | None = None, dtype: dtype | None = None, include_initial: bool = False
) -> Tensor:
    """The products of all elements up to each along an axis, in the dtype of `prod`; with `include_initial` 1 is first."""
    return _running("cumprod", x, axis, dtype, 1 if include_initial else None)


def diff(
    x: Tensor, /, *, axis: int = -1, n: int = 1, prepend: Tensor | None = None, append: Tensor | None = None
) -> Tensor:
    """The differences of neighbours along an axis, `n` times, with `prepend` and `append` at its ends."""
    return functional.diff(x, n, axis, prepend, append)
