"""`torch.masked`: reductions and normalisations of the elements where a mask holds.

Elements that are masked out are replaced by a value that changes nothing (`_neutral`); a reduction of no elements is
that value, a mean, variance or median of none NaN. A mask broadcasts to the input; None is one that holds everywhere.
"""

from __future__ import annotations

from collections.abc import Callable
from math import inf, nan
from typing import Any

from . import functional
from .errors import ArgumentError, RangeError, ShapeError, UnsupportedError, require
from .operators import registry
from .tensors import Tensor
from .types import Dtype, dtypes

__all__ = ["amax", "amin", "argmax", "argmin", "cumprod", "cumsum", "log_softmax", "logaddexp", "logsumexp", "mean"]
__all__ += ["median", "norm", "normalize", "prod", "softmax", "softmin", "std", "sum", "var"]

_LEAST = ("amax", "argmax", "softmax", "log_softmax", "logaddexp", "logsumexp")
_REAL = {dtypes.complex64: dtypes.float32, dtypes.complex128: dtypes.float64}
_MOST = ("amin", "argmin", "softmin")


def _neutral(name: str, kind: dtypes.dtype, order: float) -> Any:
    """The value that does not change the result of a function."""
    if name in ("prod", "cumprod"):
        return 1
    if name == "median":
        return nan
    if name == "norm" and order == -inf:
        return inf
    if name not in _LEAST + _MOST:
        return 0
    if kind.is_floating_point or (kind.is_complex and name == "logsumexp"):
        return -inf if name in _LEAST else inf
    if kind is dtypes.bool_ or kind.is_complex:
        raise UnsupportedError(f"identity of {name} on {kind} input")
    limits = dtypes.iinfo(kind)
    return limits.min if name in _LEAST else limits.max


def _spread(input: Tensor, mask: Tensor) -> Any:
    """The mask as booleans in the shape of the input."""
    require(isinstance(mask, Tensor), ArgumentError, "a mask has to be a Tensor, not {}", type(mask).__name__)
    if mask.ndim > input.ndim:
        raise RangeError("_input_mask expected broadcastable mask (got mask dimensionality higher than of the input)")
    return mask.expand(input.shape).to(dtypes.bool_)


def _filled(name: str, input: Tensor, mask: Tensor | None, order: float = 2.0) -> Any:
    """The input with the neutral value where the mask does not hold."""
    if mask is None:
        return input
    return registry["where"](_spread(input, mask), input, _neutral(name, input.dtype, order))


def _dims(dim: tuple[int, ...] | int | None, rank: int) -> tuple[int, ...]:
    """Dimensions counted from the front, in order; all for None and for none."""
    if dim is None or dim == ():
        return tuple(range(rank))
    rank, found = max(rank, 1), []
    for each in (dim,) if isinstance(dim, int) else dim:
        require(each not in found, ShapeError, "dim={} appears multiple times in the list of dims", each)
        if not -rank <= each < rank:
            raise RangeError(
                f"Dimension out of range (expected to be in range of [{-rank}, {rank - 1}], but got {each})"
            )
        found.append(each % rank)
    return tuple(sorted(found))


def _shown(made: Callable[..., Any], formula: Callable[..., Any], kind: str) -> Any:
    """The public function, under the name of its formula."""
    made.__name__ = made.__qualname__ = formula.__name__
    made.__doc__ = f"{formula.__doc__}\n\n    {kind}; see `tritensor.masked`."
    return made


def _reduction(formula: Callable[..., Any]) -> Any:
    """A reduction of some or all dimensions, from its formula for the filled input."""

    def made(
        input: Tensor, dim: Any = None, *, keepdim: bool | None = False, dtype: Dtype = None, mask: Tensor | None = None
    ) -> Tensor:
        kind, x = dtypes.of_argument(dtype), _filled(formula.__name__, input, mask)
        return formula(x, _dims(dim, input.ndim), bool(keepdim), kind or input.dtype)

    return _shown(made, formula, "Along `dim`, of all elements by default")


def _along(formula: Callable[..., Any]) -> Any:
    """A function along one dimension whose result has the input's shape."""

    def made(input: Tensor, dim: int, *, dtype: Dtype = None, mask: Tensor | None = None) -> Tensor:
        kind, x = dtypes.of_argument(dtype), _filled(formula.__name__, input, mask)
        return formula(x, _dims(dim, input.ndim)[0], kind or input.dtype)

    return _shown(made, formula, "Along `dim`")


def _promoted(kind: dtypes.dtype) -> dtypes.dtype:
    return kind if kind.category >= dtypes.FLOATING else dtypes.int64


@_reduction
def amax(x: object, dims: Any, keepdim: bool, kind: object) -> Any:
    """The maximum of the elements where `mask` holds."""
    return functional.amax(x, dims, keepdim).to(kind)


@_reduction
def amin(x: object, dims: Any, keepdim: bool, kind: object) -> Any:
    """The minimum of the elements where `mask` holds."""
    return functional.amin(x, dims, keepdim).to(kind)


@_reduction
def logsumexp(x: object, dims: Any, keepdim: bool, kind: object) -> Any:
    """The logarithm of the sum of exponentials of the elements where `mask` holds."""
    return functional.logsumexp(x, dims, keepdim).to(kind)


@_along
def cumsum(x: object, dim: int, kind: object) -> Any:
    """The cumulative sum of the elements where `mask` holds."""
    return functional.cumsum(x, dim, dtype=kind)


@_along
def cumprod(x: object, dim: int, kind: object) -> Any:
    """The cumulative product of the elements where `mask` holds."""
    return x.cumprod(dim, dtype=kind)


@_along
def softmax(x: object, dim: int, kind: object) -> Any:
    """Applies softmax to the elements where `mask` holds: the exponentials' shares of their sum."""
    return functional.softmax(x, dim, dtype=kind)


@_along
def log_softmax(x: object, dim: int, kind: object) -> Any:
    """Applies the logarithm of softmax: the logarithms of `softmax`."""
    return functional.log_softmax(x, dim, dtype=kind)


@_along
def softmin(x: object, dim: int, kind: object) -> Any:
    """Applies softmin: `softmax` of the negative elements."""
    return functional.softmax(-x, dim, dtype=kind)


def sum(
    input: Tensor, dim: Any = None, *, keepdim: bool | None = False, dtype: Dtype = None, mask: Tensor | None = None
) -> Tensor:
    """The sum of the elements where `mask` holds; integers add up in int64 unless a `dtype` is given.

    >>> import tritensor as torch
    >>> torch.masked.sum(torch.tensor([1, 2, 4]), mask=torch.tensor([True, False, True]))
    tensor(5)
    """
    kind = dtypes.of_argument(dtype) or _promoted(input.dtype)
    return functional.sum(_filled("sum", input, mask), _dims(dim, input.ndim), bool(keepdim), dtype=kind)


def prod(
    input: Tensor, dim: Any = None, *, keepdim: bool | None = False, dtype: Dtype = None, mask: Tensor | None = None
) -> Tensor:
    """The product of the elements where `mask` holds; of integers in int64 unless a `dtype` is given."""
    x = _filled("prod", input, mask).to(dtypes.of_argument(dtype) or _promoted(input.dtype))
    for each in reversed(_dims(dim, input.ndim)):
        x = functional.prod(x, each, bool(keepdim))
    return x


def _extreme_place(name: str) -> Any:
    def made(
        input: Tensor, dim: int | None = None, *, keepdim: bool = False, dtype: Dtype = None, mask: Tensor | None = None
    ) -> Tensor:
        found = getattr(functional, name)(_filled(name, input, mask), dim, bool(keepdim))
        return found.to(dtypes.of_argument(dtype) or input.dtype)

    made.__name__ = made.__qualname__ = name
    made.__doc__ = f"The index of the {'largest' if name == 'argmax' else 'smallest'} element that is not masked out."
    return made


argmax, argmin = _extreme_place("argmax"), _extreme_place("argmin")


def _count(input: Tensor, dim: int, keepdim: bool, mask: Tensor) -> Any:
    """The number of elements that are not masked out."""
    held = input.new_ones(input.shape, dtype=dtypes.bool_) if mask is None else _spread(input, mask)
    return functional.sum(held, _dims(dim, input.ndim), keepdim)


def mean(
    input: Tensor, dim: Any = None, *, keepdim: bool | None = False, dtype: Dtype = None, mask: Tensor | None = None
) -> Tensor:
    """The mean of the elements where `mask` holds; NaN where there is none.

    Raises:
        ValueError: integers, without a floating `dtype`.
    """
    kind = dtypes.of_argument(dtype) or input.dtype
    if kind.category < dtypes.FLOATING:
        source = "Input" if dtype is None else "Optional"
        raise ValueError(
            f"mean(): Could not infer output dtype. {source} dtype must be either a floating point or complex dtype. "
            f"Got: {kind}"
        )
    total: Any = sum(input, dim, keepdim=keepdim, dtype=kind, mask=mask)
    return total / _count(input, dim, bool(keepdim), mask)


def median(
    input: Tensor, dim: int = -1, *, keepdim: bool = False, dtype: Dtype = None, mask: Tensor | None = None
) -> Tensor:
    """The median along `dim` of the elements where `mask` holds, the lower one of two; NaN where there is none.

    Raises:
        ValueError: of integers, a row without elements.
    """
    x = input if input.dtype.is_floating_point else input.to(dtypes.float32)
    found = _filled("median", x, mask).nanmedian(_dims(dim, input.ndim)[0], keepdim)[0]
    if x is input:
        return found
    if bool(found.isnan().any()):
        raise ValueError("masked median expects no fully masked out rows if dtype is not floating point")
    return found.to(dtypes.of_argument(dtype) or input.dtype)


def norm(
    input: Tensor,
    ord: float | None = 2.0,
    dim: Any = None,
    *,
    keepdim: bool | None = False,
    dtype: Dtype = None,
    mask: Tensor | None = None,
) -> Tensor:
    """The vector norm of the order `ord` of the elements where `mask` holds."""
    order = 2.0 if ord is None else ord
    x = _filled("norm", input, mask, order)
    kind = dtypes.of_argument(dtype) or input.dtype
    return functional.norm(x, order, _dims(dim, input.ndim), bool(keepdim), dtype=kind)


def normalize(
    input: Tensor, ord: float, dim: int, *, eps: float = 1e-12, dtype: Dtype = None, mask: Tensor | None = None
) -> Tensor:
    """The elements where `mask` holds, 0 elsewhere, divided by their `norm` along `dim`, or by `eps` if it is less."""
    length: Any = norm(input, ord, dim, keepdim=True, dtype=dtype, mask=mask)
    return _filled("normalize", input, mask) / length.maximum(length.new_full((), eps))


def logaddexp(
    input: Tensor,
    other: Tensor,
    *,
    dtype: Dtype = None,
    input_mask: Tensor | None = None,
    other_mask: Tensor | None = None,
) -> Tensor:
    """The logarithm of the sum of two exponentials, each counted where its mask holds."""
    x, y = _filled("logaddexp", input, input_mask), _filled("logaddexp", other, other_mask)
    return functional.logaddexp(x, y).to(dtypes.of_argument(dtype) or input.dtype)


def var(
    input: Tensor,
    dim: Any = None,
    unbiased: bool | None = None,
    *,
    correction: float | None = None,
    keepdim: bool | None = False,
    dtype: Dtype = None,
    mask: Tensor | None = None,
) -> Tensor:
    """The variance of the elements where `mask` holds; the divisor is their number minus `correction` (1)."""
    require(unbiased is None or correction is None, AssertionError, "Only one of unbiased and correction may be given")
    less = correction if correction is not None else 1 if unbiased is None else int(unbiased)
    kind = dtypes.of_argument(dtype) or input.dtype
    compute = kind if kind.category >= dtypes.FLOATING else dtypes.float32
    kind = kind if dtype is not None else compute
    count = _count(input, dim, True, mask)
    total: Any = sum(input, dim, keepdim=True, dtype=kind, mask=mask)
    x = input - total / count
    squares: Any = sum(x * x.conj(), dim, keepdim=keepdim, dtype=compute, mask=mask)
    if less:
        count = (count.to(_REAL.get(compute, compute)) - less).clamp_min(0)
    return (squares / count.reshape(squares.shape)).to(kind)


def std(
    input: Tensor,
    dim: Any = None,
    unbiased: bool | None = None,
    *,
    correction: float | None = None,
    keepdim: bool | None = False,
    dtype: Dtype = None,
    mask: Tensor | None = None,
) -> Tensor:
    """The standard deviation of the elements where `mask` holds: the root of `var`."""
    found = var(input, dim, unbiased, correction=correction, keepdim=keepdim, dtype=dtype, mask=mask)
    return functional.sqrt(found)
