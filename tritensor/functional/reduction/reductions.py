"""Reductions under PyTorch's names, as functions and as methods of Tensor."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...autograd.gradients import called
from ...errors import ArgumentError, DtypeError, ShapeError, warn
from ...ground.composing import shown_as
from ...ground.public import public
from ...kernels.bounds import places_along, within
from ...kernels.reduction import extremes, sums
from ...kernels.reduction.family import refuse_empty
from ...kernels.reduction.functions import Dim, as_flag, as_one_dim, keywords, no_dims, reduced_shape
from ...kernels.reduction.reference import reduced_count
from ...operators import registry
from ...operators.outputs import ELEMENTWISE, Into, into, takes_out
from ...tensors import Tensor
from ...tensors.results import AminmaxResult, MaxResult, MinResult
from ...types import Dtype, dtypes, layout
from ..views.complex_views import real
from .matrix_norms import check_norm_dtype, matrix_norm

ndarray = np.ndarray


def _freedom(
    name: str, input: Tensor, dim: Any, unbiased: Any, correction: float | None, keepdim: bool, others: dict[str, Any]
) -> dict[str, Any]:
    """The arguments of `var` and `std` in all of PyTorch's forms: var(False), var(0, False), var(correction=0)."""
    if dim.__class__ is bool:
        dim, unbiased = None, dim
    dim, keepdim = keywords(name, dim, keepdim, others)
    if unbiased is not None and correction is not None:
        raise ArgumentError(f"{name}(): unbiased and correction say the same thing", remedy="give one of them")
    if correction is None:
        correction = 1 if unbiased is None or unbiased else 0
    if isinstance(correction, complex):
        raise DtypeError(
            "value cannot be converted to type double without overflow",
            f"{name}(): the correction is {correction}",
            remedy="pass a real number",
        )
    dim = no_dims(dim)
    if isinstance(input, Tensor) and input.dtype.category >= dtypes.FLOATING:
        count = reduced_count(input._data.shape, layout.normalize_dims(dim, input.ndim) if input.ndim else ())
        if count - correction <= 0:
            warn(
                f"{name}(): degrees of freedom is <= 0. Correction should be strictly less than the reduction "
                "factor (input numel divided by output numel)."
            )
    return {"dim": dim, "keepdim": keepdim, "correction": correction}


def _spread(name: str, input: Tensor, arguments: dict[str, Any]) -> Tensor:
    if isinstance(input, Tensor) and input.is_complex():
        return _complex_spread(name, input, **arguments)
    found: Tensor = (sums.var if name == "var" else sums.std).reduce(input, **arguments)
    return found


def _declare_spread(name: str, documentation: str, described: str) -> None:
    """Make `var` or `std` public, and its form that returns the mean too."""

    def spread(
        input: Tensor,
        dim: Any = None,
        unbiased: bool | None = None,
        keepdim: bool = False,
        *,
        correction: float | None = None,
        out: Tensor | None = None,
        **others: Any,
    ) -> Tensor:
        if out is not None:
            named = {"correction": correction, **others}
            return into(spread, Into("cast"), out, (input, dim, unbiased, keepdim), named)
        return _spread(name, input, _freedom(name, input, dim, unbiased, correction, keepdim, others))

    def with_mean(
        input: Tensor,
        dim: Dim | None = None,
        unbiased: bool | None = None,
        keepdim: bool = False,
        *,
        correction: float | None = None,
        **others: Any,
    ) -> tuple[Tensor, Tensor]:
        arguments = _freedom(f"{name}_mean", input, dim, unbiased, correction, keepdim, others)
        title = f"{name.capitalize()}MeanBackward0"
        mean = sums.mean.reduce(input, arguments["dim"], arguments["keepdim"])
        return called(title, _spread(name, input, arguments)), called(title, mean)

    public(method=True, guard=False)(shown_as(spread, name, documentation))
    public(guard=False)(shown_as(with_mean, f"{name}_mean", f"The {described} and the mean."))


_declare_spread(
    "var",
    """The variance of all elements, or along `dim`; the divisor is the count minus `correction` (1 by default).

    >>> import tritensor as torch
    >>> x = torch.tensor([1., 2., 3., 4.])
    >>> x.var(), x.var(correction=0)
    (tensor(1.6667), tensor(1.2500))
    """,
    "variance",
)
_declare_spread("std", "The standard deviation, of all or along `dim`: the root of `var`.", "standard deviation")


@public(method=True, out=takes_out(Into("cast")))
def logsumexp(input: Tensor, dim: Dim, keepdim: bool = False) -> Tensor:
    """The logarithm of the sum of exponentials, log(sum(exp(x))), along `dim`, without overflow.

    >>> import tritensor as torch
    >>> torch.tensor([1000., 1000.]).logsumexp(0)
    tensor(1000.6932)
    """
    if isinstance(input, Tensor) and input.is_complex():
        return _complex_logsumexp(input, no_dims(dim), as_flag("logsumexp", keepdim))
    found: Tensor = sums.logsumexp.reduce(input, no_dims(dim), as_flag("logsumexp", keepdim))
    return found


@public(method=True, out=takes_out(), autocast={"cuda": "float32"})
def norm(
    input: Tensor, p: float | str | None = "fro", dim: Dim = None, keepdim: bool = False, dtype: Dtype = None
) -> Tensor:
    """The p-norm of all elements, or of those along `dim`, as of a vector.

    >>> import tritensor as torch
    >>> torch.tensor([3., 4.]).norm(), torch.tensor([3., -4.]).norm(1)
    (tensor(5.), tensor(7.))

    Args:
        p: 2 (also as "fro" or None), any other number, or infinity of either sign for the largest or smallest |x|.
            "nuc" for the sum of the singular values of the matrices along two dimensions.
        dtype: computed in; no narrower than the tensor's.

    Raises:
        DtypeError: integers, or a narrower dtype. ShapeError: another string; no matrix for "nuc"; no elements to take
            the largest or smallest of.
    """
    if p == "nuc":
        return matrix_norm(input, p, dim, as_flag("norm", keepdim), dtype)
    if isinstance(p, str) and p != "fro":
        words = f"linalg.matrix_norm: Order {p} not supported."
        raise ShapeError(words, "norm() takes a number, 'fro' or 'nuc'")
    order = 2.0 if p is None or p == "fro" else float(p)
    dim = no_dims(dim)
    if isinstance(input, Tensor) and (dtype is not None or not input.dtype.is_floating_point):
        check_norm_dtype("linalg.vector_norm", input, dtype)
        if input.is_complex():
            input, dtype = input.to(dtype or input.dtype).abs(), None
    if abs(order) == float("inf") or order < 0:
        _refuse_empty_norm(input, dim, order)
    if order and isinstance(input, Tensor) and _is_single(input, dim):
        return _norm_of_single(input, dim, as_flag("norm", keepdim), dtype)
    return sums.norm(input, p=order, dim=dim, keepdim=as_flag("norm", keepdim), dtype=dtype)


def _rule_of_extreme(input: Tensor, dim: Dim | None = None, *_: Any, other: object = None, **__: Any) -> Into:
    """`out` of `max` and `min`: of two tensors that of an elementwise operator."""
    return ELEMENTWISE if isinstance(dim, Tensor) or other is not None else Into("same", "partly")


def _is_single(input: Tensor, dim: Dim) -> bool:
    """True if each norm is of one element, whose square may be beyond the dtype's range."""
    shape = input._data.shape
    if dim is None or not shape:
        return dim is None and input.numel() == 1
    return reduced_count(shape, layout.normalize_dims(dim, len(shape))) == 1


def _norm_of_single(input: Tensor, dim: Dim, keepdim: bool, dtype: Dtype) -> Tensor:
    shape = reduced_shape(tuple(input.shape), layout.normalize_dims(dim, input.ndim) if input.ndim else (), keepdim)
    found = (input if dtype is None else input.to(dtype)).reshape(shape).abs()
    return called("LinalgVectorNormBackward0", found)


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


@public(method=True, out=takes_out())
def aminmax(input: Tensor, *, dim: int | None = None, keepdim: bool = False) -> AminmaxResult:
    """The minimum and the maximum of all elements, or along `dim`."""
    if dim is not None and not hasattr(dim, "__index__"):
        raise ArgumentError(f"aminmax(): argument 'dim' must be int, not {type(dim).__name__}")
    keepdim = as_flag("aminmax", keepdim)
    if dim is None and not input.numel():
        raise ShapeError("aminmax(): cannot compute aminmax over an empty dimension as the operation has no identity.")
    found = (each.reduce(input, dim, keepdim) for each in (extremes.amin, extremes.amax))
    return AminmaxResult(*[called("AminmaxBackward0", each) for each in found])


@public(method=True, out=takes_out(_rule_of_extreme))
def max(input: Tensor, dim: Any = None, keepdim: bool = False, *, other: Tensor | None = None, **others: Any) -> Any:
    """The maximum of all elements; with `dim`, along it, and indices; with a tensor, the elementwise maximum.

    >>> import tritensor as torch
    >>> torch.tensor([[1., 5.], [7., 2.]]).max(1).indices
    tensor([1, 0])

    Raises:
        ShapeError, RangeError: there are no elements to choose from.
    """
    return _extreme("max", input, dim if other is None else other, keepdim, others)


@public(method=True, out=takes_out(_rule_of_extreme))
def min(input: Tensor, dim: Any = None, keepdim: bool = False, *, other: Tensor | None = None, **others: Any) -> Any:
    """The minimum of all elements; with `dim`, along it, and indices; with a tensor, the elementwise minimum."""
    return _extreme("min", input, dim if other is None else other, keepdim, others)


def _extreme(name: str, input: Tensor, dim: Any, keepdim: Any, others: dict[str, Any]) -> Any:
    if isinstance(dim, Tensor):
        return registry[f"{name}imum"](input, dim)
    dim, keepdim = keywords(name, dim, keepdim, others)
    if dim is not None:
        along = extremes.max_dim if name == "max" else extremes.min_dim
        values, indices = along.reduce(input, as_one_dim(name, dim), keepdim)
        return (MaxResult if name == "max" else MinResult)(values, within(indices, places_along(input, dim)))
    if isinstance(input, Tensor) and input.numel() == 0:
        refuse_empty(name, input._data.shape, (), whole=True)
    found = (extremes.largest if name == "max" else extremes.smallest).reduce(input, None, False)
    return called(f"{name.capitalize()}Backward1", found)


@public(method=True, out=takes_out(Into("truth")))
def any(input: Tensor, dim: Dim = None, keepdim: bool = False, **others: Any) -> Tensor:
    """Tests if any element is nonzero, of the whole tensor or along `dim`; with `dim=()` each by itself."""
    dim, keepdim = keywords("any", dim, keepdim, others)
    return sums.any(input, dim=dim, keepdim=keepdim)


@public(method=True, out=takes_out(Into("truth")))
def all(input: Tensor, dim: Dim = None, keepdim: bool = False, **others: Any) -> Tensor:
    """Tests if all elements are nonzero, of the whole tensor or along `dim`; with `dim=()` each by itself."""
    dim, keepdim = keywords("all", dim, keepdim, others)
    return sums.all(input, dim=dim, keepdim=keepdim)


@public(method=True)
def count_nonzero(input: Tensor, dim: Dim = None) -> Tensor:
    """Counts the nonzero elements, of the whole tensor or along `dim`."""
    return sums.count_nonzero(input, dim=no_dims(dim))


@public(package=False, method=True)
def sum_to_size(input: Tensor, *sizes: Any, size: Any = None) -> Tensor:
    """The sum over the dimensions that were expanded from `size` to the shape of `input`: the gradient of `expand`.

    >>> import tritensor as torch
    >>> torch.ones(4, 2, 3).sum_to_size(2, 1).shape
    tritensor.Size([2, 1])

    Raises:
        ShapeError: `size` does not expand to the shape of `input`.
    """
    target = layout.integers("sum_to_size", "size", sizes, size)
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
    if not target:
        return input.sum()
    if not dims:
        return input
    kept = input.sum(dims, True)
    return kept.reshape(target) if extra else kept


def _refuse_size(target: tuple[int, ...], shape: tuple[int, ...]) -> None:
    raise ShapeError(f"size {{{list(target)}}} is not expandable to size {{{list(shape)}}}.")


def _complex_spread(name: str, input: Tensor, dim: int | None, keepdim: bool, correction: float) -> Tensor:
    """The variance ("var") of complex numbers or its root ("std"): real, the mean squared distance from the mean."""
    dims = layout.normalize_dims(dim, input.ndim) if input.ndim else ()
    left = reduced_count(input._data.shape, dims) - correction
    apart = input - input.mean(dim, True)
    distance = (apart - apart.mean(dim, True)).abs()  # the second time for what the mean was rounded by
    squares = (distance * distance).sum(dim, keepdim)
    found = squares / (left if left > 0 else 0)
    if name == "std":
        flat, where = found == 0, registry["where"]
        found = where(flat, found, where(flat, 1, found).sqrt())  # where it is 0, so is its gradient
    return called(f"{name.capitalize()}Backward0", found)


def _complex_logsumexp(input: Tensor, dim: int, keepdim: bool) -> Tensor:
    """The logsumexp of complex numbers; the largest real part is taken out first."""
    dims = layout.normalize_dims(dim, input.ndim) if input.ndim else ()
    if input.numel() == 0:
        found = input.exp().sum(dim, keepdim).log()
    else:
        top = registry["amax"](real(input.detach()), dim=dims, keepdim=True)
        top = registry["where"](top.isinf(), 0, top)
        found = (input - top).exp().sum(dim, keepdim).log()
        found = found + (top if keepdim else top.squeeze(dims))
    return called("LogsumexpBackward0", found)
