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
from ..addressing import in_units
from ..matmul.kernel import part_of, sum_of_products, tile_position

if TYPE_CHECKING:
    import triton.language as tl


@device_function
def down(values: tl.tensor, DOWN: tl.constexpr):
    """A vector as a column with DOWN, else as a row."""
    if DOWN:
        return values[:, None]
    else:
        return values[None, :]


@device_function
def _divided(number: tl.tensor, size: tl.tensor, SMALL: tl.constexpr):
    """Quotient and remainder. Numbers below 2**20 with SMALL: the product with 1 / size in float32, which is off by
    less than half a step there, takes a quarter of the instructions of a division of integers."""
    if SMALL:
        quotient = ((number.to(tl.float32) + 0.5) * (1.0 / size)).to(number.dtype)
    else:
        quotient = number // size
    return quotient, number - quotient * size


@device_function
def place_of(first: tl.tensor, index: tl.tensor, places: tl.tensor, SMALL: tl.constexpr):
    """The image and the three positions of result `first + index` among `places` for each image."""
    image = 0
    if SMALL:  # numbers within an image
        image = first // (places[0] * places[1] * places[2])
        first -= image * (places[0] * places[1] * places[2])
    rest, w = _divided(first + index, places[2], SMALL)
    far, h = _divided(rest, places[1], SMALL)
    more = far // places[0]
    return image + more, far - more * places[0], h, w


@device_function
def tap_of(index: tl.tensor, taps: tl.tensor):
    """The three positions in the kernel of a tap, counted row-major."""
    rest = index // taps[2]
    return rest // taps[1], rest % taps[1], index % taps[2]


@device_function
def is_within(position: tl.tensor, size: tl.tensor):
    """Positions before the first element are large numbers without a sign."""
    return position.to(tl.uint32) < tl.cast(size, tl.uint32)


@device_function
def is_inside(x: tl.tensor, y: tl.tensor, z: tl.tensor, sizes: tl.tensor):
    """True where all three positions are within their dimensions."""
    return (x >= 0) & (x < sizes[0]) & (y >= 0) & (y < sizes[1]) & (z >= 0) & (z < sizes[2])


@device_function
def _met(position: tl.tensor, reach: tl.tensor, size: tl.tensor, TAPS: tl.constexpr, FIRST: tl.constexpr):
    """A bit for each tap along a dimension, from bit FIRST on: 1 where it meets an element of the input."""
    found = tl.zeros_like(position).to(tl.int32)
    for tap in tl.static_range(TAPS):
        found = tl.where(is_within(position + tap * reach, size), found | 1 << (FIRST + tap), found)
    return found


@device_function
def bits_of(x_d, x_h, x_w, reach, sizes, TAPS: tl.constexpr, within):
    """The bits of all dimensions, for results that there are."""
    found = _met(x_w, reach[2], sizes[2], TAPS[2], 0) | _met(x_h, reach[1], sizes[1], TAPS[1], TAPS[2])
    return tl.where(within, found | _met(x_d, reach[0], sizes[0], TAPS[0], TAPS[2] + TAPS[1]), 0)


@device_function
def bits_for(t_d: tl.tensor, t_h: tl.tensor, t_w: tl.tensor, TAPS: tl.constexpr):
    """The bits that a tap needs."""
    return tl.cast(1 << t_w | 1 << (TAPS[2] + t_h) | 1 << (TAPS[2] + TAPS[1] + t_d), tl.int32)


@device_function
def next_count(number, next_number, count, ONE: tl.constexpr = False, STEP: tl.constexpr = 1):
    """A counter that begins again at `count`, which is 1 with ONE, and then the next one STEP further on."""
    if ONE:  # the compiler then knows that it is 0
        return number * 0, next_number + number * STEP
    else:
        full = number == count
        return tl.where(full, 0, number), next_number + tl.where(full, STEP, 0)


@kernel
def spread_kernel(
    out_ptr: tl.tensor,
    x_ptr: tl.tensor,
    channels: tl.tensor,
    far: tl.tensor,
    high: tl.tensor,
    pitch: tl.tensor,
    first: tl.tensor,
    sizes: tl.tensor,
    strides: tl.tensor,
    WIDE: tl.constexpr,
    WIDTH: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """A part of a line of images along their last dimension, with WIDTH channels side by side, and zeros around them.

    Args:
        far, high, pitch: the sizes of the result, where the last counts elements.
        first, sizes: of each dimension, where the result begins, and the size of the image. strides: of image, channel
            and each dimension.
    """
    line, index = tl.program_id(0), tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    if WIDE:
        line, index = line.to(tl.int64), index.to(tl.int64)
    rest = line // high
    d, h, w = first[0] + rest % far, first[1] + line - rest * high, first[2] + index // WIDTH
    channel = index % WIDTH
    inside = is_inside(d, h, w, sizes) & (channel < channels)
    start = x_ptr + rest // far * strides[0] + d * strides[2] + h * strides[3]
    x = tl.load(start + w * strides[4] + channel * strides[1], mask=inside, other=0)
    tl.store(out_ptr + line * pitch + index, x, mask=index < pitch)


@kernel
def correlation_kernel(
    out_ptr,
    x_ptr,
    w_ptr,
    biases,
    results,
    rows,
    channels,
    geometry,
    out_strides,
    x_strides,
    w_strides,
    EPILOGUE: tl.constexpr,
    OUT_DTYPE: tl.constexpr,
    TOTAL: tl.constexpr,
    TAPS: tl.constexpr,
    PRODUCT: tl.constexpr,
    LAST: tl.constexpr,
    EVEN: tl.constexpr,
    ONCE: tl.constexpr,
    WIDE: tl.constexpr,
    SMALL: tl.constexpr,
    MASKS: tl.constexpr,
    PIECES: tl.constexpr,
    UNIT: tl.constexpr,
    BLOCK_P: tl.constexpr,
    BLOCK_R: tl.constexpr,
    BLOCK_K: tl.constexpr,
    GROUP: tl.constexpr,
):
    """One tile of one group: `out = EPILOGUE(the correlation of x with w, and bias)`.

    Args:
        biases: a tuple of one pointer, or of none.
        results: images * places. rows, channels: of a group.
        geometry: results for an image, sizes of the input, and start, step and reach of a line (`geometry.Line`), each
            of three dimensions.
        out_strides, x_strides: of image, group, row or channel, and each dimension. w_strides: of group, row, channel
            and each dimension.
        PRODUCT: see `sum_of_products`.
        EVEN: channels are a multiple of BLOCK_K, so that a step of the loop has one tap.
        WIDE: offsets need 64 bits.
    """
    places, sizes, start, step, reach = geometry
    place_tiles, row_tiles = tl.cdiv(results, BLOCK_P), tl.cdiv(rows, BLOCK_R)
    program = tl.program_id(0)
    place_tile, row_tile = tile_position(program % (place_tiles * row_tiles), place_tiles, row_tiles, GROUP)
    group = program // (place_tiles * row_tiles)
    index, row = tl.arange(0, BLOCK_P), tl.arange(0, BLOCK_R)
    if WIDE:
        index, row, group = index.to(tl.int64), row.to(tl.int64), group.to(tl.int64)
        place_tile = place_tile.to(tl.int64)
    row += row_tile * BLOCK_R
    image, d, h, w = place_of(place_tile * BLOCK_P, index, places, SMALL)
    x_d, x_h, x_w = start[0] + d * step[0], start[1] + h * step[1], start[2] + w * step[2]
    x_across = in_units(x_strides[5], UNIT)
    x_base = image * x_strides[0] + x_d * x_strides[3] + x_h * x_strides[4] + x_w * x_across
    x_block = x_ptr + group * x_strides[1] + down(x_base, LAST)
    w_block = w_ptr + group * w_strides[0] + down(row * w_strides[1], not LAST)
    x_d, x_h, x_w = down(x_d, LAST), down(x_h, LAST), down(x_w, LAST)
    place_mask, row_mask = down(index < results - place_tile * BLOCK_P, LAST), down(row < rows, not LAST)
    total = ((down(index, LAST) + down(row, not LAST)) * 0).to(TOTAL)
    several = TAPS[0] * TAPS[1] * TAPS[2]
    depth = several * channels
    inner = tl.arange(0, BLOCK_K)
    if EVEN:  # channels go on after all taps: neighbouring taps read the same lines
        if ONCE:
            x_block += down(inner * x_strides[2], not LAST)
            w_block += down(inner * w_strides[2], LAST)
        if MASKS == "bits":
            valid = bits_of(x_d, x_h, x_w, reach, sizes, TAPS, place_mask)
        channel = tl.cast(0, tl.int64 if WIDE else tl.int32)
        t_d, t_h, t_w = channel, channel, channel
    for number in range(tl.cdiv(depth, BLOCK_K)):
        x_mask, w_mask = place_mask, row_mask
        if not EVEN:
            counted = number * BLOCK_K + inner
            channel = counted // several
            t_d, t_h, t_w = tap_of(counted % several, TAPS)
            x_mask, w_mask = x_mask & down(counted < depth, not LAST), w_mask & down(counted < depth, LAST)
        s_d, s_h, s_w = t_d * reach[0], t_h * reach[1], t_w * reach[2]
        x_at = channel * x_strides[2] + s_d * x_strides[3] + s_h * x_strides[4] + s_w * x_across
        w_at = channel * w_strides[2] + t_d * w_strides[3] + t_h * w_strides[4] + t_w * w_strides[5]
        if not EVEN:
            x_at, w_at = down(x_at, not LAST), down(w_at, LAST)
            s_d, s_h, s_w = down(s_d, not LAST), down(s_h, not LAST), down(s_w, not LAST)
        elif not ONCE:
            x_at, w_at = x_at + down(inner * x_strides[2], not LAST), w_at + down(inner * w_strides[2], LAST)
        if MASKS == "bits" and EVEN:
            wanted = bits_for(t_d, t_h, t_w, TAPS)
            x_mask = (valid & wanted) == wanted
        elif MASKS != "none":
            x_mask &= is_inside(x_d + s_d, x_h + s_h, x_w + s_w, sizes)
        # neighbouring taps find the lines in the first-level cache, which copies of 16 bytes pass by otherwise
        x = tl.load(x_block + x_at, mask=x_mask, other=0, cache_modifier=".ca")
        weight = tl.load(w_block + w_at, mask=w_mask, other=0)
        if LAST:
            total = sum_of_products(x, weight, total, PRODUCT)
        else:
            total = sum_of_products(weight, x, total, PRODUCT)
        if EVEN:
            t_w, t_h = next_count(t_w + 1, t_h, TAPS[2], TAPS[2] == 1)
            t_h, t_d = next_count(t_h, t_d, TAPS[1], TAPS[1] == 1)
            t_d, channel = next_count(t_d, channel, TAPS[0], TAPS[0] == 1, BLOCK_K)
    out_base = image * out_strides[0] + d * out_strides[3] + h * out_strides[4] + w * out_strides[5]
    out_block = out_ptr + group * out_strides[1] + down(out_base, LAST)
    WIDTH: tl.constexpr = BLOCK_R // PIECES
    pieces = (total,)
    if PIECES == 2 and LAST:
        pieces = tl.split(tl.permute(tl.reshape(total, (BLOCK_P, 2, WIDTH)), (0, 2, 1)))
    elif PIECES == 2:
        pieces = tl.split(tl.permute(tl.reshape(total, (2, WIDTH, BLOCK_P)), (1, 2, 0)))
    for piece in tl.static_range(PIECES):
        total = pieces[piece]
        row = (row_tile * BLOCK_R + piece * WIDTH + tl.arange(0, WIDTH)).to(index.dtype)
        for position in tl.static_range(len(biases)):
            bias = tl.load(biases[position] + group * rows + row, mask=row < rows)
            total += down(bias, not LAST).to(TOTAL)
        if EPILOGUE is not None:
            total = EPILOGUE(total)
        mask = place_mask & down(row < rows, not LAST)
        tl.store(out_block + down(row * out_strides[2], not LAST), total.to(OUT_DTYPE), mask=mask)


@kernel
def weight_kernel(
    out_ptr,
    x_ptr,
    y_ptr,
    parts,
    images,
    rows,
    channels,
    groups,
    geometry,
    x_strides,
    y_strides,
    OUT_DTYPE: tl.constexpr,
    TOTAL: tl.constexpr,
    PRODUCT: tl.constexpr,
    LAST: tl.constexpr,
    WIDE: tl.constexpr,
    UNIT: tl.constexpr,
    ONCE: tl.constexpr,
    BOX: tl.constexpr,
    BLOCK_R: tl.constexpr,
    BLOCK_C: tl.constexpr,
    GROUP: tl.constexpr,
):
    """One tile of one group of the weights' gradient, row-major, and of one part of the sum over results.

    Arguments are those of `correlation_kernel`; y is the gradient of its results. A step of the sum has a BOX of these:
    of images, and of positions along the last two dimensions. Where each lies in a box is the same at every step.
    """
    places, sizes, taps, start, step, reach = geometry
    several = taps[0] * taps[1] * taps[2]
    depth = several * channels
    row_tiles, col_tiles = tl.cdiv(rows, BLOCK_R), tl.cdiv(depth, BLOCK_C)
    far, high, across = tl.cdiv(images, BOX[0]), tl.cdiv(places[1], BOX[1]), tl.cdiv(places[2], BOX[2])
    program = tl.program_id(0)
    row_tile, col_tile = tile_position(program % (row_tiles * col_tiles), row_tiles, col_tiles, GROUP)
    boxes = far * places[0] * high * across
    group, part, first, last = part_of(program // (row_tiles * col_tiles), groups, parts, boxes, 1)
    row, col = row_tile * BLOCK_R + tl.arange(0, BLOCK_R), col_tile * BLOCK_C + tl.arange(0, BLOCK_C)
    inner = tl.arange(0, BOX[0] * BOX[1] * BOX[2])
    if WIDE:
        row, col, inner, group = row.to(tl.int64), col.to(tl.int64), inner.to(tl.int64), group.to(tl.int64)
    if LAST:
        channel, tap = col % channels, col // channels
    else:
        channel, tap = col // several, col % several
    t_d, t_h, t_w = tap_of(tap, taps)
    s_d, s_h, s_w = t_d * reach[0], t_h * reach[1], t_w * reach[2]
    x_across = in_units(x_strides[5], UNIT)
    x_col = channel * x_strides[2] + s_d * x_strides[3] + s_h * x_strides[4] + s_w * x_across
    image, h, w = inner // (BOX[1] * BOX[2]), inner // BOX[2] % BOX[1], inner % BOX[2]
    x_inner = image * x_strides[0] + h * step[1] * x_strides[4] + w * step[2] * x_across
    y_inner = image * y_strides[0] + h * y_strides[4] + w * y_strides[5]
    x_block = x_ptr + group * x_strides[1] + down(x_col, not LAST)
    y_block = y_ptr + group * y_strides[1] + down(row * y_strides[2], not LAST)
    if ONCE:
        x_block, y_block = x_block + down(x_inner, LAST), y_block + down(y_inner, LAST)
    s_d, s_h, s_w = down(s_d, not LAST), down(s_h, not LAST), down(s_w, not LAST)
    row_mask, col_mask = down(row < rows, not LAST), down(col < depth, not LAST)
    total = tl.zeros((BLOCK_R, BLOCK_C), dtype=TOTAL)
    b_w, rest = first % across, first // across
    b_h, rest = rest % high, rest // high
    y_d, b_i = rest % places[0], rest // places[0]
    for _box in range(first, last):
        b_image = (b_i * BOX[0]).to(inner.dtype)
        y_h, y_w = b_h * BOX[1], b_w * BOX[2]
        x_d, x_h, x_w = start[0] + y_d * step[0], start[1] + y_h * step[1], start[2] + y_w * step[2]
        x_at = b_image * x_strides[0] + x_d * x_strides[3] + x_h * x_strides[4] + x_w * x_across
        y_at = b_image * y_strides[0] + y_d * y_strides[3] + y_h * y_strides[4] + y_w * y_strides[5]
        within = down((image < images - b_image) & (h < places[1] - y_h) & (w < places[2] - y_w), LAST)
        inside = is_inside(x_d + s_d, down(h * step[1], LAST) + x_h + s_h, down(w * step[2], LAST) + x_w + s_w, sizes)
        if not ONCE:  # with a zero of which the compiler does not know, or it keeps all addresses in registers
            zero = tl.minimum(b_w, 0)
            x_at, y_at = x_at + down(x_inner ^ zero, LAST), y_at + down(y_inner ^ zero, LAST)
        x = tl.load(x_block + x_at, mask=within & col_mask & inside, other=0)
        y = tl.load(y_block + y_at, mask=within & row_mask, other=0)
        if LAST:
            total = sum_of_products(tl.trans(y), x, total, PRODUCT)
        else:
            total = sum_of_products(y, tl.trans(x), total, PRODUCT)
        b_w, b_h = next_count(b_w + 1, b_h, across)
        b_h, y_d = next_count(b_h, y_d, high)
        y_d, b_i = next_count(y_d, b_i, places[0])
    place = (group * rows + row)[:, None] * depth + (channel * several + tap)[None, :]
    out_start = out_ptr + tl.cast(part, tl.int64) * groups * rows * depth
    tl.store(out_start + place, total.to(OUT_DTYPE), mask=(row < rows)[:, None] & (col < depth)[None, :])
