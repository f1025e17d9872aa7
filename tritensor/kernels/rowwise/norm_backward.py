"""The backward kernel of layer and root-mean-square normalisation: all gradients from one read of each row.

A program takes a range of rows and keeps the sums over them for the parameters' gradients in registers; a column sum
adds the programs' sums. The gradient and the input are read once, where a kernel for the rows and a reduction over the
columns would read them twice.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ...memory import buffer
from ...memory.array import DeviceArray
from ...runtime.launch import kernel, launch
from ...types import dtypes
from ..addressing import in_units, unit_of
from ..blocks import block_size, power_of_two
from ..reduction.family import Parts
from ..reduction.kernel import reach, reduce_arrays
from ..reduction.sums import add, fold_sum, zero
from .kernel import contiguous

if TYPE_CHECKING:
    import triton.language as tl

# Bytes of the longest row, in the compute dtype, that fits into registers beside the two sums: five values for each of
# 16 float32 elements a thread. 8192 float64 elements spilled 320 to 720 bytes a thread.
_LONGEST = 32 << 10
# Elements of a tile: 8 a thread with 4 warps.
_TILE = 1024
_INTERPRETED_TILE = 1 << 16
# Warps per multiprocessor that keep its memory pipeline full; each program writes a row of partial sums.
_WARPS = 32

SUMS = Parts(fold_sum, add, zero)


@kernel
def norm_backward_kernel(
    x_gradient_ptr,
    sums,
    grad_ptr,
    x_ptr,
    centres,
    rstd_ptr,
    weights,
    grad_stride,
    x_stride,
    rows,
    cols,
    part,
    COMPUTE: tl.constexpr,
    OUT_DTYPE: tl.constexpr,
    UNITS: tl.constexpr,
    INDEX64: tl.constexpr,
    ROWS: tl.constexpr,
    COLS: tl.constexpr,
):
    """The gradient of the input, and the sums over `part` rows for the parameters' gradients.

    Args:
        x_gradient_ptr: rows times cols, contiguous.
        sums: pointers to the programs' sums, [programs, cols] each: of grad times the normalised input, and, where
            there are two, of grad.
        grad_ptr, x_ptr: rows of contiguous elements, grad_stride and x_stride apart.
        centres: pointers to each row's mean and to what it lost in rounding, for layer normalisation; or ().
        rstd_ptr: what each row is multiplied by.
        weights: a tuple of a pointer to the scale of each column, or an empty one.
        UNITS: divisors of the offsets of rows, and of `cols` (see `in_units`).
        ROWS, COLS: the tile; no row is longer. The grid is (ceil(rows / part),).
    """
    start = tl.program_id(0) * part
    stop = tl.minimum(start + part, rows)
    col = tl.arange(0, COLS)
    col_mask = (col < in_units(cols, UNITS[1]))[None, :]
    weight = 1.0
    if len(weights) > 0:
        weight = tl.load(weights[0] + col[None, :], mask=col_mask, other=0).to(COMPUTE)
    products = tl.zeros((ROWS, COLS), COMPUTE)
    total = tl.zeros((ROWS, COLS), COMPUTE)
    for first in range(start, stop, ROWS):
        row = first + tl.arange(0, ROWS)
        if INDEX64:
            row = row.to(tl.int64)
        row_mask = row < stop
        mask = row_mask[:, None] & col_mask
        places = in_units(row * grad_stride, UNITS[0])[:, None] + col[None, :]
        grad = tl.load(grad_ptr + places, mask=mask, other=0).to(COMPUTE)
        places = in_units(row * x_stride, UNITS[0])[:, None] + col[None, :]
        normal = tl.load(x_ptr + places, mask=mask, other=0).to(COMPUTE)
        rstd = tl.load(rstd_ptr + row, mask=row_mask, other=0)[:, None]
        for position in tl.static_range(len(centres)):
            normal = normal - tl.load(centres[position] + row, mask=row_mask, other=0)[:, None]
        normal = normal * rstd
        products += grad * normal
        if len(sums) > 1:
            total += grad
        scaled = grad * weight
        change = scaled - normal * (tl.sum(scaled * normal, 1) / cols)[:, None]
        if len(centres) > 0:
            change = change - (tl.sum(scaled, 1) / cols)[:, None]
        places = in_units(row * cols, UNITS[0])[:, None] + col[None, :]
        tl.store(x_gradient_ptr + places, (change * rstd).to(OUT_DTYPE), mask=mask)
    place = in_units(tl.program_id(0) * cols, UNITS[1]) + col
    mask = col < in_units(cols, UNITS[1])
    tl.store(sums[0] + place, tl.sum(products, 0), mask=mask)
    if len(sums) > 1:
        tl.store(sums[1] + place, tl.sum(total, 0), mask=mask)


def fits(x: DeviceArray, compute: dtypes.dtype) -> bool:
    """True if the kernel takes rows of this length (and there are any)."""
    return x.size > 0 and x.shape[1] * compute.itemsize <= _LONGEST


def launch_norm_backward(
    outs: Sequence[DeviceArray],
    grad: DeviceArray,
    x: DeviceArray,
    centres: Sequence[DeviceArray],
    rstd: DeviceArray,
    weight: DeviceArray | None,
    compute: dtypes.dtype,
    name: str,
) -> None:
    """The gradients of rows that `fits` allows, of the scale and, where `outs` has a third, of the shift."""
    rows, cols = x.shape
    driver = x.buffer.driver
    grad, x = (array if array.strides[1] == 1 else contiguous(array) for array in (grad, x))
    tile = block_size(x, _TILE, interpreted=_INTERPRETED_TILE)
    col_block = power_of_two(cols)
    row_block = min(power_of_two(rows), max(1, tile // col_block))
    warps = 16 if col_block > 4096 else 8 if col_block > 2048 else 4
    most = driver.properties(x.device.index).multi_processor_count * _WARPS // warps
    # at least four tiles per program, so that the partial sums are a small part of the memory traffic
    programs = max(1, min(most, rows // (4 * row_block)))
    part = -(-rows // programs)
    programs = -(-rows // part)
    sums = [buffer.empty((programs, cols), compute.numpy, x.device) for _ in outs[1:]]
    steps = (grad.strides[0], x.strides[0]) if rows > 1 else (0, 0)
    launch(
        norm_backward_kernel,
        (programs,),
        (
            outs[0],
            tuple(sums),
            grad,
            x,
            tuple([contiguous(each) for each in centres]),
            contiguous(rstd),
            () if weight is None else (contiguous(weight),),
            *steps,
            rows,
            cols,
            part,
        ),
        {
            "COMPUTE": compute,
            "OUT_DTYPE": dtypes.of(outs[0].dtype),
            "UNITS": (unit_of([*steps, cols]), unit_of([cols])),
            "INDEX64": max(reach(grad), reach(x), rows * cols) + _INTERPRETED_TILE >= 1 << 31,
            "ROWS": row_block,
            "COLS": col_block,
        },
        x.device,
        warps=warps,
        name=f"norm_backward_{name}",
    )
    for out, partial in zip(outs[1:], sums, strict=True):
        reduce_arrays(SUMS, (out,), (partial,), (0,), compute, f"{name}_columns")
