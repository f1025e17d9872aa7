"""The kernel behind every matrix product, and how its block sizes are chosen.

It reads both operands through pointers and strides, so transposed and sliced ones need no copy. On Hopper the half
products compile to `wgmma` fed by asynchronous copies. A persistent kernel on tensor descriptors, for large contiguous
operands, belongs beside it: `launch_product` is where the choice between the two is made.
"""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from .. import buffer, dtypes, layout, settings
from ..buffer import DeviceArray
from .launch import Bound, bind, device_function, kernel
from .offsets import collapse_dims, offset_of

if TYPE_CHECKING:
    import triton.language as tl

__all__ = ["Blocks", "choose_blocks", "finish_kernel", "launch_product", "matmul_kernel"]


@device_function
def tile_position(tile, row_tiles, col_tiles, GROUP: tl.constexpr):
    """Row and column of a tile. Tiles go down columns of GROUP rows each, so that neighbours share operands in L2."""
    span = GROUP * col_tiles
    first = tile // span * GROUP
    height = tl.minimum(row_tiles - first, GROUP)
    inside = tile % span
    return first + inside % height, inside // height


@device_function
def sum_of_products(x, y, total, PRODUCT: tl.constexpr):
    """`total + x @ y`. PRODUCT is the precision of `tl.dot` for float32, or "sum" for dtypes that it refuses."""
    if PRODUCT == "sum":
        return total + tl.sum(x[:, :, None].to(total.dtype) * y[None, :, :].to(total.dtype), axis=1)
    else:
        return tl.dot(x, y, total, input_precision=PRODUCT, out_dtype=total.dtype)


@kernel
def matmul_kernel(
    out_ptr,
    x_ptr,
    y_ptr,
    biases,
    rows,
    cols,
    depth,
    batch_shape,
    out_strides,
    x_strides,
    y_strides,
    bias_strides,
    EPILOGUE: tl.constexpr,
    OUT_DTYPE: tl.constexpr,
    TOTAL: tl.constexpr,
    PRODUCT: tl.constexpr,
    RANK: tl.constexpr,
    BIAS_ROWS: tl.constexpr,
    SPLIT: tl.constexpr,
    EVEN: tl.constexpr,
    WIDE: tl.constexpr,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
    GROUP: tl.constexpr,
):
    """One tile of one batch: `out = EPILOGUE(x @ y + bias)`.

    Args:
        biases: a tuple of one pointer, or of none.
        rows, cols, depth: x is (rows, depth), y (depth, cols).
        batch_shape: RANK sizes.
        out_strides, x_strides, y_strides, bias_strides: for each a tuple of RANK batch strides, a row and a column
            stride.
        EPILOGUE: a device function of one block, or None.
        OUT_DTYPE, TOTAL: the dtype to store and the one to sum in.
        PRODUCT: see `sum_of_products`.
        BIAS_ROWS: the bias differs from row to row.
        SPLIT: number of slices of `depth`; slice i writes its part `i * rows * cols` (of all batches) further on.
        EVEN: depth is a multiple of BLOCK_K (and SPLIT is 1), so that the loop needs no masks along it.
        WIDE: a tile's offsets need 64 bits.
    """
    row_tiles = tl.cdiv(rows, BLOCK_M)
    col_tiles = tl.cdiv(cols, BLOCK_N)
    program = tl.program_id(0)
    tile_row, tile_col = tile_position(program % (row_tiles * col_tiles), row_tiles, col_tiles, GROUP)
    batch = (program // (row_tiles * col_tiles)).to(tl.int64)
    out_start = out_ptr
    first, last = 0, depth
    if SPLIT > 1:
        batches = tl.num_programs(0) // (row_tiles * col_tiles * SPLIT)
        part = batch // batches
        batch = batch % batches
        out_start += part * batches * rows * cols
        length = tl.cdiv(tl.cdiv(depth, SPLIT), BLOCK_K) * BLOCK_K
        first = (part * length).to(tl.int32)
        last = tl.minimum(first + length, depth)
    row = tl.arange(0, BLOCK_M)
    col = tl.arange(0, BLOCK_N)
    inner = tl.arange(0, BLOCK_K)
    if WIDE:
        row, col, inner = row.to(tl.int64), col.to(tl.int64), inner.to(tl.int64)
    # 64 bits for where the tile starts, 32 (unless WIDE) for the offsets in it
    row_start = (tile_row * BLOCK_M).to(tl.int64)
    col_start = (tile_col * BLOCK_N).to(tl.int64)
    row_mask = (row < rows - tile_row * BLOCK_M)[:, None]
    col_mask = (col < cols - tile_col * BLOCK_N)[None, :]
    x_start = x_ptr + offset_of(batch, x_strides, batch_shape, RANK) + row_start * x_strides[RANK]
    y_start = y_ptr + offset_of(batch, y_strides, batch_shape, RANK) + col_start * y_strides[RANK + 1]
    x_start += tl.cast(first, tl.int64) * x_strides[RANK + 1]
    y_start += tl.cast(first, tl.int64) * y_strides[RANK]
    x_block = x_start + row[:, None] * x_strides[RANK] + inner[None, :] * x_strides[RANK + 1]
    y_block = y_start + inner[:, None] * y_strides[RANK] + col[None, :] * y_strides[RANK + 1]
    x_step = tl.cast(BLOCK_K, tl.int64) * x_strides[RANK + 1]
    y_step = tl.cast(BLOCK_K, tl.int64) * y_strides[RANK]
    total = tl.zeros((BLOCK_M, BLOCK_N), dtype=TOTAL)
    for start in range(first, last, BLOCK_K):
        if EVEN:
            x = tl.load(x_block, mask=row_mask, other=0)
            y = tl.load(y_block, mask=col_mask, other=0)
        else:
            inside = inner < last - start
            x = tl.load(x_block, mask=row_mask & inside[None, :], other=0)
            y = tl.load(y_block, mask=inside[:, None] & col_mask, other=0)
        total = sum_of_products(x, y, total, PRODUCT)
        x_block += x_step
        y_block += y_step
    mask = row_mask & col_mask
    for position in tl.static_range(len(biases)):
        bias_start = biases[position] + offset_of(batch, bias_strides, batch_shape, RANK)
        bias_start += row_start * bias_strides[RANK] + col_start * bias_strides[RANK + 1]
        bias_block = bias_start + col[None, :] * bias_strides[RANK + 1]
        if BIAS_ROWS:
            total += tl.load(bias_block + row[:, None] * bias_strides[RANK], mask=mask).to(TOTAL)
        else:
            total += tl.load(bias_block, mask=col_mask).to(TOTAL)
    if EPILOGUE is not None:
        total = EPILOGUE(total)
    out_start += offset_of(batch, out_strides, batch_shape, RANK)
    out_start += row_start * out_strides[RANK] + col_start * out_strides[RANK + 1]
    out_block = out_start + row[:, None] * out_strides[RANK] + col[None, :] * out_strides[RANK + 1]
    tl.store(out_block, total.to(OUT_DTYPE), mask=mask)


@kernel
def finish_kernel(
    out_ptr,
    parts_ptr,
    biases,
    count,
    shape,
    bias_strides,
    EPILOGUE: tl.constexpr,
    OUT_DTYPE: tl.constexpr,
    RANK: tl.constexpr,
    SPLIT: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """Add the SPLIT parts of a product, in order, and do what is left: bias, epilogue, conversion."""
    index = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    mask = index < count
    total = tl.load(parts_ptr + index, mask=mask)
    for part in range(1, SPLIT):
        total += tl.load(parts_ptr + part * count + index, mask=mask)
    for position in tl.static_range(len(biases)):
        total += tl.load(biases[position] + offset_of(index, bias_strides, shape, RANK), mask=mask).to(total.dtype)
    if EPILOGUE is not None:
        total = EPILOGUE(total)
    tl.store(out_ptr + index, total.to(OUT_DTYPE), mask=mask)


class Blocks(NamedTuple):
    """How a product is cut: the tile of the result, the step along the summed dimension, and Triton's two numbers."""

    rows: int
    cols: int
    depth: int
    warps: int
    stages: int
    split: int = 1


# From the largest to the smallest tile; compiled for sm_90 without spills (tests/test_matmul.py).
TABLES = {
    "half": (
        Blocks(128, 256, 64, 8, 3),
        Blocks(128, 128, 64, 8, 4),
        Blocks(64, 128, 64, 4, 4),
        Blocks(64, 64, 64, 4, 4),
    ),
    "single": (Blocks(128, 128, 32, 8, 3), Blocks(64, 128, 32, 4, 3), Blocks(64, 64, 32, 4, 3)),
    "double": (Blocks(64, 64, 16, 4, 2), Blocks(32, 32, 16, 4, 2)),
    "sum": (Blocks(16, 16, 16, 4, 1),),
}
# In simulation a step of the interpreter costs about the same whatever its size, so few large tiles are fastest.
_SIMULATED = {"sum": Blocks(32, 32, 32, 4, 1)}
_SIMULATED_DOT = Blocks(256, 256, 256, 4, 1)
# Parts of a split product cost a second kernel, so each must be worth it.
_STEPS_PER_PART = 4
_LARGEST_SPLIT = 32


def choose_blocks(table: str, rows: int, cols: int, depth: int, batches: int, processors: int,
                  simulated: bool = False) -> Blocks:  # fmt: skip
    """The largest tiles that keep three quarters of the processors busy, no larger than the product; where even the
    smallest do not, slices of the summed dimension for several programs.

    >>> choose_blocks("half", 8192, 8192, 8192, 1, 132)
    Blocks(rows=128, cols=256, depth=64, warps=8, stages=3, split=1)
    >>> choose_blocks("half", 16, 512, 8192, 1, 132)
    Blocks(rows=16, cols=64, depth=64, warps=4, stages=4, split=16)
    """  # fmt: skip
    forced = settings.block.value
    if forced:
        edge = max(_power_of_two(forced), 16)
        split = 3 if table != "sum" and depth > 4 * edge else 1
        return Blocks(edge, edge, edge, 4, 1, split)
    if simulated:
        return _clamp(_SIMULATED.get(table, _SIMULATED_DOT), rows, cols, depth)
    for blocks in TABLES[table]:
        tiles = -(-rows // blocks.rows) * -(-cols // blocks.cols) * batches
        if 4 * tiles >= 3 * processors:
            return _clamp(blocks, rows, cols, depth)
    if table == "sum":
        return _clamp(blocks, rows, cols, depth)
    steps = -(-depth // blocks.depth)
    split = min(processors // tiles, steps // _STEPS_PER_PART, _LARGEST_SPLIT)
    return _clamp(blocks._replace(split=max(split, 1)), rows, cols, depth)


def _clamp(blocks: Blocks, rows: int, cols: int, depth: int) -> Blocks:
    """No block larger than what it is to hold; 16 is the least that a tensor core takes."""
    return blocks._replace(
        rows=min(blocks.rows, max(_power_of_two(rows), 16)),
        cols=min(blocks.cols, max(_power_of_two(cols), 16)),
        depth=min(blocks.depth, max(_power_of_two(depth), 16)),
    )


def _power_of_two(size: int) -> int:
    """The smallest power of two that is not smaller."""
    return 1 << max(size - 1, 0).bit_length()


class _Product(NamedTuple):
    """A product of operands of certain shapes and strides, ready to be launched with other memory."""

    multiply: Bound
    #: for a split product the second step, and the shape and dtype of what is handed from one to the other
    finish: tuple[Bound, tuple[int, ...], np.dtype] | None


_REMEMBERED = 4096
_products: dict[tuple[Any, ...], _Product] = {}


def launch_product(out: DeviceArray, x: DeviceArray, y: DeviceArray, bias: DeviceArray | None, body: Any,
                   precision: str) -> None:  # fmt: skip
    """`out = body(x @ y + bias)`, for operands of one dtype and of any ranks that `matmul` takes.

    Args:
        body: the Triton body of an elementwise operator of one input, as a device function; or None.
        precision: how float32 is multiplied, in Triton's words: "ieee", "tf32x3" or "tf32".
    """
    if out.size == 0:
        return
    arrays = (x, y) if bias is None else (x, y, bias)
    simulated = out.buffer.arena.driver.is_simulated
    key: tuple[Any, ...] = (body, precision, settings.block.value, out.device, simulated)
    key += tuple([(array.dtype, array.shape, array.strides) for array in arrays])
    product = _products.get(key)
    if product is None:
        if len(_products) >= _REMEMBERED:  # shapes that change with every step must not pile up
            _products.clear()
        product = _products[key] = _prepare(out, x, y, bias, body, precision)
    if product.finish is None:
        product.multiply(out, *arrays)
        return
    finish, shape, kind = product.finish
    parts = buffer.empty(shape, kind, out.device)
    product.multiply(parts, x, y)
    finish(out, parts, *arrays[2:])


def _prepare(out: DeviceArray, x: DeviceArray, y: DeviceArray, bias: DeviceArray | None, body: Any,
             precision: str) -> _Product:  # fmt: skip
    """Work out sizes, strides and block sizes for operands of these shapes."""
    kind = dtypes.of(x.dtype)
    table, total, product = _arithmetic(kind, precision)
    (batch, rows, cols, depth), (out_steps, x_steps, y_steps, bias_steps) = _geometry(out, x, y, bias)
    driver = out.buffer.arena.driver
    processors = driver.properties(out.device.index or 0).multi_processor_count
    blocks = choose_blocks(table, rows, cols, depth, prod(batch), processors, driver.is_simulated)
    tile = (blocks.rows, blocks.cols, blocks.depth)
    edges = ((out_steps, tile[:2]), (x_steps, tile[::2]), (y_steps, tile[:0:-1]), (bias_steps, tile[:2]))
    reach = max(abs(step) * edge for steps, pair in edges for step, edge in zip(steps[-2:], pair, strict=True))
    whole = blocks.split == 1
    biases = () if bias is None else (bias,)
    constants = {
        "EPILOGUE": body if whole else None,
        "OUT_DTYPE": dtypes.of(out.dtype) if whole else total,
        "TOTAL": total,
        "PRODUCT": product,
        "RANK": len(batch),
        "BIAS_ROWS": bias_steps[-2] != 0,
        "SPLIT": blocks.split,
        "EVEN": whole and depth % blocks.depth == 0,
        "WIDE": reach >= 1 << 31,
        "BLOCK_M": blocks.rows,
        "BLOCK_N": blocks.cols,
        "BLOCK_K": blocks.depth,
        "GROUP": 8,
    }
    grid = -(-rows // blocks.rows) * -(-cols // blocks.cols) * prod(batch) * blocks.split
    sizes = (rows, cols, depth, batch, out_steps, x_steps, y_steps, bias_steps)
    options: dict[str, Any] = {
        "warps": blocks.warps,
        "stages": blocks.stages,
        "name": f"matmul_{body.__name__}" if body else "matmul",
    }
    if whole:
        multiply = bind(matmul_kernel, (grid,), (out, x, y, biases, *sizes), constants, out.device, **options)
        return _Product(multiply, None)
    scratch = ((blocks.split, *out.shape), total.numpy)
    parts = buffer.empty(*scratch, out.device)
    multiply = bind(matmul_kernel, (grid,), (parts, x, y, (), *sizes), constants, out.device, **options)
    shape, (steps,) = collapse_dims(out.shape, [_spread(bias, out.shape)])
    block = settings.block.value or 1024
    finish = bind(finish_kernel, (-(-out.size // block),), (out, parts, biases, out.size, shape, steps),
                  {"EPILOGUE": body, "OUT_DTYPE": dtypes.of(out.dtype), "RANK": len(shape), "SPLIT": blocks.split,
                   "BLOCK": block}, out.device, name="matmul_finish")  # fmt: skip
    return _Product(multiply, (finish, *scratch))


def _arithmetic(kind: dtypes.dtype, precision: str) -> tuple[str, dtypes.dtype, str]:
    """The table of block sizes, the dtype to sum in, and how to multiply."""
    if kind is dtypes.float16 or kind is dtypes.bfloat16:
        return "half", dtypes.float32, "ieee"
    if kind is dtypes.float32:
        return "single", kind, precision
    if kind is dtypes.float64:
        return "double", kind, "ieee"
    return "sum", dtypes.int64 if kind.itemsize == 8 else dtypes.int32, "sum"


def _spread(array: DeviceArray | None, shape: tuple[int, ...]) -> tuple[int, ...]:
    """The strides that repeat an array over `shape`; zeros for none."""
    return (0,) * len(shape) if array is None else layout.broadcast_strides(array.shape, array.strides, shape)


def _geometry(out: DeviceArray, x: DeviceArray, y: DeviceArray, bias: DeviceArray | None) -> tuple[Any, Any]:
    """(batch, rows, columns, depth) and the strides of out, x, y and bias, with as many batches as rows as possible.

    A vector on the left is a matrix of one row, one on the right a matrix of one column. Batches that share `y` are
    more rows of one product.
    """
    batch = out.shape[: out.ndim - (x.ndim > 1) - (y.ndim > 1)]
    rank = len(batch)
    rows, depth = (x.shape[-2] if x.ndim > 1 else 1), x.shape[-1]
    cols = y.shape[-1] if y.ndim > 1 else 1

    def placed(steps: tuple[int, ...]) -> tuple[tuple[int, ...], int]:
        rest = steps[rank:]
        return (*steps[:rank], rest[0] if x.ndim > 1 else 0), rest[-1] if y.ndim > 1 else 0

    out_rows, out_col = placed(out.strides)
    bias_rows, bias_col = placed(_spread(bias, out.shape))
    x_row = (*layout.broadcast_strides(x.shape[:-2], x.strides[:-2], batch), x.strides[-2] if x.ndim > 1 else 0)
    y_row = (*layout.broadcast_strides(y.shape[:-2], y.strides[:-2], batch), 0)
    y_steps = y.strides[-2:] if y.ndim > 1 else (y.strides[0], 0)
    shape, strides = collapse_dims((*batch, rows), [out_rows, x_row, y_row, bias_rows])
    if strides[2][-1] != 0:  # the last of them is a batch with matrices of its own, and there is one row
        shape, strides = (*shape, 1), tuple((*steps, 0) for steps in strides)
    outs, xs, ys, biases = strides
    return (shape[:-1], shape[-1], cols, depth), ((*outs, out_col), (*xs, x.strides[-1]), (*ys[:-1], *y_steps),
                                                  (*biases, bias_col))  # fmt: skip
