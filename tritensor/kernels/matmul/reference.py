"""Matrix products on the CPU, by NumPy's BLAS, with the same bits for every number of threads.

OpenBLAS gives other bits on several threads than on one: 113 of 1,200 random products of up to 1,024 in each dimension
differed. So each call of BLAS runs on one thread, and large products are cut into tiles and stacks of matrices, which
are shared among our threads. How they are cut depends on shapes and dtypes only.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from math import prod
from typing import Any

import numpy as np

from ...host.threads import ALONE, blas_on_one_thread, get_num_threads, in_pieces, quietly
from ..addressing import collapse_dims

ndarray = np.ndarray
dot = np.dot
Body = Callable[[ndarray], ndarray]

# OpenBLAS uses one thread for products of up to 262,144 numbers, or a quarter as many of complex ones, and for a
# matrix and a vector of up to 9,216 (older versions) or 4,096 complex ones.
_ALONE = 1 << 18
# The products of a piece: 0.35 ms of float32. Two pieces of half as many take longer than one thread does.
_PIECE = 1 << 24
# From 16 pieces on they get larger, because each tile packs its operands again: 6 % for tiles of 256 x 256 x 1024.
_PIECES, _LARGEST = 16, 1 << 30
# A product of fewer rows or columns than this takes as long as one of so many: its time is that of reading the other
# operand.
_LEAST_EDGE = 16
# NumPy multiplies integers in plain loops.
_COSTS = {"f": 1, "d": 2, "F": 4, "D": 8}
_COST_OF_INTEGERS = 32
# Elements of half-precision operands that are converted at a time.
_CONVERTED = 1 << 20
# Elements of a vector in a piece of a scalar product: 1 MB of float32.
_VECTOR = 1 << 18


def product(x: ndarray, y: ndarray) -> ndarray:
    """`x @ y` for two matrices of one dtype, float32 or float64."""
    rows, depth = x.shape
    cols = y.shape[1]
    count = rows * depth * cols
    if count <= ALONE or (count <= _ALONE and rows > 1 and cols > 1):
        return dot(x, y) if rows * depth != 1 else x * y  # `dot` leaves out a factor of 0, which of NaN makes NaN
    if depth * max(rows, _LEAST_EDGE) * max(cols, _LEAST_EDGE) >= 2 * _PIECE:
        out = np.empty((rows, cols), x.dtype)
        _share(_Piece(), [out, x, y])
        return out
    if blas_on_one_thread.alone:  # Python code is slow after a product that has filled the caches: 3 us are saved
        return _product(x, y)
    with blas_on_one_thread:
        return _product(x, y)


def _product(x: ndarray, y: ndarray) -> ndarray:
    return np.ascontiguousarray(dot(y.T, x.T).T) if _turned(x, y) else dot(x, y)


def _turned(x: ndarray, y: ndarray) -> bool:
    """True if `(y.T @ x.T).T` is faster, its copy included: for few rows against more columns of a transposed matrix,
    such as 32x784x1000 in float32 with 0.68 of the time, 8x128x384 with 0.56, and not 128x128x384 with 1.12."""
    rows, depth = x.shape[-2:]
    return y.strides[-2] < y.strides[-1] and 2 * rows <= y.shape[-1] and rows <= (128 if depth >= 256 else 64)


def multiply(
    x: ndarray, y: ndarray, bias: ndarray | None = None, after: Body | None = None, kind: np.dtype | None = None
) -> ndarray:
    """`after(x @ y + bias)` for arrays of one dtype and one dimension or more, as `np.matmul` multiplies them.

    Args:
        bias: broadcasts to the product.
        after: an elementwise function.
        kind: the dtype to compute in, where it is another one: blocks are converted, and the result is as `x`.
    """
    if x.ndim == 1 and y.ndim == 1 and x.size > ALONE and kind is None and bias is None and after is None:
        return _scalar_product(x, y)
    left, right = x if x.ndim > 1 else x[None], y if y.ndim > 1 else y[:, None]
    rows, cols = left.shape[-2], right.shape[-1]
    batch, others = left.shape[:-2], right.shape[:-2]
    if others and batch != others:
        batch = np.broadcast_shapes(batch, others)
    out = np.empty((*batch, rows, cols), x.dtype)
    # without the dimensions of 1 that vectors were given
    result = out.reshape((*batch, *((rows,) if x.ndim > 1 else ()), *((cols,) if y.ndim > 1 else ())))
    operands: list[ndarray] = [out, left, right]
    if bias is not None:
        operands.append(bias if bias.ndim == 1 < y.ndim else np.broadcast_to(bias, result.shape).reshape(out.shape))
    if batch and not others and out.size and left.size:
        operands = _in_rows(operands, batch)
    _share(_Piece(after, kind), operands)
    return result


def _in_rows(operands: list[ndarray], batch: tuple[int, ...]) -> list[ndarray]:
    """Rows against one matrix as one product of more rows, where that needs no copy."""
    out, left, right, *bias = operands
    if bias and bias[0].ndim > 1:
        return operands
    if not left.flags.c_contiguous and len(collapse_dims((*batch, left.shape[-2]), [left.strides[:-1]])[0]) > 1:
        return operands
    return [out.reshape(-1, right.shape[1]), left.reshape(-1, left.shape[-1]), right, *bias]


def _collapsed(operands: list[ndarray], batch: tuple[int, ...]) -> list[ndarray]:
    """The result, both factors and the bias in as few dimensions as possible, all of them with the same batch."""
    spread = [np.broadcast_to(operand, (*batch, *operand.shape[-2:])) for operand in operands]
    spread[0] = operands[0]  # writable
    sizes, strides = collapse_dims(batch, [operand.strides[:-2] for operand in spread])
    return [
        np.lib.stride_tricks.as_strided(operand, (*sizes, *operand.shape[-2:]), (*steps, *operand.strides[-2:]))
        for operand, steps in zip(spread, strides, strict=True)
    ]


def _share(piece: _Piece, operands: list[ndarray]) -> None:
    """Compute a product in tiles of its matrices, or in stacks of small matrices."""
    out, x = operands[:2]
    *sizes, rows, cols = out.shape
    count, kind = prod(sizes), (piece.kind or out.dtype).char
    cost = x.shape[-1] * max(rows, _LEAST_EDGE) * max(cols, _LEAST_EDGE) * _COSTS.get(kind, _COST_OF_INTEGERS)
    if count * cost < 2 * _PIECE:
        for place in (1, 2) if kind in _COSTS else ():  # NumPy multiplies what BLAS cannot read in plain loops
            if operands[place].itemsize not in operands[place].strides[-2:]:
                operands[place] = np.ascontiguousarray(operands[place])
        alone = (_ALONE if rows > 1 and cols > 1 else ALONE) >> (2 if kind in "FD" else 0)
        if rows * cols * x.shape[-1] <= alone or blas_on_one_thread.alone:
            quietly(piece.compute, *operands)
            return
        with blas_on_one_thread:
            quietly(piece.compute, *operands)
        return
    if len(operands) > 3:
        operands[3] = np.broadcast_to(operands[3], out.shape)
    if sizes:
        operands = _collapsed(operands, tuple(sizes))
        *sizes, rows, cols = operands[0].shape
    share = min(max(count * cost // _PIECES, _PIECE), _LARGEST)
    tile = _tile(rows, cols, cost // share)
    if get_num_threads() == 1 and _is_same_as_tiles(operands, tile, piece.kind):
        tile = rows, cols

    def stacks(start: int, stop: int) -> None:
        for place in places(sizes, start, stop):
            piece.compute(*[operand[place] for operand in operands])

    if tile == (rows, cols) and sizes:
        in_pieces(stacks, count, max(share // cost, 1))
    else:
        _in_tiles(piece, operands, *tile)


def _in_tiles(piece: _Piece, operands: list[ndarray], height: int, width: int) -> None:
    """Compute a product in tiles of so many rows and columns."""
    *sizes, rows, cols = operands[0].shape
    across = -(-cols // width)
    tiles = -(-rows // height) * across

    def tile(index: int, _: int) -> None:
        number, place = divmod(index, tiles)
        row, col = place // across * height, place % across * width
        high, wide = slice(row, row + height), slice(col, col + width)
        matrices = [operand[np.unravel_index(number, sizes)] for operand in operands] if sizes else operands
        parts = [matrices[0][high, wide], matrices[1][high], matrices[2][:, wide]]
        piece.compute(*parts, *[bias[high, wide] for bias in matrices[3:]])

    in_pieces(tile, prod(sizes) * tiles, 1)


def _tile(rows: int, cols: int, wanted: int) -> tuple[int, int]:
    """The rows and columns of tiles of a matrix, about `wanted` of them, as square as halves make them. On one thread
    51 products took 1.05 of the whole one's time in these, and in tiles up to twice as wide as high 1.08; with a
    transposed second factor 1.09 and 1.13.

    >>> _tile(1024, 1024, 16), _tile(512, 784, 3), _tile(1, 4096, 4), _tile(50, 20, 100)
    ((256, 256), (512, 392), (1, 1024), (25, 20))
    """
    height, width, tiles = rows, cols, 2
    while tiles <= wanted and max(height, width) >= 2 * _LEAST_EDGE:
        if height > width:
            height = -(-height // 2)
        else:
            width = -(-width // 2)
        tiles *= 2
    return height, width


# By what the bits of a large product depend on: None after the first, and then whether a whole product and its tiles
# have the same. Products of more numbers are not compared, which may take 0.2 s.
_same: dict[Any, bool | None] = {}
_MOST_SAME, _COMPARED = 1024, 1 << 33


def _is_same_as_tiles(operands: list[ndarray], tile: tuple[int, int], kind: np.dtype | None) -> bool:
    """Whether a product on one thread need not be cut: it has the bits of its tiles, as it has with OpenBLAS's kernels.

    A product that is computed again is compared with its tiles once, on random numbers. Tiles take 1.05 to 1.18 of the
    whole one's time.
    """
    out, x, y = operands[:3]
    rows, depth, cols = x.shape[-2], x.shape[-1], y.shape[-1]
    turned = tuple([each.strides[-2] < each.strides[-1] for each in (x, y)])
    if kind is not None or out.dtype.kind != "f" or rows * depth * cols > _COMPARED:
        return False
    form = rows, depth, cols, turned, out.dtype, tile
    known = _same.get(form)
    if known is None:
        if len(_same) >= _MOST_SAME:
            _same.clear()
        known = _same[form] = _compare(form) if form in _same else None
    return known is True


def _compare(form: tuple[Any, ...]) -> bool:
    rows, depth, cols, turned, dtype, tile = form
    draw = np.random.default_rng(0).random
    x, y = (
        draw(shape[::-1], np.float32).T.astype(dtype) if across else draw(shape, np.float32).astype(dtype)
        for shape, across in zip(((rows, depth), (depth, cols)), turned)
    )
    whole, tiles = (np.empty((rows, cols), dtype) for _ in range(2))
    _in_tiles(_Piece(), [whole, x, y], rows, cols)
    _in_tiles(_Piece(), [tiles, x, y], *tile)
    return whole.tobytes() == tiles.tobytes()


def places(sizes: Sequence[int], start: int, stop: int) -> Iterator[tuple[Any, ...]]:
    """The indices of consecutive matrices of a batch of these sizes: runs of them along its last dimension.

    >>> list(places((2, 3), 1, 5))
    [(0, slice(1, 3, None)), (1, slice(0, 2, None))]
    """
    while start < stop:
        *lead, first = map(int, np.unravel_index(start, sizes))
        last = min(sizes[-1], first + stop - start)
        yield *lead, slice(first, last)
        start += last - first


class _Piece:
    """How one thread computes a tile, or some matrices of a batch."""

    def __init__(self, after: Body | None = None, kind: np.dtype | None = None) -> None:
        self.after, self.kind = after, kind

    def compute(self, out: ndarray, x: ndarray, y: ndarray, bias: ndarray | None = None) -> None:
        """`out = after(x @ y + bias)`."""
        total = out
        if self.kind is not None:
            total = self.converted(x, y)
        elif _turned(x, y):
            out[...] = np.matmul(y.mT, x.mT).mT
        else:
            np.matmul(x, y, out=out)
        if bias is not None:
            np.add(total, bias, out=total)
        if self.after is not None:
            total = self.after(total)
        if total is not out:
            out[...] = total

    def converted(self, x: ndarray, y: ndarray) -> ndarray:
        """`x @ y` in another dtype, from blocks of both along the summed dimension."""
        step = max(_CONVERTED // max(x[..., 0].size, y[..., 0, :].size, 1), 1) if x.shape[-1] else 1
        total = np.matmul(x[..., :step].astype(self.kind), y[..., :step, :].astype(self.kind))
        for start in range(step, x.shape[-1], step):
            part = slice(start, start + step)
            total += np.matmul(x[..., part].astype(self.kind), y[..., part, :].astype(self.kind))
        return total


def _scalar_product(x: ndarray, y: ndarray) -> Any:
    """The product of two vectors: long ones by the sums of pieces."""
    count = x.size
    if count < 2 * _VECTOR:
        with blas_on_one_thread:
            return dot(x, y)
    sums = np.empty(-(-count // _VECTOR), x.dtype)

    def run(start: int, stop: int) -> None:
        sums[start // _VECTOR] = dot(x[start:stop], y[start:stop])

    in_pieces(run, count, _VECTOR)
    return np.add.reduce(sums, dtype=x.dtype)
