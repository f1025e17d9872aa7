"""Running sums, products and extremes along a dimension, and linear recurrences."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from ...autograd.mode import recording
from ...host.threads import in_pieces
from ...operators.rules import REAL, SUMS, Rule
from ...runtime.source import device_function
from ...tensors import Tensor
from ...types import dtypes
from ..elementwise.arithmetic import where
from ..elementwise.maximum import larger
from .kernel import highest, lowest, state_dtype
from .scan import Scan
from .sums import add, multiply, one, shifted, zero

if TYPE_CHECKING:
    import triton.language as tl
    from triton.language.extra import libdevice


# From so many elements on rows are shared among threads.
_LARGE = 1 << 16
# Columns of a block that is summed by a product, of the shortest and the longest row that is cut into blocks (the
# errors of blocks add up), and elements of a piece.
_BLOCK, _LONG, _LONGEST, _PIECE = 32, 256, 4096, 1 << 16


# ---- references -----------------------------------------------------------------------------------------------


def _in_rows(compute: Callable[..., Any], x: np.ndarray, dim: int, *kinds: Any) -> tuple[np.ndarray, ...]:
    """`compute(x, dim)`, arrays of its shape; of a large array in pieces of the other dimensions, on all threads."""
    dim %= max(x.ndim, 1)
    if x.ndim < 2 or x.size < _LARGE:
        return tuple([found.reshape(x.shape) for found in compute(np.atleast_1d(x), dim)])
    outs, cut = [np.empty(x.shape, kind) for kind in kinds], x.ndim - 1 if dim == 0 else 0

    def run(start: int, stop: int) -> None:
        piece = (slice(None),) * cut + (slice(start, stop),)
        for out, found in zip(outs, compute(x[piece], dim), strict=True):
            out[piece] = found

    in_pieces(run, x.shape[cut], max(1, _PIECE * x.shape[cut] // x.size))
    return tuple(outs)


def _accumulate(ufunc: np.ufunc, x: np.ndarray, dim: int, reverse: bool = False) -> np.ndarray:
    kind = np.dtype(np.float64) if x.dtype.char == "f" else x.dtype  # one number after another loses float32's digits

    def compute(part: np.ndarray, dim: int) -> tuple[np.ndarray]:
        found = (np.flip(part, dim) if reverse else part).astype(kind)
        found = ufunc.accumulate(found, dim, out=found).astype(x.dtype, copy=False)
        return (np.flip(found, dim) if reverse else found,)

    return _in_rows(compute, x, dim, x.dtype)[0]


def _cumsum(x: np.ndarray, *, dim: int, dtype=None, reverse: bool = False):
    """The sum of the elements up to each place along `dim` (from the end, when reverse)."""
    cols = x.shape[-1] if x.ndim and dim in (-1, x.ndim - 1) else 0
    if x.size < _LARGE or x.dtype.char not in "fd" or not _LONG <= cols <= _LONGEST or cols % _BLOCK:
        return _accumulate(np.add, x, dim, reverse)
    if not x.flags.c_contiguous:
        return _accumulate(np.add, x, dim, reverse)
    triangle = np.triu(np.ones((_BLOCK, _BLOCK), x.dtype))
    rows, out = x.reshape(-1, cols // _BLOCK, _BLOCK), np.empty(x.shape, x.dtype)
    sums = out.reshape(rows.shape)

    def run(start: int, stop: int) -> None:
        """Sums within blocks by a product, three times faster than NumPy's; and then those of the blocks before."""
        part = sums[start:stop]
        np.matmul(rows[start:stop].reshape(-1, _BLOCK), triangle.T if reverse else triangle, part.reshape(-1, _BLOCK))
        totals = part[..., 0 if reverse else -1]
        before = np.cumsum(totals[:, ::-1] if reverse else totals, 1, np.float64).astype(x.dtype)
        if reverse:
            part[:, :-1] += before[:, -2::-1, None]
        else:
            part[:, 1:] += before[:, :-1, None]
        for row in np.flatnonzero(~np.isfinite(before[:, -1])):  # beside which a product with 0 is NaN
            part[row] = _accumulate(np.add, rows[row].reshape(-1), 0, reverse).reshape(part.shape[1:])

    in_pieces(run, len(rows), max(1, _PIECE // cols))
    return out


def _cumprod(x: np.ndarray, *, dim: int, dtype=None):
    """The product of the elements up to each place along `dim`."""
    return _accumulate(np.multiply, x, dim)


def _logcumsumexp(x: np.ndarray, *, dim: int):
    """log(sum(exp(x))) of the elements up to each place along `dim`."""
    if x.dtype.kind == "f":
        return _accumulate(np.logaddexp, x, dim)
    rows = np.array(np.moveaxis(np.atleast_1d(x), dim, 0))
    for k in range(1, len(rows)):
        before, row = rows[k - 1], rows[k]
        top = np.where(before.real > row.real, before, row)
        rows[k] = np.where(np.isinf(top.real), top, np.log(np.exp(before - top) + np.exp(row - top)) + top)
    return np.moveaxis(rows, 0, dim).reshape(x.shape)


def _extremes(ufunc: np.ufunc, x: np.ndarray, dim: int) -> tuple[np.ndarray, ...]:
    """The running extremes, and the last index at which each was found."""

    def compute(x: np.ndarray, dim: int) -> tuple[np.ndarray, np.ndarray]:
        best = ufunc.accumulate(x, dim, x.dtype)
        places = np.arange(x.shape[dim]).reshape([-1 if each == dim else 1 for each in range(x.ndim)])
        return best, np.maximum.accumulate(np.where((x == best) | (x != x), places, 0), dim)

    return _in_rows(compute, x, dim, x.dtype, np.int64)


def _cummax(x: np.ndarray, *, dim: int):
    """The largest of the elements up to each place along `dim`, and its index; the last of equals."""
    return _extremes(np.maximum, x, dim)


def _cummin(x: np.ndarray, *, dim: int):
    """The smallest of the elements up to each place along `dim`, and its index; the last of equals."""
    return _extremes(np.minimum, x, dim)


def _recurrence(factor: np.ndarray, x: np.ndarray, *, dim: int, reverse: bool = False):
    """y[k] = factor[k] * y[k - 1] + x[k] along `dim`, from y[-1] = 0 (from the end, when reverse)."""
    factor, rows = (np.array(np.moveaxis(np.atleast_1d(each), dim, 0)) for each in (factor, x))
    ordered, step = (slice(None, None, -1) if reverse else slice(None)), 1
    found, factor = rows[ordered], factor[ordered]
    while step < len(found):  # doubles the number of terms that each element has
        found[step:] += factor[step:] * found[:-step]
        factor[step:] *= factor[:-step].copy()
        step *= 2
    return np.moveaxis(rows, 0, dim).reshape(x.shape)


# ---- declarations ---------------------------------------------------------------------------------------------


@device_function
def _later_larger(x, index, y, other):
    """The larger of two elements with its index; the second of equal ones, and a NaN is larger than any number."""
    wins = (y != y) | ((x == x) & (y >= x))
    return tl.where(wins, y, x), tl.where(wins, other, index)


@device_function
def _later_smaller(x, index, y, other):
    """The smaller of two elements with its index; the second of equal ones, a NaN is smaller than any number."""
    wins = (y != y) | ((x == x) & (y <= x))
    return tl.where(wins, y, x), tl.where(wins, other, index)


@device_function
def _add_logs(x, y):
    """log(exp(x) + exp(y))."""
    top = larger(x, y)
    apart = tl.where(x == y, tl.zeros_like(top), -tl.abs(x - y))
    return top + libdevice.log1p(libdevice.exp(apart))


@device_function
def _add_logs_in_short(x, y):
    """The same of float64 numbers, their difference's function in float32: it is a small part of a long sum."""
    top = larger(x, y)
    apart = tl.where(x == y, tl.zeros_like(top), -tl.abs(x - y)).to(tl.float32)
    return top + libdevice.log1p(libdevice.exp(apart)).to(tl.float64)


@device_function
def _compose(factor, y, next_factor, x):
    """Two steps of a recurrence as one."""
    return factor * next_factor, next_factor * y + x


_with_index = device_function(lambda values, index: (values[0], index))


def _exactly(identity: Callable[[dtypes.dtype], Any]) -> Callable[[dtypes.dtype], Any]:
    """The state of no elements in float64 for float32, whose digits thousands of steps would use up."""
    return lambda kind: identity(dtypes.float64 if kind is dtypes.float32 else kind)


cumsum = Scan("cumsum", _cumsum, SUMS, add, _exactly(zero))
cumsum.on_pairs = True  # a sum of pairs is that of their parts
cumsum.linear = "first"
cumprod = Scan("cumprod", _cumprod, SUMS, multiply, _exactly(one))
cumsum.autocasts(cuda="float32")
cumprod.autocasts(cuda="float32")
logcumsumexp = Scan(
    "logcumsumexp",
    _logcumsumexp,
    Rule("floats", dtypes.FLOATING),
    _add_logs,
    _exactly(lambda kind: ((lowest(kind), kind),)),
)
_logs_of = logcumsumexp.parts
logcumsumexp.parts = lambda kind: (
    _logs_of(kind) if kind is dtypes.float64 else _logs_of(kind)._replace(combine=_add_logs_in_short)
)
cummax, cummin = (
    Scan(
        reference.__name__[1:],
        reference,
        REAL,
        combine,
        lambda kind, end=end: ((end(kind), state_dtype(kind)), (0, dtypes.int64)),  # type: ignore[misc]
        _with_index,
        ("values", "indices"),
    )
    for reference, combine, end in ((_cummax, _later_larger, lowest), (_cummin, _later_smaller, highest))
)
recurrence = Scan(
    "recurrence", _recurrence, Rule("floats", dtypes.FLOATING), _compose, lambda kind: ((1, kind), (0, kind))
)
cumprod.domain = (0.8, 1.25)
recurrence.domain = {"factor": (-1.0, 1.0)}

cumsum.gradient(lambda grad, dim, reverse: cumsum(grad, dim=dim, reverse=not reverse))
for _each in (cummax, cummin):
    _each.gradient(lambda grad, indices, x_shape, dim: grad.new_zeros(x_shape).scatter_add(dim, indices, grad))


@cumprod.gradient
def _(grad: Tensor, out: Tensor, x: Tensor, dim: int):
    """The sum over j >= k of grad[j] times the product of x[:j + 1] without x[k], by a recurrence: it divides by no x,
    so it is right beside zeros and can be differentiated again. Infinite and NaN elements get NaN, as in PyTorch."""
    if not x.numel():
        return grad
    if not recording.enabled and x._data.__class__ is np.ndarray and x._data.all():  # fewer passes on the CPU
        return cumsum(grad * out, dim=dim, reverse=True) / x
    before = shifted(out, 1, False, dim)
    found = before * recurrence(shifted(x.to(grad.dtype), 1, True, dim), grad, dim=dim, reverse=True)
    return where((x - x == 0) | (before == 0), found, float("nan"))


@logcumsumexp.gradient
def _(grad: Tensor, out: Tensor, x: Tensor, dim: int):
    """exp(x[k] - out[k]) times the sum over j >= k of grad[j] exp(out[k] - out[j]), of which no factor is above 1."""
    if not x.numel():
        return grad
    after = shifted(out, 1, True, dim, float("inf"))  # the last factor is 0
    apart = where((out == after) & out.isinf(), 0, out - after)
    return (x - out).exp() * recurrence(apart.exp(), grad, dim=dim, reverse=True)


def _back(grad: Tensor, factor: Tensor, dim: int, reverse: bool) -> Tensor:
    return recurrence(shifted(factor, 1, not reverse, dim), grad, dim=dim, reverse=not reverse)


recurrence.gradients(
    factor=lambda grad, out, factor, dim, reverse: _back(grad, factor, dim, reverse) * shifted(out, 1, reverse, dim, 0),
    x=_back,
)
