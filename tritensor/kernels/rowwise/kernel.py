"""The kernel of softmax, layer normalisation and cross entropy, and its launch.

A program takes a few rows. A row that fits into its tile is read once; a longer one is read twice, first for its
summary, and then from the end, so that the second pass finds the end of the row in the cache. Rows need not be
contiguous: where neighbouring rows are adjacent in memory, as in a softmax over the first dimension, the tile's layout
is transposed.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import TYPE_CHECKING, Any, NamedTuple

from ...memory import buffer
from ...memory.array import DeviceArray
from ...operators import copy_into
from ...runtime.launch import Float64, Int64, kernel, launch
from ...runtime.source import device_function
from ...types import dtypes
from ..addressing import collapse_dims, in_units, offset_of, unit_of
from ..blocks import forced_tile, power_of_two
from ..reduction.kernel import reach

if TYPE_CHECKING:
    import triton.language as tl

# The longest row that is read once: 32 registers a thread for each input with 16 warps, 64 with 32-bit elements.
_LONGEST = 16384
# Elements of a tile of several rows: 32 a thread with 4 warps.
_TILE = 4096
_INTERPRETED_TILE = 1 << 16


class RowBodies(NamedTuple):
    """The device functions of a rowwise operator.

    `values`, `row_values` and `col_values` are tuples of blocks of shapes (rows, cols), (rows, 1) and (1, cols); a
    summary's parts are of shape (rows,) when it is made and (rows, 1) when it is used.

    Attributes:
        apply: `(values, row_values, col_values, summary, col, numbers) -> results` for each element.
        summary: `(values, row_values, col_values, col, mask, count, numbers) -> summary` of a block of `count` columns.
        merge: `(*summary, *summary) -> summary`.
        finish: `(summary, row_values, numbers) -> results` for each row, all of shape (rows,).
        beyond: what stands in `values` where there is no element, at which the mask is false.
        pick: which of row_values is a column, whose elements of the first input and of each of col_values are added to
            row_values (0 where there is no such column): one load for each row, where a comparison, a choice and an
            addition for each element would look for it.
        late: col_values are read by `apply` only, and loaded after the summary, which gets none; those of long rows by
            quarters. Loaded before, they take a register for each element: a layer norm of 16384 had 126 with 16 warps
            on sm_90 and one program a multiprocessor, now it has 64 and two. There is one input.
    """

    apply: Any = None
    summary: Any = None
    merge: Any = None
    finish: Any = None
    beyond: float = 0.0
    pick: int | None = None
    late: bool = False


@device_function
def load_rows(ins, strides, shape, row, mask, COMPUTE: tl.constexpr, RANK: tl.constexpr):
    """One value per row from each input, as a block of shape (rows,)."""
    values = ()
    for position in tl.static_range(len(ins)):
        value = tl.load(ins[position] + offset_of(row, strides[position], shape, RANK), mask=mask, other=0)
        values = values + (value.to(COMPUTE[position]),)  # type: ignore[assignment]  # noqa: RUF005
    return values


@device_function
def row_starts(ins, strides, shape, row, RANK: tl.constexpr, UNIT: tl.constexpr):
    """The offsets of the rows of each array, which are multiples of UNIT."""
    starts = ()
    for position in tl.static_range(len(ins)):
        start = in_units(offset_of(row, strides[position], shape, RANK), UNIT)
        starts = starts + (start,)  # type: ignore[assignment]  # noqa: RUF005
    return starts


@device_function
def as_columns(values):
    """Blocks of shape (rows,) as (rows, 1)."""
    columns = ()
    for position in tl.static_range(len(values)):
        columns = columns + (values[position][:, None],)  # noqa: RUF005
    return columns


@device_function
def load_tile(ins, starts, col_strides, col, mask, COMPUTE: tl.constexpr, UNIT: tl.constexpr, BEYOND: tl.constexpr):
    """A block of shape (rows, cols) from each input; BEYOND where the mask is false."""
    values = ()
    for position in tl.static_range(len(ins)):
        pointer = ins[position] + starts[position][:, None] + in_units(col * col_strides[position], UNIT)[None, :]
        values = values + (tl.load(pointer, mask=mask, other=BEYOND).to(COMPUTE),)  # type: ignore[assignment]  # noqa: RUF005
    return values


@device_function
def load_cols(ins, col, mask, COMPUTE: tl.constexpr):
    """A block of shape (1, cols) from each array of one element per column."""
    values = ()
    for position in tl.static_range(len(ins)):
        value = tl.load(ins[position] + col, mask=mask, other=0).to(COMPUTE)
        values = values + (value[None, :],)  # type: ignore[assignment]  # noqa: RUF005
    return values


@device_function
def quarters(x, ROWS: tl.constexpr, COLS: tl.constexpr):
    """The quarters of a block's columns, which no element moves for."""
    left, right = tl.split(tl.permute(tl.reshape(x, (ROWS, 2, COLS // 2)), (0, 2, 1)))
    first, second = tl.split(tl.permute(tl.reshape(left, (ROWS, 2, COLS // 4)), (0, 2, 1)))
    third, fourth = tl.split(tl.permute(tl.reshape(right, (ROWS, 2, COLS // 4)), (0, 2, 1)))
    return first, second, third, fourth


@device_function
def load_picked(x_ptr, start, col_step, col_ins, place, mask, cols, COMPUTE: tl.constexpr):
    """Each row's element at a column of its own, and those of the arrays of one element per column."""
    inside = mask & (place >= 0) & (place < cols)
    values = (tl.load(x_ptr + start + place * col_step, mask=inside, other=0).to(COMPUTE),)
    for position in tl.static_range(len(col_ins)):
        value = tl.load(col_ins[position] + place, mask=inside, other=0).to(COMPUTE)
        values = values + (value,)  # type: ignore[assignment]  # noqa: RUF005
    return values


@device_function
def store_tile(outs, starts, col_strides, col, mask, results, OUT_DTYPES: tl.constexpr, UNIT: tl.constexpr):
    """Write a block of shape (rows, cols) to each output."""
    for position in tl.static_range(len(outs)):
        pointer = outs[position] + starts[position][:, None] + in_units(col * col_strides[position], UNIT)[None, :]
        tl.store(pointer, results[position].to(OUT_DTYPES[position]), mask=mask)


@kernel
def rowwise_kernel(
    outs,
    row_outs,
    ins,
    row_ins,
    col_ins,
    numbers,
    out_strides,
    in_strides,
    row_in_strides,
    shape,
    out_col_strides,
    in_col_strides,
    rows,
    cols,
    APPLY: tl.constexpr,
    SUMMARY: tl.constexpr,
    MERGE: tl.constexpr,
    FINISH: tl.constexpr,
    PICK: tl.constexpr,
    BEYOND: tl.constexpr,
    LATE: tl.constexpr,
    PARTS: tl.constexpr,
    COMPUTE: tl.constexpr,
    ROW_COMPUTE: tl.constexpr,
    OUT_DTYPES: tl.constexpr,
    ROW_OUT_DTYPES: tl.constexpr,
    RANK: tl.constexpr,
    INDEX64: tl.constexpr,
    UNITS: tl.constexpr,
    LOOP: tl.constexpr,
    EXACT: tl.constexpr,
    ROWS: tl.constexpr,
    COLS: tl.constexpr,
):
    """Compute each element from its row.

    Args:
        outs, ins: tuples of pointers to arrays of `rows` times `cols` elements.
        row_outs, row_ins: tuples of pointers to arrays of one element per row; results are contiguous.
        col_ins: a tuple of pointers to contiguous arrays of one element per column.
        numbers: a tuple of numbers and constants for the bodies.
        out_strides, in_strides, row_in_strides, shape: for each array RANK strides, in elements, and the RANK sizes
            that all share, from which a row's number gives its offset.
        out_col_strides, in_col_strides: for each array the step from one column to the next.
        APPLY, SUMMARY, MERGE, FINISH, PICK, BEYOND, LATE: see `RowBodies`; None for what the operator does not have.
        COMPUTE: the dtype that inputs are converted to; ROW_COMPUTE the same for each of row_ins.
        PARTS: 4 to load col_values late by quarters of the tile, else 1.
        LOOP: rows are longer than COLS.
        EXACT: COLS is as long as a row and ROWS divides `rows`: nothing is masked.
        INDEX64: whether offsets need 64 bits.
        UNITS: divisors of the offsets of rows, the offsets of columns, `rows`, and `cols` (see `in_units`).
        ROWS, COLS: the tile. The grid is (ceil(rows / ROWS),).
    """
    start = tl.program_id(0)
    span = tl.arange(0, COLS)
    if INDEX64:
        start = start.to(tl.int64)
        span = span.to(tl.int64)
    row = start * ROWS + tl.arange(0, ROWS)
    row_mask = tl.full((ROWS,), 1, tl.int1)
    if ROWS > 1 and not EXACT:
        row_mask = row < in_units(rows, UNITS[2])
    cols = COLS if EXACT else in_units(cols, UNITS[3])
    starts = row_starts(ins, in_strides, shape, row, RANK, UNITS[0])
    row_values = load_rows(row_ins, row_in_strides, shape, row, row_mask, ROW_COMPUTE, RANK)
    if PICK is not None:
        place = row_values[PICK]
        row_values += load_picked(ins[0], starts[0], in_col_strides[0], col_ins, place, row_mask, cols, COMPUTE)
    row_columns = as_columns(row_values)
    every_col = tl.broadcast_to(row_mask[:, None], (ROWS, COLS))
    whole = cols // COLS * COLS
    early_ins = () if LATE else col_ins
    summary = ()
    if not LOOP:
        col_mask = tl.full((COLS,), 1, tl.int1) if EXACT else span < cols
        mask = every_col & col_mask[None, :]
        values = load_tile(ins, starts, in_col_strides, span, mask, COMPUTE, UNITS[1], BEYOND)
        col_values = load_cols(early_ins, span, col_mask, COMPUTE)
        if SUMMARY is not None:
            summary = SUMMARY(values, row_columns, col_values, span[None, :], mask, cols, numbers)
        columns = as_columns(summary)
        if APPLY is not None:
            places = row_starts(outs, out_strides, shape, row, RANK, UNITS[0])
            WIDTH: tl.constexpr = COLS // PARTS
            parts = () if PARTS == 1 else quarters(values[0], ROWS, COLS)
            for part in tl.static_range(PARTS):
                if LATE:
                    span = part * WIDTH + tl.arange(0, WIDTH)
                    if INDEX64:
                        span = span.to(tl.int64)
                    col_mask = tl.full((WIDTH,), 1, tl.int1) if EXACT else span < cols
                    mask = row_mask[:, None] & col_mask[None, :]
                    col_values = load_cols(col_ins, span, col_mask, COMPUTE)
                tile = values if PARTS == 1 else (parts[part],)
                results = APPLY(tile, row_columns, col_values, columns, span[None, :], numbers)
                store_tile(outs, places, out_col_strides, span, mask, results, OUT_DTYPES, UNITS[1])
    else:
        if SUMMARY is not None:
            values = load_tile(ins, starts, in_col_strides, span, every_col, COMPUTE, UNITS[1], BEYOND)
            col_values = load_cols(early_ins, span, span < cols, COMPUTE)
            summary = SUMMARY(values, row_columns, col_values, span[None, :], every_col, COLS, numbers)
            for first in range(COLS, whole, COLS):
                col = first + span
                values = load_tile(ins, starts, in_col_strides, col, every_col, COMPUTE, UNITS[1], BEYOND)
                col_values = load_cols(early_ins, col, col < cols, COMPUTE)
                more = SUMMARY(values, row_columns, col_values, col[None, :], every_col, COLS, numbers)
                summary = MERGE(*summary, *more)
            if whole < cols:
                col = whole + span
                mask = every_col & (col < cols)[None, :]
                values = load_tile(ins, starts, in_col_strides, col, mask, COMPUTE, UNITS[1], BEYOND)
                col_values = load_cols(early_ins, col, col < cols, COMPUTE)
                more = SUMMARY(values, row_columns, col_values, col[None, :], mask, cols - whole, numbers)
                summary = MERGE(*summary, *more)
        columns = as_columns(summary)
        if APPLY is not None:
            places = row_starts(outs, out_strides, shape, row, RANK, UNITS[0])
            if whole < cols:
                col = whole + span
                mask = every_col & (col < cols)[None, :]
                values = load_tile(ins, starts, in_col_strides, col, mask, COMPUTE, UNITS[1], BEYOND)
                applied = load_cols(col_ins, col, col < cols, COMPUTE)
                results = APPLY(values, row_columns, applied, columns, col[None, :], numbers)
                store_tile(outs, places, out_col_strides, col, mask, results, OUT_DTYPES, UNITS[1])
            for step in range(cols // COLS):
                col = whole - (step + 1) * COLS + span
                values = load_tile(ins, starts, in_col_strides, col, every_col, COMPUTE, UNITS[1], BEYOND)
                applied = load_cols(col_ins, col, col < cols, COMPUTE)
                results = APPLY(values, row_columns, applied, columns, col[None, :], numbers)
                store_tile(outs, places, out_col_strides, col, every_col, results, OUT_DTYPES, UNITS[1])
    if FINISH is not None:
        row_results = FINISH(summary, row_values, numbers)
        for position in tl.static_range(len(row_outs)):
            tl.store(row_outs[position] + row, row_results[position].to(ROW_OUT_DTYPES[position]), mask=row_mask)


def launch_rows(
    bodies: RowBodies,
    outs: Sequence[DeviceArray],
    ins: Sequence[DeviceArray],
    dim: int,
    compute: dtypes.dtype,
    name: str,
    *,
    row_outs: Sequence[DeviceArray] = (),
    row_ins: Sequence[DeviceArray] = (),
    col_ins: Sequence[DeviceArray] = (),
    numbers: tuple[Any, ...] = (),
    held: int | None = None,
    most_rows: int = _TILE,
) -> None:
    """Run a rowwise operator along dimension `dim` of `ins`, arrays of one shape.

    Args:
        outs: results of that shape.
        row_outs: contiguous results of that shape without `dim`.
        row_ins: inputs that broadcast to that shape without `dim`.
        col_ins: contiguous inputs with one element per column.
        numbers: floats (passed in the compute dtype), ints (int64) and constants (bool, str).
        held: values that a program holds for each element of its tile; by default the number of inputs.
        most_rows: the largest number of rows per tile, for a program that holds many values for each row.
    """
    x = ins[0]
    kept = [each for each in range(x.ndim) if each != dim]
    kept_shape = tuple([x.shape[each] for each in kept])
    cols = x.shape[dim] if x.ndim else 1
    rows = prod(kept_shape)
    if rows == 0 or (cols == 0 and not row_outs):
        return
    row_ins = [array.broadcast_to(kept_shape) for array in row_ins]
    strides = [[array.strides[each] for each in kept] for array in (*outs, *ins)]
    sizes, steps = collapse_dims(kept_shape, strides + [list(array.strides) for array in row_ins])
    if rows == 1:  # at a place that the compiler may know is aligned
        steps = ((0,),) * len(steps)
    first, second = len(outs), len(outs) + len(ins)
    # float64 exponentials need more registers: 8 elements a thread spilled with 16 warps
    row_block, col_block, warps = _tile(
        x,
        rows,
        cols,
        _col_stride(x, dim) == 1 or steps[first][-1] != 1,
        (held or len(ins)) * (4 if compute.itemsize == 8 else 1),
        most_rows,
    )
    late = bodies.late and bool(col_ins)
    span = max(max(reach(array) for array in (*outs, *ins)), rows, cols)
    launch(
        rowwise_kernel,
        (-(-rows // row_block),),
        (
            tuple(outs),
            tuple(row_outs),
            tuple(ins),
            tuple(row_ins),
            tuple(col_ins),
            _typed(numbers, compute),
            steps[:first],
            steps[first:second],
            steps[second:],
            sizes,
            tuple(_col_stride(out, dim) for out in outs),
            tuple(_col_stride(array, dim) for array in ins),
            rows,
            cols,
        ),
        {
            "APPLY": bodies.apply,
            "SUMMARY": bodies.summary,
            "MERGE": bodies.merge,
            "FINISH": bodies.finish,
            "PICK": bodies.pick,
            "BEYOND": bodies.beyond,
            "LATE": late,
            "PARTS": 4 if late and row_block == 1 and 4096 <= col_block <= _LONGEST else 1,
            "COMPUTE": compute,
            "ROW_COMPUTE": tuple(_row_kind(array, compute) for array in row_ins),
            "OUT_DTYPES": tuple(dtypes.of(out.dtype) for out in outs),
            "ROW_OUT_DTYPES": tuple(dtypes.of(out.dtype) for out in row_outs),
            "RANK": len(sizes),
            "INDEX64": span + _INTERPRETED_TILE >= 1 << 31,
            "UNITS": (
                unit_of(step for each in steps[:second] for step in each),
                unit_of(_col_stride(array, dim) for array in (*outs, *ins)),
                unit_of([rows]),
                unit_of([cols]),
            ),
            "LOOP": cols > col_block,
            "EXACT": cols == col_block and rows % row_block == 0,
            "ROWS": row_block,
            "COLS": col_block,
        },
        x.device,
        warps=warps,
        name=f"rowwise_{name}",
    )


def _typed(numbers: tuple[Any, ...], compute: dtypes.dtype) -> tuple[Any, ...]:
    """Numbers as kernel arguments: floats in the compute dtype, integers as int64, constants unchanged."""
    floating = Float64 if compute is dtypes.float64 else float
    kinds = {bool: bool, int: Int64, float: floating, str: str}
    return tuple(kinds[value.__class__](value) for value in numbers)


def _row_kind(array: DeviceArray, compute: dtypes.dtype) -> dtypes.dtype:
    kind = dtypes.of(array.dtype)
    return compute if kind.is_floating_point else dtypes.int64


def _col_stride(array: DeviceArray, dim: int) -> int:
    return array.strides[dim] if array.ndim else 1


def _tile(
    x: DeviceArray, rows: int, cols: int, inner: bool, width: int, most_rows: int = _TILE
) -> tuple[int, int, int]:
    """Rows (at most `most_rows`) and columns of a tile, and warps; `width` values of 32 bits are held per element."""
    forced = forced_tile(rows, cols)
    if forced:
        return *forced, 4
    col_block = min(power_of_two(cols), _INTERPRETED_TILE)
    interpreted = min(power_of_two(rows), _INTERPRETED_TILE // col_block), col_block, 4
    return x.buffer.driver.pick(_compiled_tile(rows, cols, inner, width, most_rows), interpreted)


def _compiled_tile(rows: int, cols: int, inner: bool, width: int, most_rows: int) -> tuple[int, int, int]:
    if not inner:
        row_block = min(power_of_two(rows), 64)
        return row_block, min(power_of_two(cols), _TILE // width // row_block), 4
    longest = _LONGEST // width
    col_block = power_of_two(cols)
    if col_block > longest:
        return 1, longest // 2, 16 if longest > 4096 else 8
    row_block = 1 if col_block >= 1024 else min(power_of_two(rows), _TILE // width // col_block, most_rows)
    elements = row_block * col_block
    return row_block, col_block, 4 if elements <= _TILE else 8 if elements <= 8192 else 16


def contiguous(array: DeviceArray) -> DeviceArray:
    """The array if it is contiguous, else a contiguous copy."""
    if array.is_contiguous():
        return array
    copied = buffer.empty(array.shape, array.dtype, array.device)
    copy_into(copied, array)
    return copied
