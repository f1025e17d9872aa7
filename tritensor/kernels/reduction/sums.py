"""Sums and reductions that are computed from sums: mean, product, variance, norms, logsumexp, counts, any and all."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ...autograd.mode import recording
from ...autograd.names import over_some
from ...operators.outputs import COMPUTED, SAME, Into
from ...operators.rules import REAL_FLOAT, SUMS, FloatingOnly, Rule, Truth
from ...runtime.choice import Native
from ...runtime.source import device_function
from ...tensors import Tensor
from ...types import dtypes
from ..elementwise.arithmetic import where
from ..elementwise.maximum import larger, smaller
from ..exact import quotient, root
from .complex_sums import by_pairs, by_parts, of_truth
from .family import Parts, folded, reduction, restore, spread
from .kernel import highest, lowest, state_dtype
from .reference import add_up, add_up_squares, exponential_sums, merged_moments, moments, norms, product, reduced_count

if TYPE_CHECKING:
    import triton.language as tl
    from triton.language.extra import libdevice

MEANS = FloatingOnly(
    "means",
    "mean(): could not infer output dtype. Input dtype must be either a floating point or complex dtype. Got: {}",
    "mean(): could not infer output dtype. Optional dtype must be either a floating point or complex dtype. Got: {}",
)
SPREADS = FloatingOnly("spreads", "std and var only support floating point and complex dtypes", highest=dtypes.FLOATING)
NORMS = FloatingOnly(
    "norms", "linalg.vector_norm: Expected a floating point or complex tensor as input. Got {}", highest=dtypes.FLOATING
)


# ---- sums -----------------------------------------------------------------------------------------------------


@device_function
def add(x, y):
    """x + y."""
    return x + y


@device_function
def multiply(x, y):
    """Multiplies x and y element by element."""
    return x * y


@device_function
def fold_sum(state, AXIS: tl.constexpr):
    """The sum of a tile."""
    return (tl.sum(state[0], AXIS),)


@device_function
def add_pairs(first, second, other_first, other_second):
    """The sums of two values."""
    return first + other_first, second + other_second


@device_function
def fold_pairs(state, AXIS: tl.constexpr):
    """The sums of a tile of pairs."""
    return tl.sum(state[0], AXIS), tl.sum(state[1], AXIS)


def zero(compute: dtypes.dtype):
    """The state of an empty sum."""
    return ((0, state_dtype(compute)),)


def no_pairs(compute):
    """The state of two empty sums."""
    return ((0, compute),) * 2


def one(compute: dtypes.dtype):
    """The state of an empty product."""
    return ((1, state_dtype(compute)),)


@reduction(SUMS, quick=True, out=COMPUTED, autocast={"cuda": "float32"})
def sum(x, *, dim=None, keepdim=False, dtype=None):
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
    return add_up(x, dim, keepdim)


sum.in_parts()
sum.kernel(fold_sum, add, zero)
sum.gradient(lambda grad, x_shape, dim, keepdim: spread(grad, x_shape, dim, keepdim))


@reduction(MEANS, quick=True, out=lambda *_, dtype=None, **__: Into("cast") if dtype is None else SAME)
def mean(x, *, dim=None, keepdim=False, dtype=None):
    """The mean of all elements, or along `dim`.

    >>> import tritensor as torch
    >>> torch.tensor([1., 2., 6.]).mean()
    tensor(3.)

    Raises:
        DtypeError: the elements are integers or booleans and no floating `dtype` is passed.
    """
    return add_up(x, dim, keepdim) / x.dtype.type(reduced_count(x.shape, dim))


sum.overload = mean.overload = over_some
sum.native = mean.native = Native((1, 10_000))
sum.linear = mean.linear = "first"
sum.complex_kernel(by_parts)
mean.complex_kernel(by_parts)
mean.in_parts(
    lambda block, place, dim, metadata: add_up(block, dim, True),
    lambda parts, metadata, count: add_up(parts[0], 0) / parts[0].dtype.type(count),
)

_divide = device_function(lambda state, count, numbers: (quotient(state[0], tl.zeros_like(state[0]) + count),))

mean.kernel(fold_sum, add, zero, finish=_divide)


@mean.gradient
def _(grad: Tensor, x_shape: tuple[int, ...], dim: tuple[int, ...], keepdim: bool):
    return spread(grad / (reduced_count(x_shape, dim) or 1), x_shape, dim, keepdim)


@reduction(SUMS, one_dim=True, out=COMPUTED, autocast={"cpu": "float32", "cuda": "float32"})
def prod(x, *, dim=None, keepdim=False, dtype=None):
    """The product of all elements, or along one dimension; integers and booleans multiply in int64.

    >>> import tritensor as torch
    >>> torch.tensor([2, 3, 4]).prod()
    tensor(24)
    """
    return product(x, dim, keepdim)


def _over_last(arrays: Sequence[Any], metadata: Mapping[str, Any]) -> bool | None:
    """True of rows, of which NumPy multiplies the elements one by one; columns it multiplies with each other."""
    dim = metadata.get("dim")
    dims = dim if isinstance(dim, (tuple, list)) else (dim,)
    return dim is None or arrays[0].ndim - 1 in [each % max(arrays[0].ndim, 1) for each in dims] or None


prod.native = Native(suits=_over_last)
prod.in_parts()
prod.kernel(folded(multiply), multiply, one)
prod.complex_kernel(by_pairs)


@prod.gradient
def _(grad: Tensor, out: Tensor, x: Tensor, dim: tuple[int, ...], keepdim: bool):
    shape = x.shape
    if not shape:
        return grad
    grad, out = restore(grad, shape, dim, keepdim), restore(out, shape, dim, keepdim)
    if recording.enabled:
        return grad * _product_of_others(x, dim)
    # With one zero its gradient is the product of the others, and all others' is 0; with two zeros all are 0. But 0 is
    # NaN where another element is infinite or NaN.
    zero, odd = x == 0, where(x.isfinite(), 0, 1)
    nothing = where(sum(odd, dim=dim, keepdim=True) > odd, grad * float("nan"), grad * 0)
    zeros = sum(zero, dim=dim, keepdim=True)
    others = prod(where(zero, 1, x), dim=dim, keepdim=True)
    return where(zeros == 0, grad * (out / x), where(zero & (zeros == 1), grad * others, nothing))


def _product_of_others(x: Tensor, dims: tuple[int, ...]) -> Tensor:
    """For each element the product of all others, without division: correct and differentiable for zeros too."""
    if not x._data.size:
        return x.new_ones(x.shape)
    kept = tuple(dim for dim in range(x.ndim) if dim not in dims)
    moved = x.permute(kept + dims)
    rows = moved.reshape(*[x.shape[dim] for dim in kept], -1)
    before = _product_before(rows)
    after = _product_before(rows, reverse=True)
    back = (before * after).reshape(moved.shape)
    order = kept + dims
    return back.permute(tuple(order.index(dim) for dim in range(x.ndim)))


def _product_before(rows: Tensor, reverse: bool = False) -> Tensor:
    """For each element of the last dimension the product of those before it (after it): log2(n) steps of doubling."""
    count = rows.shape[-1]
    result = shifted(rows, 1, reverse)
    step = 1
    while step < count - 1:
        result = result * shifted(result, step, reverse)
        step *= 2
    return result


def shifted(x: Tensor, step: int, back: bool, dim: int = -1, fill: float = 1) -> Tensor:
    """Each element moved `step` places towards the end of `dim` (the start, if back), `fill` in the places left."""
    moved = x.new_full(x.shape, fill)
    if x.ndim and x.shape[dim]:
        count = x.shape[dim] - step
        moved.narrow(dim, 0 if back else step, count).copy_(x.narrow(dim, step if back else 0, count))
    return moved


# ---- variance -------------------------------------------------------------------------------------------------


@device_function
def merge_moments(mean, squares, count, other_mean, other_squares, other_count):
    """Mean, sum of squared distances from it, and count, of the union of two sets (Chan, Golub and LeVeque)."""
    total = count + other_count
    share = tl.where(total == 0, total, other_count / total)
    apart = other_mean - mean
    # in this order 0 * apart * apart is 0 even where apart * apart overflows
    return mean + apart * share, squares + other_squares + apart * (count * share) * apart, total


@device_function
def one_moment(values, index, numbers):
    """The moments of an element, less the row's first one."""
    x = values[0] - values[1]  # of numbers far from 0 the mean would be rounded in each step
    return x, tl.zeros_like(x), tl.zeros_like(x) + 1


@device_function
def _variance(state, count, numbers):
    return (quotient(state[1], tl.maximum(state[2] - numbers[0], tl.zeros_like(state[2]))),)


_deviation = device_function(lambda state, count, numbers: (root(_variance(state, count, numbers)[0]),))


def no_moments(compute: dtypes.dtype):
    """The moments of no elements."""
    return ((0, compute),) * 3


def _correction(metadata: dict[str, Any]):
    correction = metadata["correction"]
    return (correction if correction == correction else math.inf,)  # what is left of the count is 0 for both


_MOMENTS: dict[str, Any] = {"start": one_moment, "numbers": _correction, "shifted": True}


@reduction(SPREADS, function=False)
def var(x, *, dim=None, keepdim=False, correction=1):
    """The variance along `dim`: the sum of squared distances from the mean over the count minus `correction`."""
    parts = [each[None] for each in moments(x, dim, np.empty)]
    found = merged_moments(parts, correction, reduced_count(x.shape, dim))
    return (found if keepdim else np.squeeze(found, dim)).astype(x.dtype)


def _moments_of_block(block: np.ndarray, place, dim: tuple[int, ...], metadata: dict[str, Any]):
    return moments(block, dim, place.new)


var.in_parts(
    _moments_of_block,
    lambda parts, metadata, count: merged_moments(parts, metadata["correction"], count),
    read_once=False,
)
var.kernel(folded(merge_moments), merge_moments, no_moments, finish=_variance, **_MOMENTS)


@var.gradient
def _(grad: Tensor, x: Tensor, dim: tuple[int, ...], keepdim: bool, correction: int):
    return _variance_gradient(restore(grad, x.shape, dim, keepdim), x, dim, correction)


def _variance_gradient(grad: Tensor, x: Tensor, dims: tuple[int, ...], correction: float) -> Tensor:
    left = reduced_count(x.shape, dims) - correction
    if left <= 0 and (dims is None or len(dims) == x.ndim):  # PyTorch has two formulas for no freedom
        return grad * where(x == mean(x), math.nan, math.inf).to(x.dtype)
    factor = 2 / left if left else math.inf
    apart = x - mean(x, dim=dims, keepdim=True)  # and what the mean was rounded by
    return grad * factor * (apart - mean(apart, dim=dims, keepdim=True) if x.dtype is dtypes.float32 else apart)


@reduction(SPREADS, function=False)
def std(x: np.ndarray, *, dim: tuple[int, ...] | None = None, keepdim: bool = False, correction: float = 1):
    """The standard deviation along `dim`, the square root of `var`."""
    return np.sqrt(var.reference(x, dim=dim, keepdim=keepdim, correction=correction))


std.in_parts(
    _moments_of_block,
    lambda parts, metadata, count: np.sqrt(merged_moments(parts, metadata["correction"], count)),
    read_once=False,
)
# derived tests also reduce one element, whose variance is 0 only without the correction
var.example = std.example = {"correction": 0}
std.kernel(folded(merge_moments), merge_moments, no_moments, finish=_deviation, **_MOMENTS)


@std.gradient
def _(grad: Tensor, out, x, dim, keepdim: bool, correction: float):
    half = where(out == 0, 0, grad / (_not_zero(out) * 2))
    return _variance_gradient(restore(half, x.shape, dim, keepdim), x, dim, correction)


# ---- logarithms, norms and counts -----------------------------------------------------------------------------


@device_function
def merge_logs(top, total, other_top, other_total):
    """exp(top) * total, summed over two sets, as the larger top and its total; NaN is kept."""
    smaller_share = libdevice.exp(-tl.abs(top - other_top))  # NaN for two infinities, which are equal
    more = tl.where(top > other_top, total + other_total * smaller_share, total * smaller_share + other_total)
    return larger(top, other_top), tl.where(top == other_top, total + other_total, more)


@device_function
def _one_log(values, index, numbers):
    x = values[0]
    return x, tl.zeros_like(x) + 1


_log_of_total = device_function(lambda state, count, numbers: (state[0] + libdevice.log(state[1]),))


@reduction(REAL_FLOAT, function=False, autocast={"cuda": "float32"})
def logsumexp(x, *, dim=None, keepdim=False):
    """The logarithm of the sum of exponentials, log(sum(exp(x))), along `dim`, without overflow."""
    if 0 in [x.shape[each] for each in dim]:
        return np.log(np.add.reduce(x, dim, keepdims=keepdim))
    top = np.maximum.reduce(x, dim, keepdims=True)
    top = np.where(np.isinf(top), 0, top).astype(x.dtype)
    total = np.add.reduce(np.exp(x - top), dim, keepdims=keepdim)
    return np.log(total) + (top if keepdim else top.reshape(total.shape))


logsumexp.in_parts(lambda block, place, dim, metadata: exponential_sums(block, dim, place.new), read_once=False)
logsumexp.kernel(
    folded(merge_logs),
    merge_logs,
    lambda compute: ((lowest(compute), compute), (0, compute)),
    start=_one_log,
    finish=_log_of_total,
)


@logsumexp.gradient
def _(grad: Tensor, out: Tensor, x: Tensor, dim: tuple[int, ...], keepdim: bool):
    shape = x.shape
    return restore(grad, shape, dim, keepdim) * (x - restore(out, shape, dim, keepdim)).exp()


@reduction(NORMS, function=False, autocast={"cuda": "float32"})
def norm(x, *, p=2.0, dim=None, keepdim=False, dtype=None):
    """The p-norm of the elements along `dim`: (sum |x|**p) ** (1/p), the largest |x| for infinity, the count for 0."""
    if p == 2:
        return np.sqrt(add_up_squares(x, dim, keepdim))
    size = np.abs(x)
    if p == np.inf:
        return np.maximum.reduce(size, dim, keepdims=keepdim, initial=0)
    if p == -np.inf:
        return np.minimum.reduce(size, dim, keepdims=keepdim)
    if p == 0:
        return np.add.reduce(x != 0, dim, keepdims=keepdim, dtype=x.dtype)
    if p == 1:
        return np.add.reduce(size, dim, keepdims=keepdim)
    return np.add.reduce(size**p, dim, keepdims=keepdim) ** x.dtype.type(1 / p)


def _norm_of_parts(parts: list[np.ndarray], metadata: dict[str, Any], count: int):
    p = metadata["p"]
    if abs(p) == np.inf:
        return (np.maximum if p > 0 else np.minimum).reduce(parts[0], 0)
    total = add_up(parts[0], 0)
    return total if p in (0, 1) else np.sqrt(total) if p == 2 else total ** total.dtype.type(1 / p)


norm.in_parts(
    lambda block, place, dim, metadata: norms(block, metadata["p"], dim, place.new), _norm_of_parts, read_once=False
)

_size = device_function(lambda values, index, numbers: (tl.abs(values[0]),))
_square = device_function(lambda values, index, numbers: (values[0] * values[0],))


@device_function
def _power(values, index, numbers):
    return (libdevice.pow(tl.abs(values[0]), tl.zeros_like(values[0]) + numbers[0]),)


_differs = device_function(lambda values, index, numbers: (values[0] != 0,))
_root = device_function(lambda state, count, numbers: (root(state[0]),))


@device_function
def _power_root(state, count, numbers):
    return (libdevice.pow(state[0], tl.zeros_like(state[0]) + 1 / numbers[0]),)


def _norm_parts(metadata: dict[str, Any]):
    p = metadata["p"]
    special = {
        np.inf: Parts(folded(larger), larger, zero, _size),
        -np.inf: Parts(folded(smaller), smaller, lambda compute: ((highest(compute), compute),), _size),
        0.0: Parts(fold_sum, add, zero, _differs),
        1.0: Parts(fold_sum, add, zero, _size),
        2.0: Parts(fold_sum, add, zero, _square, _root),
    }
    return special.get(p) or Parts(fold_sum, add, zero, _power, _power_root, (p,))


norm.node, norm.parts = "linalg_vector_norm", _norm_parts


@norm.gradient
def _(grad: Tensor, out: Tensor, x: Tensor, p: float, dim: tuple[int, ...], keepdim: bool):
    shape = x.shape
    grad, out = restore(grad, shape, dim, keepdim), restore(out, shape, dim, keepdim)
    if p == 0:
        return None
    if p == 1:
        return grad * x.sign()
    if p in (np.inf, -np.inf):
        most = x.abs() == out
        return where(most, grad * x.sign() / sum(most, dim=dim, keepdim=True), 0)
    if p == 2:
        return where(out == 0, 0, grad * (x / _not_zero(out)))
    # |x| ** (p - 2) is infinite at 0 for p below 2, where the gradient is defined as 0
    power = where(x == 0, 0, x * _not_zero(x.abs()) ** (p - 2))
    return where(out == 0, 0, grad * (power / _not_zero(out) ** (p - 1)))


def _not_zero(x: Tensor) -> Tensor:
    """x with 1 in place of 0, as a divisor where the quotient is not used: its gradient must not be NaN."""
    return where(x == 0, 1, x)


@reduction(Truth("truth"), function=False)
def any(x, *, dim=None, keepdim=False):
    """Tests if any element is not zero, of all or along `dim`."""
    return np.logical_or.reduce(x, dim, keepdims=keepdim)


any.in_parts()
any.kernel(folded(larger), larger, zero)


@reduction(Truth("truth"), function=False)
def all(x, *, dim=None, keepdim=False):
    """Tests if all elements are not zero, of all or along `dim`."""
    return np.logical_and.reduce(x, dim, keepdims=keepdim)


all.in_parts()
all.kernel(folded(smaller), smaller, one)


@reduction(Rule("count", result=dtypes.int64), function=False)
def count_nonzero(x, *, dim=None, keepdim=False):
    """Counts the elements along `dim` that are not zero."""
    return np.add.reduce(x != 0, dim, keepdims=keepdim, dtype=np.int64)


count_nonzero.in_parts(
    lambda block, place, dim, metadata: np.add.reduce(
        np.not_equal(block, 0, out=place.new(block.shape, np.dtype(bool))), dim, keepdims=True, dtype=np.int64
    ),
    lambda parts, metadata, count: np.add.reduce(parts[0], 0),
    read_once=False,
)
count_nonzero.kernel(fold_sum, add, lambda compute: ((0, dtypes.int64),), start=_differs)

for _operator in (any, all, count_nonzero):
    _operator.complex_kernel(of_truth)
