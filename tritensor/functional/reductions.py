"""Reductions by PyTorch's names, as functions and as methods of Tensor."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from .. import layout
from ..errors import ArgumentError, ShapeError, explain
from ..kernels.reduction import extremes as peaks
from ..kernels.reduction import scan, sums
from ..kernels.reduction.family import quick_sum, reduced_count, refuse_empty
from ..operator import registry
from ..tensor import Tensor

__all__ = [
    "all",
    "amax",
    "amin",
    "aminmax",
    "any",
    "argmax",
    "argmin",
    "count_nonzero",
    "cumsum",
    "logsumexp",
    "max",
    "mean",
    "min",
    "norm",
    "prod",
    "std",
    "std_mean",
    "sum",
    "sum_to_size",
    "var",
    "var_mean",
]

ndarray = np.ndarray
Dim = int | Sequence[int] | None


class MaxResult(NamedTuple):
    """What `max` along a dimension returns."""

    values: Tensor
    indices: Tensor


class MinResult(NamedTuple):
    """What `min` along a dimension returns."""

    values: Tensor
    indices: Tensor


class Extremes(NamedTuple):
    """What `aminmax` returns."""

    min: Tensor
    max: Tensor


MaxResult.__name__ = MaxResult.__qualname__ = "max"
MinResult.__name__ = MinResult.__qualname__ = "min"
Extremes.__name__ = Extremes.__qualname__ = "aminmax"


def _named(name: str, dim: Any, keepdim: Any, others: dict[str, Any]) -> tuple[Any, Any]:
    """`dim` and `keepdim` where they were given by NumPy's names, `axis` and `keepdims`."""
    for key, value in others.items():
        if key == "axis" and dim is None:
            dim = value
        elif key == "keepdims":
            keepdim = value
        else:
            raise ArgumentError(f"{name}() got an unexpected keyword argument '{key}'")
    return dim, _flag(name, keepdim)


def _flag(name: str, keepdim: Any) -> bool:
    if keepdim.__class__ is not bool:
        raise ArgumentError(f"{name}(): argument 'keepdim' must be bool, not {keepdim.__class__.__name__}")
    return keepdim


def _dims(dim: Any) -> Any:
    """No dimension means all of them."""
    return None if dim.__class__ in (tuple, list) and not dim else dim


def _one_dim(name: str, dim: Any) -> Any:
    if not isinstance(dim, (tuple, list)):
        return dim
    kind = dim.__class__.__name__
    words = f"{name}() received an invalid combination of arguments - got ({kind})"
    if name.startswith("arg"):
        words = f"{name}(): argument 'dim' (position 1) must be int, not {kind}"
    raise ArgumentError(explain(words, f"{name} goes along one dimension; flatten several into one first"))


def sum(input: Tensor, dim: Dim = None, keepdim: bool = False, *, dtype: Any = None, **others: Any) -> Tensor:
    """The sum of all elements, or along `dim`; integers and booleans add up in int64.

    >>> import tritensor as torch
    >>> x = torch.tensor([[1., 2.], [3., 4.]])
    >>> x.sum(), x.sum(0), x.sum(1, keepdim=True)
    (tensor(10.), tensor([4., 6.]), tensor([[3.],
            [7.]]))

    Args:
        dim: one dimension or several; none means all.
        keepdim: leave the dimensions in, with size 1.
        dtype: convert the elements to this dtype first.
    """
    if dtype is None and not others:
        quick = quick_sum(sums.sum, input, dim, keepdim)
        if quick is not None:
            return quick
    dim, keepdim = _named("sum", dim, keepdim, others)
    return sums.sum(input, dim=_dims(dim), keepdim=keepdim, dtype=dtype)


def mean(input: Tensor, dim: Dim = None, keepdim: bool = False, *, dtype: Any = None, **others: Any) -> Tensor:
    """The mean of all elements, or along `dim`.

    >>> import tritensor as torch
    >>> torch.tensor([1., 2., 6.]).mean()
    tensor(3.)

    Raises:
        DtypeError: the elements are integers or booleans and no floating dtype is given.
    """
    if dtype is None and not others:
        quick = quick_sum(sums.mean, input, dim, keepdim)
        if quick is not None:
            return quick
    dim, keepdim = _named("mean", dim, keepdim, others)
    return sums.mean(input, dim=_dims(dim), keepdim=keepdim, dtype=dtype)


def prod(input: Tensor, dim: int | None = None, keepdim: bool = False, *, dtype: Any = None, **others: Any) -> Tensor:
    """The product of all elements, or along one dimension; integers and booleans multiply in int64.

    >>> import tritensor as torch
    >>> torch.tensor([2, 3, 4]).prod()
    tensor(24)
    """
    dim, keepdim = _named("prod", dim, keepdim, others)
    return sums.prod(input, dim=_one_dim("prod", dim), keepdim=keepdim, dtype=dtype)


def _freedom(
    name: str, input: Tensor, dim: Any, unbiased: Any, correction: Any, keepdim: Any, others: dict[str, Any]
) -> dict[str, Any]:
    """The arguments of `var` and `std` in all of PyTorch's forms: var(False), var(0, False), var(correction=0)."""
    if dim.__class__ is bool:
        dim, unbiased = None, dim
    dim, keepdim = _named(name, dim, keepdim, others)
    if unbiased is not None and correction is not None:
        raise ArgumentError(f"{name}(): unbiased and correction say the same thing; give one of them")
    if correction is None:
        correction = 1 if unbiased is None or unbiased else 0
    dim = _dims(dim)
    if isinstance(input, Tensor) and input.dtype.is_floating_point:
        count = reduced_count(input._data.shape, layout.normalize_dims(dim, input.ndim) if input.ndim else ())
        if count - correction <= 0:
            warnings.warn(
                f"{name}(): degrees of freedom is <= 0. Correction should be strictly less than the reduction "
                "factor (input numel divided by output numel).",
                stacklevel=3,
            )
    return {"dim": dim, "keepdim": keepdim, "correction": correction}


def var(
    input: Tensor,
    dim: Any = None,
    unbiased: bool | None = None,
    keepdim: bool = False,
    *,
    correction: float | None = None,
    **others: Any,
) -> Tensor:
    """The variance of all elements, or along `dim`; `correction` (1) is taken off the count that it divides by.

    >>> import tritensor as torch
    >>> x = torch.tensor([1., 2., 3., 4.])
    >>> x.var(), x.var(correction=0)
    (tensor(1.6667), tensor(1.2500))
    """
    return sums.var.reduce(input, **_freedom("var", input, dim, unbiased, correction, keepdim, others))


def std(
    input: Tensor,
    dim: Any = None,
    unbiased: bool | None = None,
    keepdim: bool = False,
    *,
    correction: float | None = None,
    **others: Any,
) -> Tensor:
    """The standard deviation, the square root of `var`."""
    return sums.std.reduce(input, **_freedom("std", input, dim, unbiased, correction, keepdim, others))


def var_mean(
    input: Tensor,
    dim: Any = None,
    unbiased: bool | None = None,
    keepdim: bool = False,
    *,
    correction: float | None = None,
    **others: Any,
) -> tuple[Tensor, Tensor]:
    """The variance and the mean."""
    arguments = _freedom("var", input, dim, unbiased, correction, keepdim, others)
    return sums.var.reduce(input, **arguments), sums.mean.reduce(input, arguments["dim"], arguments["keepdim"])


def std_mean(
    input: Tensor,
    dim: Any = None,
    unbiased: bool | None = None,
    keepdim: bool = False,
    *,
    correction: float | None = None,
    **others: Any,
) -> tuple[Tensor, Tensor]:
    """The standard deviation and the mean."""
    arguments = _freedom("std", input, dim, unbiased, correction, keepdim, others)
    return sums.std.reduce(input, **arguments), sums.mean.reduce(input, arguments["dim"], arguments["keepdim"])


def logsumexp(input: Tensor, dim: Dim, keepdim: bool = False) -> Tensor:
    """log(sum(exp(x))) along `dim`, without overflow.

    >>> import tritensor as torch
    >>> torch.tensor([1000., 1000.]).logsumexp(0)
    tensor(1000.6932)
    """
    return sums.logsumexp.reduce(input, _dims(dim), _flag("logsumexp", keepdim))


def norm(
    input: Tensor, p: float | str | None = "fro", dim: Dim = None, keepdim: bool = False, dtype: Any = None
) -> Tensor:
    """The p-norm of all elements, or of those along `dim`, as of a vector.

    >>> import tritensor as torch
    >>> torch.tensor([3., 4.]).norm(), torch.tensor([3., -4.]).norm(1)
    (tensor(5.), tensor(7.))

    Args:
        p: 2 (also as "fro" or None), any other number, or infinity of either sign for the largest or smallest |x|.
    """
    if isinstance(p, str) and p != "fro":
        raise ShapeError(explain(f"linalg.matrix_norm: Order {p} not supported.", "norm() takes a number or 'fro'"))
    order = 2.0 if p is None or p == "fro" else float(p)
    dim = _dims(dim)
    if abs(order) == float("inf") or order < 0:
        _refuse_empty_norm(input, dim, order)
    return sums.norm(input, p=order, dim=dim, keepdim=_flag("norm", keepdim), dtype=dtype)


def _refuse_empty_norm(input: Tensor, dim: Any, order: float) -> None:
    if input.numel() != 0:
        return
    words = f"linalg.vector_norm cannot compute the {order:g} norm on "
    if dim is None:
        raise ShapeError(words + "an empty tensor because the operation does not have an identity")
    for each in layout.normalize_dims(dim, input.ndim):
        if input._data.shape[each] == 0:
            raise ShapeError(
                words + f"the dimension {each} because this dimension is empty and the operation does not "
                "have an identity"
            )


def amax(input: Tensor, dim: Dim = None, keepdim: bool = False, **others: Any) -> Tensor:
    """The largest of all elements, or along `dim`; the gradient is shared evenly among equals.

    Raises:
        ShapeError, RangeError: there are no elements to choose from.
    """
    dim, keepdim = _named("amax", dim, keepdim, others)
    return peaks.amax.reduce(input, _dims(dim), keepdim)


def amin(input: Tensor, dim: Dim = None, keepdim: bool = False, **others: Any) -> Tensor:
    """The smallest of all elements, or along `dim`; the gradient is shared evenly among equals."""
    dim, keepdim = _named("amin", dim, keepdim, others)
    return peaks.amin.reduce(input, _dims(dim), keepdim)


def aminmax(input: Tensor, *, dim: int | None = None, keepdim: bool = False) -> Extremes:
    """The smallest and the largest element, of all or along `dim`."""
    dim = _one_dim("aminmax", dim)
    return Extremes(peaks.amin.reduce(input, dim, keepdim), peaks.amax.reduce(input, dim, keepdim))


def argmax(input: Tensor, dim: int | None = None, keepdim: bool = False, **others: Any) -> Tensor:
    """The index of the largest element (counted through all of them, or along `dim`); the first of equals.

    >>> import tritensor as torch
    >>> x = torch.tensor([[1, 5], [7, 2]])
    >>> x.argmax(), x.argmax(1)
    (tensor(2), tensor([1, 0]))
    """
    return _place(peaks.argmax, "argmax", input, dim, keepdim, others)


def argmin(input: Tensor, dim: int | None = None, keepdim: bool = False, **others: Any) -> Tensor:
    """The index of the smallest element (counted through all of them, or along `dim`); the first of equals."""
    return _place(peaks.argmin, "argmin", input, dim, keepdim, others)


def _place(operator: Any, name: str, input: Tensor, dim: Any, keepdim: Any, others: dict[str, Any]) -> Tensor:
    dim, keepdim = _named(name, dim, keepdim, others)
    return operator.reduce(input, _one_dim(name, dim), keepdim)


def max(input: Tensor, dim: Any = None, keepdim: bool = False, *, other: Tensor | None = None, **others: Any) -> Any:
    """The largest element; with `dim`, the largest along it and their indices; with a tensor, the elementwise maximum.

    >>> import tritensor as torch
    >>> torch.tensor([[1., 5.], [7., 2.]]).max(1).indices
    tensor([1, 0])

    Raises:
        ShapeError, RangeError: there are no elements to choose from.
    """
    return _extreme("max", input, dim if other is None else other, keepdim, others)


def min(input: Tensor, dim: Any = None, keepdim: bool = False, *, other: Tensor | None = None, **others: Any) -> Any:
    """The smallest element; with `dim`, those along it and their indices; with a tensor, the elementwise minimum."""
    return _extreme("min", input, dim if other is None else other, keepdim, others)


def _extreme(name: str, input: Tensor, dim: Any, keepdim: Any, others: dict[str, Any]) -> Any:
    if isinstance(dim, Tensor):
        return registry[f"{name}imum"](input, dim)
    dim, keepdim = _named(name, dim, keepdim, others)
    if dim is not None:
        along = peaks.max_dim if name == "max" else peaks.min_dim
        return (MaxResult if name == "max" else MinResult)(*along.reduce(input, _one_dim(name, dim), keepdim))
    if isinstance(input, Tensor) and input.numel() == 0:
        refuse_empty(name, input._data.shape, (), whole=True)
    return (peaks.amax if name == "max" else peaks.amin).reduce(input, None, False)


def any(input: Tensor, dim: Dim = None, keepdim: bool = False, **others: Any) -> Tensor:
    """Whether an element is not zero, of all or along `dim`."""
    dim, keepdim = _named("any", dim, keepdim, others)
    return sums.any(input, dim=dim, keepdim=keepdim)


def all(input: Tensor, dim: Dim = None, keepdim: bool = False, **others: Any) -> Tensor:
    """Whether no element is zero, of all or along `dim`."""
    dim, keepdim = _named("all", dim, keepdim, others)
    return sums.all(input, dim=dim, keepdim=keepdim)


def count_nonzero(input: Tensor, dim: Dim = None) -> Tensor:
    """How many elements are not zero, of all or along `dim`."""
    return sums.count_nonzero(input, dim=_dims(dim))


def cumsum(input: Tensor, dim: int | None = None, *, dtype: Any = None, **others: Any) -> Tensor:
    """The sums of the elements up to each place along `dim`; integers and booleans add up in int64.

    >>> import tritensor as torch
    >>> torch.tensor([1, 2, 3]).cumsum(0)
    tensor([1, 3, 6])

    Raises:
        ArgumentError: no dimension is given.
    """
    dim, _ = _named("cumsum", dim, False, others)
    if dim is None:
        raise ArgumentError('cumsum() missing 1 required positional arguments: "dim"')
    return scan.cumsum(input, dim=_one_dim("cumsum", dim), dtype=dtype)


def sum_to_size(input: Tensor, *size: Any) -> Tensor:
    """The sum over the dimensions by which `input` is larger than `size`: what undoes an expansion.

    >>> import tritensor as torch
    >>> torch.ones(4, 2, 3).sum_to_size(2, 1).shape
    tritensor.Size([2, 1])

    Raises:
        ShapeError: `size` does not expand to the shape of `input`.
    """
    target = tuple(size[0]) if len(size) == 1 and isinstance(size[0], (tuple, list)) else size
    shape = input._data.shape
    extra = len(shape) - len(target)
    if extra < 0:
        _refuse_size(target, shape)
    dims = tuple(range(extra))
    for dim, extent in enumerate(target, extra):
        if extent != shape[dim]:
            if extent != 1:
                _refuse_size(target, shape)
            dims += (dim,)
    if not dims:
        return input
    if dims[-1] < extra:
        return sum(input, dims)
    kept = sum(input, dims, True)
    return kept.reshape(target) if extra else kept


def _refuse_size(target: tuple[int, ...], shape: tuple[int, ...]) -> None:
    raise ShapeError(f"size {{{list(target)}}} is not expandable to size {{{list(shape)}}}.")


for _function in (
    sum,
    mean,
    prod,
    var,
    std,
    logsumexp,
    norm,
    amax,
    amin,
    aminmax,
    argmax,
    argmin,
    max,
    min,
    any,
    all,
    count_nonzero,
    cumsum,
    sum_to_size,
):
    setattr(Tensor, _function.__name__, _function)
