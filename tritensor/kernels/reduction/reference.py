"""Reductions on the CPU: of large arrays in blocks, on all threads; and sums faster than NumPy's and as exact.

`in_parts` reduces each block of a large array while it is in the cache, after conversion to the compute dtype, and
returns the blocks' results for a second stage. Blocks and their order depend on shapes and dtypes alone.

NumPy sums a row pairwise at 22 GB/s on one core, and a column one row after another, with an error that grows with the
number of rows. Here rows are cut into chunks that einsum sums in vector registers, and columns into blocks of rows that
BLAS sums, and then the chunks' sums are added. For 4096x1024 elements, row sums take 0.55 of NumPy's time with the same
error, column sums 0.75 of it with an eighth of the error, and the sum of all elements 0.55.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any

import numpy as np

from ...host.copying import converted
from ...host.threads import blas_on_one_thread, dot, in_pieces
from ..scratch import ones, scratch

add_reduce: Any = np.add.reduce
multiply_reduce: Any = np.multiply.reduce
einsum = np.einsum
ndarray = np.ndarray

# Elements of a row that one einsum sums, and rows of a column that one BLAS call sums: the float32 error is then that
# of NumPy's pairwise sum.
_CHUNK = 256
# Elements of a row that one BLAS dot product takes.
_LONG = 1024
# Elements whose squares BLAS adds up with an error of 1e-7; of 1,000 that are multiples of one number it is 4e-7.
_SHORT = 128
# NumPy sums smaller arrays, because it needs fewer steps.
_SMALL = 1 << 14

# Elements of a block that is converted, or read more than once; smaller ones take longer, as of 4 M elements: bfloat16
# sums 2.2 ms with 128 K and 1.3 with 256 K, variances 3.0 and 2.1.
BLOCK = 1 << 18
# Elements of a block that is read once: a sum reads them in 100 us, and a block costs 10 to 20 us of Python.
_BLOCK_READ_ONCE = 1 << 20
# Arrays of fewer elements are reduced at once. A task for a thread costs 15 to 60 us; for elements that are read once,
# memory is the limit: the sum of 4 M takes 0.5 ms either way on two threads, of 64 M 7.6 in blocks and 10.3 at once.
LARGE, LARGE_READ_ONCE = 1 << 19, 1 << 24


class Grid:
    """The cut of an array into blocks of about `limit` elements, which are long where elements are neighbours.

    Args:
        x: the array, not empty.
        dims: the reduced dimensions.
        uncut: blocks have all elements along them.
    """

    def __init__(self, x: ndarray, dims: Sequence[int], limit: int, uncut: bool = False) -> None:
        shape = x.shape
        room, outside = limit, prod([shape[dim] for dim in dims])
        #: the dimensions, neighbours in memory first
        self.order = list(range(x.ndim))[::-1]
        if not x.flags.c_contiguous:
            self.order.sort(key=lambda dim: abs(x.strides[dim]))
        if uncut:
            # at least a cache line of neighbours
            room = max(16, limit // outside)
        extents = list(shape)
        kept = 1
        for dim in self.order:
            most = room
            if dim not in dims:
                # a block with a result per element is not smaller than its results: so 64 elements for each of these
                most = min(room, max(1, max(limit // 64, limit // outside) // kept))
                extents[dim] = min(shape[dim], most)
                kept *= extents[dim]
            elif not uncut:
                extents[dim] = min(shape[dim], most)
                outside //= shape[dim]
            else:
                continue
            room = max(1, room // extents[dim])
        self.shape, self.extents = shape, extents
        self.dims = frozenset(dims)
        self.counts = [-(-size // extent) for size, extent in zip(shape, extents, strict=True)]
        self.count = prod(self.counts)
        #: how many blocks are reduced to each element of the result
        self.parts = prod([self.counts[dim] for dim in dims])

    def empty_parts(self, dtype: np.dtype) -> ndarray:
        """An array for the blocks' results, which are in memory in the array's order."""
        order = self.order[::-1]
        stored = np.empty((self.parts, *[1 if dim in self.dims else self.shape[dim] for dim in order]), dtype)
        return stored.transpose(0, *[1 + order.index(dim) for dim in range(len(order))])

    def block(self, index: int) -> tuple[tuple[slice, ...], tuple[Any, ...], list[int]]:
        """The slices of a block's elements and of its result in the array of parts, and the block's first place."""
        part, scale = 0, 1
        places: list[slice] = []
        results: list[slice] = []
        starts: list[int] = []
        for dim in reversed(range(len(self.shape))):
            index, number = divmod(index, self.counts[dim])
            starts.append(number * self.extents[dim])
            places.append(slice(starts[-1], min(starts[-1] + self.extents[dim], self.shape[dim])))
            if dim in self.dims:
                part += number * scale
                scale *= self.counts[dim]
                results.append(slice(None))
            else:
                results.append(places[-1])
        return tuple(places[::-1]), (part, *results[::-1]), starts[::-1]


def is_large(x: ndarray, read_once: bool) -> bool:
    """True if an array is reduced in blocks; see `in_parts`."""
    return x.size >= (LARGE_READ_ONCE if read_once else LARGE)


def in_parts(
    reduce: Callable[[ndarray, list[int], Any], tuple[ndarray, ...]],
    x: ndarray,
    dims: Sequence[int],
    dtype: np.dtype,
    read_once: bool,
    uncut: bool = False,
) -> list[ndarray]:
    """Reduce each block of a large array, on all threads; returns the results of the blocks, stacked.

    Args:
        reduce: `(block, start, new) -> results` with the reduced dimensions left in; `start` is the block's first
            place, `new(shape, dtype)` an array for what is computed on the way.
        dims: the reduced dimensions.
        dtype: what blocks are converted to.
        read_once: `reduce` reads a block of this dtype once, and has no temporary arrays.
        uncut: a block has all elements along the reduced dimensions, so that there is one part.
    """
    read_once = read_once and x.dtype == dtype
    grid = Grid(x, dims, _BLOCK_READ_ONCE if read_once else BLOCK, uncut)
    with np.errstate(all="ignore"):
        one = reduce(x[(slice(1),) * x.ndim].astype(dtype), [0] * x.ndim, np.empty)
    parts = [grid.empty_parts(each.dtype) for each in one]

    def run(start: int, stop: int) -> None:
        for index in range(start, stop):
            places, results, first = grid.block(index)
            block = x[places]
            with scratch() as new:
                if block.dtype != dtype:
                    block = converted(block, dtype, new)
                for part, result in zip(parts, reduce(block, first, new), strict=True):
                    part[results] = result

    in_pieces(run, grid.count, 1)
    return parts


def add_up(x: ndarray, dim: int | tuple[int, ...] | None, keepdim: bool = False) -> ndarray:
    """The sum of an array along `dim`, None for all of it; dimensions may be negative.

    Raises:
        ValueError: no such dimension, or one named twice.
    """
    if x.size < _SMALL or x.dtype.char not in "fd":
        return np.asarray(add_reduce(x, dim, keepdims=keepdim))
    rank = x.ndim
    dims: Any = range(rank) if dim is None else (dim,) if dim.__class__ is int else dim
    places = sorted([place + rank if place < 0 else place for place in dims])
    first, last = places[0], places[-1]
    shape = x.shape
    if first < 0 or last >= rank or len(set(places)) < len(places):
        return np.asarray(add_reduce(x, dim, keepdims=keepdim))
    if x.size >= LARGE_READ_ONCE:
        (parts,) = in_parts(lambda block, start, new: (add_up(block, tuple(places), True),), x, places, x.dtype, True)
        # blocks that lie one behind the other in a reduced dimension leave as many parts as there were elements
        total = add_up(parts, 0) if parts.size < x.size else np.asarray(add_reduce(parts, 0))
        return total if keepdim else np.squeeze(total, tuple(places))
    together = x.flags.c_contiguous and len(places) == last - first + 1
    if together and last == rank - 1:
        total = row_sums(x.reshape(prod(shape[:first]), prod(shape[first:])))
    elif together and first == 0:
        total = _column_sums(x.reshape(prod(shape[: last + 1]), prod(shape[last + 1 :])))
    else:
        return np.asarray(add_reduce(x, dim, keepdims=keepdim))
    if keepdim:
        return total.reshape([1 if first <= place <= last else extent for place, extent in enumerate(shape)])
    return total.reshape(shape[:first] + shape[last + 1 :])


def add_up_squares(x: ndarray, dim: int | tuple[int, ...] | None, keepdim: bool = False) -> ndarray:
    """The sum of the squares of a floating array along `dim`; of all elements without an array of the squares."""
    whole = dim is None or (dim.__class__ is tuple and len(dim) == x.ndim)
    if not whole or x.size < _SMALL or not x.flags.c_contiguous:
        return np.asarray(add_reduce(np.square(x), dim, keepdims=keepdim))
    flat = x.reshape(-1)
    chunks = flat[: flat.size - flat.size % _CHUNK].reshape(-1, _CHUNK)
    rest = flat[chunks.size :]
    total = np.asarray(add_reduce(np.vecdot(chunks, chunks)) + np.dot(rest, rest))
    return total.reshape((1,) * x.ndim) if keepdim else total


def row_sums(x: ndarray) -> ndarray:
    """The sums of contiguous rows."""
    rows, cols = x.shape
    chunks = cols // _CHUNK
    if chunks < 2:
        return einsum("ij->i", x)
    whole = chunks * _CHUNK
    if whole == cols:
        parts = einsum("ij->i", x.reshape(rows * chunks, _CHUNK)).reshape(rows, chunks)
    else:
        parts = einsum("ijk->ij", x[:, :whole].reshape(rows, chunks, _CHUNK))
    # few parts are added by BLAS, whose loop over rows is faster; many by NumPy, whose error is smaller
    total = dot(parts, ones((chunks,), x.dtype)) if chunks <= 8 else add_reduce(parts, 1)
    return total if whole == cols else total + einsum("ij->i", x[:, whole:])


def row_dots(x: ndarray, y: ndarray) -> ndarray:
    """The sums of the products of contiguous rows."""
    # BLAS adds up a row in 64 running sums; many elements in each have a larger error than NumPy's pairwise sum
    return np.asarray(np.vecdot(x, y) if x.shape[-1] < 8 * _LONG else _chunk_dots(x, y, _LONG))


def _chunk_dots(x: ndarray, y: ndarray, chunk: int, dtype: type | None = None) -> ndarray:
    """The sums of the products of contiguous rows: of chunks, which are added in a dtype."""
    cols = x.shape[-1]
    whole = cols - cols % chunk
    parts = np.vecdot(*[each[..., :whole].reshape(*each.shape[:-1], cols // chunk, chunk) for each in (x, y)])
    total = add_reduce(parts, -1, dtype)
    return np.asarray(total if whole == cols else total + np.vecdot(x[..., whole:], y[..., whole:]))


def _column_sums(x: ndarray) -> ndarray:
    """The sums of the columns of contiguous rows."""
    rows, cols = x.shape
    blocks = rows // _CHUNK
    row = ones((_CHUNK,), x.dtype)
    if blocks < 2 or cols < 8:
        return dot(ones((rows,), x.dtype), x) if rows <= 2 * _CHUNK else add_reduce(x, 0)
    whole = blocks * _CHUNK
    with blas_on_one_thread:
        parts = np.matmul(row, x[:whole].reshape(blocks, _CHUNK, cols))
    total = add_reduce(parts, 0)
    return total if whole == rows else total + dot(row[: rows - whole], x[whole:])


# ---- products and places --------------------------------------------------------------------------------------

_LANES = 64


def product(x: ndarray, dim: tuple[int, ...], keepdim: bool) -> ndarray:
    """The product along `dim`. NumPy multiplies along the last dimension one by one, along others in vectors."""
    cols = x.shape[-1] if x.ndim else 0
    if x.ndim - 1 not in dim or cols < 2 * _LANES or x.dtype.kind != "f":
        return np.asarray(multiply_reduce(x, dim, keepdims=keepdim))
    whole = cols - cols % _LANES
    chunks = x[..., :whole].reshape(*x.shape[:-1], cols // _LANES, _LANES)
    lanes = multiply_reduce(chunks, -2)
    if whole < cols:
        lanes[..., : cols - whole] *= x[..., whole:]
    return np.asarray(multiply_reduce(lanes, dim, keepdims=keepdim))


def first_places(x: ndarray, best: ndarray, dim: int, new: Callable[..., Any] = np.empty) -> ndarray:
    """The first index along `dim` at which `x` is `best`, of extent 1 along it, or NaN if that is.

    np.argmax copies what it does not find in the last dimension, at 7 ns an element; this takes 0.5.
    """
    found = np.equal(x, best, out=new(x.shape, np.dtype(bool)))
    if x.dtype.kind not in "iu":
        missing = best != best
        if missing.any():
            found |= missing & (x != x)
    size = x.shape[dim]
    kind = np.dtype(np.int16 if size < 1 << 15 else np.int32 if size < 1 << 31 else np.int64)
    numbers = np.arange(size, dtype=kind).reshape([-1 if each == dim else 1 for each in range(x.ndim)])
    places = new(x.shape, kind)
    places[...] = size
    np.copyto(places, numbers, where=found)
    return np.minimum.reduce(places, dim, keepdims=True).astype(np.int64, "C")


# ---- parts that need an array of the block's size -------------------------------------------------------------


def reduced_count(shape: tuple[int, ...], dims: Sequence[int]) -> int:
    """The number of elements reduced to each element of the result."""
    return prod([shape[dim] for dim in dims])


def centre_of(x: ndarray, dim: tuple[int, ...]) -> ndarray:
    """The mean, with the reduced dimensions left in; where the sum overflows, that of the distances from one element.

    So the variance of equal numbers is 0 however large they are, as the kernel gives it.
    """
    count = x.dtype.type(reduced_count(x.shape, dim))
    # NumPy's error is that of one number after another where the last dimension is kept
    quick = count <= 4096 or x.ndim - 1 in dim or not x.flags.c_contiguous

    def average(x: ndarray) -> ndarray:
        return ((add_up(x, dim, True) if quick else exact_sums(x, dim, np.empty)) / count).astype(x.dtype, copy=False)

    centre = average(x)
    if np.isinf(centre).any():
        first = x[tuple([slice(0, 1) if axis in dim else slice(None) for axis in range(x.ndim)])]
        centre = np.where(np.isinf(centre), first + average(x - first), centre)
    return centre


def exact_sums(x: ndarray, dim: tuple[int, ...], new: Callable[..., Any], squared: bool = False) -> ndarray:
    """The sums of a row-major array along `dim`, left in, in float64 from short float32 sums.

    Args:
        squared: of the squares, which may be written into `x`.
    """
    shape, rank = x.shape, x.ndim
    kept = max([each for each in range(rank) if each not in dim], default=-1)
    if kept < rank - 1:  # elements in sequence
        first, last = kept + 1, rank - 1
        rows = x.reshape(*shape[:first], -1)
        if squared and rows.shape[-1] < 2 * _SHORT:
            wide = new(rows.shape, np.dtype(np.float64))
            np.copyto(wide, rows)
            rows = wide
        total = _chunk_dots(rows, rows if squared else ones(rows.shape[-1:], x.dtype), _SHORT, np.float64)
    else:
        first = last = max(dim, default=-1)
        while first - 1 in dim:
            first -= 1
        parts, ours = np.square(x, out=x) if squared else x, squared
        parts = parts.reshape(prod(shape[:first]), prod(shape[first : last + 1]), prod(shape[last + 1 :]))
        chunks, rest = divmod(parts.shape[1], 16)
        if chunks >= 8 and not rest and parts.shape[2] >= 256:
            with blas_on_one_thread:
                parts = np.matmul(ones((16,), x.dtype), parts.reshape(len(parts), chunks, 16, parts.shape[2]))
            ours = True
        # by pairs: one after another 64 float32 numbers have an error of 4e-7, and take longer if rows are short
        while x.size and (half := parts.shape[1] // 2) >= 4:
            odd = parts[:, 2 * half :]
            parts = np.add(parts[:, :half], parts[:, half : 2 * half], out=parts[:, :half] if ours else None)
            ours = True
            if odd.size:
                parts[:, :1] += odd
        total = add_reduce(parts, 1, np.float64)
    total = total.reshape(*shape[:first], *[1] * (last + 1 - first), *shape[last + 1 :])
    before = tuple([each for each in dim if each < first])
    return np.asarray(add_reduce(total, before, keepdims=True) if before else total)


def far_off(centre: ndarray, squares: np.ndarray, count: Any) -> bool:
    """True if a mean is 16 deviations or more from 0, so that its rounding counts beside the distances from it."""
    return bool(np.logical_or.reduce(centre * centre * (count / 256) > squares, None))


def moments(x: ndarray, dim: tuple[int, ...], new: Any) -> tuple[ndarray, ...]:
    """The mean, the sum of squared distances from it, and the count, in float64."""
    count = reduced_count(x.shape, dim)
    if x.ndim == 0 or (x.size < _SMALL and x.dtype.char == "f"):
        x = x.astype(np.float64)
        centre = add_reduce(x, dim, keepdims=True) / count
        x -= centre
        squares = add_reduce(np.square(x, out=x), dim, keepdims=True)
        return centre, squares, np.full_like(squares, count)
    centre = centre_of(x, dim)
    while True:
        apart = np.subtract(x, centre, out=new(x.shape, x.dtype))
        squares = exact_sums(apart, dim, new, squared=True)
        if x.dtype.char == "d" or not (far_off(centre, squares, count) or not x.flags.c_contiguous):
            return centre.astype(np.float64), squares, np.full_like(squares, count)
        # what is left after the rounding of the centre, or of a long sum
        drift = exact_sums(np.subtract(x, centre, out=apart), dim, new) / count
        squares, before = squares - np.square(drift) * count, squares
        if not (squares < before / 2).any():
            return centre + drift, squares, np.full_like(squares, count)
        centre = (centre + drift).astype(x.dtype)


def merged_moments(parts: Sequence[ndarray], correction: float, count: int) -> ndarray:
    """The variance: the blocks' squared distances, and those of their means from the mean of all."""
    centres, squares, counts = parts
    if len(centres) > 1:
        first = centres[:1]
        centre = first[0] + np.add.reduce((centres - first) * (counts / counts.dtype.type(count)), 0)
        squares = squares + np.square(centres - centre) * counts
    total = np.add.reduce(squares, 0)
    return np.asarray(total / total.dtype.type(max(0, count - correction)))


def exponential_sums(x: ndarray, dim: tuple[int, ...], new: Any) -> ndarray:
    """log(sum(exp(x))) along `dim`, left in."""
    top = np.maximum.reduce(x, dim, keepdims=True)
    top = np.where(np.isinf(top), 0, top).astype(x.dtype)
    shares = np.subtract(x, top, out=new(x.shape, x.dtype))
    return np.asarray(np.log(add_up(np.exp(shares, out=shares), dim, True)) + top)


def norms(x: ndarray, p: float, dim: tuple[int, ...], new: Any) -> ndarray:
    """The p-norm along `dim`, left in; for other p than 0 and those of infinity, before the root."""
    if p == 0:
        there = np.not_equal(x, 0, out=new(x.shape, np.dtype(bool)))
        return np.asarray(np.add.reduce(there, dim, keepdims=True, dtype=x.dtype))
    if p == 2 and len(dim) == x.ndim:
        return add_up_squares(x, dim, True)
    if p == 2 and dim == (x.ndim - 1,) and x.flags.c_contiguous:
        rows = x.reshape(-1, x.shape[-1])
        return row_dots(rows, rows).reshape(*x.shape[:-1], 1)
    size = new(x.shape, x.dtype)
    np.square(x, out=size) if p == 2 else np.abs(x, out=size)
    if abs(p) == np.inf:
        return np.asarray((np.maximum if p > 0 else np.minimum).reduce(size, dim, keepdims=True))
    return add_up(size if p in (1, 2) else np.power(size, p, out=size), dim, True)
