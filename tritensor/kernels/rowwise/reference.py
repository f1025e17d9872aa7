"""Rowwise operators on the CPU: softmax, norms, cross entropy and their gradients, a piece of the rows at a time.

`by_rows` cuts the rows into pieces, on all threads; a piece passes through all steps while it is in the level-2 cache.
The steps work on contiguous float32 or float64 rows: `block` converts or copies a piece of others, half precision
included, which so never needs a whole array in float32. Sums of rows are `row_sums` and `row_dots`, as exact as
PyTorch's.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ...host.copying import converted, from_float32
from ...host.threads import ALONE, blas_on_one_thread, dot, in_pieces
from ..reduction.reference import Grid, far_off, row_dots, row_sums
from ..scratch import ones, scratch

ndarray = np.ndarray

# Elements of a piece: softmax of 4096x1024 takes 4.0, 3.5, 2.4, 2.2 and 2.5 ms on two threads with 2^16 to 2^20, layer
# norm 7.1, 4.1, 2.8, 2.3 and 2.5, since threads take the interpreter's lock from each other between two passes.
PIECE = 1 << 19
# From here on rows are cut and shared; 32 K elements take 20 us or more.
LARGE = 1 << 15
# NumPy's ufuncs copy an operand that is repeated along rows into a buffer of 8192 elements, which takes as long as the
# computation. With a buffer that is shorter than a row it does not. For rows of 256 elements both take the same time.
_LONG_ROW, _SHORT_BUFFER = 512, 16


def by_rows(
    run: Callable[[int, int, Any], Any], rows: int, cols: int, step: int | None = None, stretch: int | None = None
) -> None:
    """Call `run(start, stop, new)` for pieces of the rows, on all threads; once for few elements.

    Args:
        run: `new(shape, dtype)` is an array for what is computed on the way.
        step: the rows of a piece; by default `row_step(cols)`.
        stretch: for how many elements in sequence an operand may be repeated; by default `cols`.
    """
    if rows * cols < LARGE:
        if rows * cols <= ALONE:
            run(0, rows, np.empty)
            return
        with blas_on_one_thread:
            run(0, rows, np.empty)
        return

    def piece(start: int, stop: int) -> None:
        with np.errstate(), scratch() as new:
            if (stretch or cols) >= _LONG_ROW:
                np.setbufsize(_SHORT_BUFFER)  # until the end of errstate
            run(start, stop, new)

    in_pieces(piece, rows, step or row_step(cols))


def row_step(cols: int) -> int:
    """The rows of a piece."""
    return max(1, PIECE // max(1, cols))


def block(part: ndarray, dtype: np.dtype, new: object = np.empty) -> ndarray:
    """A piece of an operand, contiguous and of the compute dtype: itself, or a copy."""
    return part if part.dtype == dtype and part.flags.c_contiguous else converted(part, dtype, new)


def place_for(part: ndarray, dtype: np.dtype, new: Any) -> ndarray:
    """The array in which a piece of the result is computed: in it, or in an array that `store` converts."""
    return part if part.dtype == dtype and part.flags.c_contiguous else new(part.shape, dtype)


def store(computed: ndarray, part: ndarray) -> None:
    """Write what was computed in `place_for` it into the piece of the result."""
    if computed is not part:
        from_float32(computed, part.dtype, part)


def along(run: Callable[..., None], arrays: Sequence[ndarray], dim: int, dtype: np.dtype, result: np.dtype) -> ndarray:
    """An operator on arrays of one shape along `dim`, by `run(*arrays, out, dim)` of pieces in the compute dtype."""
    x = arrays[-1]
    out = np.empty_like(x, result)
    last = dim == x.ndim - 1
    if last and all(each.flags.c_contiguous for each in (*arrays, out)):
        width = x.shape[-1]
        flat, whole = [each.reshape(-1, width) for each in arrays], out.reshape(-1, width)

        def rows(start: int, stop: int, new: object) -> None:
            part = whole[start:stop]
            computed = place_for(part, dtype, new)
            run(*[block(each[start:stop], dtype, new) for each in flat], computed, 1)
            store(computed, part)

        by_rows(rows, len(whole), width)
        return out
    # along others a piece is 256 elements wide, or has 1 M: all steps are slow on short stretches of memory
    grid = Grid(x, (dim,), max(PIECE, min(256 * x.shape[dim], 2 * PIECE)), uncut=True)

    def compute(start: int, stop: int) -> None:
        for index in range(start, stop):
            places = grid.block(index)[0]
            with scratch() as new:
                part = out[places]
                # a copy where a piece is not contiguous: exp takes three times as long there
                computed = place_for(part, dtype, new)
                run(*[block(each[places], dtype, new) for each in arrays], computed, dim)
                store(computed, part)

    in_pieces(compute, grid.count, 1)
    return out


# ---- softmax --------------------------------------------------------------------------------------------------


def _sums(x: ndarray, dim: int) -> ndarray:
    """The sums along `dim`, left in."""
    if x.ndim == 2 and dim == 1 and x.flags.c_contiguous:
        return row_sums(x)[:, None]
    return np.asarray(np.add.reduce(x, dim, keepdims=True))


def exponentials(part: ndarray, out: ndarray, dim: int = 1) -> tuple[ndarray | None, ndarray]:
    """exp(part - top) into `out`; returns the tops along `dim`, or None if nothing had to be subtracted, and the sums.

    Subtracting the largest element of each row costs half as much as the exponentials. It is not needed where the sums
    are between 1 and a number far from overflow: then no exponential was too large or too small for the dtype.
    """
    rows = part.ndim == 2 and dim == 1
    if rows:
        column = ones((part.shape[1], 1), part.dtype)
        np.exp(part, out)
        total = dot(out, column)
        if np.minimum.reduce(total, None) >= 1 and np.maximum.reduce(total, None) < 1e30:
            return None, total
    top = np.maximum.reduce(part, dim, keepdims=True)
    np.exp(np.subtract(part, top, out), out)
    return top, dot(out, column) if rows else np.add.reduce(out, dim, keepdims=True)


def softmax_rows(x: ndarray, out: ndarray, dim: int = 1) -> None:
    """Softmax along `dim`."""
    np.divide(out, exponentials(x, out, dim)[1], out)


def log_softmax_rows(x: ndarray, out: ndarray, dim: int = 1) -> None:
    """The logarithm of softmax along `dim`."""
    top, total = exponentials(x, out, dim)
    logs = np.log(total, total)
    np.subtract(x if top is None else np.subtract(x, top, out), logs, out)


def softmax_backward_rows(grad: ndarray, result: ndarray, out: ndarray, dim: int = 1) -> None:
    """The gradient of softmax, from the result and its gradient."""
    if grad.ndim == 2 and dim == 1:
        inner = row_dots(grad, result)[:, None]
    else:
        inner = np.add.reduce(np.multiply(grad, result, out), dim, keepdims=True)
    np.subtract(grad, inner, out)
    np.multiply(out, result, out)


def log_softmax_backward_rows(grad: ndarray, result: ndarray, out: ndarray, dim: int = 1) -> None:
    """The gradient of log_softmax, from the result and its gradient."""
    np.exp(result, out)
    np.multiply(out, _sums(grad, dim), out)
    np.subtract(grad, out, out)


# ---- norms ----------------------------------------------------------------------------------------------------


def layer_norm_rows(
    x: ndarray, weight: ndarray | None, bias: ndarray | None, *, eps: float, dtype: np.dtype
) -> tuple[ndarray, ...]:
    """Layer normalisation of rows; returns the result, and each row's mean, factor and the mean's rounding."""
    rows, cols = x.shape
    weight = weight if weight is None else block(weight, dtype)
    bias = bias if bias is None else block(bias, dtype)
    count = dtype.type(cols)
    if 0 < rows * cols <= ALONE and x.dtype is dtype and x.flags.c_contiguous:
        return _norm_few(x, weight, bias, count, eps)
    out, average, rstd, low = np.empty_like(x), np.empty(rows, dtype), np.empty(rows, dtype), np.zeros(rows, dtype)

    def run(start: int, stop: int, new: Any) -> None:
        part = out[start:stop]
        centred, given = place_for(part, dtype, new), block(x[start:stop], dtype, new)
        centre = np.divide(row_sums(given), count, out=average[start:stop])
        np.subtract(given, centre[:, None], out=centred)
        squares = row_dots(centred, centred)
        if far_off(centre, squares, count):
            drift = np.divide(row_sums(centred), count, out=low[start:stop])
            np.subtract(centred, drift[:, None], out=centred)
            squares = row_dots(centred, centred)
        scale = _factor(squares, count, eps, rstd[start:stop])
        np.multiply(centred, scale, out=centred)
        if weight is not None:
            np.multiply(centred, weight, out=centred)
        if bias is not None:
            np.add(centred, bias, out=centred)
        store(centred, part)

    by_rows(run, rows, cols)
    return out, average, rstd, low


def _norm_few(x: ndarray, weight: ndarray | None, bias: ndarray | None, count: Any, eps: float) -> tuple[ndarray, ...]:
    """Layer normalisation of few elements: their time is that of NumPy's calls, which are as few as can be."""
    column = ones((x.shape[1],), x.dtype)
    mean, low = np.dot(x, column) / count, np.zeros(len(x), x.dtype)
    out = x - mean[:, None]
    squares = np.vecdot(out, out) / count
    if 1 in (mean * mean > 256 * squares).tobytes():  # see `far_off`
        low = np.dot(out, column) / count
        np.subtract(out, low[:, None], out)
        squares = np.vecdot(out, out) / count
    rstd = np.reciprocal(np.sqrt(squares + x.dtype.type(eps)))
    np.multiply(out, rstd[:, None], out)
    if weight is not None:
        np.multiply(out, weight, out)
    if bias is not None:
        np.add(out, bias, out)
    return out, mean, rstd, low


def rms_norm_rows(x: ndarray, weight: ndarray | None, *, eps: float, dtype: np.dtype) -> tuple[ndarray, ...]:
    """RMS normalisation of rows; returns the result, and each row's factor in the compute dtype."""
    rows, cols = x.shape
    out, rstd = np.empty_like(x), np.empty(rows, dtype)
    weight = weight if weight is None else block(weight, dtype)
    count = dtype.type(cols)

    def run(start: int, stop: int, new: Any) -> None:
        part = out[start:stop]
        computed, given = place_for(part, dtype, new), block(x[start:stop], dtype, new)
        scale = _factor(row_dots(given, given), count, eps, rstd[start:stop])
        np.multiply(given, scale, out=computed)
        if weight is not None:
            np.multiply(computed, weight, out=computed)
        store(computed, part)

    by_rows(run, rows, cols)
    return out, rstd


def _factor(squares: ndarray, count: Any, eps: float, out: ndarray) -> ndarray:
    """1 / sqrt(squares / count + eps) into `out`, returned as a column."""
    squares = squares / count
    np.divide(1, np.sqrt(squares + squares.dtype.type(eps)), out=out)
    return out[:, None]


def norm_backward(
    grad: ndarray,
    x: ndarray,
    centre: ndarray | None,
    rstd: ndarray,
    low: np.ndarray | None,
    weight: ndarray | None,
    dtype: np.dtype,
    result: np.dtype,
) -> tuple[ndarray, ndarray, ndarray]:
    """The gradients of a norm's input, scale and shift; RMS normalisation has no `centre`, and no shift to use.

    With c = x - centre - low and s = grad * weight, the input's gradient is
    rstd * (s - mean(s) - c * rstd**2 * mean(s * c)). The parameters' gradients are sums of pieces' sums.
    """
    rows, cols = x.shape
    out = np.empty_like(x, result)
    step = row_step(cols)
    scales, shifts = (np.empty((-(-rows // step), cols), dtype) for _ in range(2))
    weight = weight if weight is None else block(weight, dtype)

    def run(start: int, stop: int, new: Any) -> None:
        part = out[start:stop]
        given, scaled = block(grad[start:stop], dtype, new), place_for(part, dtype, new)
        centred, factor = block(x[start:stop], dtype, new), rstd[start:stop]
        if centre is not None:
            centred = np.subtract(centred, centre[start:stop, None], out=new(part.shape, dtype))
            if low is not None and low[start:stop].any():
                np.subtract(centred, low[start:stop, None], out=centred)
            np.dot(ones((stop - start,), dtype), given, out=shifts[start // step])
        products = np.multiply(given, centred, out=new(part.shape, dtype))
        np.dot(factor, products, out=scales[start // step])
        if weight is None:
            source = given
        else:
            source = np.multiply(given, weight, out=scaled)
        share = row_dots(source, centred) * np.square(factor) / cols
        np.multiply(centred, share[:, None], out=products)
        if centre is not None:
            np.add(products, (row_sums(source) / cols)[:, None], out=products)
        np.subtract(source, products, out=scaled)
        np.multiply(scaled, factor[:, None], out=scaled)
        store(scaled, part)

    by_rows(run, rows, cols)
    return out, np.add.reduce(scales, 0), np.add.reduce(shifts, 0)


# ---- cross entropy --------------------------------------------------------------------------------------------


def picked(target: ndarray, weight: ndarray | None, ignore_index: int, dtype: np.dtype) -> tuple[ndarray, ndarray]:
    """For each row: a valid class index, and the row's weight (0 where it is ignored)."""
    counts = target != ignore_index
    safe = np.where(counts, target, 0)
    share = counts.astype(dtype) if weight is None else np.where(counts, weight[safe] if weight.size else 0, 0)
    return safe, share.astype(dtype)


def cross_entropy_rows(
    x: ndarray, target: ndarray, weight: ndarray | None, *, ignore_index: int, label_smoothing: float, dtype: np.dtype
) -> tuple[ndarray, ndarray, ndarray]:
    """Computes for each row of scores the loss, its weight, and the logarithm of the sum of exponentials."""
    rows, cols = x.shape
    weight = weight if weight is None else block(weight, dtype)
    safe, share = picked(target, weight, ignore_index, dtype)
    losses, lse = np.empty(rows, dtype), np.empty(rows, dtype)

    def run(start: int, stop: int, new: Any) -> None:
        part, scores, chosen = slice(start, stop), block(x[start:stop], dtype, new), safe[start:stop]
        work = new(scores.shape, dtype)
        top, total = exponentials(scores, work)
        logs, best = np.log(total[:, 0]), scores[np.arange(stop - start), chosen]
        if top is None:
            lse[part] = logs
            losses[part] = logs - best
        else:
            # the difference first, which is exact for scores far from 0
            lse[part] = top[:, 0] + logs
            losses[part] = logs - (best - top[:, 0])
        losses[part] *= share[part]
        if label_smoothing:
            np.subtract(scores, lse[part, None], out=work)
            smooth = row_sums(work) if weight is None else np.dot(work, weight)
            losses[part] *= 1 - label_smoothing
            losses[part] -= smooth * (label_smoothing / cols)

    by_rows(run, rows, cols)
    # NaN and infinity times a weight of 0 would be NaN
    losses[target == ignore_index if label_smoothing else share == 0] = 0
    return losses, share, lse


def cross_entropy_backward_rows(
    scale: ndarray,
    x: ndarray,
    target: ndarray,
    weight: ndarray | None,
    lse: ndarray,
    *,
    ignore_index: int,
    label_smoothing: float,
    dtype: np.dtype,
    result: np.dtype,
) -> ndarray:
    """The scores' gradient; `scale` is the gradient of each row's loss."""
    rows, cols = x.shape
    out = np.empty_like(x, result)
    weight = weight if weight is None else block(weight, dtype)
    safe, share = picked(target, weight, ignore_index, dtype)
    share *= scale
    share *= 1 - label_smoothing
    smooth = scale * dtype.type(label_smoothing / cols)
    mass = dtype.type(cols) if weight is None else weight.sum()
    ignored = target == ignore_index

    def run(start: int, stop: int, new: Any) -> None:
        piece, here = out[start:stop], slice(start, stop)
        change = place_for(piece, dtype, new)
        np.subtract(block(x[here], dtype, new), lse[here, None], out=change)
        np.exp(change, change)
        factor = share[here] + smooth[here] * mass if label_smoothing else share[here]
        np.multiply(change, factor[:, None], out=change)
        if label_smoothing:
            change -= smooth[here, None] if weight is None else smooth[here, None] * weight
        change[np.arange(stop - start), safe[here]] -= share[here]
        if ignored[here].any():
            change[ignored[here]] = 0
        store(change, piece)

    by_rows(run, rows, cols)
    return out


def shares_and_losses(x: ndarray, target: ndarray) -> tuple[ndarray, ndarray, ndarray]:
    """The exponentials of rows of scores, their sums, and the rows' losses, in pieces."""
    shares, totals = np.empty(x.shape, x.dtype), np.empty((len(x), 1), x.dtype)
    losses = x[np.arange(len(x)), target]

    def run(start: int, stop: int, new: Any) -> None:
        top, totals[start:stop] = exponentials(x[start:stop], shares[start:stop])
        best = losses[start:stop]
        if top is not None:
            best -= top[:, 0]
        np.subtract(np.log(totals[start:stop, 0]), best, best)

    by_rows(run, *x.shape)
    return shares, totals, losses


def scaled(rows: ndarray, scale: ndarray) -> ndarray:
    """Rows times a number each, in pieces."""
    out = np.empty_like(rows)
    by_rows(lambda start, stop, new: np.multiply(rows[start:stop], scale[start:stop], out[start:stop]), *rows.shape)
    return out
