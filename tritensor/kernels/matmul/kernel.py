"""The matrix product of operands of any strides, which are read through pointers, and the sum of a split product.

On Hopper the half products compile to `wgmma` fed by asynchronous copies; `descriptors.py` has a faster kernel for
operands of regular strides there.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...runtime.launch import device_function, kernel
from ..addressing import offset_of

if TYPE_CHECKING:
    import triton.language as tl


@device_function
def tile_position(tile, row_tiles, col_tiles, GROUP: tl.constexpr):
    """Row and column of a tile. Tiles go down columns of GROUP rows each, so that neighbours share operands in L2.

    GROUP is 0 where that is all rows: a quotient less on the way to the first load.
    """
    if GROUP == 0:
        return tile % row_tiles, tile // row_tiles
    span = GROUP * col_tiles
    first = tile // span * GROUP
    height = tl.minimum(row_tiles - first, GROUP)
    inside = tile % span
    return first + inside % height, inside // height


@device_function
def sum_of_products(x, y, total, PRODUCT: tl.constexpr):
    """`total + x @ y`. PRODUCT is the precision of `tl.dot` for float32, "sum" for dtypes that it refuses, or "eighth":
    tensor cores keep sums of float8 products in fewer bits, which are added to float32 tile by tile."""
    if PRODUCT == "eighth":
        # with max_num_imprecise_acc Triton adds sums that are in flight in a pipelined loop
        return total + tl.dot(x, y, out_dtype=total.dtype)
    elif PRODUCT == "sum":
        return total + tl.sum(x[:, :, None].to(total.dtype) * y[None, :, :].to(total.dtype), axis=1)
    else:
        return tl.dot(x, y, total, input_precision=PRODUCT, out_dtype=total.dtype)


@device_function
def typed(pointer, TYPE: tl.constexpr):
    """A pointer to bytes as one to elements of a type, unless that is None."""
    if TYPE is None:
        return pointer
    else:
        return pointer.to(tl.pointer_type(TYPE), bitcast=True)


@device_function
def zero(TYPE: tl.constexpr):
    """Zero in a type, to which Triton casts no integer; a number unless there is one."""
    if TYPE is None:
        return 0
    else:
        return tl.zeros((1, 1), TYPE)


@device_function
def scaled(total, scales, row, col, rows, cols, BY_LINE: tl.constexpr):
    """A tile times the first scale and the second; with BY_LINE those of its rows and of its columns."""
    if BY_LINE:
        down = tl.load(scales[0] + row, mask=row < rows)[:, None]
        return total * down * tl.load(scales[1] + col, mask=col < cols)[None, :]
    else:
        return total * tl.load(scales[0]) * tl.load(scales[1])


@device_function
def part_of(index, batches, parts, depth, BLOCK_K: tl.constexpr):
    """For program `index` of a split product: its batch, its part, and where that begins and ends along the depth."""
    part = index // batches
    length = tl.cdiv(tl.cdiv(depth, parts), BLOCK_K) * BLOCK_K
    first = (part * length).to(tl.int32)
    return index % batches, part, first, tl.minimum(first + length, depth)


@kernel
def matmul_kernel(
    out_ptr,
    x_ptr,
    y_ptr,
    biases,
    rows,
    cols,
    depth,
    parts,
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
    X_TYPE: tl.constexpr = None,
    Y_TYPE: tl.constexpr = None,
    SCALES: tl.constexpr = 0,
    BY_LINE: tl.constexpr = False,
):
    """One tile of one batch: `out = EPILOGUE(x @ y + bias)`.

    Args:
        biases: a tuple of one pointer, or of none, behind SCALES (2 or none) that are `scaled` by BY_LINE.
        rows, cols, depth: x is (rows, depth), y (depth, cols).
        parts: number of slices of `depth`; slice i writes its part `i * rows * cols` (of all batches) further on.
        batch_shape: RANK sizes.
        out_strides, x_strides, y_strides, bias_strides: for each a tuple of RANK batch strides, a row and a column
            stride.
        EPILOGUE: a device function of one block, or None.
        OUT_DTYPE, TOTAL: the dtype to store and the one to sum in.
        PRODUCT: see `sum_of_products`.
        BIAS_ROWS: the bias differs from row to row.
        SPLIT: parts may be more than 1.
        EVEN: depth is a multiple of BLOCK_K (and of `parts` as many), so that the loop needs no masks along it.
        WIDE: a tile's offsets need 64 bits.
        X_TYPE, Y_TYPE: see `typed`.
    """
    x_ptr, y_ptr = typed(x_ptr, X_TYPE), typed(y_ptr, Y_TYPE)
    row_tiles = tl.cdiv(rows, BLOCK_M)
    col_tiles = tl.cdiv(cols, BLOCK_N)
    program = tl.program_id(0)
    tile, batch = program, tl.cast(0, tl.int64)
    if SPLIT or RANK > 0:
        tile, batch = program % (row_tiles * col_tiles), (program // (row_tiles * col_tiles)).to(tl.int64)
    tile_row, tile_col = tile_position(tile, row_tiles, col_tiles, GROUP)
    out_start = out_ptr
    first, last = 0, depth
    if SPLIT:
        batches = tl.num_programs(0) // (row_tiles * col_tiles * parts)
        batch, part, first, last = part_of(batch, batches, parts, depth, BLOCK_K)
        out_start += part * batches * rows * cols
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
            x = tl.load(x_block, mask=row_mask, other=zero(X_TYPE))
            y = tl.load(y_block, mask=col_mask, other=zero(Y_TYPE))
        else:
            inside = inner < last - start
            x = tl.load(x_block, mask=row_mask & inside[None, :], other=zero(X_TYPE))
            y = tl.load(y_block, mask=inside[:, None] & col_mask, other=zero(Y_TYPE))
        total = sum_of_products(x, y, total, PRODUCT)
        x_block += x_step
        y_block += y_step
    mask = row_mask & col_mask
    if SCALES:
        total = scaled(total, biases, tile_row * BLOCK_M + row, tile_col * BLOCK_N + col, rows, cols, BY_LINE)
    for position in tl.static_range(SCALES, len(biases)):
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
    parts,
    shape,
    bias_strides,
    EPILOGUE: tl.constexpr,
    OUT_DTYPE: tl.constexpr,
    RANK: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """Add the parts of a product, then apply bias, epilogue and conversion. Eight parts are read at once: one after the
    other, 33 would take 8 us by the latency of memory."""
    index = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    mask = index < count
    total = tl.zeros((BLOCK,), parts_ptr.dtype.element_ty)
    for first in range(0, parts, 8):
        part = first + tl.arange(0, 8)[:, None]
        block = parts_ptr + part.to(tl.int64) * count + index[None, :]
        total += tl.sum(tl.load(block, mask=(part < parts) & mask[None, :], other=0), axis=0)
    for position in tl.static_range(len(biases)):
        total += tl.load(biases[position] + offset_of(index, bias_strides, shape, RANK), mask=mask).to(total.dtype)
    if EPILOGUE is not None:
        total = EPILOGUE(total)
    tl.store(out_ptr + index, total.to(OUT_DTYPE), mask=mask)
