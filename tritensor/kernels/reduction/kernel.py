"""The kernel of all reductions, and its launch.

The kept and the reduced dimensions of a tensor are each collapsed on the host to as few dimensions as the strides
allow, so the kernel computes `rows` results of `cols` elements each, at any strides: no reduction copies its input. A
program takes a tile of rows and loops over the columns; where there are too few rows to fill the device, each row is
cut into parts, whose states a second launch combines. There are no atomics: results on one device are always equal in
every bit.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ...memory import buffer
from ...memory.array import DeviceArray
from ...runtime.launch import DeviceFunction, Float64, device_function, kernel, launch
from ...types import dtypes
from ..addressing import collapse_dims, in_units, offset_of, unit_of
from ..blocks import forced_tile, power_of_two

if TYPE_CHECKING:
    import triton.language as tl

# Elements of one program's tile: with 4 warps 32 registers a thread for each value of a state.
_TILE = 4096
# Rows with at least this many columns have one program each.
_LONG = 1024
# Programs per multiprocessor that keep its memory pipeline full.
_PROGRAMS = 4
# A simulated tile: each step of the interpreter costs 10 us whatever the tile's size.
_INTERPRETED_TILE = 1 << 16


@device_function
def element_state(values, index, numbers):
    """The default START: the state of an element is the element."""
    return values


@device_function
def bare_state(state, count, numbers):
    """The default FINISH: the result of a state is the state."""
    return state


@device_function
def combine_columns(
    state,
    ins,
    numbers,
    row_offsets,
    shift,
    row_mask,
    col,
    stop,
    reduced_strides,
    reduced_shape,
    ROWS: tl.constexpr,
    COLS: tl.constexpr,
    MASKED: tl.constexpr,
    START: tl.constexpr,
    COMBINE: tl.constexpr,
    IDENTITY: tl.constexpr,
    STATE: tl.constexpr,
    COMPUTE: tl.constexpr,
    REDUCED_RANK: tl.constexpr,
    UNITS: tl.constexpr,
):
    """A tile's states combined with those of the columns `col`; MASKED where some may lie beyond `stop`."""
    mask = tl.broadcast_to(row_mask[:, None], (ROWS, COLS))
    if MASKED:
        mask = mask & (col < stop)[None, :]
    values = ()
    for position in tl.static_range(len(ins)):
        offset = offset_of(col, reduced_strides[position], reduced_shape, REDUCED_RANK, UNITS[2])
        offset = in_units(offset, UNITS[1])
        value = tl.load(ins[position] + row_offsets[position][:, None] + offset[None, :], mask=mask)
        values = values + (value.to(COMPUTE[position]),)  # type: ignore[assignment]  # noqa: RUF005
    if len(shift) > 0:
        values = values + (shift[0][:, None],)  # type: ignore[assignment]  # noqa: RUF005
    fresh = START(values, col[None, :], numbers)
    merged = ()
    for position in tl.static_range(len(STATE)):
        one = fresh[position].to(STATE[position])
        if MASKED:
            one = tl.where(mask, one, tl.full((ROWS, COLS), IDENTITY[position], STATE[position]))
        merged = merged + (tl.broadcast_to(one, (ROWS, COLS)),)  # type: ignore[assignment]  # noqa: RUF005
    result = COMBINE(*state, *merged)
    if len(STATE) == 1:
        return (result,)
    else:
        return result


@kernel
def reduction_kernel(
    outs,
    ins,
    numbers,
    kept_strides,
    kept_shape,
    reduced_strides,
    reduced_shape,
    rows,
    cols,
    part,
    count,
    START: tl.constexpr,
    COMBINE: tl.constexpr,
    FOLD: tl.constexpr,
    FINISH: tl.constexpr,
    IDENTITY: tl.constexpr,
    STATE: tl.constexpr,
    COMPUTE: tl.constexpr,
    OUT_DTYPES: tl.constexpr,
    KEPT_RANK: tl.constexpr,
    REDUCED_RANK: tl.constexpr,
    INDEX64: tl.constexpr,
    UNITS: tl.constexpr,
    SHIFT: tl.constexpr,
    ROWS: tl.constexpr,
    COLS: tl.constexpr,
):
    """Reduce `cols` elements to one, `rows` times.

    Args:
        outs: a tuple of pointers to contiguous results, [parts, rows] of them.
        ins: a tuple of pointers: the inputs, or the components of the parts' states.
        numbers: a tuple of numbers that START and FINISH take.
        kept_strides, kept_shape: the strides (in elements) of each input along the kept dimensions, and their sizes,
            from which a row's number gives its offset.
        reduced_strides, reduced_shape: the same for columns.
        part: columns per program; the grid is (ceil(rows / ROWS), ceil(cols / part)).
        count: the number of elements reduced to one result, for FINISH.
        START: `(values, index, numbers) -> state` of one element.
        COMBINE: `(*state, *state) -> state`; one value by itself where a state has one.
        FOLD: `(state, AXIS) -> state`, a tile combined along one axis.
        FINISH: `(state, count, numbers) -> results`, one per pointer of outs.
        IDENTITY, STATE: the values and dtypes of the state of no elements.
        COMPUTE: the dtype to which each input is converted.
        OUT_DTYPES: the dtype in which each result is stored.
        INDEX64: whether offsets or counts need 64 bits.
        UNITS: see `_units`.
        SHIFT: the input of which each row's first element is a further value for START, and the last of the state that
            FINISH takes; -1 for none.
        ROWS, COLS: the tile.
    """
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    start = tl.program_id(1)
    col = tl.arange(0, COLS)
    if INDEX64:
        row = row.to(tl.int64)
        col = col.to(tl.int64)
        start = start.to(tl.int64)
    part_index = start
    start = in_units(start * part, UNITS[0])
    stop = in_units(tl.minimum(start + part, cols), UNITS[4])
    row_mask = row < in_units(rows, UNITS[3])
    row_offsets = ()
    for position in tl.static_range(len(ins)):
        offset = in_units(offset_of(row, kept_strides[position], kept_shape, KEPT_RANK), UNITS[0])
        row_offsets = row_offsets + (offset,)  # type: ignore[assignment]  # noqa: RUF005
    shift = ()
    if SHIFT >= 0:
        first = tl.load(ins[SHIFT] + row_offsets[SHIFT], mask=row_mask & (row - row < cols), other=0).to(COMPUTE[SHIFT])
        # from which no finite number has an infinite distance
        shift = (tl.where(tl.abs(first) < 1e30, first, tl.zeros_like(first)),)  # type: ignore[assignment]
    state = ()
    for position in tl.static_range(len(STATE)):
        state = state + (tl.full((ROWS, COLS), IDENTITY[position], STATE[position]),)  # type: ignore[assignment]  # noqa: RUF005
    whole = start + (stop - start) // COLS * COLS
    for first in range(start, whole, COLS):
        state = combine_columns(
            state,
            ins,
            numbers,
            row_offsets,
            shift,
            row_mask,
            first + col,
            stop,
            reduced_strides,
            reduced_shape,
            ROWS,
            COLS,
            False,
            START,
            COMBINE,
            IDENTITY,
            STATE,
            COMPUTE,
            REDUCED_RANK,
            UNITS,
        )
    if whole < stop:
        state = combine_columns(
            state,
            ins,
            numbers,
            row_offsets,
            shift,
            row_mask,
            whole + col,
            stop,
            reduced_strides,
            reduced_shape,
            ROWS,
            COLS,
            True,
            START,
            COMBINE,
            IDENTITY,
            STATE,
            COMPUTE,
            REDUCED_RANK,
            UNITS,
        )
    folded = FOLD(state, 1)
    if SHIFT >= 0:
        folded = folded + (shift[0],)  # type: ignore[misc]  # noqa: RUF005
    results = FINISH(folded, count, numbers)
    for position in tl.static_range(len(outs)):
        pointer = outs[position] + part_index * rows + row
        tl.store(pointer, results[position].to(OUT_DTYPES[position]), mask=row_mask)


def state_dtype(compute: dtypes.dtype) -> dtypes.dtype:
    """The dtype that holds a state of elements of this dtype: narrow integers and booleans are held in 32 bits."""
    if compute.category == dtypes.FLOATING or compute.itemsize >= 4:
        return compute
    return dtypes.int32


def lowest(compute: dtypes.dtype) -> Any:
    """The number that is below all others of a dtype, for the identity of a maximum."""
    return float("-inf") if compute.is_floating_point else int(np.iinfo(state_dtype(compute).numpy).min)


def highest(compute: dtypes.dtype) -> Any:
    """The number that is above all others of a dtype, for the identity of a minimum."""
    return float("inf") if compute.is_floating_point else int(np.iinfo(state_dtype(compute).numpy).max)


def launch_reduction(
    operator: Any, outs: Sequence[DeviceArray], x: DeviceArray, compute: dtypes.dtype, metadata: dict[str, Any]
) -> None:
    """Run a reduction's kernel, once or in two stages."""
    reduce_arrays(operator.parts(metadata), outs, (x,), metadata["dim"], compute, operator.name)


def reduce_arrays(
    parts: Any,
    outs: Sequence[DeviceArray],
    ins: Sequence[DeviceArray],
    dims: Sequence[int],
    compute: dtypes.dtype,
    name: str,
) -> None:
    """Reduce arrays of one shape together, along `dims`, into contiguous `outs`; all are converted to `compute`."""
    if outs[0].size == 0:
        return
    shape = ins[0].shape
    kept = [dim for dim in range(len(shape)) if dim not in dims]
    rows = outs[0].size
    cols = ins[0].size // rows
    kept_shape, kept_strides = _collapse(shape, ins, kept)
    reduced_shape, reduced_strides = _collapse(shape, ins, dims)
    numbers = tuple(Float64(value) if compute is dtypes.float64 else float(value) for value in parts.numbers)
    identity = parts.identity(compute)
    constants = {
        "COMBINE": parts.combine,
        "FOLD": parts.fold,
        "IDENTITY": tuple(value for value, _ in identity),
        "STATE": tuple(kind for _, kind in identity),
    }
    inner = reduced_strides[0][-1] == 1 or kept_strides[0][-1] != 1
    row_block, col_block, part, warps = _tile(ins[0], rows, cols, inner, len(ins) + len(identity) - 1)
    splits = max(1, -(-cols // part))
    finish: DeviceFunction = parts.finish or bare_state
    results: Sequence[DeviceArray] = outs
    if splits > 1:
        kinds = [kind for _, kind in identity] + [compute] * parts.shifted
        results = [buffer.empty((splits, rows), kind.numpy, outs[0].device) for kind in kinds]
        finish = bare_state
    wide = max(max(reach(array) for array in ins), splits * rows, cols) + _INTERPRETED_TILE >= 1 << 31
    launch(
        reduction_kernel,
        (-(-rows // row_block), splits),
        (
            tuple(results),
            tuple(ins),
            numbers,
            kept_strides,
            kept_shape,
            reduced_strides,
            reduced_shape,
            rows,
            cols,
            part,
            cols,
        ),
        {
            **constants,
            "START": parts.start or element_state,
            "FINISH": finish,
            "COMPUTE": (compute,) * len(ins),
            "OUT_DTYPES": _kinds(results),
            "KEPT_RANK": len(kept_shape),
            "REDUCED_RANK": len(reduced_shape),
            "INDEX64": wide,
            "UNITS": _units(kept_strides, reduced_strides, reduced_shape, rows, cols, part),
            "SHIFT": 0 if parts.shifted else -1,
            "ROWS": row_block,
            "COLS": col_block,
        },
        outs[0].device,
        warps=warps,
        name=f"reduction_{name}",
    )
    if splits > 1:
        _combine_parts(name, outs, results, numbers, cols, constants, parts.finish or bare_state)


def _combine_parts(
    name: str,
    outs: Sequence[DeviceArray],
    states: Sequence[DeviceArray],
    numbers: tuple[Any, ...],
    count: int,
    constants: dict[str, Any],
    finish: DeviceFunction,
) -> None:
    """The second stage: combine the states of a row's parts into the row's result."""
    splits, rows = states[0].shape
    row_block, col_block, part, warps = _tile(states[0], rows, splits, rows == 1, len(states), whole=True)
    each = len(states)
    launch(
        reduction_kernel,
        (-(-rows // row_block), 1),
        (
            tuple(outs),
            tuple(states),
            numbers,
            ((1,),) * each,
            (rows,),
            ((rows,),) * each,
            (splits,),
            rows,
            splits,
            part,
            count,
        ),
        {
            **constants,
            "START": element_state,
            "FINISH": finish,
            "COMPUTE": _kinds(states),
            "OUT_DTYPES": _kinds(outs),
            "KEPT_RANK": 1,
            "REDUCED_RANK": 1,
            "INDEX64": splits * rows >= 1 << 31,
            "UNITS": (1, 1, 1, 1, 1),
            "SHIFT": each - 1 if each > len(constants["STATE"]) else -1,
            "ROWS": row_block,
            "COLS": col_block,
        },
        outs[0].device,
        warps=warps,
        name=f"reduction_{name}_parts",
    )


def _units(
    kept: Sequence[Sequence[int]],
    reduced: Sequence[Sequence[int]],
    reduced_shape: Sequence[int],
    rows: int,
    cols: int,
    part: int,
) -> tuple[int, ...]:
    """The divisors, in this order, of the offsets of rows and parts; the offsets of columns; the size of their inner
    dimension and the other strides; `rows`; the ends of parts. See `in_units`."""
    return (
        unit_of([*(step for steps in kept for step in steps), part if part < cols else 0]),
        unit_of([step for steps in reduced for step in steps]),
        unit_of([reduced_shape[-1], *(step for steps in reduced for step in steps[:-1])]),
        unit_of([rows]),
        unit_of([cols, part]),
    )


def _kinds(arrays: Sequence[DeviceArray]) -> tuple[dtypes.dtype, ...]:
    return tuple(dtypes.of(array.dtype) for array in arrays)


def reach(array: DeviceArray) -> int:
    """The distance in elements between an array's first and last element in memory."""
    return sum((size - 1) * abs(step) for size, step in zip(array.shape, array.strides, strict=True))


def _collapse(
    shape: Sequence[int], arrays: Sequence[DeviceArray], dims: Sequence[int]
) -> tuple[tuple[int, ...], tuple[tuple[int, ...], ...]]:
    """Collapse some of the dimensions that arrays share: the sizes, and the strides of each array."""
    sizes = [shape[dim] for dim in dims]
    if 0 in sizes or set(sizes) <= {1}:  # at most one element, at a place that the compiler may know is aligned
        return (1,), ((0,),) * len(arrays)
    return collapse_dims(sizes, [[array.strides[dim] for dim in dims] for array in arrays])


def _tile(
    x: DeviceArray, rows: int, cols: int, inner: bool, width: int, whole: bool = False
) -> tuple[int, int, int, int]:
    """Rows and columns of a tile, columns per program, and warps.

    Args:
        inner: neighbouring columns are adjacent in memory; otherwise neighbouring rows are.
        width: values in registers for each element of a tile.
        whole: rows must not be cut into parts.
    """
    driver = x.buffer.driver
    forced = forced_tile(rows, cols)
    tile = driver.pick(_TILE // 2 if width > 1 else _TILE, _INTERPRETED_TILE)
    if forced:
        row_block, col_block = forced
    elif inner:
        col_block = min(power_of_two(cols), tile)
        most = tile // col_block
        row_block = min(power_of_two(rows), driver.pick(1 if cols >= _LONG else most, most))
    else:
        row_block = min(power_of_two(rows), driver.pick(128, tile))
        col_block = min(power_of_two(cols), tile // row_block)
    part = max(cols, 1)
    programs = -(-rows // row_block)
    enough = driver.properties(x.device.index).multi_processor_count * _PROGRAMS
    if not whole and cols > 2 * col_block and programs * 2 <= enough:
        wanted = -(-cols * programs // enough)
        part = -(-max(wanted, 2 * col_block) // col_block) * col_block
    return row_block, col_block, part, 8 if row_block * col_block > 4096 else 4
