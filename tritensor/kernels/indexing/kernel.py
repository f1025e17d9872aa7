"""The kernels of the indexing family: reading from and writing to places, value ranges, and finding nonzeros."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from ...memory import buffer, copies
from ...memory.array import DeviceArray
from ...runtime.launch import Int64, as_number, device_function, kernel, launch
from ...types import dtypes, layout
from ..addressing import block_index, collapse_dims, offset_of
from ..blocks import block_size

if TYPE_CHECKING:
    import triton.language as tl

_INT64 = np.dtype(np.int64)


@device_function
def place_of(position_ptr, offset, row_step, sizes, steps, mask):
    """The offset of the place whose coordinates are at `offset` of each row; negative ones count from the end."""
    place = tl.zeros_like(offset).to(tl.int64)
    for row in tl.static_range(len(sizes)):
        coordinate = tl.load(position_ptr + row * row_step + offset, mask=mask, other=0).to(tl.int64)
        place += tl.where(coordinate < 0, coordinate + sizes[row], coordinate) * steps[row]
    return place


@kernel
def move_kernel(
    out_ptr,
    position_ptr,
    source,
    row_step,
    shape,
    out_strides,
    source_strides,
    position_strides,
    sizes,
    steps,
    count,
    INTO: tl.constexpr,
    OUT_DTYPE: tl.constexpr,
    RANK: tl.constexpr,
    WIDE: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """Copy elements between a dense operand and indexed places, both traversed in the order of a walk.

    Args:
        source: a pointer, or a number; then `source_strides` is ().
        row_step: the stride between the coordinates of one element along successive indexed dimensions.
        shape: RANK sizes to walk, and for every operand the strides of the walk. At the dimensions of the positions the
            indexed operand has stride 0.
        sizes, steps: size and stride of each indexed dimension.
        INTO: the places are in `out`; otherwise they are in `source`.
    """
    index = block_index(BLOCK, WIDE)
    mask = index < count
    place = place_of(position_ptr, offset_of(index, position_strides, shape, RANK), row_step, sizes, steps, mask)
    out_offset = offset_of(index, out_strides, shape, RANK)
    if INTO:
        out_offset = out_offset + place
    if len(source_strides) == 0:
        value = source
    else:
        source_offset = offset_of(index, source_strides, shape, RANK)
        if not INTO:
            source_offset = source_offset + place
        value = tl.load(source + source_offset, mask=mask)
    tl.store(out_ptr + out_offset, value.to(OUT_DTYPE), mask=mask)


@dataclass(frozen=True)
class Walk:
    """The order of traversal: the shape of the walk, the indexed operand's strides in it, and where its places are.

    Attributes:
        shape: the sizes to walk; for `x[positions]` the result's.
        strides: the indexed operand's, 0 along the dimensions of the positions.
        positions, position_strides, row_step: the coordinates, their strides in the walk, and from one row to the next.
        sizes, steps: the indexed dimensions' sizes and strides.
        dims: the dimensions of the walk that the positions have.
        key_shape, key_strides: the dimensions of the indexed operand that distinguish destinations.
        key_base, key_steps: a destination's number in `key_shape`: strides of the walk's own coordinates along `dims`,
            and of the coordinates in the positions.
    """

    shape: tuple[int, ...]
    strides: tuple[int, ...]
    positions: DeviceArray
    position_strides: tuple[int, ...]
    row_step: int
    sizes: tuple[int, ...]
    steps: tuple[int, ...]
    dims: range
    key_shape: tuple[int, ...]
    key_strides: tuple[int, ...]
    key_base: tuple[int, ...]
    key_steps: tuple[int, ...]

    @classmethod
    def of_index(cls, x: DeviceArray, positions: DeviceArray, dims: tuple[int, ...]) -> Walk:
        """The walk over `x[positions]`, where row k of the positions is along dimension `dims[k]`."""
        start = dims[0] if dims == tuple(range(dims[0], dims[0] + len(dims))) else 0
        places = positions.shape[1:]
        rest = [dim for dim in range(x.ndim) if dim not in dims]
        before, after = rest[:start], rest[start:]
        sizes, steps = tuple(x.shape[dim] for dim in dims), tuple(x.strides[dim] for dim in dims)
        return cls(
            shape=(*(x.shape[dim] for dim in before), *places, *(x.shape[dim] for dim in after)),
            strides=(*(x.strides[dim] for dim in before), *(0,) * len(places), *(x.strides[dim] for dim in after)),
            positions=positions,
            position_strides=(*(0,) * len(before), *positions.strides[1:], *(0,) * len(after)),
            row_step=positions.strides[0],
            sizes=sizes,
            steps=steps,
            dims=range(start, start + len(places)),
            key_shape=sizes,
            key_strides=steps,
            key_base=(0,) * len(places),
            key_steps=layout.contiguous_strides(sizes),
        )

    @classmethod
    def of_gather(cls, x: DeviceArray, index: DeviceArray, dim: int) -> Walk:
        """The walk over an index of `x`'s rank, whose elements are coordinates along `dim`."""
        shape, strides = (x.shape, x.strides) if x.ndim else ((1,), (0,))
        dense = layout.contiguous_strides(shape)
        others = [axis != dim for axis in range(index.ndim)]
        return cls(
            shape=index.shape,
            strides=tuple(step * other for step, other in zip(strides, others, strict=False)),
            positions=index,
            position_strides=index.strides,
            row_step=0,
            sizes=(shape[dim],),
            steps=(strides[dim],),
            dims=range(index.ndim),
            key_shape=shape,
            key_strides=strides,
            key_base=tuple(step * other for step, other in zip(dense, others, strict=False)),
            key_steps=(dense[dim],),
        )


def move(walk: Walk, out: DeviceArray, source: Any, into: bool) -> None:
    """Copy the places of `source` to `out`; or, with `into`, copy `source` (array or number) to the places of `out`."""
    count = prod(walk.shape)
    if count == 0:
        return
    dense = source if into else out
    operands = [walk.strides, walk.position_strides]
    if isinstance(dense, DeviceArray):
        operands.append(spread(dense, walk.shape))
    shape, (own, along, *rest) = collapse_dims(walk.shape, operands)
    dense_steps = rest[0] if rest else ()
    block = block_size(out, 1024, interpreted=1 << 16, count=count)
    reach = [abs(step) * size for steps in (own, dense_steps) for step, size in zip(steps, shape, strict=False)]
    kind = dtypes.of(out.dtype)
    constants = {
        "INTO": into,
        "OUT_DTYPE": kind,
        "RANK": len(shape),
        "WIDE": max(count + block, *reach) >= 1 << 31,
        "BLOCK": block,
    }
    out_steps, source_steps = (own, dense_steps) if into else (dense_steps, own)
    value = source if isinstance(source, DeviceArray) else as_number(source, kind)
    sizes = tuple(Int64(size) for size in walk.sizes)
    places = (along, sizes, walk.steps, count)
    launch(
        move_kernel,
        (-(-count // block),),
        (out, walk.positions, value, walk.row_step, shape, out_steps, source_steps, *places),
        constants,
        out.device,
        name="put_places" if into else "take_places",
    )


def spread(array: DeviceArray, shape: tuple[int, ...]) -> tuple[int, ...]:
    """An array's strides when it is broadcast to a shape."""
    extra = len(shape) - array.ndim
    return (0,) * extra + tuple(0 if size == 1 else step for size, step in zip(array.shape, array.strides, strict=True))


# ---- ranges and nonzeros ------------------------------------------------------------------------------------------


@kernel
def range_kernel(out_ptr, x_ptr, shape, strides, count, blocks, RANK: tl.constexpr, BLOCK: tl.constexpr):
    """The smallest and the largest element of each block."""
    index = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    # lanes past the end read the last element again, which changes neither
    index = tl.minimum(index, count - 1)
    x = tl.load(x_ptr + offset_of(index, strides, shape, RANK)).to(tl.int64)
    tl.store(out_ptr + tl.program_id(0), tl.min(x, axis=0))
    tl.store(out_ptr + blocks + tl.program_id(0), tl.max(x, axis=0))


def device_range(x: DeviceArray) -> tuple[int, int]:
    """The smallest and the largest element of a nonempty integer array; the host waits for them."""
    count = x.size
    shape, (strides,) = collapse_dims(x.shape, [x.strides])
    block = block_size(x, 4096, interpreted=1 << 16)
    blocks = -(-count // block)
    out = buffer.empty((2, blocks), _INT64, x.device)
    launch(
        range_kernel,
        (blocks,),
        (out, x, shape, strides, count, blocks),
        {"RANK": len(shape), "BLOCK": block},
        x.device,
        name="index_range",
    )
    found = copies.to_host(out)
    return int(found[0].min()), int(found[1].max())


@kernel
def count_kernel(out_ptr, x_ptr, shape, strides, count, RANK: tl.constexpr, BLOCK: tl.constexpr):
    """Counts the elements of each block that are not zero."""
    index = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offset_of(index, strides, shape, RANK), mask=index < count, other=0)
    tl.store(out_ptr + tl.program_id(0), tl.sum((x != 0).to(tl.int32), axis=0))


@kernel
def coordinates_kernel(out_ptr, x_ptr, start_ptr, shape, strides, count, RANK: tl.constexpr, BLOCK: tl.constexpr):
    """The coordinates of each block's nonzero elements, from the row of the result that the block starts at."""
    index = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    mask = index < count
    x = tl.load(x_ptr + offset_of(index, strides, shape, RANK), mask=mask, other=0)
    found = x != 0
    row = tl.load(start_ptr + tl.program_id(0)) + tl.cumsum(found.to(tl.int64), axis=0) - 1
    rest = index
    for step in tl.static_range(RANK):
        size = shape[RANK - 1 - step]
        tl.store(out_ptr + row * RANK + (RANK - 1 - step), rest % size, mask=found)
        rest = rest // size


def device_nonzero(x: DeviceArray) -> DeviceArray:
    """The coordinates of the nonzero elements in row-major order, of shape (n, rank); the host waits for the count."""
    rank, count = x.ndim, x.size
    if count == 0:
        return buffer.empty((0, rank), _INT64, x.device)
    block = block_size(x, 1024, interpreted=1 << 14)
    blocks = -(-count // block)
    counts = buffer.empty((blocks,), _INT64, x.device)
    shape, strides = (x.shape, x.strides) if rank else ((1,), (0,))
    constants = {"RANK": len(shape), "BLOCK": block}
    launch(count_kernel, (blocks,), (counts, x, shape, strides, count), constants, x.device, name="count_nonzero")
    ends = np.cumsum(copies.to_host(counts))
    out = buffer.empty((int(ends[-1]), rank), _INT64, x.device)
    if out.size:
        starts = copies.from_host(ends - np.diff(ends, prepend=0), x.device)
        launch(
            coordinates_kernel, (blocks,), (out, x, starts, shape, strides, count), constants, x.device, name="nonzero"
        )
    return out
