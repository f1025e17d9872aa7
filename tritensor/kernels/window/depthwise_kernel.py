"""Depthwise convolutions on devices: sums of a channel's own products, without a matrix instruction.

What lies side by side in memory is the last dimension of a tile, see `convolution_kernel.py`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...runtime.launch import device_function, kernel
from ..matmul.kernel import part_of
from .convolution_kernel import bits_for, bits_of, down, is_inside, next_count, place_of, tap_of

if TYPE_CHECKING:
    import triton.language as tl


@kernel
def depthwise_kernel(
    out_ptr,
    x_ptr,
    w_ptr,
    biases,
    results,
    rows,
    count,
    geometry,
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
    SMALL: tl.constexpr,
    MASKS: tl.constexpr,
    BLOCK_P: tl.constexpr,
    BLOCK_R: tl.constexpr,
):
    """The correlation of groups of one channel: a block of results by a block of all groups' rows.

    Arguments are those of `correlation_kernel`; count: rows of all groups.  TAPS: of each dimension.
    """
    places, sizes, start, step, reach = geometry
    row_tiles = tl.cdiv(count, BLOCK_R)
    program = tl.program_id(0)
    tile, index = program // row_tiles, tl.arange(0, BLOCK_P)
    number = program % row_tiles * BLOCK_R + tl.arange(0, BLOCK_R)
    if WIDE:
        tile, index, number = tile.to(tl.int64), index.to(tl.int64), number.to(tl.int64)
    group, row = number // rows, number % rows
    image, d, h, w = place_of(tile * BLOCK_P, index, places, SMALL)
    x_d, x_h, x_w = start[0] + d * step[0], start[1] + h * step[1], start[2] + w * step[2]
    x_base = image * x_strides[0] + x_d * x_strides[3] + x_h * x_strides[4] + x_w * x_strides[5]
    x_block = x_ptr + down(x_base, LAST) + down(group * x_strides[1], not LAST)
    w_block = w_ptr + group * w_strides[0] + row * w_strides[1]
    within = index < results - tile * BLOCK_P
    mask = down(within, LAST) & down(number < count, not LAST)
    if MASKS == "bits":
        valid = bits_of(x_d, x_h, x_w, reach, sizes, TAPS, within)
    if LAST:
        total = tl.zeros((BLOCK_P, BLOCK_R), dtype=TOTAL)
    else:
        total = tl.zeros((BLOCK_R, BLOCK_P), dtype=TOTAL)
    for tap in tl.range(0, TAPS[0] * TAPS[1] * TAPS[2], loop_unroll_factor=UNROLL):
        t_d, t_h, t_w = tap_of(tap, TAPS)
        s_d, s_h, s_w = t_d * reach[0], t_h * reach[1], t_w * reach[2]
        shift = s_d * x_strides[3] + s_h * x_strides[4] + s_w * x_strides[5]
        x_mask = mask
        if MASKS == "bits":
            wanted = bits_for(t_d, t_h, t_w, TAPS)
            x_mask = down((valid & wanted) == wanted, LAST) & down(number < count, not LAST)
        elif MASKS == "compared":
            x_mask &= down(is_inside(x_d + s_d, x_h + s_h, x_w + s_w, sizes), LAST)
        x = tl.load(x_block + shift, mask=x_mask, other=0).to(TOTAL)
        offset = t_d * w_strides[3] + t_h * w_strides[4] + t_w * w_strides[5]
        weight = tl.load(w_block + offset, mask=number < count, other=0).to(TOTAL)
        total += x * down(weight, not LAST)
    for position in tl.static_range(len(biases)):
        bias = tl.load(biases[position] + number, mask=number < count)
        total += down(bias, not LAST).to(TOTAL)
    if EPILOGUE is not None:
        total = EPILOGUE(total)
    out_base = image * out_strides[0] + d * out_strides[3] + h * out_strides[4] + w * out_strides[5]
    out_row = group * out_strides[1] + row * out_strides[2]
    tl.store(out_ptr + down(out_base, LAST) + down(out_row, not LAST), total.to(OUT_DTYPE), mask=mask)


@device_function
def _plus(total: tl.tensor, x: tl.tensor, weights: tl.tuple, TAP: tl.constexpr):
    """The sum and x times a weight, if there is that tap."""
    if TAP < 0:
        return total
    elif len(weights) > TAP:
        return total + x * weights[TAP]
    else:
        return total


@kernel
def strip_kernel(
    out_ptr: tl.tensor,
    x_ptr: tl.tensor,
    w_ptr: tl.tensor,
    biases: tl.tensor,
    strips: tl.tensor,
    rows: tl.tensor,
    count: tl.tensor,
    across: tl.tensor,
    geometry: tl.tensor,
    out_strides: tl.tensor,
    x_strides: tl.tensor,
    w_strides: tl.tensor,
    EPILOGUE: tl.constexpr,
    OUT_DTYPE: tl.constexpr,
    TOTAL: tl.constexpr,
    TAPS: tl.constexpr,
    ALONG: tl.constexpr,
    STEP: tl.constexpr,
    REACH: tl.constexpr,
    WIDE: tl.constexpr,
    SMALL: tl.constexpr,
    MASKS: tl.constexpr,
    BLOCK_P: tl.constexpr,
    BLOCK_R: tl.constexpr,
):
    """`depthwise_kernel` with LAST for ALONG results side by side: each element is loaded once for all of a strip.

    Args:
        strips, places: strips in place of results. across: results along the last dimension.
        STEP, REACH: of the last dimension; REACH is 1 or -1.
    """
    places, sizes, start, step, reach = geometry
    SPAN: tl.constexpr = (ALONG - 1) * STEP + TAPS[2]
    LOW: tl.constexpr = 0 if REACH > 0 else 1 - TAPS[2]
    row_tiles = tl.cdiv(count, BLOCK_R)
    program = tl.program_id(0)
    tile, index = program // row_tiles, tl.arange(0, BLOCK_P)
    number = program % row_tiles * BLOCK_R + tl.arange(0, BLOCK_R)
    if WIDE:
        tile, index, number = tile.to(tl.int64), index.to(tl.int64), number.to(tl.int64)
    group, row = number // rows, number % rows
    image, d, h, w = place_of(tile * BLOCK_P, index, places, SMALL)
    w *= ALONG
    x_d, x_h, x_w = start[0] + d * step[0], start[1] + h * step[1], start[2] + LOW + w * STEP
    x_base = image * x_strides[0] + x_d * x_strides[3] + x_h * x_strides[4] + x_w * x_strides[5]
    x_block = x_ptr + x_base[:, None] + (group * x_strides[1])[None, :]
    w_block = w_ptr + group * w_strides[0] + row * w_strides[1]
    within, row_mask = index < strips - tile * BLOCK_P, (number < count)[None, :]
    if MASKS == "bits":
        valid = bits_of(x_d, x_h, x_w, (reach[0], reach[1], 1), sizes, (TAPS[0], TAPS[1], SPAN), within)
    first = tl.zeros((BLOCK_P, BLOCK_R), dtype=TOTAL)
    for position in tl.static_range(len(biases)):
        first += tl.load(biases[position] + number, mask=number < count).to(TOTAL)[None, :]
    totals = ()
    for _position in tl.static_range(ALONG):
        totals = totals + (first,)  # type: ignore[assignment]  # noqa: RUF005
    for line in range(TAPS[0] * TAPS[1]):
        t_d, t_h = line // TAPS[1], line % TAPS[1]
        x_line = x_block + (t_d * reach[0] * x_strides[3] + t_h * reach[1] * x_strides[4])
        loaded, weights = (), ()  # all of a line at once: what is computed of one would wait for it before the next
        for column in tl.static_range(SPAN):
            mask = within[:, None] & row_mask
            if MASKS == "bits":
                wanted = bits_for(t_d, t_h, column, (TAPS[0], TAPS[1], SPAN))
                mask = ((valid & wanted) == wanted)[:, None] & row_mask
            x = tl.load(x_line + column * x_strides[5], mask=mask, other=0)
            loaded = loaded + (x,)  # type: ignore[assignment]  # noqa: RUF005
        for tap in tl.static_range(TAPS[2]):
            at = t_d * w_strides[3] + t_h * w_strides[4] + tap * w_strides[5]
            weight = tl.load(w_block + at, mask=number < count, other=0)
            weights = weights + (weight.to(TOTAL)[None, :],)  # type: ignore[assignment]  # noqa: RUF005
        for column in tl.static_range(SPAN):
            sums, x = (), loaded[column].to(TOTAL)
            for position in tl.static_range(ALONG):
                one = _plus(totals[position], x, weights, (column + LOW - position * STEP) * REACH)
                sums = sums + (one,)  # noqa: RUF005
            totals = sums
    out_base = image * out_strides[0] + d * out_strides[3] + h * out_strides[4] + w * out_strides[5]
    out_block = out_ptr + out_base[:, None] + (group * out_strides[1] + row * out_strides[2])[None, :]
    for position in tl.static_range(ALONG):
        total = totals[position]  # type: ignore[var-annotated]
        if EPILOGUE is not None:
            total = EPILOGUE(total)
        mask = (within & (w < across - position))[:, None] & row_mask
        tl.store(out_block + position * out_strides[5], total.to(OUT_DTYPE), mask=mask)


@kernel
def depthwise_weight_kernel(
    out_ptr,
    x_ptr,
    y_ptr,
    parts,
    images,
    rows,
    count,
    geometry,
    x_strides,
    y_strides,
    OUT_DTYPE: tl.constexpr,
    TOTAL: tl.constexpr,
    COUNT: tl.constexpr,
    LAST: tl.constexpr,
    WIDE: tl.constexpr,
    BOX: tl.constexpr,
    BLOCK_R: tl.constexpr,
):
    """The gradient of the weights of groups of one channel: COUNT taps of a line, of a block of rows, over one part of
    the results.

    Arguments are those of `weight_kernel`; count: rows of all groups.
    """
    places, sizes, taps, start, step, reach = geometry
    row_tiles, chunks = tl.cdiv(count, BLOCK_R), tl.cdiv(taps[2], COUNT)
    far, high, across = tl.cdiv(images, BOX[0]), tl.cdiv(places[1], BOX[1]), tl.cdiv(places[2], BOX[2])
    program = tl.program_id(0)
    line, t_w = program // chunks % (taps[0] * taps[1]), program % chunks * COUNT
    rest, boxes = program // (chunks * taps[0] * taps[1]), far * places[0] * high * across
    tile, part, first, last = part_of(rest, row_tiles, parts, boxes, 1)
    number, inner = tile * BLOCK_R + tl.arange(0, BLOCK_R), tl.arange(0, BOX[0] * BOX[1] * BOX[2])
    if WIDE:
        number, inner = number.to(tl.int64), inner.to(tl.int64)
    group, row = number // rows, number % rows
    image, h, w = inner // (BOX[1] * BOX[2]), inner // BOX[2] % BOX[1], inner % BOX[2]
    x_inner = image * x_strides[0] + h * step[1] * x_strides[4] + w * step[2] * x_strides[5]
    y_inner = image * y_strides[0] + h * y_strides[4] + w * y_strides[5]
    x_block = x_ptr + down(x_inner, LAST) + down(group * x_strides[1], not LAST)
    y_block = y_ptr + down(y_inner, LAST) + down(group * y_strides[1] + row * y_strides[2], not LAST)
    row_mask = down(number < count, not LAST)
    zeros = ((down(inner, LAST) + down(number, not LAST)) * 0).to(TOTAL)
    totals = ()
    for _tap in tl.static_range(COUNT):
        totals = totals + (zeros,)  # type: ignore[assignment]  # noqa: RUF005
    b_w, rest = first % across, first // across
    b_h, rest = rest % high, rest // high
    y_d, b_i = rest % places[0], rest // places[0]
    for _box in range(first, last):
        b_image = (b_i * BOX[0]).to(inner.dtype)
        y_h, y_w = b_h * BOX[1], b_w * BOX[2]
        x_d, x_h = (
            start[0] + y_d * step[0] + line // taps[1] * reach[0],
            start[1] + y_h * step[1] + line % taps[1] * reach[1],
        )
        x_w = start[2] + y_w * step[2] + t_w * reach[2]
        x_at = b_image * x_strides[0] + x_d * x_strides[3] + x_h * x_strides[4] + x_w * x_strides[5]
        y_at = b_image * y_strides[0] + y_d * y_strides[3] + y_h * y_strides[4] + y_w * y_strides[5]
        within = (image < images - b_image) & (h < places[1] - y_h) & (w < places[2] - y_w)
        y = tl.load(y_block + y_at, mask=down(within, LAST) & row_mask, other=0)
        loaded, sums = (), ()
        for tap in tl.static_range(COUNT):
            inside = is_inside(x_d, h * step[1] + x_h, w * step[2] + x_w + tap * reach[2], sizes)
            x_mask = down(within & inside & (t_w + tap < taps[2]), LAST) & row_mask
            x = tl.load(x_block + x_at + tap * reach[2] * x_strides[5], mask=x_mask, other=0)
            loaded = loaded + (x,)  # type: ignore[assignment]  # noqa: RUF005
        for tap in tl.static_range(COUNT):
            product = loaded[tap].to(TOTAL) * y.to(TOTAL)
            sums = sums + (totals[tap] + product,)  # noqa: RUF005
        totals = sums
        b_w, b_h = next_count(b_w + 1, b_h, across)
        b_h, y_d = next_count(b_h, y_d, high)
        y_d, b_i = next_count(y_d, b_i, places[0])
    several = taps[0] * taps[1] * taps[2]
    out_start = out_ptr + tl.cast(part, tl.int64) * count * several + number * several + line * taps[2] + t_w
    for tap in tl.static_range(COUNT):
        total = tl.sum(totals[tap], 0 if LAST else 1).to(OUT_DTYPE)
        tl.store(out_start + tap, total, mask=(number < count) & (t_w + tap < taps[2]))
