"""Sums, products and extremes at indexed places, with the same bits on every run: places are sorted by destination,
then equal ones are folded.

What is said of sums holds for all of them. A program reads a block of sorted places, and a segmented scan sums the
values of each destination. A destination whose places are all in one block is then complete. For one that spans blocks,
each block stores its part of the sum (for its first and its last destination), and a second launch adds these parts, 32
blocks at a time. No program waits for another, and the work depends only on the number of places: a program that added
the places of one destination one after another needed a step for each place of padding in a batch.
"""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from ...memory import buffer
from ...memory.array import DeviceArray
from ...runtime.launch import Int64, as_number, device_function, kernel, launch
from ...types import dtypes, layout
from ..addressing import block_index, collapse_dims, offset_of
from ..blocks import block_size, forced_block, power_of_two
from ..elementwise.maximum import larger, smaller
from ..reduction.sums import add, multiply
from .kernel import Walk, place_of, spread
from .sorting_kernel import stable_order

if TYPE_CHECKING:
    import triton.language as tl

# Elements of a block: 16 a thread with 4 warps, each a sum and a flag.
_TILE = 2048
# Columns of a block of rows: 512 bytes of float32.
_WIDTH = 128
# Blocks whose parts are added at once.
_JOINED = 32


@kernel
def keys_kernel(
    key_ptr,
    position_ptr,
    row_step,
    shape,
    position_strides,
    base_strides,
    sizes,
    steps,
    count,
    RANK: tl.constexpr,
    WIDE: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """The destination of each place as one number, the sort key."""
    index = block_index(BLOCK, WIDE)
    mask = index < count
    place = place_of(position_ptr, offset_of(index, position_strides, shape, RANK), row_step, sizes, steps, mask)
    tl.store(key_ptr + index, place + offset_of(index, base_strides, shape, RANK), mask=mask)


def _folds(fold: Any) -> tuple[Any, Any, Any]:
    """How two values are folded, runs of places along the first dimension, and a column."""

    @device_function
    def unless_new(total, new, other_total, other_new):
        """Of two neighbouring runs of places, of which the second may begin a new destination."""
        return tl.where(other_new > 0, other_total, fold(total, other_total)), new | other_new

    @device_function
    def along(total, new):
        return tl.associative_scan((total, new), 0, unless_new)

    @device_function
    def column(values):
        return tl.reduce(values, 0, fold)

    return fold, along, column


@device_function
def _alone(total, new):
    """Each place a run of its own, of which the last one of a destination is kept."""
    return total, new * 0 + 1


_sum = device_function(lambda values: tl.sum(values, 0))

# The device functions, and what changes nothing: an extreme taken twice is the same.
_FOLDS = {
    "sum": (*_folds(add)[:2], _sum, 0),
    "prod": (*_folds(multiply), 1),
    "amin": (*_folds(smaller), None),
    "amax": (*_folds(larger), None),
    "last": (add, _alone, _sum, 0),
}


@kernel
def segment_sums_kernel(
    out_ptr,
    head_ptr,
    tail_ptr,
    key_ptr,
    order_ptr,
    source,
    count,
    width,
    shape,
    source_strides,
    rest_shape,
    rest_source_strides,
    rest_out_strides,
    sizes,
    steps,
    FOLD: tl.constexpr,
    SCAN: tl.constexpr,
    OWN: tl.constexpr,
    TOTAL: tl.constexpr,
    OUT_DTYPE: tl.constexpr,
    RANK: tl.constexpr,
    REST_RANK: tl.constexpr,
    WIDE: tl.constexpr,
    BLOCK_P: tl.constexpr,
    BLOCK_R: tl.constexpr,
):
    """Add the values of a block of sorted places to the destinations complete in it, and store the parts of others.

    Args:
        head_ptr, tail_ptr: what a block adds to the destination of the block before it, and to the one that
            continues in the next block: [blocks, width] each, written where there is one.
        key_ptr, order_ptr: the destinations in rising order, and the place in the walk that each came from.
        source: a pointer, or a number; then its strides are ().
        width: elements of the dimensions that are not indexed (`rest_shape`).
        sizes, steps: a key is a coordinate in `sizes`, and the element of `out` at `steps`.
        FOLD, SCAN: how two values are folded, and runs of places.
        OWN: the element of `out` is one of the values.
        WIDE: offsets need 64 bits. The grid is (blocks * ceil(width / BLOCK_R),): its other dimensions would end at
            65535 programs.
    """
    across = tl.cdiv(width, BLOCK_R)
    block = (tl.program_id(0) // across).to(tl.int64)
    position = block * BLOCK_P + tl.arange(0, BLOCK_P)
    rest = tl.program_id(0) % across * BLOCK_R + tl.arange(0, BLOCK_R)
    if WIDE:
        rest = rest.to(tl.int64)
    inside = position < count
    rest_mask = (rest < width)[None, :]
    key = tl.load(key_ptr + position, mask=inside, other=-1)
    before = tl.load(key_ptr + position - 1, mask=inside & (position > 0), other=-1)
    after = tl.load(key_ptr + position + 1, mask=position + 1 < count, other=-1)
    origin = tl.load(order_ptr + position, mask=inside, other=0)
    mask = inside[:, None] & rest_mask
    if len(source_strides) == 0:
        value = tl.where(mask, source, 0)
    else:
        offset = offset_of(origin.to(tl.int64) if WIDE else origin, source_strides, shape, RANK)[:, None]
        offset = offset + offset_of(rest, rest_source_strides, rest_shape, REST_RANK)[None, :]
        value = tl.load(source + offset, mask=mask, other=0)
    new = tl.broadcast_to((key != before).to(tl.int32)[:, None], (BLOCK_P, BLOCK_R))
    total, begun = SCAN(value.to(TOTAL), new)
    ends = (inside & (key != after))[:, None]
    last = ((position == (block + 1) * BLOCK_P - 1) & inside)[:, None]
    whole = ends & (begun > 0) & rest_mask
    out_block = out_ptr + offset_of(key.to(tl.int64) if WIDE else key, steps, sizes, len(sizes))[:, None]
    out_block = out_block + offset_of(rest, rest_out_strides, rest_shape, REST_RANK)[None, :]
    result = total
    if OWN:
        result = FOLD(tl.load(out_block, mask=whole, other=0).to(TOTAL), total)
    tl.store(out_block, result.to(OUT_DTYPE), mask=whole)
    # at most one element of each column is not zero, so the sum selects it
    nothing = tl.zeros_like(total)
    head = (ends | last) & (begun == 0)
    tail = last & (begun > 0) & (ends == 0)
    parts = block * width + rest
    tl.store(
        head_ptr + parts,
        tl.sum(tl.where(head, total, nothing), 0),
        mask=(rest < width) & (tl.max(head.to(tl.int32), 0) > 0),
    )
    tl.store(
        tail_ptr + parts,
        tl.sum(tl.where(tail, total, nothing), 0),
        mask=(rest < width) & (tl.max(tail.to(tl.int32), 0) > 0),
    )


@kernel
def join_segments_kernel(
    out_ptr,
    head_ptr,
    tail_ptr,
    key_ptr,
    count,
    blocks,
    width,
    rest_shape,
    rest_out_strides,
    sizes,
    steps,
    FOLD: tl.constexpr,
    ALL: tl.constexpr,
    NEUTRAL: tl.constexpr,
    OWN: tl.constexpr,
    TOTAL: tl.constexpr,
    OUT_DTYPE: tl.constexpr,
    REST_RANK: tl.constexpr,
    WIDE: tl.constexpr,
    BLOCK_P: tl.constexpr,
    BLOCK_R: tl.constexpr,
    JOINED: tl.constexpr,
):
    """Add the parts of a destination that begins in one block and continues in others; a program for each block.

    The arguments are those of `segment_sums_kernel`; `blocks` is how many blocks it had.
    """
    across = tl.cdiv(width, BLOCK_R)
    block = (tl.program_id(0) // across).to(tl.int64)
    rest = tl.program_id(0) % across * BLOCK_R + tl.arange(0, BLOCK_R)
    if WIDE:
        rest = rest.to(tl.int64)
    rest_mask = rest < width
    key = tl.load(key_ptr + tl.minimum((block + 1) * BLOCK_P, count) - 1)
    after = tl.load(key_ptr + (block + 1) * BLOCK_P, mask=(block + 1) * BLOCK_P < count, other=-1)
    before = tl.load(key_ptr + block * BLOCK_P - 1, mask=block > 0, other=-1)
    if (key == after) & (key != before):
        total = tl.load(tail_ptr + block * width + rest, mask=rest_mask, other=0)
        first = block + 1
        going = first < blocks
        while going:
            each = first + tl.arange(0, JOINED)
            # keys rise, so the blocks that begin with this one follow each other
            same = tl.load(key_ptr + each * BLOCK_P, mask=each < blocks, other=-1) == key
            known = same[:, None] & rest_mask[None, :]
            heads = tl.load(head_ptr + each[:, None] * width + rest[None, :], mask=known, other=0)
            if NEUTRAL is None:
                heads = tl.where(known, heads, total[None, :])
            else:
                heads = tl.where(known, heads, tl.full(heads.shape, NEUTRAL, heads.dtype))
            # sums of 8 and 16 bits are wider
            total = FOLD(total, ALL(heads)).to(total.dtype)
            first += JOINED
            going = (tl.min(same.to(tl.int32), 0) > 0) & (first < blocks)
        place = out_ptr + offset_of(key.to(tl.int64) if WIDE else key, steps, sizes, len(sizes))
        pointer = place + offset_of(rest, rest_out_strides, rest_shape, REST_RANK)
        result = total
        if OWN:
            result = FOLD(tl.load(pointer, mask=rest_mask, other=0).to(TOTAL), total)
        tl.store(pointer, result.to(OUT_DTYPE), mask=rest_mask)


def fold_at(walk: Walk, out: DeviceArray, source: Any, fold: str = "sum", own: bool = True) -> None:
    """Fold `source`, an array or number that broadcasts over the walk, into the indexed places of `out`.

    The places are sorted by destination first, so no two programs fold into one element.

    Args:
        fold: "sum", "prod", "amin", "amax", or "last" for the last one alone, which needs `own` to be False.
        own: whether the elements of `out` are folded with the others, or replaced.
    """
    rest = [dim for dim in range(len(walk.shape)) if dim not in walk.dims]
    place_shape = tuple(walk.shape[dim] for dim in walk.dims)
    count, width = prod(place_shape), prod(walk.shape[dim] for dim in rest)
    if count == 0 or width == 0:
        return
    strides = spread(source, walk.shape) if isinstance(source, DeviceArray) else None
    keys, order = _sorted_destinations(walk, place_shape, out)
    shape: tuple[int, ...] = place_shape or (1,)
    source_steps: tuple[int, ...] = ()
    operands = [[each[dim] for dim in rest] for each in (walk.strides, strides) if each is not None]
    rest_shape, (rest_out, *rest_source) = collapse_dims([walk.shape[dim] for dim in rest], operands)
    if strides is not None:
        shape, (source_steps,) = collapse_dims(place_shape, [[strides[dim] for dim in walk.dims]])
    block_p, block_r = _block(count, width, out)
    kind = dtypes.of(out.dtype)
    total = dtypes.float32 if kind.itemsize == 2 and kind.is_floating_point else kind
    total = dtypes.int32 if kind is dtypes.bool_ else total
    value = source if strides is not None else as_number(source, kind)
    blocks = -(-count // block_p)
    heads, tails = (buffer.empty((blocks, width), total.numpy, out.device) for _ in range(2))
    grid = (blocks * -(-width // block_r),)
    spans = [layout.span(each.shape, each.strides, 0) for each in (out, source) if each.__class__ is DeviceArray]
    wide = max(count, width + block_r, *[high - low for low, high in spans]) >= 1 << 31
    join, scan, over, neutral = _FOLDS[fold]
    constants = {
        "FOLD": join,
        "OWN": own,
        "TOTAL": total,
        "OUT_DTYPE": kind,
        "REST_RANK": len(rest_shape),
        "WIDE": wide,
        "BLOCK_P": block_p,
        "BLOCK_R": block_r,
    }
    launch(
        segment_sums_kernel,
        grid,
        (
            out,
            heads,
            tails,
            keys,
            order,
            value,
            count,
            width,
            shape,
            source_steps,
            rest_shape,
            rest_source[0] if rest_source else (),
            rest_out,
            walk.key_shape,
            walk.key_strides,
        ),
        {**constants, "SCAN": scan, "RANK": len(shape)},
        out.device,
        name="add_places" if fold == "sum" else f"{fold}_places",
    )
    if blocks > 1 and fold != "last":
        launch(
            join_segments_kernel,
            grid,
            (out, heads, tails, keys, count, blocks, width, rest_shape, rest_out, walk.key_shape, walk.key_strides),
            {**constants, "ALL": over, "NEUTRAL": neutral, "JOINED": _JOINED},
            out.device,
            name="add_places_joined" if fold == "sum" else f"{fold}_places_joined",
        )


def _block(count: int, width: int, out: DeviceArray) -> tuple[int, int]:
    """Places and columns of a block."""
    tile = out.buffer.driver.pick(_TILE, 1 << 14)
    block_r = min(power_of_two(width), block_size(out, _WIDTH, interpreted=4096))
    return min(power_of_two(count), max(tile // block_r, 1), forced_block() or tile), block_r


def _sorted_destinations(walk: Walk, place_shape: tuple[int, ...], out: DeviceArray) -> tuple[DeviceArray, DeviceArray]:
    """The destinations of all places in rising order, and where in the walk each came from."""
    count, numbers = prod(place_shape), prod(walk.key_shape)
    kind = np.dtype(np.int32 if numbers < 1 << 31 else np.int64)
    keys = buffer.empty((count,), kind, out.device)
    block = block_size(out, 1024, interpreted=1 << 14)
    along = [walk.position_strides[dim] for dim in walk.dims]
    shape, (position_steps, base_steps) = collapse_dims(place_shape, [along, walk.key_base])
    sizes = tuple(Int64(size) for size in walk.sizes)
    launch(
        keys_kernel,
        (-(-count // block),),
        (keys, walk.positions, walk.row_step, shape, position_steps, base_steps, sizes, walk.key_steps, count),
        {"RANK": len(shape), "WIDE": count + block >= 1 << 31, "BLOCK": block},
        out.device,
        name="place_keys",
    )
    return stable_order(keys, max(numbers - 1, 1).bit_length())
