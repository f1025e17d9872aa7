"""Running sums along a dimension."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from ... import dtypes, layout
from ...errors import ArgumentError
from ...memory import buffer
from ...memory.array import DeviceArray
from ...operator import Dtypes, Operator, Shapes
from ...rules import SUMS, asked_dtype, compute_dtype
from ...runtime.call import Call
from ...runtime.launch import kernel, launch
from ...tensor import Tensor
from ..addressing import collapse_dims, offset_of
from ..blocks import forced_tile, power_of_two
from ..pairs import is_complex, launch_by_parts
from .kernel import reach, state_dtype

if TYPE_CHECKING:
    import triton.language as tl

__all__ = ["cumsum"]

_TILE = 2048
_INTERPRETED_TILE = 1 << 14
# A row with more columns than this is cut into parts, unless rows alone fill the device.
_LONG = 8 * _TILE


class Scan(Operator):
    """An operator whose result at each place depends on all elements up to there along `dim`."""

    family = "scan"
    repeatable = True

    def prepare(self, call: Call) -> None:
        """Normalise the dimension."""
        (x,) = call.inputs
        if not isinstance(x, Tensor):
            raise ArgumentError(
                f"{self.name}(): argument 'input' (position 1) must be Tensor, not {x.__class__.__name__}"
            )
        call.metadata["dim"] = layout.normalize_dim(call.metadata["dim"], x.ndim)

    def resolve_dtypes(self, call: Call) -> Dtypes:
        """Integers and booleans are summed in int64; or `dtype=`, to which the input is converted first."""
        wanted = asked_dtype(call)
        compute, result = self.rule(self.name, call.inputs) if wanted is None else (compute_dtype(wanted), wanted)
        return compute, (result,)

    def allocate(self, call: Call) -> Shapes:
        """The input's shape."""
        return [(tuple(call.arrays[0].shape), call.results[0].numpy)]

    def launch(self, call: Call) -> None:
        """Scan every row, in parts if rows are few and long."""
        if call.compute.is_complex or is_complex(call.arrays[0]):
            launch_by_parts(call, dense=False)
            return
        launch_scan(call.outs[0], call.arrays[0], call.compute, call.metadata["dim"], call.metadata["reverse"])

    def calls(self, draw: Any) -> Iterator[tuple[Any, ...]]:
        """Each dimension, short and long ones, and empty tensors."""
        for dim, shape in (
            (-1, (4, 7)),
            (0, (5, 3)),
            (1, (2, 3, 4)),
            (0, ()),
            (-1, (3, 0)),
            (1, (0, 3)),
            (-1, (3, 1500)),
        ):
            yield [draw(shape) for _ in self.inputs], {"dim": dim}


def _cumsum(x, *, dim, dtype=None, reverse=False):
    """The sum of the elements up to each place along `dim` (from the end, when reverse)."""
    if not x.ndim:
        return x + np.zeros_like(x)
    if reverse:
        return np.flip(np.cumsum(np.flip(x, dim), dim, dtype=x.dtype), dim)
    return np.cumsum(x, dim, dtype=x.dtype)


cumsum = Scan("cumsum", _cumsum, SUMS)
cumsum.on_pairs = True
cumsum.gradient(lambda grad, dim, reverse: cumsum(grad, dim=dim, reverse=not reverse))


# ---- on a device ----------------------------------------------------------------------------------------------


@kernel
def scan_kernel(
    out_ptr,
    x_ptr,
    carry_ptr,
    out_strides,
    x_strides,
    shape,
    out_col_stride,
    x_col_stride,
    rows,
    cols,
    part,
    parts,
    COMPUTE: tl.constexpr,
    STATE: tl.constexpr,
    OUT_DTYPE: tl.constexpr,
    RANK: tl.constexpr,
    REVERSE: tl.constexpr,
    MODE: tl.constexpr,
    INDEX64: tl.constexpr,
    ROWS: tl.constexpr,
    COLS: tl.constexpr,
):
    """Running sums of `cols` elements, `rows` times; a program takes `part` columns of some rows.

    Args:
        carry_ptr: [rows, parts + 1], contiguous. When MODE is "totals": written, a 0 and then each part's sum. When
            MODE is "parts": read, the sum before each part. Not used when MODE is "whole".
        out_strides, x_strides, shape: from which a row's number gives its offset.
        REVERSE: from the last column to the first.
    """
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    number = tl.program_id(1)
    span = tl.arange(0, COLS)
    if INDEX64:
        row = row.to(tl.int64)
        number = number.to(tl.int64)
        span = span.to(tl.int64)
    start = number * part
    stop = tl.minimum(start + part, cols)
    row_mask = row < rows
    x_row = (x_ptr + offset_of(row, x_strides, shape, RANK))[:, None]
    out_row = (out_ptr + offset_of(row, out_strides, shape, RANK))[:, None]
    carry = (carry_ptr + row * (parts + 1) + number)[:, None]
    # of shape (rows, 1): Triton 3.6 generates invalid code for row sums that are accumulated in a loop
    total = tl.zeros((ROWS, 1), STATE)
    if MODE == "parts":
        total = tl.load(carry, mask=row_mask[:, None], other=0)
    for first in range(start, stop, COLS):
        col = first + span
        mask = row_mask[:, None] & (col < stop)[None, :]
        if REVERSE:
            col = cols - 1 - col
        x = tl.load(x_row + (col * x_col_stride)[None, :], mask=mask, other=0).to(COMPUTE).to(STATE)
        if MODE != "totals":
            running = tl.cumsum(x, 1) + total
            tl.store(out_row + (col * out_col_stride)[None, :], running.to(OUT_DTYPE), mask=mask)
        total += tl.sum(x, 1, keep_dims=True)
    if MODE == "totals":
        tl.store(carry + 1, total, mask=row_mask[:, None])
        if number == 0:
            tl.store(carry, tl.zeros_like(total), mask=row_mask[:, None])


def launch_scan(out: DeviceArray, x: DeviceArray, compute: dtypes.dtype, dim: int, reverse: bool = False) -> None:
    """Running sums of `x` along `dim` into `out`, of the same shape."""
    if x.size == 0:
        return
    kept = [each for each in range(x.ndim) if each != dim]
    sizes, steps = collapse_dims(
        [x.shape[each] for each in kept], [[a.strides[each] for each in kept] for a in (out, x)]
    )
    cols = x.shape[dim] if x.ndim else 1
    rows = x.size // cols
    col_steps = [array.strides[dim] if array.ndim else 1 for array in (out, x)]
    row_block, col_block, part = _tile(x, rows, cols, col_steps[1] == 1 or steps[1][-1] != 1)
    state = state_dtype(compute)
    parts = -(-cols // part)
    carry = buffer.empty((rows, parts + 1), state.numpy, x.device) if parts > 1 else out

    def run(mode: str) -> None:
        launch(
            scan_kernel,
            (-(-rows // row_block), parts),
            (out, x, carry, steps[0], steps[1], sizes, *col_steps, rows, cols, part, parts),
            {
                "COMPUTE": compute,
                "STATE": state,
                "OUT_DTYPE": dtypes.of(out.dtype),
                "RANK": len(sizes),
                "REVERSE": reverse,
                "MODE": mode,
                "INDEX64": max(reach(x), reach(out), cols) + _INTERPRETED_TILE >= 1 << 31,
                "ROWS": row_block,
                "COLS": col_block,
            },
            x.device,
            name=f"cumsum_{mode}",
        )

    if parts == 1:
        run("whole")
        return
    run("totals")
    launch_scan(carry, carry, state, 1)  # in place: each program reads what it writes before it writes it
    run("parts")


def _tile(x: DeviceArray, rows: int, cols: int, inner: bool) -> tuple[int, int, int]:
    """Rows and columns of a tile, and columns per part."""
    driver = x.buffer.driver
    forced = forced_tile(rows, cols)
    if forced:
        row_block, col_block = forced
        return row_block, col_block, cols if cols <= 4 * col_block else 2 * col_block
    tile = driver.pick(_TILE, _INTERPRETED_TILE)
    if inner:
        col_block = min(power_of_two(cols), tile)
        row_block = min(power_of_two(rows), tile // col_block)
    else:
        row_block = min(power_of_two(rows), 64)
        col_block = min(power_of_two(cols), tile // row_block)
    enough = driver.properties(x.device.index).multi_processor_count * 4  # type: ignore[arg-type]
    programs = -(-rows // row_block)
    if cols <= _LONG or programs * 2 > enough:
        return row_block, col_block, cols
    wanted = -(-cols * programs // enough)
    return row_block, col_block, -(-max(wanted, 4 * col_block) // col_block) * col_block
