"""Substitution on a device: a program goes through the blocks of rows of one matrix and some columns of B."""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING

from ...memory.array import DeviceArray
from ...runtime.launch import kernel, launch
from ...types import layout
from ..addressing import collapse_dims, offset_of
from ..blocks import power_of_two
from ..exact import quotient

if TYPE_CHECKING:
    import triton.language as tl

_ROWS, _COLS = 32, 32


@kernel
def substitution_kernel(
    out_ptr,
    a_ptr,
    b_ptr,
    batch_shape,
    out_strides,
    a_strides,
    b_strides,
    size,
    cols,
    UPPER: tl.constexpr,
    UNIT: tl.constexpr,
    RANK: tl.constexpr,
    ROWS: tl.constexpr,
    COLS: tl.constexpr,
):
    """Solve A @ X = B from the first block of rows to the last, or with UPPER from the last to the first.

    From each block the products with those that are solved are subtracted, which are read back after a barrier; then
    its rows are solved one by one. The strides are those of the batch, then of rows and columns.
    """
    across = tl.cdiv(cols, COLS)
    batch = (tl.program_id(0) // across).to(tl.int64)
    col = (tl.program_id(0) % across).to(tl.int64) * COLS + tl.arange(0, COLS)
    r = tl.arange(0, ROWS)
    out_ptr += offset_of(batch, out_strides, batch_shape, RANK) + col[None, :] * out_strides[RANK + 1]
    a_ptr += offset_of(batch, a_strides, batch_shape, RANK)
    b_ptr += offset_of(batch, b_strides, batch_shape, RANK) + col[None, :] * b_strides[RANK + 1]
    blocks = tl.cdiv(size, ROWS)
    for step in range(blocks):
        first = tl.cast(blocks - 1 - step if UPPER else step, tl.int64) * ROWS
        row = first + r
        inside = (row < size)[:, None] & (col < cols)[None, :]
        total = tl.load(b_ptr + row[:, None] * b_strides[RANK], mask=inside, other=0)
        diagonal = a_ptr + row * (a_strides[RANK] + a_strides[RANK + 1])
        pivots = tl.load(diagonal, mask=row < size, other=1)
        for done in range(step):
            k = tl.cast(blocks - 1 - done if UPPER else done, tl.int64) * ROWS + r
            left = a_ptr + row[:, None] * a_strides[RANK] + k[None, :] * a_strides[RANK + 1]
            x = tl.load(left, mask=(row < size)[:, None] & (k < size)[None, :], other=0)
            right = out_ptr + k[:, None] * out_strides[RANK]
            y = tl.load(right, mask=(k < size)[:, None] & (col < cols)[None, :], other=0)
            total -= tl.dot(x, y, input_precision="ieee", out_dtype=total.dtype)
        for i in range(ROWS):
            here = ROWS - 1 - i if UPPER else i
            place = first + here
            column = a_ptr + row * a_strides[RANK] + place * a_strides[RANK + 1]
            factor = tl.load(column, mask=tl.maximum(row, place) < size, other=0)
            solved = tl.sum(tl.where((r == here)[:, None], total, tl.zeros_like(total)), 0)
            if not UNIT:
                solved = quotient(solved, tl.sum(tl.where(r == here, pivots, tl.zeros_like(pivots)), 0))
            left_over = (r < here) if UPPER else (r > here)
            total = tl.where(left_over[:, None], total - factor[:, None] * solved[None, :], total)
            total = tl.where((r == here)[:, None], solved[None, :], total)
        tl.store(out_ptr + row[:, None] * out_strides[RANK], total, mask=inside)
        tl.debug_barrier()


def launch_substitution(
    out: DeviceArray, a: DeviceArray, b: DeviceArray, *, upper: bool, unitriangular: bool = False
) -> None:
    """Write X of A @ X = B, of stacks that broadcast."""
    if out.size == 0:
        return
    *batch, size, cols = out.shape
    steps = [layout.broadcast_strides(x.shape[:-2], x.strides[:-2], tuple(batch)) for x in (out, a, b)]
    shape, strides = collapse_dims(batch, steps)
    ends = [x.strides[-2:] for x in (out, a, b)]
    rows = min(_ROWS, max(power_of_two(size), 16))
    width = min(_COLS, max(power_of_two(cols), 16))
    launch(
        substitution_kernel,
        (prod(shape) * -(-cols // width),),
        (out, a, b, shape, *[(*step, *end) for step, end in zip(strides, ends, strict=True)], size, cols),
        {"UPPER": upper, "UNIT": unitriangular, "RANK": len(shape), "ROWS": rows, "COLS": width},
        out.device,
        name="solve_triangular",
    )
