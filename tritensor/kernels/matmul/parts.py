"""Large products of float32 for Hopper: six products of bfloat16, of which each number is the sum of three.

`tl.dot` in tf32x3 splits a tile anew in every program that reads it, and stores the parts to shared memory: at 8192
cubed that is predicted to take 2.8 times as long as the tensor cores do. Here a pass before writes the parts, once, and
the product reads them by the copy engine. Three numbers of 8 significant bits hold all 24 of float32, in 6 bytes, where
two of tf32 hold 22 in 8; six products of bfloat16 take as long as three of tf32. Products below 2^-25 of the whole are
left out.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...memory import buffer
from ...memory.array import DeviceArray
from ...runtime.launch import device_function, kernel, launch
from ...types import dtypes
from ..blocks import power_of_two
from .descriptors import describe, load_tile, store_piece
from .kernel import part_of, tile_position

if TYPE_CHECKING:
    import triton.language as tl

# The elements that a program of the pass splits: two 16-byte loads for each of 128 threads.
_SPLIT = 1024


@kernel
def split_kernel(
    parts_ptr: tl.tensor,
    x_ptr: tl.tensor,
    lines: int,
    width: int,
    blocks: int,
    part_step: int,
    pitch: int,
    x_strides: tl.tuple,
    HEIGHT: tl.constexpr,
    WIDTH: tl.constexpr,
):
    """Three bfloat16 numbers for each of float32 that add up to it, unless it is tiny. One that is not finite is the
    first, and the others are zero.

    Args:
        lines, width: of each matrix as it lies in memory.
        blocks: pieces of WIDTH in a line.
        part_step, pitch: from part to part and from line to line of the result.
        x_strides: from matrix to matrix and from line to line.
    """
    program = tl.program_id(0)
    line_blocks = tl.cdiv(lines, HEIGHT)
    matrix = (program // (blocks * line_blocks)).to(tl.int64)
    line = program // blocks % line_blocks * HEIGHT + tl.arange(0, HEIGHT)[:, None]
    place = program % blocks * WIDTH + tl.arange(0, WIDTH)[None, :]
    mask = (line < lines) & (place < width)
    x = tl.load(x_ptr + matrix * x_strides[0] + line.to(tl.int64) * x_strides[1] + place, mask=mask, other=0.0)
    finite = tl.abs(x) < float("inf")
    # the largest numbers of float32 would be rounded to infinity, and not to the largest one of bfloat16
    near = tl.minimum(tl.maximum(x, -3.3895313892515355e38), 3.3895313892515355e38)
    large = tl.where(finite, near, x).to(tl.bfloat16)
    rest = tl.where(finite, x - large.to(tl.float32), 0.0)
    middle = rest.to(tl.bfloat16)
    target = parts_ptr + (matrix * lines + line) * pitch + place
    tl.store(target, large, mask=mask)
    tl.store(target + tl.cast(part_step, tl.int64), middle, mask=mask)
    tl.store(target + 2 * tl.cast(part_step, tl.int64), (rest - middle.to(tl.float32)).to(tl.bfloat16), mask=mask)


@device_function
def load_part(
    tiles: tl.tensor_descriptor,
    matrix: int,
    first: int,
    line: int,
    FLIPPED: tl.constexpr,
    EDGE: tl.constexpr,
    BLOCK_K: tl.constexpr,
):
    """A tile of (EDGE, BLOCK_K) of one part, by where it begins along the depth and along the edge."""
    if FLIPPED:
        return load_tile(tiles, matrix, first, line, True, BLOCK_K, EDGE).T
    else:
        return load_tile(tiles, matrix, line, first, True, EDGE, BLOCK_K)


@kernel
def parts_matmul_kernel(
    out_ptr: tl.tensor,
    x_ptr: tl.tensor,
    y_ptr: tl.tensor,
    biases: tl.tuple,
    rows: int,
    cols: int,
    depth: int,
    batches: int,
    x_batches: int,
    y_batches: int,
    out_strides: tl.tuple,
    x_strides: tl.tuple,
    y_strides: tl.tuple,
    bias_strides: tl.tuple,
    EPILOGUE: tl.constexpr,
    OUT_DTYPE: tl.constexpr,
    X_FLIPPED: tl.constexpr,
    Y_FLIPPED: tl.constexpr,
    OUT_BATCHED: tl.constexpr,
    BIAS_ROWS: tl.constexpr,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
    GROUP: tl.constexpr,
    SPLIT: tl.constexpr = False,
):
    """One tile of `out = EPILOGUE(x @ y + bias)`, of operands in the parts of `split_kernel`.

    Tensor cores cut sums off instead of rounding them, so those of BLOCK_K products are added to float32 outside. Where
    the sum is not finite, only the products of the first parts count: of infinity and a small part they are of any
    sign.

    Args:
        x_batches, y_batches: matrices of an operand, one or `batches`, of which there are three parts in turn.
        Y_FLIPPED, X_FLIPPED: the operand's columns are the lines of its memory, not its rows.
        SPLIT, biases and the others: see `descriptors.described_matmul_kernel`.
    """
    row_tiles = tl.cdiv(rows, BLOCK_M)
    col_tiles = tl.cdiv(cols, BLOCK_N)
    if X_FLIPPED:
        x_tiles = describe(x_ptr, 3 * x_batches, depth, rows, x_strides[0], x_strides[1], True, BLOCK_K, BLOCK_M)
    else:
        x_tiles = describe(x_ptr, 3 * x_batches, rows, depth, x_strides[0], x_strides[1], True, BLOCK_M, BLOCK_K)
    if Y_FLIPPED:
        y_tiles = describe(y_ptr, 3 * y_batches, cols, depth, y_strides[0], y_strides[1], True, BLOCK_N, BLOCK_K)
    else:
        y_tiles = describe(y_ptr, 3 * y_batches, depth, cols, y_strides[0], y_strides[1], True, BLOCK_K, BLOCK_N)
    results = tl.num_programs(0) // (row_tiles * col_tiles)
    out_tiles = describe(out_ptr, results, rows, cols, out_strides[0], out_strides[1], OUT_BATCHED, BLOCK_M, BLOCK_N)
    tile = tl.program_id(0)
    result = tile // (row_tiles * col_tiles)
    batch, begin, end = result, 0, depth
    if SPLIT:
        batch, _, begin, end = part_of(result, batches, results // batches, depth, BLOCK_K)
    tile_row, tile_col = tile_position(tile % (row_tiles * col_tiles), row_tiles, col_tiles, GROUP)
    row = tile_row * BLOCK_M
    col = tile_col * BLOCK_N
    x_batch = tl.minimum(batch, x_batches - 1)
    y_batch = tl.minimum(batch, y_batches - 1)
    total = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for first in range(begin, end, BLOCK_K):
        x1 = load_part(x_tiles, x_batch, first, row, X_FLIPPED, BLOCK_M, BLOCK_K)
        x2 = load_part(x_tiles, x_batch + x_batches, first, row, X_FLIPPED, BLOCK_M, BLOCK_K)
        x3 = load_part(x_tiles, x_batch + 2 * x_batches, first, row, X_FLIPPED, BLOCK_M, BLOCK_K)
        y1 = load_part(y_tiles, y_batch, first, col, not Y_FLIPPED, BLOCK_N, BLOCK_K).T
        y2 = load_part(y_tiles, y_batch + y_batches, first, col, not Y_FLIPPED, BLOCK_N, BLOCK_K).T
        y3 = load_part(y_tiles, y_batch + 2 * y_batches, first, col, not Y_FLIPPED, BLOCK_N, BLOCK_K).T
        # the smallest first
        added = tl.dot(x3, y1)
        added = tl.dot(x1, y3, added)
        added = tl.dot(x2, y2, added)
        added = tl.dot(x2, y1, added)
        added = tl.dot(x1, y2, added)
        total += tl.dot(x1, y1, added)
    beyond = total - total != 0.0
    if tl.max(beyond.to(tl.int32)) != 0:
        large = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
        for first in range(begin, end, BLOCK_K):
            x1 = load_part(x_tiles, x_batch, first, row, X_FLIPPED, BLOCK_M, BLOCK_K)
            large = tl.dot(x1, load_part(y_tiles, y_batch, first, col, not Y_FLIPPED, BLOCK_N, BLOCK_K).T, large)
        total = tl.where(beyond, large, total)
    store_piece(
        out_tiles,
        total,
        biases,
        bias_strides,
        result,
        row,
        col,
        rows,
        cols,
        EPILOGUE,
        OUT_DTYPE,
        BIAS_ROWS,
        OUT_BATCHED,
        BLOCK_M,
        BLOCK_N,
        0,
        False,
    )


def split(x: DeviceArray, matrices: int, lines: int, width: int, steps: tuple[int, int]) -> DeviceArray:
    """The parts of float32 matrices: (3, matrices, lines, width), lines padded to 16 bytes.

    Args:
        lines, width: of a matrix as it lies in memory.
        steps: from matrix to matrix and from line to line.

    Raises:
        OutOfMemoryError: there is no room for 1.5 times the memory of the operand.
    """
    parts = buffer.empty((3, matrices, lines, -(-width // 8) * 8), dtypes.bfloat16.numpy, x.device)
    across = min(power_of_two(width), _SPLIT)
    down = min(power_of_two(lines), _SPLIT // across)
    blocks = -(-width // across)
    arguments = (parts, x, lines, width, blocks, *parts.strides[::2], steps)
    constants = {"HEIGHT": down, "WIDTH": across}
    grid = matrices * -(-lines // down) * blocks
    launch(split_kernel, (grid,), arguments, constants, x.device, name="matmul_split")
    return parts
