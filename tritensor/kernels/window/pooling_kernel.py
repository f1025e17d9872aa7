"""The Triton half of pooling: a program computes a block of windows, or gathers the gradients of a block of elements.

Every input is seen as (N, C, D, H, W), where dimensions that it does not have are of size 1. Elements are counted in
the order in which the result lies in memory, with the channels innermost if they are.
"""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING, Any

from ...memory.array import DeviceArray
from ...runtime.call import Call
from ...runtime.launch import device_function, kernel, launch
from ...types import dtypes, layout
from ..addressing import block_index
from ..blocks import block_size
from .pooling_reference import Windows, windows_of

if TYPE_CHECKING:
    import triton.language as tl

# Elements of a program: 2 a thread, as there is a division for each dimension and each element.
_BLOCK = 256
_INTERPRETED_BLOCK = 1 << 16
# Positions of a window up to which the loop over them is unrolled, so that their loads do not wait for each other.
_UNROLLED = 9


@device_function
def coordinates(index, c, sizes, CHANNELS_LAST: tl.constexpr):
    """Batch, channel and place along three dimensions of elements that are counted in the order of memory."""
    if CHANNELS_LAST:
        channel = index % c
        rest = index // c
    else:
        channel = index
        rest = index
    x = rest % sizes[2]
    rest = rest // sizes[2]
    y = rest % sizes[1]
    rest = rest // sizes[1]
    z = rest % sizes[0]
    rest = rest // sizes[0]
    if CHANNELS_LAST:
        return rest, channel, z, y, x
    return rest // c, rest % c, z, y, x


@device_function
def position(window, tap, extent, count, KERNEL: tl.constexpr, DIM: tl.constexpr):
    """The offset of position number `tap` of a window, and whether it has that many inside; KERNEL as in
    `_constants`."""
    if KERNEL[DIM][0] == 0:
        start = window * extent // count
        return start + tap, tap < ((window + 1) * extent + count - 1) // count - start
    at = window * KERNEL[DIM][1] - KERNEL[DIM][2] + tap * KERNEL[DIM][3]
    return at, (at >= 0) & (at < extent)


@kernel
def pool_kernel(
    out_ptr,
    place_ptr,
    x_ptr,
    strides,
    channels,
    extents,
    counts,
    count,
    KERNEL: tl.constexpr,
    LOOPS: tl.constexpr,
    UNROLL: tl.constexpr,
    LEAST: tl.constexpr,
    CHANNELS_LAST: tl.constexpr,
    COMPUTE: tl.constexpr,
    OUT_DTYPE: tl.constexpr,
    WIDE: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """The largest element of each window.

    Args:
        place_ptr: for the place of the largest element in its plane, or None. In the order of `out`.
        strides: of `x`: batch, channel, three dimensions.
        extents, counts: elements and windows along each of three dimensions.
        count: of all windows.
        KERNEL: for each dimension the size of windows, 0 for adaptive ones, their stride, padding and dilation.
        LOOPS: positions of the largest window along each dimension.
        LEAST: the least integer of the dtype; None where it is floating.
        WIDE: offsets need 64 bits. The grid is (ceil(count / BLOCK),).
    """
    index = block_index(BLOCK, WIDE)
    mask = index < count
    n, c, z, y, x = coordinates(index, channels, counts, CHANNELS_LAST)
    plane = n * strides[0] + c * strides[1]
    best = tl.full((BLOCK,), float("-inf") if LEAST is None else LEAST, COMPUTE)  # of a window without elements
    place = index * 0 - 1
    for tap in tl.range(0, LOOPS[0] * LOOPS[1] * LOOPS[2], loop_unroll_factor=UNROLL):
        at_z, in_z = position(z, tap // (LOOPS[1] * LOOPS[2]), extents[0], counts[0], KERNEL, 0)
        at_y, in_y = position(y, tap // LOOPS[2] % LOOPS[1], extents[1], counts[1], KERNEL, 1)
        at_x, in_x = position(x, tap % LOOPS[2], extents[2], counts[2], KERNEL, 2)
        inside = mask & in_z & in_y & in_x
        offset = plane + at_z * strides[2] + at_y * strides[3] + at_x * strides[4]
        value = tl.load(x_ptr + offset, mask=inside, other=0).to(COMPUTE)
        # the first of equal ones; the last NaN
        better = inside & ((value > best) | (value != value) | (place < 0))
        best = tl.where(better, value, best)
        place = tl.where(better, (at_z * extents[1] + at_y) * extents[2] + at_x, place)
    tl.store(out_ptr + index, best.to(OUT_DTYPE), mask=mask)
    if place_ptr is not None:
        tl.store(place_ptr + index, tl.maximum(place, 0).to(tl.int64), mask=mask)


@device_function
def window_of(at, step, extent, count, KERNEL: tl.constexpr, DIM: tl.constexpr):
    """A window that a position may be in, number `step` of them, whether it is, and at which place of the window."""
    if KERNEL[DIM][0] == 0:
        window = at * count // extent + step
        return window, window < ((at + 1) * count + extent - 1) // extent, window * 0
    padded = at + KERNEL[DIM][2]
    window = padded // KERNEL[DIM][1] - step
    ahead = padded - window * KERNEL[DIM][1]
    inside = (window >= 0) & (window < count) & (ahead <= (KERNEL[DIM][0] - 1) * KERNEL[DIM][3])
    return window, inside & (ahead % KERNEL[DIM][3] == 0), ahead // KERNEL[DIM][3]


@kernel
def spread_kernel(
    out_ptr,
    grad_ptr,
    place_ptr,
    strides,
    place_strides,
    tap_strides,
    channels,
    extents,
    counts,
    count,
    KERNEL: tl.constexpr,
    LOOPS: tl.constexpr,
    UNROLL: tl.constexpr,
    LEAST: tl.constexpr,
    CHANNELS_LAST: tl.constexpr,
    COMPUTE: tl.constexpr,
    OUT_DTYPE: tl.constexpr,
    WIDE: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """For each element the sum of what the windows that it is in have for it.

    Args:
        place_ptr: the places of the windows' largest elements, which alone have the gradient; or None, to fold.
        strides: of the gradients of the windows; `place_strides` of their places.
        tap_strides: from one position of a window to the next along each dimension, where each has a value of its own.
        count: of all elements.
        LOOPS: along each dimension the most windows that an element is in.
    """
    index = block_index(BLOCK, WIDE)
    mask = index < count
    n, c, z, y, x = coordinates(index, channels, extents, CHANNELS_LAST)
    own = (z * extents[1] + y) * extents[2] + x
    total = tl.zeros((BLOCK,), COMPUTE)
    for step in tl.range(0, LOOPS[0] * LOOPS[1] * LOOPS[2], loop_unroll_factor=UNROLL):
        at_z, in_z, tap_z = window_of(z, step // (LOOPS[1] * LOOPS[2]), extents[0], counts[0], KERNEL, 0)
        at_y, in_y, tap_y = window_of(y, step // LOOPS[2] % LOOPS[1], extents[1], counts[1], KERNEL, 1)
        at_x, in_x, tap_x = window_of(x, step % LOOPS[2], extents[2], counts[2], KERNEL, 2)
        inside = mask & in_z & in_y & in_x
        offset = n * strides[0] + c * strides[1] + at_z * strides[2] + at_y * strides[3] + at_x * strides[4]
        if place_ptr is None:
            offset += tap_z * tap_strides[0] + tap_y * tap_strides[1] + tap_x * tap_strides[2]
        else:
            place = n * place_strides[0] + c * place_strides[1] + at_z * place_strides[2]
            place = place + at_y * place_strides[3] + at_x * place_strides[4]
            inside = inside & (tl.load(place_ptr + place, mask=inside, other=-1) == own)
        value = tl.load(grad_ptr + offset, mask=inside, other=0).to(COMPUTE)
        total += value
    tl.store(out_ptr + index, total.to(OUT_DTYPE), mask=mask)


def launch_pool(call: Call) -> None:
    """Run `pool_kernel` for a call of a `Pool`."""
    x, outs, size = call.arrays[0], call.outs, call.metadata["size"]
    windows = _three(x.shape[-len(size) :], size, call.metadata)
    arguments = (outs[0], outs[1] if len(outs) > 1 else None, x, five_strides(x, len(size)))
    launch_windows(pool_kernel, call, windows, x.shape[-1 - len(size)], arguments, Windows.most)


def launch_spread(call: Call) -> None:
    """Run `spread_kernel` for a call of a `Spread`."""
    grad, rank = call.arrays[0], len(call.metadata["extents"])
    windows = _three(call.metadata["extents"], grad.shape[-rank:], call.metadata)
    places = call.arrays[1] if len(call.arrays) > 1 else None
    strides = (five_strides(grad, rank), () if places is None else five_strides(places, rank), ())
    arguments = (call.outs[0], grad, places, *strides)
    launch_windows(spread_kernel, call, windows, grad.shape[-1 - rank], arguments, most_windows)


def launch_windows(
    kernel: Any, call: Call, windows: list[Windows], channels: int, arguments: tuple[Any, ...], most: Any
) -> None:
    """Launch one of the kernels, unless its result is empty.

    Args:
        windows: along three dimensions.
        channels: planes of a picture.
        arguments: the kernel's, up to the strides.
        most: from the windows of a dimension to how far the kernel's loop goes along it.
    """
    out = call.outs[0]
    if not out.size:
        return
    loops = tuple(map(most, windows))
    extents, counts = tuple(each.extent for each in windows), tuple(each.number for each in windows)
    block = block_size(out, _BLOCK, interpreted=_INTERPRETED_BLOCK, count=out.size)
    spans = [layout.span(each.shape, each.strides, 0) for each in call.arrays]
    products = [(extent + 1) * (count + 1) for extent, count in zip(extents, counts)]
    launch(
        kernel,
        (-(-out.size // block),),
        (*arguments, channels, extents, counts, out.size),
        {
            "KERNEL": tuple((each.kernel, each.stride, each.padding, each.dilation) for each in windows),
            "LOOPS": loops,
            "UNROLL": prod(loops) if prod(loops) <= _UNROLLED else 1,
            "LEAST": dtypes.iinfo(call.compute).min if call.compute.category == dtypes.INTEGER else None,
            # dense either way, so that its order is one of two
            "CHANNELS_LAST": not out.is_contiguous(),
            "COMPUTE": dtypes.int32 if call.compute is dtypes.bool_ else call.compute,
            "OUT_DTYPE": call.results[0],
            "WIDE": max(out.size + block, *products, *[high - low for low, high in spans]) >= 1 << 31,
            "BLOCK": block,
        },
        out.device,
        name=call.operator.name,
    )


def _three(extents: tuple[int, ...], size: tuple[int, ...], metadata: dict[str, Any]) -> list[Windows]:
    """The windows along three dimensions."""
    found = windows_of(
        extents, size, metadata["kernel"], metadata["stride"], metadata["padding"], metadata.get("dilation")
    )
    return [Windows(1, 1, 1, 1, 0, 1)] * (3 - len(found)) + found


def most_windows(windows: Windows) -> int:
    """The most windows that an element is in."""
    if windows.kernel:
        return (windows.kernel - 1) * windows.dilation // windows.stride + 1
    extent, count = windows.extent, windows.number
    return max([-(-(at + 1) * count // extent) - at * count // extent for at in range(extent)])


def five_strides(array: DeviceArray, rank: int) -> tuple[int, ...]:
    """The strides of batch, channels and three dimensions."""
    lead = array.strides[: array.ndim - rank]
    return (*(0,) * (2 - len(lead)), *lead, *(0,) * (3 - rank), *array.strides[array.ndim - rank :])
