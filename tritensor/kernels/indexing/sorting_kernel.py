"""A stable radix sort: keys in rising order, equal keys in their original order.

Each pass sorts by four bits, from the lowest: each block counts its keys by digit, a running sum over the counts in the
order (digit, block) gives the start of each group, and each key moves to its group's start plus its rank in the group.
The result does not depend on the order in which programs run.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ...memory import buffer
from ...memory.array import DeviceArray
from ...runtime.launch import kernel, launch
from ...types import dtypes
from ..addressing import collapse_dims, offset_of
from ..blocks import block_size

if TYPE_CHECKING:
    import triton.language as tl

_BITS = 4


@kernel
def digit_count_kernel(count_ptr, key_ptr, count, shift, blocks, DIGITS: tl.constexpr, BLOCK: tl.constexpr):
    """Counts each digit in a block, at [digit, block]."""
    index = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    mask = index < count
    digit = (tl.load(key_ptr + index, mask=mask, other=0) >> shift).to(tl.int32) & (DIGITS - 1)
    digits = tl.arange(0, DIGITS)
    alike = (digit[:, None] == digits[None, :]) & mask[:, None]
    tl.store(count_ptr + digits * blocks + tl.program_id(0), tl.sum(alike.to(tl.int32), axis=0))


@kernel
def running_sum_kernel(count_ptr, count, BLOCK: tl.constexpr):
    """Replace each count by the sum of those before it; one program."""
    before = tl.zeros((), dtype=tl.int32)
    for start in range(0, count, BLOCK):
        index = start + tl.arange(0, BLOCK)
        value = tl.load(count_ptr + index, mask=index < count, other=0)
        tl.store(count_ptr + index, before + tl.cumsum(value, axis=0) - value, mask=index < count)
        before += tl.sum(value, axis=0)


@kernel
def distribute_kernel(
    key_out_ptr,
    order_out_ptr,
    key_ptr,
    order_ptr,
    start_ptr,
    count,
    shift,
    blocks,
    FIRST: tl.constexpr,
    DIGITS: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """Move each key, and where it came from, to its place by one digit; FIRST: keys are in their original places."""
    index = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    mask = index < count
    key = tl.load(key_ptr + index, mask=mask, other=0)
    if FIRST:
        origin = index.to(tl.int32)
    else:
        origin = tl.load(order_ptr + index, mask=mask, other=0)
    digit = (key >> shift).to(tl.int32) & (DIGITS - 1)
    digits = tl.arange(0, DIGITS)
    alike = ((digit[:, None] == digits[None, :]) & mask[:, None]).to(tl.int32)
    rank = tl.sum(tl.cumsum(alike, axis=0) * alike, axis=1) - 1
    place = tl.load(start_ptr + digit * blocks + tl.program_id(0), mask=mask, other=0) + rank
    tl.store(key_out_ptr + place, key, mask=mask)
    tl.store(order_out_ptr + place, origin, mask=mask)


def stable_order(keys: DeviceArray, bits: int, origins: DeviceArray | None = None) -> tuple[DeviceArray, DeviceArray]:
    """Sort a contiguous vector of fewer than 2**31 keys by their lowest `bits` bits.

    Args:
        origins: an int32 for each key that moves with it; by default its index.

    Returns:
        the sorted keys, and the origin of each. The inputs' memory is used for scratch.
    """
    count, device = keys.size, keys.device
    block = block_size(keys, 512, interpreted=1 << 12, count=count)
    blocks = -(-count // block)
    digits = 1 << _BITS
    starts = buffer.empty((digits * blocks,), np.dtype(np.int32), device)
    other = buffer.empty((count,), keys.dtype, device)
    order = buffer.empty((count,), np.dtype(np.int32), device)
    spare = buffer.empty((count,), np.dtype(np.int32), device) if origins is None else origins
    for shift in range(0, bits, _BITS):
        constants = {"DIGITS": digits, "BLOCK": block}
        launch(
            digit_count_kernel, (blocks,), (starts, keys, count, shift, blocks), constants, device, name="sort_count"
        )
        launch(
            running_sum_kernel,
            (1,),
            (starts, starts.size),
            {"BLOCK": block_size(keys, 2048)},
            device,
            name="sort_sum",
        )
        launch(
            distribute_kernel,
            (blocks,),
            (other, order, keys, spare, starts, count, shift, blocks),
            {**constants, "FIRST": shift == 0 and origins is None},
            device,
            name="sort_distribute",
        )
        keys, other, order, spare = other, keys, spare, order
    return keys, spare


@kernel
def encode_kernel(
    key_ptr,
    x_ptr,
    shape,
    strides,
    count,
    KIND: tl.constexpr,
    BITS: tl.constexpr,
    DESCENDING: tl.constexpr,
    RANK: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """Unsigned numbers of BITS bits in the order of the elements: NaN last, -0.0 as 0.0; DESCENDING: inverted."""
    index = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    mask = index < count
    x = tl.load(x_ptr + offset_of(index, strides, shape, RANK), mask=mask, other=0)
    unsigned: tl.constexpr = tl.uint64 if BITS == 64 else tl.uint32
    wide: tl.constexpr = tl.float64 if BITS == 64 else tl.float32
    sign: tl.constexpr = 1 << (BITS - 1)
    ones: tl.constexpr = (1 << BITS) - 1
    if KIND == "float":
        x = x.to(wide)
        bits = tl.where(x == 0, tl.zeros_like(x), x).to(unsigned, bitcast=True)
        key = tl.where(bits >= sign, bits ^ ones, bits | sign)
        key = tl.where(x != x, tl.full(key.shape, ones, unsigned), key)
    elif KIND == "signed":
        if BITS == 64:
            key = x.to(unsigned, bitcast=True) ^ sign
        else:
            key = (x.to(tl.int64) + sign).to(unsigned)
    else:
        key = x.to(unsigned)
    if DESCENDING:
        key = key ^ ones
    tl.store(key_ptr + index, key, mask=mask)


@kernel
def row_kernel(row_ptr, order_ptr, count, size, BLOCK: tl.constexpr):
    """The row that each sorted element belongs to, which the next passes sort by."""
    index = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    mask = index < count
    tl.store(row_ptr + index, tl.load(order_ptr + index, mask=mask, other=0) // size, mask=mask)


@kernel
def place_sorted_kernel(
    value_ptr,
    index_ptr,
    x_ptr,
    order_ptr,
    count,
    size,
    shape,
    out_strides,
    x_shape,
    x_strides,
    RANK: tl.constexpr,
    X_RANK: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """Write the elements, and their indices in their rows, in the order found."""
    index = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    mask = index < count
    origin = tl.load(order_ptr + index, mask=mask, other=0).to(tl.int64)
    place = offset_of(index, out_strides, shape, RANK)
    x = tl.load(x_ptr + offset_of(origin, x_strides, x_shape, X_RANK), mask=mask)
    tl.store(value_ptr + place, x, mask=mask)
    tl.store(index_ptr + place, origin % size, mask=mask)


def sort_along(values: DeviceArray, indices: DeviceArray, x: DeviceArray, dim: int, descending: bool) -> None:
    """Sort `x` along `dim`, fewer than 2**31 elements; `values` and `indices` have its shape and are contiguous."""
    count, device = x.size, x.device
    if count == 0:
        return
    axes = (*(axis for axis in range(x.ndim) if axis != dim), *((dim,) if x.ndim else ()))
    x, values, indices = x.transpose(axes), values.transpose(axes), indices.transpose(axes)
    size = x.shape[-1] if x.ndim else 1
    kind = dtypes.of(x.dtype)
    bits = 32 if kind.is_floating_point and kind.itemsize == 2 else kind.itemsize * 8
    name = "float" if kind.is_floating_point else "signed" if kind.is_signed else "unsigned"
    block = block_size(x, 1024, interpreted=1 << 14)
    grid = (-(-count // block),)
    x_shape, (x_strides,) = collapse_dims(x.shape, [x.strides])
    keys = buffer.empty((count,), np.dtype(np.uint64 if bits == 64 else np.uint32), device)
    launch(
        encode_kernel,
        grid,
        (keys, x, x_shape, x_strides, count),
        {"KIND": name, "BITS": bits, "DESCENDING": descending, "RANK": len(x_shape), "BLOCK": block},
        device,
        name="sort_encode",
    )
    _, order = stable_order(keys, bits)
    if count > size:
        rows = buffer.empty((count,), np.dtype(np.int32), device)
        launch(row_kernel, grid, (rows, order, count, size), {"BLOCK": block}, device, name="sort_rows")
        _, order = stable_order(rows, max(count // size - 1, 1).bit_length(), order)
    shape, (out_strides,) = collapse_dims(values.shape, [values.strides])
    launch(
        place_sorted_kernel,
        grid,
        (values, indices, x, order, count, size, shape, out_strides, x_shape, x_strides),
        {"RANK": len(shape), "X_RANK": len(x_shape), "BLOCK": block},
        device,
        name="sort_place",
    )
