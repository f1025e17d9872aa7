"""Unfolding: the windows of pictures as the columns of a matrix; and folding, which adds them up to a picture again.

Each is the other's gradient. Pictures are (N, C, H, W) or (C, H, W), columns (N, C * positions, windows).
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from itertools import product
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from ...errors import ShapeError
from ...operators import Operator, Shapes
from ...operators.lifting.batching import in_front_or_merged
from ...operators.rules import ANY
from ...runtime.call import Call
from ...runtime.launch import kernel
from ..addressing import block_index
from ..pairs import is_complex, launch_by_parts
from .pooling_kernel import coordinates, five_strides, launch_windows, most_windows, position, spread_kernel
from .pooling_reference import Windows, windows_of

if TYPE_CHECKING:
    import triton.language as tl

ndarray = np.ndarray
_NAMES = ("kernel", "stride", "padding", "dilation")


def windows_across(extents: Any, kernel: tuple[int, ...], stride: Any, padding: Any, dilation: Any) -> list[Windows]:
    """All windows along each dimension."""
    size = [
        (extent + 2 * pad - gap * (length - 1) - 1) // step + 1
        for extent, length, step, pad, gap in zip(extents, kernel, stride, padding, dilation)
    ]
    return windows_of(extents, size, kernel, stride, padding, dilation)


def _views(picture: ndarray, columns: ndarray, windows: list[Windows]) -> Iterator[tuple[ndarray, ndarray]]:
    """For each position of the windows the elements of the pictures, and what stands for them in the columns."""
    lead = picture.shape[:-2]
    kernel, size = [each.kernel for each in windows], [each.number for each in windows]
    columns = columns.reshape(*lead, *kernel, *size)
    rows, cols = windows
    for y, x in product(*map(range, kernel)):
        tall, wide = rows.tap(y), cols.tap(x)
        if tall is not None and wide is not None:
            yield picture[..., tall[1], wide[1]], columns[..., y, x, tall[0], wide[0]]


def _column_shape(shape: tuple[int, ...], windows: list[Windows]) -> tuple[int, ...]:
    positions, count = prod(each.kernel for each in windows), prod(each.number for each in windows)
    return (*shape[:-3], shape[-3] * positions, count)


def _im2col(x: np.ndarray, *, kernel: tuple[int, ...], stride: tuple[int, ...], padding: tuple[int, ...], dilation):
    """The windows of pictures as columns; zeros where they go beyond the pictures."""
    windows = windows_across(x.shape[-2:], kernel, stride, padding, dilation)
    out = np.zeros(_column_shape(x.shape, windows), x.dtype)
    for picture, column in _views(x, out, windows):
        column[...] = picture
    return out


def _col2im(columns: np.ndarray, *, extents: tuple[int, ...], kernel: tuple[int, ...], stride, padding, dilation):
    """Pictures of the size `extents`, each element the sum of what stands for it in the columns."""
    windows = windows_across(extents, kernel, stride, padding, dilation)
    shape = (*columns.shape[:-2], columns.shape[-2] // prod(kernel), *extents)
    out = np.zeros(shape, columns.dtype)
    for picture, column in _views(out, np.ascontiguousarray(columns), windows):
        picture += column
    return out


@kernel
def unfold_kernel(
    out_ptr,
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
    """Copy the element of each position of each window; the arguments are those of `pool_kernel`."""
    index = block_index(BLOCK, WIDE)
    mask = index < count
    rest, tap, _, y, x = coordinates(index, LOOPS[1] * LOOPS[2], counts, CHANNELS_LAST)
    at_y, in_y = position(y, tap // LOOPS[2], extents[1], counts[1], KERNEL, 1)
    at_x, in_x = position(x, tap % LOOPS[2], extents[2], counts[2], KERNEL, 2)
    offset = rest // channels * strides[0] + rest % channels * strides[1] + at_y * strides[3] + at_x * strides[4]
    value = tl.load(x_ptr + offset, mask=mask & in_y & in_x, other=0)
    tl.store(out_ptr + index, value.to(OUT_DTYPE), mask=mask)


class Folding(Operator):
    """Between pictures and columns."""

    family = "folding"
    about = "Each element gathers from the windows it is in, so that sums have a fixed order."
    on_pairs = True
    repeatable = True


class Unfold(Folding):
    """Pictures to columns."""

    batched = staticmethod(partial(in_front_or_merged, most=4))

    def allocate(self, call: Call) -> Shapes:
        """A column for each window."""
        x = call.arrays[0]
        return [(_column_shape(x.shape, self.windows(call)), call.results[0].numpy)]

    def windows(self, call: Call) -> list[Windows]:
        """The windows along height and width."""
        metadata = call.metadata
        return windows_across(call.arrays[0].shape[-2:], *[metadata[name] for name in _NAMES])

    def launch(self, call: Call) -> None:
        """A program for a block of the columns' elements."""
        if is_complex(call.arrays[0]):
            launch_by_parts(call)
            return
        x, windows = call.arrays[0], [Windows(1, 1, 1, 1, 0, 1), *self.windows(call)]
        arguments = (call.outs[0], x, five_strides(x, 2))
        launch_windows(unfold_kernel, call, windows, x.shape[-3], arguments, lambda each: each.kernel)

    def calls(self, draw: Any) -> Iterator[tuple[Any, ...]]:
        """Windows that overlap, that leave elements out, padded, dilated."""
        for shape, *windows in _CALLS:
            yield [draw(shape)], dict(zip(_NAMES, windows))


class Fold(Folding):
    """Columns to pictures."""

    batched = staticmethod(partial(in_front_or_merged, most=3))

    def prepare(self, call: Call) -> None:
        """Check that the columns are those of such windows."""
        shape, (extents, kernel, stride, padding, dilation) = call.inputs[0]._data.shape, call.metadata.values()
        if shape[-2] % prod(kernel):
            raise ShapeError(
                "Expected size of input's dimension 1 to be divisible by the product of kernel_size, but got "
                f"input.size(1)={shape[-2]} and kernel_size={kernel}."
            )
        tall, wide = (each.number for each in windows_across(extents, kernel, stride, padding, dilation))
        if tall * wide != shape[-1] or min(tall, wide) < 1:
            raise ShapeError(
                f"Given output_size={extents}, kernel_size={kernel}, dilation={dilation}, padding={padding}, "
                f"stride={stride}, expected size of input's dimension 2 to match the calculated number of sliding "
                f"blocks {tall} * {wide} = {tall * wide}, but got input.size(2)={shape[-1]}."
            )

    def allocate(self, call: Call) -> Shapes:
        """The pictures."""
        columns, metadata = call.arrays[0], call.metadata
        channels = columns.shape[-2] // prod(metadata["kernel"])
        return [((*columns.shape[:-2], channels, *metadata["extents"]), call.results[0].numpy)]

    def launch(self, call: Call) -> None:
        """Each element gathers from the columns."""
        if is_complex(call.arrays[0]):
            launch_by_parts(call)
            return
        columns, metadata = call.arrays[0], call.metadata
        windows = windows_across(metadata["extents"], *[metadata[name] for name in _NAMES])
        tall, wide = metadata["kernel"]
        channels, step, between = columns.shape[-2] // (tall * wide), columns.strides[-2], columns.strides[-1]
        batch = columns.strides[0] if columns.ndim == 3 else 0
        strides = (batch, step * tall * wide, 0, between * windows[1].number, between)
        arguments = (call.outs[0], columns, None, strides, (), (0, step * wide, step))
        windows = [Windows(1, 1, 1, 1, 0, 1), *windows]
        launch_windows(spread_kernel, call, windows, channels, arguments, most_windows)

    def calls(self, draw: Any) -> Iterator[tuple[Any, ...]]:
        """The columns of `Unfold.calls`."""
        for shape, *windows in _CALLS:
            across = windows_across(shape[-2:], *windows)
            yield [draw(_column_shape(shape, across))], {"extents": shape[-2:], **dict(zip(_NAMES, windows))}


_CALLS: tuple[Any, ...] = (
    ((2, 2, 4, 3), (2, 2), (1, 1), (0, 0), (1, 1)),
    ((1, 2, 5, 4), (2, 3), (2, 1), (1, 2), (2, 1)),
    ((2, 5, 5), (1, 2), (3, 2), (0, 1), (1, 1)),
    ((0, 2, 3, 3), (2, 2), (1, 1), (0, 0), (1, 1)),
)


im2col = Unfold("im2col", _im2col, ANY)
col2im = Fold("col2im", _col2im, ANY)
im2col.linear = col2im.linear = "first"


@im2col.gradient
def _(grad, x_shape: tuple[int, ...], kernel: tuple[int, ...], stride: tuple[int, ...], padding, dilation):
    return col2im(grad, extents=x_shape[-2:], kernel=kernel, stride=stride, padding=padding, dilation=dilation)


@col2im.gradient
def _(grad, kernel: tuple[int, ...], stride: tuple[int, ...], padding: tuple[int, ...], dilation: tuple[int, ...]):
    return im2col(grad, kernel=kernel, stride=stride, padding=padding, dilation=dilation)
