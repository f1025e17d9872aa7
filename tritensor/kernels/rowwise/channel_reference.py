"""Normalisation by channels on the CPU, batch and group norm and their gradients, a piece at a time.

Arrays are seen in one of two forms. *Planes*, (B, R, D, L): each of the R rows has its statistics over all else, and D
parameters, each for B times L elements. Pieces are ranges of rows, so memory is read once. *Columns*, (N, C * L), where
few elements of a channel are neighbours: pieces are ranges of the N rows, whose sums are added. Several short rows are
taken as one, so that NumPy's inner loops are long.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ...host.blocks import in_blocks
from ..reduction.reference import add_up, far_off
from .reference import LARGE, PIECE, block, by_rows, place_for, row_step, store

ndarray = np.ndarray
Moments = tuple[ndarray, ...]
Given = tuple[ndarray, ndarray, ndarray, ndarray | None]  # mean, variance, what the mean lost, and weight

# Elements of a channel in sequence from which planes are faster; 32 channels of 256x49 take as long either way.
_SEQUENCE = 49
# Columns up to which rows are put together: 25,088 rows of 64 take half of the time.
_WIDE = 4096
# Elements that one einsum sums: the float32 error is then that of NumPy's pairwise sum.
_CHUNK = 256


def channel_norm_arrays(
    x: ndarray, weight: ndarray | None, bias: ndarray | None, *, groups: int | None, eps: float, dtype: np.dtype
) -> tuple[ndarray, ...]:
    """(N, C, ...) normalised over the batch or in groups; and means, variances and what means lost in rounding."""
    out, x = np.empty(x.shape, x.dtype), np.ascontiguousarray(x)
    if not x.size:
        return out, *np.zeros((3, *(x.shape[1:2] if groups is None else (len(x), groups))), dtype)
    weight, bias = (each if each is None else each.astype(dtype, copy=False) for each in (weight, bias))
    if _in_columns(x, groups):
        columns = _Columns(x)
        return out, *_column_forward(columns, columns.of(out), weight, bias, eps, dtype)
    found = _plane_forward(_planes(x, groups), _planes(out, groups), weight, bias, eps, dtype)
    return out, *[each if groups is None else each.reshape(len(x), groups) for each in found]


def channel_norm_backward_arrays(
    grad: ndarray,
    x: ndarray,
    mean: ndarray,
    var: ndarray,
    low: ndarray | None,
    weight: ndarray | None,
    *,
    groups: int | None,
    eps: float,
    dtype: np.dtype,
) -> tuple[ndarray, ...]:
    """The gradients of the input, weight and bias."""
    out, x, grad = np.empty(x.shape, x.dtype), np.ascontiguousarray(x), np.ascontiguousarray(grad)
    if not x.size:
        return out, *np.zeros((2, x.shape[1]), dtype)
    scale = weight if weight is None else weight.astype(dtype, copy=False)
    low = np.zeros_like(mean) if low is None else low
    average, spread, lost = (each.reshape(-1).astype(dtype, copy=False) for each in (mean, var, low))
    statistics = average, spread, lost, scale
    if _in_columns(x, groups):
        columns = _Columns(x)
        return out, *_column_backward(columns.of(grad), columns, columns.of(out), statistics, eps, dtype)
    planes = [_planes(each, groups) for each in (grad, x, out)]
    found = _plane_backward(planes[0], planes[1], planes[2], statistics, eps, dtype)
    return out, *[each[:, 0] if groups is None else each.reshape(x.shape[:2]).sum(0) for each in found]


def _in_columns(x: ndarray, groups: int | None) -> bool:
    return groups is None and x.size < _SEQUENCE * x.shape[0] * x.shape[1]


# ---- planes ---------------------------------------------------------------------------------------------------


def _planes(x: ndarray, groups: int | None) -> ndarray:
    count, channels = x.shape[:2]
    return x.reshape((count, channels, 1, -1) if groups is None else (1, count * groups, channels // groups, -1))


def _by_planes(run: Callable[[slice, Any], Any], x: ndarray) -> None:
    """Call `run(rows, new)` for pieces of the rows, of the same size so that threads end together."""
    rows = x.shape[1]
    each = x.size // rows
    pieces = -(-x.size // PIECE)
    by_rows(lambda start, stop, new: run(slice(start, stop), new), rows, each, -(-rows // pieces), x.shape[3])


def _sums(x: ndarray) -> ndarray:
    """Sums along the last dimension, whose elements are neighbours in memory."""
    chunks = x.shape[-1] // _CHUNK
    if chunks < 2:
        return np.einsum("brdl->brd", x)
    whole = chunks * _CHUNK
    parts = np.einsum("brdjl->brdj", x[..., :whole].reshape(*x.shape[:-1], chunks, _CHUNK))
    total = np.add.reduce(parts, -1)
    return total if whole == x.shape[-1] else total + np.einsum("brdl->brd", x[..., whole:])


def _dots(x: ndarray, y: ndarray) -> ndarray:
    """Sums of products along the last dimension."""
    return np.vecdot(x, y) if x.shape[-1] >= 32 else np.einsum("brdl,brdl->brd", x, y)


def _loaded(part: ndarray, dtype: np.dtype, new: object) -> ndarray:
    """A piece in the compute dtype: itself, though its rows are apart, or a copy."""
    return part if part.dtype == dtype else block(part, dtype, new)


def _stored(part: ndarray, dtype: np.dtype, new: object) -> ndarray:
    return part if part.dtype == dtype else place_for(part, dtype, new)


def _of_rows(parameter: ndarray | None, rows: slice, depth: int) -> ndarray | None:
    """The parameters of a range of rows, (R, D, 1); each example has the same."""
    if parameter is None:
        return None
    found = parameter.reshape(-1, depth, 1)
    return found[np.arange(rows.start, rows.stop) % len(found)]


def _rstd(var: ndarray, eps: float) -> ndarray:
    return 1 / np.sqrt(var + var.dtype.type(eps))


def _plane_forward(
    x: ndarray, out: ndarray, weight: ndarray | None, bias: ndarray | None, eps: float, dtype: np.dtype
) -> Moments:
    count, depth = dtype.type(x.size // x.shape[1]), x.shape[2]
    mean, var, low = np.zeros((3, x.shape[1]), dtype)

    def run(rows: slice, new: Any) -> None:
        part, given = out[:, rows], _loaded(x[:, rows], dtype, new)
        computed = _stored(part, dtype, new)
        mean[rows] = np.add.reduce(_sums(given), (0, 2)) / count
        np.subtract(given, mean[rows, None, None], out=computed)
        var[rows] = np.add.reduce(_dots(computed, computed), (0, 2)) / count
        if far_off(mean[rows], var[rows], 1):
            low[rows] = np.add.reduce(_sums(computed), (0, 2)) / count
            np.subtract(computed, low[rows, None, None], out=computed)
            var[rows] = np.add.reduce(_dots(computed, computed), (0, 2)) / count
        scale, factor = _rstd(var[rows, None, None], eps), _of_rows(weight, rows, depth)
        np.multiply(computed, scale if factor is None else scale * factor, out=computed)
        shift = _of_rows(bias, rows, depth)
        if shift is not None:
            np.add(computed, shift, out=computed)
        store(computed, part)

    _by_planes(run, x)
    return mean, var, low


def _plane_backward(grad: ndarray, x: ndarray, out: ndarray, statistics: Given, eps: float, dtype: np.dtype) -> Moments:
    """The input's gradient into `out`; returns those of weight and bias for each row, (R, D).

    With c = x - mean - low and s = grad * weight, it is rstd * (s - mean(s) - c * rstd**2 * mean(s * c)).
    """
    mean, var, low, weight = statistics
    depth, count = x.shape[2], dtype.type(x.size // x.shape[1])
    scales, shifts = (np.empty((x.shape[1], depth), dtype) for _ in range(2))

    def run(rows: slice, new: Any) -> None:
        part, given = out[:, rows], _loaded(grad[:, rows], dtype, new)
        computed = _stored(part, dtype, new)
        centred = np.subtract(_loaded(x[:, rows], dtype, new), mean[rows, None, None], out=new(part.shape, dtype))
        if low[rows].any():
            np.subtract(centred, low[rows, None, None], out=centred)
        rstd, factor = _rstd(var[rows, None, None], eps), _of_rows(weight, rows, depth)
        sums, dots = np.add.reduce(_sums(given), 0)[:, :, None], np.add.reduce(_dots(given, centred), 0)[:, :, None]
        shifts[rows], scales[rows] = sums[:, :, 0], (dots * rstd)[:, :, 0]
        if factor is not None:
            sums, dots = sums * factor, dots * factor
        np.multiply(given, rstd if factor is None else rstd * factor, out=computed)
        np.multiply(centred, dots.sum(1, keepdims=True) / count * rstd**3, out=centred)
        np.add(centred, sums.sum(1, keepdims=True) / count * rstd, out=centred)
        np.subtract(computed, centred, out=computed)
        store(computed, part)

    _by_planes(run, x)
    return scales, shifts


# ---- columns --------------------------------------------------------------------------------------------------


class _Columns:
    """An array (N, C, ...) as columns, `x`; and how numbers per channel belong to them."""

    def __init__(self, x: ndarray) -> None:
        rows, self.channels = x.shape[:2]
        self.each = x.size // max(rows * self.channels, 1)
        most = max(min(_WIDE // max(self.channels * self.each, 1), rows), 1)
        self.times = next(times for times in range(most, 0, -1) if rows % times == 0)
        self.x = self.of(x)

    def of(self, array: ndarray) -> ndarray:
        """Another array of the same shape as columns."""
        return array.reshape(len(array) // self.times, -1)

    def wide(self, each: ndarray) -> ndarray:
        """A number per channel as one per column."""
        found = each if self.each == 1 else np.repeat(each, self.each)
        return found if self.times == 1 else np.tile(found, self.times)

    def totals(self, run: Callable[[slice, Any], ndarray], dtype: np.dtype) -> ndarray:
        """Each channel's sum of what `run(rows, new)` computes for pieces of the rows."""
        rows, cols = self.x.shape
        step = row_step(cols)
        parts = np.empty((-(-rows // step), cols), dtype)

        def piece(start: int, stop: int, new: Callable[..., Any]) -> None:
            parts[start // step] = add_up(run(slice(start, stop), new), 0)

        by_rows(piece, rows, cols, step)
        parts = parts.reshape(len(parts) * self.times, self.channels, -1)
        return np.asarray(np.add.reduce(parts, (0, 2), np.float64).astype(dtype, copy=False))


def scale_channels(x: ndarray, scale: ndarray, shift: ndarray) -> ndarray:
    """x * scale + shift for numbers per channel, in the order of x's memory."""
    if x.size < LARGE:
        out = x * scale
        return np.add(out, shift, out=out)
    out = np.empty_like(x)
    blocks, turned = [out, x], [np.moveaxis(each, 1, -1) for each in (out, x)]
    if turned[1].flags.c_contiguous:
        columns = _Columns(turned[1].reshape(-1, x.shape[1]))
        blocks = [columns.of(turned[0].reshape(-1, x.shape[1])), columns.x]
        scale, shift = columns.wide(scale.reshape(-1)), columns.wide(shift.reshape(-1))
    blocks += [np.broadcast_to(each, blocks[0].shape) for each in (scale, shift)]
    in_blocks(lambda out, x, scale, shift: np.add(np.multiply(x, scale, out=out), shift, out=out), *blocks)
    return out


def _column_forward(
    columns: _Columns, out: ndarray, weight: ndarray | None, bias: ndarray | None, eps: float, dtype: np.dtype
) -> Moments:
    x, wide, count = columns.x, columns.wide, dtype.type(columns.x.size // columns.channels)
    mean = columns.totals(lambda rows, new: block(x[rows], dtype, new), dtype) / count
    low = np.zeros_like(mean)
    centre, drift = wide(mean), None

    def apart(rows: slice, place: ndarray, new: Callable[..., Any]) -> ndarray:
        found = np.subtract(block(x[rows], dtype, new), centre, out=place)
        return found if drift is None else np.subtract(found, drift, out=found)

    def squares(rows: slice, new: Callable[..., Any]) -> ndarray:
        found = apart(rows, new(x[rows].shape, dtype), new)
        return np.square(found, out=found)

    var = columns.totals(squares, dtype) / count
    if far_off(mean, var, 1):
        low = columns.totals(lambda rows, new: apart(rows, new(x[rows].shape, dtype), new), dtype) / count
        drift = wide(low)
        var = columns.totals(squares, dtype) / count
    scale = wide(_rstd(var, eps) if weight is None else _rstd(var, eps) * weight)
    shift = bias if bias is None else wide(bias)

    def run(start: int, stop: int, new: Any) -> None:
        part = out[start:stop]
        computed = apart(slice(start, stop), place_for(part, dtype, new), new)
        np.multiply(computed, scale, out=computed)
        if shift is not None:
            np.add(computed, shift, out=computed)
        store(computed, part)

    by_rows(run, *x.shape)
    return mean, var, low


def _column_backward(
    grad: ndarray, columns: _Columns, out: ndarray, statistics: Given, eps: float, dtype: np.dtype
) -> Moments:
    mean, var, low, weight = statistics
    x, wide = columns.x, columns.wide
    centre, drift = wide(mean), wide(low) if low.any() else None

    def apart(rows: slice, new: Callable[..., Any]) -> ndarray:
        found = np.subtract(block(x[rows], dtype, new), centre, out=new(x[rows].shape, dtype))
        return found if drift is None else np.subtract(found, drift, out=found)

    def products(rows: slice, new: Callable[..., Any]) -> ndarray:
        found = apart(rows, new)
        return np.multiply(found, block(grad[rows], dtype, new), out=found)

    rstd, count = _rstd(var, eps), dtype.type(x.size // columns.channels)
    shifts = columns.totals(lambda rows, new: block(grad[rows], dtype, new), dtype)
    dots = columns.totals(products, dtype)
    scale = wide(rstd if weight is None else rstd * weight)
    slope, level = wide(dots * rstd * rstd / count), wide(shifts / count)

    def run(start: int, stop: int, new: Any) -> None:
        rows = slice(start, stop)
        part, centred = out[rows], apart(rows, new)
        computed = place_for(part, dtype, new)
        np.multiply(centred, slope, out=centred)
        np.add(centred, level, out=centred)
        np.subtract(block(grad[rows], dtype, new), centred, out=computed)
        np.multiply(computed, scale, out=computed)
        store(computed, part)

    by_rows(run, *x.shape)
    return dots * rstd, shifts
