"""The NumPy half of pooling: windows along each dimension, and sweeps over one dimension after the other.

Maxima over a box are those over its sides in turn, so a window of 3 x 3 takes 3 + 3 passes and not 9. A sweep
works on strided views of a few planes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from math import prod
from typing import Any, NamedTuple

import numpy as np

from ...host.threads import in_pieces
from ...types import formats

ndarray = np.ndarray
Taps = Iterator[tuple[int, slice, slice]]

# Elements of the input in a block. NumPy's calls take turns in Python, so that smaller blocks, which fit the level-2
# cache, keep threads waiting: windows of 3 x 3 over 8 x 64 x 56 x 56 elements take 2.9 ms on two threads, 4.9 with a
# quarter of it.
_BLOCK = 1 << 17
# Channels of a block where they are innermost: 4 cache lines of float32.
_CHANNELS = 64


class Windows(NamedTuple):
    """The windows along one dimension of `extent` elements; `number` of them.

    Window o has the positions `o * stride - padding + k * dilation` for k below `kernel`, as far as they are inside;
    or, where `kernel` is 0, the `extent / number` positions from `o * extent / number` on, rounded outwards (adaptive).
    """

    extent: int
    number: int
    kernel: int
    stride: int
    padding: int
    dilation: int

    def tap(self, k: int) -> tuple[slice, slice] | None:
        """The windows whose position number k is inside, and these positions."""
        shift = k * self.dilation - self.padding
        first, last = max(0, -(shift // self.stride)), min(self.number - 1, (self.extent - 1 - shift) // self.stride)
        if first > last:
            return None
        return slice(first, last + 1), slice(first * self.stride + shift, last * self.stride + shift + 1, self.stride)

    def bounds(self, window: int) -> tuple[int, int]:
        """The first position of an adaptive window, and the one after its last."""
        return window * self.extent // self.number, -(-(window + 1) * self.extent // self.number)

    def taps(self) -> Taps:
        """A number k, windows, and their positions number k, until all positions inside have occurred; k rises."""
        if self.kernel:
            for k in range(self.kernel):
                found = self.tap(k)
                if found is not None:
                    yield k, *found
        else:
            for window in range(self.number):
                for k, position in enumerate(range(*self.bounds(window))):
                    yield k, slice(window, window + 1), slice(position, position + 1)

    def firsts(self) -> Taps:
        """The same for the first position inside of each window; the positions are empty where none is."""
        if not self.kernel:
            yield from (tap for tap in self.taps() if not tap[0])
            return
        whole = min(-(-self.padding // self.stride), self.number)
        for window in range(whole):
            start = window * self.stride - self.padding
            k = -(start // self.dilation)
            position = start + k * self.dilation
            inside = k < self.kernel and position < self.extent
            yield k if inside else 0, slice(window, window + 1), slice(position, position + inside)
        start, last = whole * self.stride - self.padding, (self.number - 1) * self.stride - self.padding
        if whole < self.number:
            yield 0, slice(whole, self.number), slice(start, last + 1, self.stride)

    def starts(self) -> ndarray:
        """The position number 0 of each window, which may be outside."""
        if not self.kernel:
            return np.arange(self.number) * self.extent // self.number
        return np.arange(self.number) * self.stride - self.padding

    def most(self) -> int:
        """The most positions that a window has."""
        return self.kernel or max([stop - start for start, stop in map(self.bounds, range(self.number))], default=0)


def windows_of(
    extents: Sequence[int],
    size: Sequence[int],
    kernel: Sequence[int],
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int] | None = None,
) -> list[Windows]:
    """The windows along each dimension; without a kernel adaptive ones, which are regular where `size` divides."""
    if kernel:
        return [Windows(*each) for each in zip(extents, size, kernel, stride, padding, dilation or (1,) * len(size))]
    found = []
    for extent, count in zip(extents, size):
        step = extent // count if count and extent % count == 0 else 0
        found.append(Windows(extent, count, step, step, 0, 1))
    return found


def is_channels_last(shape: tuple[int, ...], strides: tuple[int, ...]) -> bool:
    """True if the channels of a batch of pictures are innermost in memory."""
    return len(shape) > 3 and formats.suggested(shape, strides) is not formats.contiguous_format


def has_channels_last(arrays: Sequence[Any], metadata: object = None) -> bool:
    """`is_channels_last` of the first array of a call on the CPU, where rows of native code are then long."""
    x = arrays[0]
    return is_channels_last(x.shape, tuple([step // x.itemsize for step in x.strides]))


class _Planes:
    """An input as (planes, *dimensions), or where channels are innermost (batch, *dimensions, channels), in blocks."""

    def __init__(self, x: ndarray, rank: int, keeps: bool) -> None:
        step = x.itemsize
        shape = x.shape
        self.rank, self.lead = rank, shape[: x.ndim - rank]
        strides = tuple([each // step for each in x.strides])
        self.last = keeps and is_channels_last(shape, formats.reported_strides(shape, strides))
        self.blocks: list[tuple[Any, ...]] = []
        if self.last:
            many = max(1, _BLOCK // (prod(shape[2:]) * min(shape[1], _CHANNELS)))
            for picture in range(0, shape[0], many):
                for channel in range(0, shape[1], _CHANNELS):
                    where = slice(picture, picture + many), slice(channel, channel + _CHANNELS)
                    self.blocks.append((where[0], *(slice(None),) * rank, where[1]))
        else:
            many = max(1, _BLOCK // max(prod(shape[-rank:]), 1))
            self.blocks = [(slice(start, start + many),) for start in range(0, prod(self.lead), many)]

    def of(self, array: ndarray) -> ndarray:
        """Another array with the same first dimensions, in this order."""
        if self.last:
            return array.transpose(0, *range(2, self.rank + 2), 1)
        return array.reshape(prod(self.lead), *array.shape[-self.rank :])

    def new(self, sizes: Sequence[int], dtype: Any) -> tuple[ndarray, ndarray]:
        """A new array of other dimensions, as it is to be returned and in this order."""
        if self.last:
            made = np.empty((self.lead[0], *sizes, self.lead[1]), dtype)
            return made.transpose(0, self.rank + 1, *range(1, self.rank + 1)), made
        made = np.empty((*self.lead, *sizes), dtype)
        return made, made.reshape(prod(self.lead), *sizes)

    def each(self, work: Callable[[tuple[Any, ...]], Any]) -> None:
        """Call `work` with the index of each block, on all threads."""
        blocks = self.blocks
        in_pieces(lambda start, stop: [work(block) for block in blocks[start:stop]], len(blocks), 1)


def _at(axis: int, where: slice) -> tuple[slice, ...]:
    return (*(slice(None),) * axis, where)


def _sized(shape: tuple[int, ...], axis: int, size: int) -> tuple[int, ...]:
    return (*shape[:axis], size, *shape[axis + 1 :])


def _reader(x: ndarray, windows: Windows, axis: int) -> Callable[[slice], ndarray]:
    """The function from positions along a dimension to the elements there.

    Every second element is copied together at the first use where neighbours are: comparing two such rows of 15,000
    elements takes 2 us then, and 10 where they have gaps.
    """
    stride = windows.stride if windows.kernel else 1
    if stride == 1 or prod(x.shape[axis + 1 :]) > 2 * _CHANNELS:
        return lambda where: x[_at(axis, where)]
    phases: dict[int, ndarray] = {}

    def read(where: slice) -> ndarray:
        if where.step != stride:
            return x[_at(axis, where)]
        first, phase = divmod(where.start, stride)
        if phase not in phases:
            phases[phase] = np.ascontiguousarray(x[_at(axis, slice(phase, None, stride))])
        return phases[phase][_at(axis, slice(first, first + len(range(where.start, where.stop, stride))))]

    return read


def largest(x: ndarray, windows: list[Windows], places: bool, keeps: bool) -> tuple[ndarray, ...]:
    """The largest element of each window, and with `places` where it is among the elements of its plane.

    Of equal ones the first is taken, of NaN the last, as PyTorch does.
    """
    planes = _Planes(x, len(windows), keeps)
    source, sizes = planes.of(x), [each.number for each in windows]
    out, target = planes.new(sizes, x.dtype)
    made, size = planes.new(sizes, np.int64) if places else None, prod(each.extent for each in windows)
    table, starts, counts = _places_by_code(windows, planes.last)
    kind, outside = np.min_scalar_type(len(table) - 1), any(each.dilation > 1 for each in windows)
    # with places from the innermost on: of equal elements the first of each row, and then the first row
    order = range(1, len(windows) + 1)[:: -1 if places else 1]

    def work(block: tuple[Any, ...]) -> None:
        best, code, nan = source[block], None, False
        if made is not None:
            nan, code = best.dtype.kind == "f" and bool(np.isnan(best.max())), np.zeros((1,) * best.ndim, kind)
        for axis in order:
            best, code = _sweep(best, code, windows[axis - 1], axis, prod(counts[axis:]), nan)
        target[block] = best
        if made is not None:
            part = made[1][block]  # taken there, a new array of 3 MB would take 2.9 ms in place of 0.3
            np.add(table.take(code, mode="clip", out=part), starts, out=part)  # type: ignore[call-overload]
            if outside:  # of a window without any element inside
                np.clip(part, 0, size - 1, out=part)

    planes.each(work)
    return (out,) if made is None else (out, made[0])


def _places_by_code(windows: list[Windows], last: bool) -> tuple[ndarray, ndarray, list[int]]:
    """How far each position of a window is from its first, in the plane; where the first ones are; and how many
    positions there are along each dimension. A code is the position's number, with the last dimension innermost."""
    counts, unit = [each.most() for each in windows], 1
    table, starts = np.zeros((1,) * len(windows), np.int64), np.zeros((1,) * len(windows), np.int64)
    for axis in range(len(windows) - 1, -1, -1):
        shape = (-1,) + (1,) * (len(windows) - axis - 1)
        table = table + (np.arange(counts[axis]) * (windows[axis].dilation * unit)).reshape(shape)
        starts = starts + (windows[axis].starts() * unit).reshape(shape)
        unit *= windows[axis].extent
    return table.reshape(-1), starts[..., None] if last else starts, counts


def _sweep(
    x: ndarray, code: ndarray | None, windows: Windows, axis: int, unit: int, nan: bool
) -> tuple[ndarray, ndarray | None]:
    """The largest elements of the windows along one dimension.

    Args:
        code: for each element the number of its position in the windows along the dimensions before; returned for the
            largest ones, with their number along this one times `unit` added. Numbers rise, so that the largest of
            those which were an improvement is the last: four times faster than an assignment where it was one.
    """
    shape = _sized(x.shape, axis, windows.number)
    out, read = np.empty(shape, x.dtype), _reader(x, windows, axis)
    kept = None
    if code is not None:
        kept, read_code = np.empty(shape, code.dtype), _reader(np.broadcast_to(code, x.shape), windows, axis)
    begun = list(windows.firsts())
    for k, where, positions in begun:
        inside = positions.start < positions.stop
        out[_at(axis, where)] = read(positions) if inside else _least(x.dtype)
        if kept is not None:
            kept[_at(axis, where)] = read_code(positions) + kept.dtype.type(k * unit) if inside else 0
    for k, where, positions in windows.taps():
        if (k, where, positions) == begun[0]:
            continue
        value, yet = read(positions), out[_at(axis, where)]
        if kept is not None:
            better = value > yet
            if nan:
                better |= value != value
            number = (read_code(positions) + kept.dtype.type(k * unit)) * better
            np.maximum(kept[_at(axis, where)], number, out=kept[_at(axis, where)])
        np.maximum(yet, value, out=yet)
    return out, kept


def _least(kind: np.dtype) -> Any:
    return -np.inf if kind.kind == "f" else np.iinfo(kind).min


def spread_largest(grad: ndarray, places: ndarray, extents: tuple[int, ...]) -> ndarray:
    """Zeros, with the gradient of each window added where its largest element is."""
    planes = _Planes(grad, len(extents), True)
    source, where, size = planes.of(grad), planes.of(places), prod(extents)
    out, target = planes.new(extents, grad.dtype)

    def work(block: tuple[Any, ...]) -> None:
        values, flat = source[block], where[block]
        inner = values.shape[-1] if planes.last else 1
        starts = (np.arange(len(values)) * (size * inner)).reshape((-1,) + (1,) * (values.ndim - 1))
        flat = flat * inner + (starts + np.arange(inner)) if planes.last else flat + starts
        sums = np.zeros(target[block].size, values.dtype)
        np.add.at(sums, flat.reshape(-1), values.reshape(-1))  # in the order of the windows
        target[block] = sums.reshape(target[block].shape)

    planes.each(work)
    return out
