"""The matrix product for Hopper and later: tiles are copied by tensor descriptors, and programs are persistent.

A descriptor holds an array's address, sizes and strides for the copy engine (TMA); one thread then requests a whole
tile, and no thread computes addresses. Each program makes the descriptors in scratch memory of the launch, rather than
the host: the kernel then takes plain pointers and numbers like any other, on every version of Triton, and a launch can
be repeated with other arrays or captured. It costs each program a few steps before its first tile, which is why short
products use `kernel.matmul_kernel` (see `blocks.choose`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...runtime.launch import device_function, kernel
from .kernel import part_of, scaled, sum_of_products, tile_position, typed

if TYPE_CHECKING:
    import triton.language as tl


@device_function
def describe(
    pointer, batches, rows, cols, batch_step, pitch, BATCHED: tl.constexpr, HEIGHT: tl.constexpr, WIDTH: tl.constexpr
):
    """The descriptor of an array of `rows` and `cols`, or of a batch of them, to be moved in tiles of HEIGHT, WIDTH."""
    if BATCHED:
        return tl.make_tensor_descriptor(pointer, [batches, rows, cols], [batch_step, pitch, 1], [1, HEIGHT, WIDTH])
    else:
        return tl.make_tensor_descriptor(pointer, [rows, cols], [pitch, 1], [HEIGHT, WIDTH])


@device_function
def load_tile(descriptor, batch, row, col, BATCHED: tl.constexpr, HEIGHT: tl.constexpr, WIDTH: tl.constexpr):
    """The tile that begins at a row and a column; zeros beyond the edges."""
    if BATCHED:
        return descriptor.load([batch, row, col]).reshape(HEIGHT, WIDTH)
    else:
        return descriptor.load([row, col])


@device_function
def store_piece(
    descriptor,
    total,
    biases,
    bias_strides,
    batch,
    row,
    col,
    rows,
    cols,
    EPILOGUE: tl.constexpr,
    OUT_DTYPE: tl.constexpr,
    BIAS_ROWS: tl.constexpr,
    BATCHED: tl.constexpr,
    HEIGHT: tl.constexpr,
    WIDTH: tl.constexpr,
    SCALES: tl.constexpr,
    BY_LINE: tl.constexpr,
):
    """Scales, bias, epilogue, conversion and store of (a piece of) a tile; what lies beyond the edges is not stored."""
    if SCALES:
        total = scaled(total, biases, row + tl.arange(0, HEIGHT), col + tl.arange(0, WIDTH), rows, cols, BY_LINE)
    for position in tl.static_range(SCALES, len(biases)):
        inside = (col + tl.arange(0, WIDTH) < cols)[None, :]
        start = biases[position] + tl.cast(batch, tl.int64) * bias_strides[0]
        start += tl.cast(row, tl.int64) * bias_strides[1] + tl.cast(col, tl.int64) * bias_strides[2]
        block = start + tl.arange(0, WIDTH)[None, :] * bias_strides[2]
        if BIAS_ROWS:
            inside = inside & (row + tl.arange(0, HEIGHT) < rows)[:, None]
            total += tl.load(block + tl.arange(0, HEIGHT)[:, None] * bias_strides[1], mask=inside).to(total.dtype)
        else:
            total += tl.load(block, mask=inside).to(total.dtype)
    if EPILOGUE is not None:
        total = EPILOGUE(total)
    result = total.to(OUT_DTYPE)
    if BATCHED:
        descriptor.store([batch, row, col], result.reshape(1, HEIGHT, WIDTH))
    else:
        descriptor.store([row, col], result)


@kernel
def described_matmul_kernel(
    out_ptr,
    x_ptr,
    y_ptr,
    biases,
    rows,
    cols,
    depth,
    batches,
    out_strides,
    x_strides,
    y_strides,
    bias_strides,
    EPILOGUE: tl.constexpr,
    OUT_DTYPE: tl.constexpr,
    PRODUCT: tl.constexpr,
    X_FLIPPED: tl.constexpr,
    Y_FLIPPED: tl.constexpr,
    OUT_BATCHED: tl.constexpr,
    X_BATCHED: tl.constexpr,
    Y_BATCHED: tl.constexpr,
    BIAS_ROWS: tl.constexpr,
    PIECES: tl.constexpr,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
    GROUP: tl.constexpr,
    X_TYPE: tl.constexpr = None,
    Y_TYPE: tl.constexpr = None,
    SCALES: tl.constexpr = 0,
    BY_LINE: tl.constexpr = False,
    SPLIT: tl.constexpr = False,
):
    """`out = EPILOGUE(x @ y + bias)`, summed in float32; program i computes the tiles i, i + programs, ...

    Args:
        biases: a tuple of one pointer, or of none.
        rows, cols, depth, batches: x is (batches, rows, depth), y (batches, depth, cols); depth is 1 or more.
        out_strides, x_strides, y_strides: for each the step from batch to batch and from line to line of its memory.
            All are multiples of 16 bytes, and so is where each array begins.
        bias_strides: from batch to batch, row to row, column to column.
        EPILOGUE: a device function of one block, or None.
        PRODUCT: see `kernel.sum_of_products`.
        X_FLIPPED, Y_FLIPPED: the operand's columns are the lines of its memory, not its rows.
        OUT_BATCHED, X_BATCHED, Y_BATCHED: the array has a matrix for each batch.
        BIAS_ROWS: the bias differs from row to row.
        PIECES: 1, or 2 to finish and store the left and the right half of a tile one after the other, which takes half
            of the registers and of the shared memory.
        X_TYPE, Y_TYPE, SCALES, BY_LINE: see `kernel.matmul_kernel`.
        SPLIT: there is a program for each tile of each part of the depth; `out` has the results of a part for all
            batches, then those of the next.
    """
    x_ptr, y_ptr = typed(x_ptr, X_TYPE), typed(y_ptr, Y_TYPE)
    row_tiles = tl.cdiv(rows, BLOCK_M)
    col_tiles = tl.cdiv(cols, BLOCK_N)
    WIDTH: tl.constexpr = BLOCK_N // PIECES
    if X_FLIPPED:
        x_tiles = describe(x_ptr, batches, depth, rows, x_strides[0], x_strides[1], X_BATCHED, BLOCK_K, BLOCK_M)
    else:
        x_tiles = describe(x_ptr, batches, rows, depth, x_strides[0], x_strides[1], X_BATCHED, BLOCK_M, BLOCK_K)
    if Y_FLIPPED:
        y_tiles = describe(y_ptr, batches, cols, depth, y_strides[0], y_strides[1], Y_BATCHED, BLOCK_N, BLOCK_K)
    else:
        y_tiles = describe(y_ptr, batches, depth, cols, y_strides[0], y_strides[1], Y_BATCHED, BLOCK_K, BLOCK_N)
    results = tl.num_programs(0) // (row_tiles * col_tiles) if SPLIT else batches
    out_tiles = describe(out_ptr, results, rows, cols, out_strides[0], out_strides[1], OUT_BATCHED, BLOCK_M, WIDTH)
    # flattened: the loads of the next tile begin while the last one is multiplied and stored
    for tile in tl.range(tl.program_id(0), row_tiles * col_tiles * results, tl.num_programs(0), flatten=True):
        result = tile // (row_tiles * col_tiles)
        batch, begin, end = result, 0, tl.cdiv(depth, BLOCK_K)
        if SPLIT:
            batch, _, first, last = part_of(result, batches, results // batches, depth, BLOCK_K)
            begin, end = first // BLOCK_K, tl.cdiv(last, BLOCK_K)
        tile_row, tile_col = tile_position(tile % (row_tiles * col_tiles), row_tiles, col_tiles, GROUP)
        row = tile_row * BLOCK_M
        col = tile_col * BLOCK_N
        total = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
        for step in range(begin, end):
            first = step * BLOCK_K
            if X_FLIPPED:
                x = load_tile(x_tiles, batch, first, row, X_BATCHED, BLOCK_K, BLOCK_M).T
            else:
                x = load_tile(x_tiles, batch, row, first, X_BATCHED, BLOCK_M, BLOCK_K)
            if Y_FLIPPED:
                y = load_tile(y_tiles, batch, col, first, Y_BATCHED, BLOCK_N, BLOCK_K).T
            else:
                y = load_tile(y_tiles, batch, first, col, Y_BATCHED, BLOCK_K, BLOCK_N)
            total = sum_of_products(x, y, total, PRODUCT)
        pieces = (total,)
        if PIECES == 2:
            pieces = tl.split(tl.permute(tl.reshape(total, (BLOCK_M, 2, WIDTH)), (0, 2, 1)))
        for piece in tl.static_range(PIECES):
            store_piece(
                out_tiles,
                pieces[piece],
                biases,
                bias_strides,
                result,
                row,
                col + piece * WIDTH,
                rows,
                cols,
                EPILOGUE,
                OUT_DTYPE,
                BIAS_ROWS,
                OUT_BATCHED,
                BLOCK_M,
                WIDTH,
                SCALES,
                BY_LINE,
            )
