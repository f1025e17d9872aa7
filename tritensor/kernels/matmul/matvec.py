"""Products of few rows with a large matrix, limited by reading the matrix: it is read once, in wide loads.

A tensor core would multiply 16 rows whatever their number, from tiles that go through shared memory first. Here a
thread multiplies the few elements that it loads by all rows, and adds each product to a sum of its own; these are added
up once, at the end.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...runtime.launch import kernel
from ..addressing import offset_of
from .kernel import part_of

if TYPE_CHECKING:
    import triton.language as tl


@kernel
def matvec_kernel(
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
    RANK: tl.constexpr,
    BIAS_ROWS: tl.constexpr,
    SPLIT: tl.constexpr,
    EVEN: tl.constexpr,
    WIDE: tl.constexpr,
    ALONG: tl.constexpr,
    ROWS: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
):
    """All rows of some columns of one batch: `out = EPILOGUE(x @ y + bias)`.

    Args:
        rows, cols, depth, parts, ..., WIDE: as in `kernel.matmul_kernel`.
        ALONG: y is contiguous along the summed dimension, rather than along its columns.
        ROWS: a power of two that is not smaller than rows.
    """
    col_tiles = tl.cdiv(cols, BLOCK_N)
    program = tl.program_id(0)
    tile_col = program % col_tiles
    batch = (program // col_tiles).to(tl.int64)
    out_start = out_ptr
    first, last = 0, depth
    if SPLIT:
        batches = tl.num_programs(0) // (col_tiles * parts)
        batch, part, first, last = part_of(batch, batches, parts, depth, BLOCK_K)
        out_start += part * batches * rows * cols
    row = tl.arange(0, ROWS)[:, None, None]
    if ALONG:
        col = tl.arange(0, BLOCK_N)[None, :, None]
        inner = tl.arange(0, BLOCK_K)[None, None, :]
        # x is loaded in the shape of the product, so that it is spread over the threads as y is and no element has to
        # change places; the compiler drops what a thread would load twice
        spread = tl.zeros((1, BLOCK_N, 1), dtype=tl.int32)
        total = tl.zeros((ROWS, BLOCK_N, BLOCK_K), dtype=TOTAL)
    else:
        col = tl.arange(0, BLOCK_N)[None, None, :]
        inner = tl.arange(0, BLOCK_K)[None, :, None]
        spread = tl.zeros((1, 1, 1), dtype=tl.int32)
        total = tl.zeros((ROWS, BLOCK_K, BLOCK_N), dtype=TOTAL)
    if WIDE:
        row, col, inner, spread = row.to(tl.int64), col.to(tl.int64), inner.to(tl.int64), spread.to(tl.int64)
    col_start = (tile_col * BLOCK_N).to(tl.int64)
    row_mask = row < rows
    col_mask = col < cols - tile_col * BLOCK_N
    x_start = x_ptr + offset_of(batch, x_strides, batch_shape, RANK)
    y_start = y_ptr + offset_of(batch, y_strides, batch_shape, RANK) + col_start * y_strides[RANK + 1]
    x_start += tl.cast(first, tl.int64) * x_strides[RANK + 1]
    y_start += tl.cast(first, tl.int64) * y_strides[RANK]
    x_block = x_start + (row * x_strides[RANK] + inner * x_strides[RANK + 1] + spread)
    y_block = y_start + (inner * y_strides[RANK] + col * y_strides[RANK + 1])
    x_step = tl.cast(BLOCK_K, tl.int64) * x_strides[RANK + 1]
    y_step = tl.cast(BLOCK_K, tl.int64) * y_strides[RANK]
    # two steps at a time, so that the loads of both are under way together
    for start in tl.range(first, last, BLOCK_K, loop_unroll_factor=2):
        if EVEN:
            y = tl.load(y_block, mask=col_mask, other=0)
            x = tl.load(x_block, mask=row_mask, other=0)
        else:
            inside = inner < last - start
            y = tl.load(y_block, mask=col_mask & inside, other=0)
            x = tl.load(x_block, mask=row_mask & inside, other=0)
        total += x.to(TOTAL) * y.to(TOTAL)
        x_block += x_step
        y_block += y_step
    if ALONG:
        result = tl.sum(total, axis=2)
    else:
        result = tl.sum(total, axis=1)
    row = tl.arange(0, ROWS)[:, None]
    col = tl.arange(0, BLOCK_N)[None, :]
    if WIDE:
        row, col = row.to(tl.int64), col.to(tl.int64)
    mask = (row < rows) & (col < cols - tile_col * BLOCK_N)
    for position in tl.static_range(len(biases)):
        bias_start = biases[position] + offset_of(batch, bias_strides, batch_shape, RANK)
        bias_block = bias_start + col_start * bias_strides[RANK + 1] + col * bias_strides[RANK + 1]
        if BIAS_ROWS:
            result += tl.load(bias_block + row * bias_strides[RANK], mask=mask).to(TOTAL)
        else:
            result += tl.load(bias_block, mask=col < cols - tile_col * BLOCK_N).to(TOTAL)
    if EPILOGUE is not None:
        result = EPILOGUE(result)
    out_start += offset_of(batch, out_strides, batch_shape, RANK) + col_start * out_strides[RANK + 1]
    out_block = out_start + (row * out_strides[RANK] + col * out_strides[RANK + 1])
    tl.store(out_block, result.to(OUT_DTYPE), mask=mask)
