"""Convolutions on devices: products of matrices whose columns are read where they lie, without an unfolded copy.

A correlation (`geometry.py`) of `images * places` results for each of a group's rows is the product of the weights,
(rows, depth), and of what they meet, (depth, results), where the depth counts channels and taps. Which element of the
input stands in row `depth` and column `result` is computed from both, and elements outside of the input are zeros. The
gradient of the weights is the product of the results' gradients, (rows, results), and of the same columns.

There are three dimensions of space in each kernel; those that are missing have one element. What lies side by side in
memory is the last dimension of a tile: the channels with LAST (channels-last), the places without it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...runtime.launch import device_function, kernel
from ..matmul.kernel import part_of, sum_of_products, tile_position

if TYPE_CHECKING:
    import triton.language as tl


@device_function
def _down(values, DOWN: tl.constexpr):
    """A vector as a column with DOWN, else as a row."""
    if DOWN:
        return values[:, None]
    else:
        return values[None, :]


@device_function
def _place(index, places):
    """The image and the three positions of a result among `places` for each image."""
    rest = index // places[2]
    far = rest // places[1]
    return far // places[0], far % places[0], rest % places[1], index % places[2]


@device_function
def _tap(index, taps):
    """The three positions in the kernel of a tap, counted row-major."""
    rest = index // taps[2]
    return rest // taps[1], rest % taps[1], index % taps[2]


@device_function
def _is_inside(x, y, z, sizes):
    return (x >= 0) & (x < sizes[0]) & (y >= 0) & (y < sizes[1]) & (z >= 0) & (z < sizes[2])


@kernel
def correlation_kernel(
    out_ptr,
    x_ptr,
    w_ptr,
    biases,
    results,
    rows,
    channels,
    places,
    sizes,
    taps,
    start,
    step,
    reach,
    out_strides,
    x_strides,
    w_strides,
    EPILOGUE: tl.constexpr,
    OUT_DTYPE: tl.constexpr,
    TOTAL: tl.constexpr,
    PRODUCT: tl.constexpr,
    LAST: tl.constexpr,
    EVEN: tl.constexpr,
    WIDE: tl.constexpr,
    BLOCK_P: tl.constexpr,
    BLOCK_R: tl.constexpr,
    BLOCK_K: tl.constexpr,
    GROUP: tl.constexpr,
):
    """One tile of one group: `out = EPILOGUE(the correlation of x with w, and bias)`.

    Args:
        biases: a tuple of one pointer, or of none.
        results: images * places. rows, channels: of a group.
        places, sizes, taps: of each dimension: results for an image, input, kernel.
        start, step, reach: of each dimension, see `geometry.Line`.
        out_strides, x_strides: of image, group, row or channel, and each dimension. w_strides: of group, row, channel
            and each dimension.
        PRODUCT: see `sum_of_products`.
        EVEN: channels are a multiple of BLOCK_K, so that a step of the loop has one tap.
        WIDE: offsets need 64 bits.
    """
    place_tiles, row_tiles = tl.cdiv(results, BLOCK_P), tl.cdiv(rows, BLOCK_R)
    program = tl.program_id(0)
    place_tile, row_tile = tile_position(program % (place_tiles * row_tiles), place_tiles, row_tiles, GROUP)
    group = program // (place_tiles * row_tiles)
    index, row = tl.arange(0, BLOCK_P), tl.arange(0, BLOCK_R)
    if WIDE:
        index, row, group = index.to(tl.int64), row.to(tl.int64), group.to(tl.int64)
        place_tile = place_tile.to(tl.int64)
    index += place_tile * BLOCK_P
    row += row_tile * BLOCK_R
    image, d, h, w = _place(index, places)
    x_d, x_h, x_w = start[0] + d * step[0], start[1] + h * step[1], start[2] + w * step[2]
    x_base = image * x_strides[0] + x_d * x_strides[3] + x_h * x_strides[4] + x_w * x_strides[5]
    x_block = x_ptr + group * x_strides[1] + _down(x_base, LAST)
    w_block = w_ptr + group * w_strides[0] + _down(row * w_strides[1], not LAST)
    x_d, x_h, x_w = _down(x_d, LAST), _down(x_h, LAST), _down(x_w, LAST)
    place_mask, row_mask = _down(index < results, LAST), _down(row < rows, not LAST)
    if LAST:
        total = tl.zeros((BLOCK_P, BLOCK_R), dtype=TOTAL)
    else:
        total = tl.zeros((BLOCK_R, BLOCK_P), dtype=TOTAL)
    several = taps[0] * taps[1] * taps[2]
    depth = several * channels
    inner = tl.arange(0, BLOCK_K)
    for first in range(0, depth, BLOCK_K):
        counted = first + inner
        if EVEN:  # channels go on after all taps: neighbouring taps read the same lines
            number = first // BLOCK_K
            channel = number // several * BLOCK_K + inner
            t_d, t_h, t_w = _tap(number % several, taps)
        else:
            channel = counted // several
            t_d, t_h, t_w = _tap(counted % several, taps)
        s_d, s_h, s_w = t_d * reach[0], t_h * reach[1], t_w * reach[2]
        x_tap = s_d * x_strides[3] + s_h * x_strides[4] + s_w * x_strides[5]
        w_tap = t_d * w_strides[3] + t_h * w_strides[4] + t_w * w_strides[5]
        x_c, w_c = channel * x_strides[2] + x_tap, channel * w_strides[2] + w_tap
        x_mask, w_mask = place_mask, row_mask
        if not EVEN:
            s_d, s_h, s_w = _down(s_d, not LAST), _down(s_h, not LAST), _down(s_w, not LAST)
            x_mask, w_mask = x_mask & _down(counted < depth, not LAST), w_mask & _down(counted < depth, LAST)
        x_mask &= _is_inside(x_d + s_d, x_h + s_h, x_w + s_w, sizes)
        x = tl.load(x_block + _down(x_c, not LAST), mask=x_mask, other=0)
        weight = tl.load(w_block + _down(w_c, LAST), mask=w_mask, other=0)
        if LAST:
            total = sum_of_products(x, weight, total, PRODUCT)
        else:
            total = sum_of_products(weight, x, total, PRODUCT)
    for position in tl.static_range(len(biases)):
        bias = tl.load(biases[position] + group * rows + row, mask=row < rows)
        total += _down(bias, not LAST).to(TOTAL)
    if EPILOGUE is not None:
        total = EPILOGUE(total)
    out_base = image * out_strides[0] + d * out_strides[3] + h * out_strides[4] + w * out_strides[5]
    out_block = out_ptr + group * out_strides[1] + _down(out_base, LAST) + _down(row * out_strides[2], not LAST)
    tl.store(out_block, total.to(OUT_DTYPE), mask=place_mask & row_mask)


@kernel
def weight_kernel(
    out_ptr,
    x_ptr,
    y_ptr,
    parts,
    results,
    rows,
    channels,
    groups,
    places,
    sizes,
    taps,
    start,
    step,
    reach,
    x_strides,
    y_strides,
    OUT_DTYPE: tl.constexpr,
    TOTAL: tl.constexpr,
    PRODUCT: tl.constexpr,
    LAST: tl.constexpr,
    WIDE: tl.constexpr,
    BLOCK_R: tl.constexpr,
    BLOCK_C: tl.constexpr,
    BLOCK_K: tl.constexpr,
    GROUP: tl.constexpr,
):
    """One tile of one group of the weights' gradient, row-major, and of one part of the sum over results.

    Arguments are those of `correlation_kernel`; y is the gradient of its results.
    """
    several = taps[0] * taps[1] * taps[2]
    depth = several * channels
    row_tiles, col_tiles = tl.cdiv(rows, BLOCK_R), tl.cdiv(depth, BLOCK_C)
    program = tl.program_id(0)
    row_tile, col_tile = tile_position(program % (row_tiles * col_tiles), row_tiles, col_tiles, GROUP)
    group, part, first, last = part_of(program // (row_tiles * col_tiles), groups, parts, results, BLOCK_K)
    row, col = row_tile * BLOCK_R + tl.arange(0, BLOCK_R), col_tile * BLOCK_C + tl.arange(0, BLOCK_C)
    inner = tl.arange(0, BLOCK_K)
    if WIDE:
        row, col, inner, group = row.to(tl.int64), col.to(tl.int64), inner.to(tl.int64), group.to(tl.int64)
    if LAST:
        channel, tap = col % channels, col // channels
    else:
        channel, tap = col // several, col % several
    t_d, t_h, t_w = _tap(tap, taps)
    s_d, s_h, s_w = t_d * reach[0], t_h * reach[1], t_w * reach[2]
    x_col = channel * x_strides[2] + s_d * x_strides[3] + s_h * x_strides[4] + s_w * x_strides[5]
    x_block = x_ptr + group * x_strides[1] + _down(x_col, not LAST)
    y_block = y_ptr + group * y_strides[1] + _down(row * y_strides[2], not LAST)
    s_d, s_h, s_w = _down(s_d, not LAST), _down(s_h, not LAST), _down(s_w, not LAST)
    row_mask, col_mask = _down(row < rows, not LAST), _down(col < depth, not LAST)
    total = tl.zeros((BLOCK_R, BLOCK_C), dtype=TOTAL)
    for begin in range(first, last, BLOCK_K):
        index = begin + inner
        image, d, h, w = _place(index, places)
        x_d, x_h, x_w = start[0] + d * step[0], start[1] + h * step[1], start[2] + w * step[2]
        x_base = image * x_strides[0] + x_d * x_strides[3] + x_h * x_strides[4] + x_w * x_strides[5]
        y_base = image * y_strides[0] + d * y_strides[3] + h * y_strides[4] + w * y_strides[5]
        within = _down(index < last, LAST)
        inside = _is_inside(_down(x_d, LAST) + s_d, _down(x_h, LAST) + s_h, _down(x_w, LAST) + s_w, sizes)
        x = tl.load(x_block + _down(x_base, LAST), mask=within & col_mask & inside, other=0)
        y = tl.load(y_block + _down(y_base, LAST), mask=within & row_mask, other=0)
        if LAST:
            total = sum_of_products(tl.trans(y), x, total, PRODUCT)
        else:
            total = sum_of_products(y, tl.trans(x), total, PRODUCT)
    place = (group * rows + row)[:, None] * depth + (channel * several + tap)[None, :]
    out_start = out_ptr + tl.cast(part, tl.int64) * groups * rows * depth
    tl.store(out_start + place, total.to(OUT_DTYPE), mask=(row < rows)[:, None] & (col < depth)[None, :])


@kernel
def depthwise_kernel(
    out_ptr,
    x_ptr,
    w_ptr,
    biases,
    results,
    rows,
    count,
    places,
    sizes,
    start,
    step,
    reach,
    out_strides,
    x_strides,
    w_strides,
    EPILOGUE: tl.constexpr,
    OUT_DTYPE: tl.constexpr,
    TOTAL: tl.constexpr,
    TAPS: tl.constexpr,
    UNROLL: tl.constexpr,
    LAST: tl.constexpr,
    WIDE: tl.constexpr,
    BLOCK_P: tl.constexpr,
    BLOCK_R: tl.constexpr,
):
    """The correlation of groups of one channel: a block of results by a block of all groups' rows.

    Arguments are those of `correlation_kernel`; count: rows of all groups.  TAPS: of each dimension.
    """
    row_tiles = tl.cdiv(count, BLOCK_R)
    program = tl.program_id(0)
    index = program // row_tiles * BLOCK_P + tl.arange(0, BLOCK_P)
    number = program % row_tiles * BLOCK_R + tl.arange(0, BLOCK_R)
    if WIDE:
        index = (program // row_tiles).to(tl.int64) * BLOCK_P + tl.arange(0, BLOCK_P)
        number = number.to(tl.int64)
    group, row = number // rows, number % rows
    image, d, h, w = _place(index, places)
    x_d, x_h, x_w = start[0] + d * step[0], start[1] + h * step[1], start[2] + w * step[2]
    x_base = image * x_strides[0] + x_d * x_strides[3] + x_h * x_strides[4] + x_w * x_strides[5]
    x_block = x_ptr + _down(x_base, LAST) + _down(group * x_strides[1], not LAST)
    w_block = w_ptr + group * w_strides[0] + row * w_strides[1]
    mask = _down(index < results, LAST) & _down(number < count, not LAST)
    if LAST:
        total = tl.zeros((BLOCK_P, BLOCK_R), dtype=TOTAL)
    else:
        total = tl.zeros((BLOCK_R, BLOCK_P), dtype=TOTAL)
    for tap in tl.range(0, TAPS[0] * TAPS[1] * TAPS[2], loop_unroll_factor=UNROLL):
        t_d, t_h, t_w = _tap(tap, TAPS)
        s_d, s_h, s_w = t_d * reach[0], t_h * reach[1], t_w * reach[2]
        shift = s_d * x_strides[3] + s_h * x_strides[4] + s_w * x_strides[5]
        inside = _down(_is_inside(x_d + s_d, x_h + s_h, x_w + s_w, sizes), LAST)
        x = tl.load(x_block + shift, mask=mask & inside, other=0).to(TOTAL)
        offset = t_d * w_strides[3] + t_h * w_strides[4] + t_w * w_strides[5]
        weight = tl.load(w_block + offset, mask=number < count, other=0).to(TOTAL)
        total += x * _down(weight, not LAST)
    for position in tl.static_range(len(biases)):
        bias = tl.load(biases[position] + number, mask=number < count)
        total += _down(bias, not LAST).to(TOTAL)
    if EPILOGUE is not None:
        total = EPILOGUE(total)
    out_base = image * out_strides[0] + d * out_strides[3] + h * out_strides[4] + w * out_strides[5]
    out_row = group * out_strides[1] + row * out_strides[2]
    tl.store(out_ptr + _down(out_base, LAST) + _down(out_row, not LAST), total.to(OUT_DTYPE), mask=mask)


@kernel
def depthwise_weight_kernel(
    out_ptr,
    x_ptr,
    y_ptr,
    parts,
    results,
    rows,
    count,
    places,
    sizes,
    taps,
    start,
    step,
    reach,
    x_strides,
    y_strides,
    OUT_DTYPE: tl.constexpr,
    TOTAL: tl.constexpr,
    LAST: tl.constexpr,
    WIDE: tl.constexpr,
    BLOCK_P: tl.constexpr,
    BLOCK_R: tl.constexpr,
):
    """The gradient of the weights of groups of one channel: one tap of a block of rows, over one part of the results.

    Arguments are those of `weight_kernel`; count: rows of all groups.
    """
    several = taps[0] * taps[1] * taps[2]
    row_tiles = tl.cdiv(count, BLOCK_R)
    program = tl.program_id(0)
    tap, rest = program % several, program // several
    tile, part, first, last = part_of(rest, row_tiles, parts, results, BLOCK_P)
    number, inner = tile * BLOCK_R + tl.arange(0, BLOCK_R), tl.arange(0, BLOCK_P)
    if WIDE:
        number, inner = number.to(tl.int64), inner.to(tl.int64)
    group, row = number // rows, number % rows
    t_d, t_h, t_w = _tap(tap, taps)
    s_d, s_h, s_w = t_d * reach[0], t_h * reach[1], t_w * reach[2]
    x_block = x_ptr + _down(group * x_strides[1], not LAST)
    y_block = y_ptr + _down(group * y_strides[1] + row * y_strides[2], not LAST)
    total = tl.zeros((BLOCK_R,), dtype=TOTAL)
    for begin in range(first, last, BLOCK_P):
        index = begin + inner
        image, d, h, w = _place(index, places)
        x_d, x_h = start[0] + d * step[0] + s_d, start[1] + h * step[1] + s_h
        x_w = start[2] + w * step[2] + s_w
        x_base = image * x_strides[0] + x_d * x_strides[3] + x_h * x_strides[4] + x_w * x_strides[5]
        y_base = image * y_strides[0] + d * y_strides[3] + h * y_strides[4] + w * y_strides[5]
        mask = _down((index < last) & _is_inside(x_d, x_h, x_w, sizes), LAST) & _down(number < count, not LAST)
        x = tl.load(x_block + _down(x_base, LAST), mask=mask, other=0).to(TOTAL)
        y = tl.load(y_block + _down(y_base, LAST), mask=mask, other=0).to(TOTAL)
        total += tl.sum(x * y, 0 if LAST else 1)
    out_start = out_ptr + tl.cast(part, tl.int64) * count * several
    tl.store(out_start + number * several + tap, total.to(OUT_DTYPE), mask=number < count)
