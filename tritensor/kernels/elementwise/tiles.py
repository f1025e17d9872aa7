"""The elementwise kernel for operands that cannot be collapsed to one dimension: tiles of rows and columns.

Two forms of one kernel. *Rows*: all operands are contiguous (or broadcast) along the innermost dimension, so a
program's offsets along it are the lane's number, and the other dimensions' offsets are computed once per row instead of
once per element; a row or a column that is broadcast is loaded once. *Crossed*: the operands are contiguous along
different dimensions, as in a transposed copy; a tile of 64 by 64 is read along one dimension and written along the
other, both in vectors, and transposed in shared memory by the compiler.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from typing import TYPE_CHECKING, Any, NamedTuple

from ...runtime.launch import device_function, kernel, launch
from ..addressing import collapse_dims, in_units, offset_of, unit_of
from ..blocks import power_of_two

if TYPE_CHECKING:
    import triton.language as tl

Steps = Sequence[Sequence[int]]

# Rows with fewer columns do not use this kernel: half of a warp's lanes would be idle.
_LEAST = 32
# The side of a crossed tile: 64 float32 are two cache lines in either direction, 64 bfloat16 one.
SIDE = 64


@device_function
def tile_pointers(
    base,
    strides,
    batch,
    row,
    col,
    row_shape,
    batch_shape,
    LAYOUT: tl.constexpr,
    BATCH_UNIT: tl.constexpr,
    ROW_UNIT: tl.constexpr,
    COL_UNIT: tl.constexpr,
    ROW_RANK: tl.constexpr,
    BATCH_RANK: tl.constexpr,
):
    """Pointers to one operand's part of a tile: a tile of pointers, a column or a row of them, or one."""
    if BATCH_RANK > 0:
        base += in_units(offset_of(batch, strides[0], batch_shape, BATCH_RANK), BATCH_UNIT)
    if LAYOUT == 0:
        pointers = base
    elif LAYOUT == 1:
        pointers = base + in_units(col * strides[2], COL_UNIT)[None, :]
    else:
        pointers = base + in_units(offset_of(row, strides[1], row_shape, ROW_RANK), ROW_UNIT)[:, None]
        if LAYOUT == 3:
            pointers += in_units(col * strides[2], COL_UNIT)[None, :]
    return pointers


@kernel
def tile_kernel(
    outs,
    ins,
    scalars,
    out_strides,
    in_strides,
    row_shape,
    batch_shape,
    rows,
    cols,
    row_tiles,
    col_tiles,
    BODY: tl.constexpr,
    OUT_DTYPES: tl.constexpr,
    COMPUTE: tl.constexpr,
    OUT_LAYOUTS: tl.constexpr,
    IN_LAYOUTS: tl.constexpr,
    UNITS: tl.constexpr,
    ROW_RANK: tl.constexpr,
    BATCH_RANK: tl.constexpr,
    INDEX64: tl.constexpr,
    ROWS: tl.constexpr,
    COLS: tl.constexpr,
):
    """Apply BODY to every element of a batch of matrices: `outs = BODY(*ins, *scalars)`.

    Args:
        outs, ins, scalars, BODY, OUT_DTYPES, COMPUTE, INDEX64: as in `elementwise_kernel`.
        out_strides, in_strides: for each pointer its strides along the batch, along the rows, and from one column to
            the next; () for a number.
        row_shape, batch_shape: ROW_RANK and BATCH_RANK sizes, collapsed.
        rows, cols: the matrix; row_tiles, col_tiles: the number of tiles. The grid is their product times the batch's
            size.
        OUT_LAYOUTS, IN_LAYOUTS: four numbers for each pointer: its part of a tile (see `_layout`), and the divisors of
            its offsets along the batch, the rows and the columns (see `in_units`). One flat tuple, because Triton 3.6
            does not accept a tuple of tuples as a constant.
        UNITS: divisors of `rows` and `cols`.
        ROWS, COLS: the tile.
    """
    tile = tl.program_id(0)
    if INDEX64:
        tile = tile.to(tl.int64)
    col = tile % col_tiles * COLS + tl.arange(0, COLS)
    tile = tile // col_tiles
    row = tile % row_tiles * ROWS + tl.arange(0, ROWS)
    batch = tile // row_tiles
    row_mask = (row < in_units(rows, UNITS[0]))[:, None]
    col_mask = (col < in_units(cols, UNITS[1]))[None, :]
    values = ()
    for position in tl.static_range(len(ins)):
        if len(in_strides[position]) == 0:
            value = ins[position].to(COMPUTE[position])
        else:
            pointers = tile_pointers(
                ins[position],
                in_strides[position],
                batch,
                row,
                col,
                row_shape,
                batch_shape,
                IN_LAYOUTS[4 * position],
                IN_LAYOUTS[4 * position + 1],
                IN_LAYOUTS[4 * position + 2],
                IN_LAYOUTS[4 * position + 3],
                ROW_RANK,
                BATCH_RANK,
            )
            if IN_LAYOUTS[4 * position] == 0:
                value = tl.load(pointers)
            elif IN_LAYOUTS[4 * position] == 1:
                value = tl.load(pointers, mask=col_mask)
            elif IN_LAYOUTS[4 * position] == 2:
                value = tl.load(pointers, mask=row_mask)
            else:
                value = tl.load(pointers, mask=row_mask & col_mask)
            value = tl.broadcast_to(value.to(COMPUTE[position]), (ROWS, COLS))
        values = values + (value,)  # type: ignore[assignment]  # noqa: RUF005
    results = BODY(*values, *scalars)
    for position in tl.static_range(len(outs)):
        if len(outs) == 1:
            result = results
        else:
            result = results[position]
        pointers = tile_pointers(
            outs[position],
            out_strides[position],
            batch,
            row,
            col,
            row_shape,
            batch_shape,
            OUT_LAYOUTS[4 * position],
            OUT_LAYOUTS[4 * position + 1],
            OUT_LAYOUTS[4 * position + 2],
            OUT_LAYOUTS[4 * position + 3],
            ROW_RANK,
            BATCH_RANK,
        )
        tl.store(pointers, result.to(OUT_DTYPES[position]), mask=row_mask & col_mask)


class Tiles(NamedTuple):
    """How a launch divides its dimensions: those of the batch, those of the rows, and a tile's sides."""

    batch: tuple[int, ...]
    rows: tuple[int, ...]
    row_block: int
    col_block: int


def sorted_dims(sizes: tuple[int, ...], strides: Steps) -> tuple[tuple[int, ...], tuple[tuple[int, ...], ...]]:
    """The dimensions sorted by the strides of the first operand, the result, and collapsed again.

    >>> sorted_dims((4, 6), [(1, 4), (1, 4)])  # two transposed matrices are one vector
    ((24,), ((1,), (1,)))
    """
    order = sorted(range(len(sizes)), key=lambda dim: -abs(strides[0][dim]))
    return collapse_dims([sizes[dim] for dim in order], [[steps[dim] for dim in order] for steps in strides])


def plan_tiles(sizes: Sequence[int], strides: Steps, block: int, side: int = SIDE) -> Tiles | None:
    """Divide collapsed dimensions into tiles of about `block` elements, or of `side` by `side` where the operands are
    contiguous along different dimensions; None where tiles have no advantage over one dimension.

    >>> plan_tiles((4096, 1000), [(1000, 1), (0, 1)], 1024)  # a row that is broadcast
    Tiles(batch=(), rows=(0,), row_block=1, col_block=1024)
    >>> plan_tiles((8, 512, 512), [(262144, 512, 1), (262144, 1, 512)], 1024)  # transposed
    Tiles(batch=(0,), rows=(1,), row_block=64, col_block=64)
    >>> plan_tiles((4096, 3), [(3, 1), (0, 1)], 1024)
    """
    last = len(sizes) - 1
    if last == 0:
        return None
    crossed = [dim for steps in strides[1:] if steps[last] not in (0, 1) for dim in range(last) if abs(steps[dim]) == 1]
    if crossed:
        whole = side * side
        rows = max(crossed, key=lambda dim: (crossed.count(dim), sizes[dim]))
        row_block = min(power_of_two(sizes[rows]), side)
        col_block = min(power_of_two(sizes[last]), whole // row_block)
        row_block = min(power_of_two(sizes[rows]), whole // col_block)
        return Tiles(tuple(dim for dim in range(last) if dim != rows), (rows,), row_block, col_block)
    if sizes[last] < min(block, _LEAST):
        return None
    col_block = _column_block(sizes[last], block)
    rows_in_all = 1
    for size in sizes[:last]:
        rows_in_all *= size
    return Tiles((), tuple(range(last)), min(power_of_two(rows_in_all), max(1, block // col_block)), col_block)


def _column_block(cols: int, block: int) -> int:
    """The widest tile of which at most an eighth of the lanes is idle, else the one with the fewest idle lanes."""
    if cols <= block:
        return power_of_two(cols)
    widths = [block >> step for step in range(4) if block >> step >= min(block, 128)]
    idle = {width: -(-cols // width) * width - cols for width in widths}
    return next((width for width in widths if idle[width] * 8 <= cols), min(widths, key=lambda width: idle[width]))


def launch_tiles(
    tiles: Tiles,
    sizes: Sequence[int],
    strides: Steps,
    outs: Sequence[Any],
    ins: Sequence[Any],
    numbers: tuple[Any, ...],
    constants: dict[str, Any],
    name: str,
    wide: int,
) -> None:
    """Make the launch that `plan_tiles` described.

    Args:
        sizes, strides: collapsed; a tuple of strides for each of `outs`, then for each array among `ins`.
        ins: arrays, and numbers in the kernel's types.
        constants: BODY, OUT_DTYPES and COMPUTE.
        wide: bytes of the widest element.
    """
    last = len(sizes) - 1
    row_shape, row_steps = _chosen(sizes, strides, tiles.rows)
    batch_shape, batch_steps = _chosen(sizes, strides, tiles.batch) if tiles.batch else ((), ((),) * len(strides))
    rows, cols, batches = _product(row_shape), sizes[last], _product(batch_shape)
    row_tiles, col_tiles = -(-rows // tiles.row_block), -(-cols // tiles.col_block)
    every = [(batch_steps[i], row_steps[i], steps[last]) for i, steps in enumerate(strides)]
    layouts = [_layout(*each) for each in every]
    out_layouts = [(3, *layout[1:]) for layout in layouts[: len(outs)]]
    pending = iter(zip(every[len(outs) :], layouts[len(outs) :], strict=True))
    operands = [next(pending) if hasattr(value, "buffer") else ((), (0, 1, 1, 1)) for value in ins]
    reach = max(sum((size - 1) * abs(step) for size, step in zip(sizes, steps, strict=True)) for steps in strides)
    span = max(reach, rows + tiles.row_block, cols + tiles.col_block, row_tiles * col_tiles * batches)
    launch(
        tile_kernel,
        (row_tiles * col_tiles * batches,),
        (
            tuple(outs),
            tuple(ins),
            numbers,
            tuple(every[: len(outs)]),
            tuple([steps for steps, _ in operands]),
            row_shape,
            batch_shape,
            rows,
            cols,
            row_tiles,
            col_tiles,
        ),
        {
            **constants,
            "OUT_LAYOUTS": tuple(chain(*out_layouts)),
            "IN_LAYOUTS": tuple(chain(*[layout for _, layout in operands])),
            "UNITS": (unit_of([rows]), unit_of([cols])),
            "ROW_RANK": len(row_shape),
            "BATCH_RANK": len(batch_shape),
            "INDEX64": span >= 1 << 31,
            "ROWS": tiles.row_block,
            "COLS": tiles.col_block,
        },
        outs[0].device,
        warps=8 if tiles.row_block * tiles.col_block * wide > 8192 else 4,
        name=name,
    )


def _chosen(
    sizes: Sequence[int], strides: Steps, dims: Sequence[int]
) -> tuple[tuple[int, ...], tuple[tuple[int, ...], ...]]:
    return collapse_dims([sizes[dim] for dim in dims], [[steps[dim] for dim in dims] for steps in strides])


def _product(sizes: Sequence[int]) -> int:
    total = 1
    for size in sizes:
        total *= size
    return total


def _layout(batch: Sequence[int], rows: Sequence[int], col: int) -> tuple[int, int, int, int]:
    """An operand's part of a tile (3: all, 2: a column, 1: a row, 0: one element), and the divisors of its offsets."""
    return 2 * any(rows) + (col != 0), unit_of(batch), unit_of(rows), unit_of([col])
