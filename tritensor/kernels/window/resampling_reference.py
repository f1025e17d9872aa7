"""Resizing and padding on the CPU, one dimension after the other, in blocks that fit the level-2 cache.

Along the last dimension weighted sums are products with matrices, of which only a band is not zero; along others they
are whole rows times numbers. Copies of neighbours are copies of slices.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from math import prod
from typing import Any, NamedTuple

import numpy as np

from ...host.copying import from_float32, to_float32
from ...host.threads import in_pieces
from .resampling_maps import Map, Table, table

ndarray = np.ndarray

# Elements of a block: 2**16 to 2**19 take 1.0 to 1.3 ms for rows of a bilinear result of 2 M, 2**15 and 2**21 take 2.
_SIZE = 1 << 17
# Columns of a result that one product makes, where it is not smaller than the input. Bilinear to twice the size takes
# 0.85 ns an element in bands of 64 columns, 1.5 in one product with the whole matrix, 1.6 by taking elements.
_BAND = 64
# How many elements a product may multiply for each that counts: 0.025 ns each, where taking one costs 0.8.
_WASTE = 24
# Numbers that are repeated for each element of a row, up to this many in all: NumPy then has one long loop and not many
# short ones, 0.5 in place of 0.7 ns an element for rows of 128 and two taps.
_REPEATED = 1 << 16


class Tap(NamedTuple):
    """One element of each sum: the places that are read, in runs if they are few, for which rows, and the numbers."""

    chosen: ndarray
    runs: tuple[tuple[slice, slice], ...]
    rows: Any  # None for all
    factor: ndarray | None


class Plan(NamedTuple):
    """The plan for a dimension: a sum of taps, times a number; or, where all elements are finite, products."""

    size: int
    taps: tuple[Tap, ...]
    scale: Any  # None for 1
    bands: tuple[tuple[slice, slice, ndarray], ...]


def resample_blocks(
    x: ndarray, maps: Sequence[Map], shape: tuple[int, ...], kind: np.dtype, tables: Sequence[Table] | None = None
) -> ndarray:
    """The sums, computed in `kind`, for blocks of what lies before the first of the maps' dimensions.

    Args:
        shape: the result's.
        tables: to be used in place of those of the maps.
    """
    out = np.empty(shape, x.dtype)
    if not out.size:
        return out
    first = min(each.dim for each in maps)
    steps, sizes = [], list(x.shape)
    # what becomes smallest comes first, of equal ones the last
    for position in sorted(range(len(maps)), key=lambda i: (maps[i].size / max(maps[i].source, 1), -maps[i].dim)):
        each = maps[position]
        sizes[each.dim] = each.size
        inner = prod(sizes[each.dim + 1 :])
        plan = _plan_of(tables[position], kind, inner) if tables else _plan(*each[1:], kind, inner)
        steps.append((each.dim - first + 1, plan))
    count = prod(shape[:first])
    flat, wide = np.ascontiguousarray(x).reshape(count, *x.shape[first:]), out.reshape(count, *shape[first:])

    def run(start: int, stop: int) -> None:
        part, result = flat[start:stop], wide[start:stop]
        if part.dtype != kind:
            part = to_float32(part)
        for position, (axis, plan) in enumerate(steps):
            direct = position == len(steps) - 1 and out.dtype == kind
            part = _along(part, axis, plan, result if direct else None)
        if out.dtype != kind:
            from_float32(part, out.dtype, result)

    in_pieces(run, count, max(1, _SIZE // max(prod(shape[first:]), flat[0].size)))
    return out


@lru_cache(64)
def _plan(source: int, size: int, rule: str, turned: bool, kind: np.dtype, inner: int) -> Plan:
    return _plan_of(table(source, size, rule, turned), kind, inner)


def _plan_of(table: Table, kind: np.dtype, inner: int) -> Plan:
    """The plan for a table; `inner` elements are neighbours along the other dimensions."""
    (places, weights), taps, scale = table, [], None
    bands = _bands(places, weights, kind) if inner == 1 and kind.kind == "f" else ()
    used: Any = () if weights is None else weights[places >= 0]
    if len(used) and np.ptp(used) == 0:  # all weights are the same
        scale, weights = kind.type(used[0]), None
    for column in range(places.shape[1]):
        rows: Any = None
        chosen = places[:, column]
        if (chosen < 0).any():
            rows = np.flatnonzero(chosen >= 0)
            chosen = chosen[rows]
            if len(rows) and rows[-1] - rows[0] + 1 == len(rows):
                rows = slice(int(rows[0]), int(rows[-1]) + 1)
        factor = None
        if weights is not None:
            factor = weights[slice(None) if rows is None else rows, column].astype(kind)
            if inner > 1 and len(factor) * inner <= _REPEATED:
                factor = factor.repeat(inner)
        taps.append(Tap(chosen, _runs(chosen.tolist()), rows, factor))
    return Plan(len(places), tuple(taps), scale, bands)


def _runs(places: list[int]) -> tuple[tuple[slice, slice], ...]:
    """Where equal steps between places make slices of the result copies of slices of the input; () for short ones."""
    found, start = [], 0
    while start < len(places):
        stop, step = start + 1, places[start + 1] - places[start] if start + 1 < len(places) else 0
        while stop < len(places) and places[stop] - places[stop - 1] == step:
            stop += 1
        first, last = places[start], places[stop - 1]
        if stop == start + 1 or not step:
            read = slice(first, first + 1)
        else:
            end = last + (1 if step > 0 else -1)
            read = slice(first, None if end < 0 else end, step)
        found.append((slice(start, stop), read))
        start = stop
    return tuple(found) if len(found) * 4 <= len(places) else ()


def _bands(places: ndarray, weights: ndarray | None, kind: np.dtype) -> tuple[tuple[slice, slice, ndarray], ...]:
    """Columns of the result, the columns of the input that they are made of, and the matrix; () if that is slower."""
    size, taps = places.shape
    source = int(places.max(initial=0)) + 1
    if taps == 1 or (places < 0).all(1).any():
        return ()
    width, found = max(8, min(_BAND, _BAND * size // source)), []
    for start in range(0, size, width):
        part = places[start : start + width]
        row, tap = np.nonzero(part >= 0)
        low = int(part[row, tap].min())
        matrix = np.zeros((int(part.max()) + 1 - low, len(part)), kind)
        np.add.at(matrix, (part[row, tap] - low, row), 1 if weights is None else weights[start + row, tap])
        if len(matrix) > _WASTE * taps:
            return ()
        found.append((slice(start, start + len(part)), slice(low, low + len(matrix)), matrix))
    return tuple(found)


def _along(x: ndarray, axis: int, plan: Plan, out: ndarray | None) -> ndarray:
    """The sums along one dimension."""
    shape, front = (*x.shape[:axis], plan.size, *x.shape[axis + 1 :]), (slice(None),) * axis
    out = np.empty(shape, x.dtype) if out is None else out
    if plan.bands and np.isfinite(x.sum()):  # a zero of a matrix makes NaN of what is not finite
        rows, results = x.reshape(-1, x.shape[axis]), out.reshape(-1, plan.size)
        for cols, read, matrix in plan.bands:
            np.matmul(rows[:, read], matrix, out=results[:, cols])
        return out
    more: Any = None
    for position, tap in enumerate(plan.taps):
        if tap.rows is not None and not position:
            out.fill(0)
        if not len(tap.chosen):
            continue
        if tap.runs and tap.factor is None and not isinstance(tap.rows, ndarray):
            sums = out if tap.rows is None else out[(*front, tap.rows)]
            for written, read in tap.runs:
                part = sums[(*front, written)]
                if position:
                    np.add(part, x[(*front, read)], out=part)
                else:
                    part[...] = x[(*front, read)]
            continue
        if tap.rows is None and position and more is None:
            more = np.empty(shape, x.dtype)
        found = None if tap.rows is not None else more if position else out
        if tap.runs:
            found = np.empty((*shape[:axis], len(tap.chosen), *shape[axis + 1 :]), x.dtype) if found is None else found
            for written, read in tap.runs:
                found[(*front, written)] = x[(*front, read)]
        else:
            found = x.take(tap.chosen, axis, mode="clip", out=found)
        if tap.factor is not None:
            inner = shape[axis + 1 :] if tap.factor.size > len(tap.chosen) else (1,) * (x.ndim - axis - 1)
            np.multiply(found, tap.factor.reshape(-1, *inner), out=found)
        if tap.rows is not None:
            out[(*front, tap.rows)] += found
        elif position:
            np.add(out, found, out=out)
    return out if plan.scale is None else np.multiply(out, plan.scale, out=out)
