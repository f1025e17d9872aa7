"""The NumPy half of pooling: windows along each dimension, and sweeps over one dimension after the other.

Sums and maxima over a box are those over its sides in turn, so a window of 3 x 3 takes 3 + 3 passes and not 9. A sweep
works on strided views of a few planes that fit the cache.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from math import prod
from typing import Any, NamedTuple

import numpy as np

from ... import formats
from ...threads import in_pieces

__all__ = ["Windows", "average", "is_channels_last", "largest", "spread_average", "spread_largest", "windows_of"]

ndarray = np.ndarray
Pairs = Iterator[tuple[slice, slice]]

# Elements of the input in a block: one in float32 and its sweeps' results fit the level-2 cache.
_BLOCK = 1 << 15
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

    def pairs(self) -> Pairs:
        """Windows with a position of each, until they have had all of their positions, in rising order."""
        if self.kernel:
            yield from filter(None, map(self.tap, range(self.kernel)))
        else:
            for window in range(self.number):
                for position in range(*self.bounds(window)):
                    yield slice(window, window + 1), slice(position, position + 1)

    def firsts(self) -> Pairs:
        """Windows with their first position inside, each once."""
        if not self.kernel:
            for window in range(self.number):
                yield slice(window, window + 1), slice(self.bounds(window)[0], self.bounds(window)[0] + 1)
            return
        whole = min(-(-self.padding // self.stride), self.number)
        for window in range(whole):
            start = window * self.stride - self.padding
            # with dilation no position may be inside: the window then counts as one of the last element
            start = min(start + -(start // self.dilation) * self.dilation, self.extent - 1)
            yield slice(window, window + 1), slice(start, start + 1)
        start, last = whole * self.stride - self.padding, (self.number - 1) * self.stride - self.padding
        if whole < self.number:
            yield slice(whole, self.number), slice(start, last + 1, self.stride)

    def lengths(self, padded: bool) -> ndarray:
        """How many positions each window has; with `padded` those in the padding count."""
        if not self.kernel:
            return np.array([stop - start for start, stop in map(self.bounds, range(self.number))])
        start = np.arange(self.number) * self.stride - self.padding
        if padded:
            return np.minimum(start + self.kernel, self.extent + self.padding) - start
        return np.minimum(start + self.kernel, self.extent) - np.maximum(start, 0)


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
    """Whether the channels of a batch of pictures are innermost in memory."""
    return len(shape) > 3 and formats.suggested(shape, strides) is not formats.contiguous_format


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
            for picture in range(shape[0]):
                for channel in range(0, shape[1], _CHANNELS):
                    where = slice(picture, picture + 1), slice(channel, channel + _CHANNELS)
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


def largest(x: ndarray, windows: list[Windows], places: bool, keeps: bool) -> tuple[ndarray, ...]:
    """The largest element of each window, and with `places` where it is among the elements of its plane.

    Of equal ones the first is taken, of NaN the last, as PyTorch does.
    """
    planes = _Planes(x, len(windows), keeps)
    source, sizes = planes.of(x), [each.number for each in windows]
    out, target = planes.new(sizes, x.dtype)
    found, found_target = planes.new(sizes, np.int64) if places else (out, out)

    def work(block: tuple[Any, ...]) -> None:
        best, place = source[block], None
        nan = places and best.dtype.kind == "f" and bool(np.isnan(best.max()))
        unit = 1
        # from the innermost on: of equal elements the first of each row, and then the first row
        for axis in range(len(windows), 0, -1):
            if places:
                steps = (np.arange(windows[axis - 1].extent) * unit).reshape((-1,) + (1,) * (best.ndim - axis - 1))
                place = np.broadcast_to(steps, best.shape) if place is None else place + steps
                unit *= windows[axis - 1].extent
            best, place = _sweep(best, place, windows[axis - 1], axis, nan)
        target[block] = best
        if place is not None:
            found_target[block] = place

    planes.each(work)
    return (out, found) if places else (out,)


def _sweep(
    best: ndarray, place: ndarray | None, windows: Windows, axis: int, nan: bool
) -> tuple[ndarray, ndarray | None]:
    """The largest elements of the windows along one dimension, and their places."""
    shape = _sized(best.shape, axis, windows.number)
    out = np.empty(shape, best.dtype)
    kept = None if place is None else np.empty(shape, np.int64)
    begun = list(windows.firsts())
    for where, positions in begun:
        out[_at(axis, where)] = best[_at(axis, positions)]
        if kept is not None and place is not None:
            kept[_at(axis, where)] = place[_at(axis, positions)]
    for pair in windows.pairs():
        if pair == begun[0]:
            continue
        value, largest_yet = best[_at(axis, pair[1])], out[_at(axis, pair[0])]
        if kept is not None and place is not None:
            better = value > largest_yet
            if nan:
                better |= value != value
            np.copyto(kept[_at(axis, pair[0])], place[_at(axis, pair[1])], where=better)
        np.maximum(largest_yet, value, out=largest_yet)
    return out, kept


def spread_largest(grad: ndarray, places: ndarray, extents: tuple[int, ...]) -> ndarray:
    """Zeros, with the gradient of each window added where its largest element is."""
    planes = _Planes(grad, len(extents), True)
    source, where, size = planes.of(grad), planes.of(places), prod(extents)
    out, target = planes.new(extents, grad.dtype)

    def work(block: tuple[Any, ...]) -> None:
        values, result = source[block], target[block]
        inner = values.shape[-1] if planes.last else 1
        starts = np.arange(len(values)) * (size * inner)
        flat = where[block] * inner + starts.reshape((-1,) + (1,) * (values.ndim - 1))
        if planes.last:
            flat += np.arange(inner)
        # in float64 in the order of the windows; 4 times faster than `np.add.at`
        sums = np.bincount(flat.reshape(-1), values.reshape(-1), len(values) * size * inner)
        result[...] = sums.reshape(result.shape)

    planes.each(work)
    return out


def _divisors(windows: list[Windows], divisor: int | None, padded: bool, kind: Any, last: bool) -> Any:
    """What the sum of each window is divided by: one number, or one for each window of a plane."""
    if divisor is not None:
        return kind.type(divisor)
    found = np.ones((1,) * len(windows), np.int64)
    for axis, each in enumerate(windows):
        found = found * each.lengths(padded).reshape((-1,) + (1,) * (len(windows) - axis - 1))
    return found.astype(kind)[..., None] if last else found.astype(kind)


def average(x: ndarray, windows: list[Windows], divisor: int | None, padded: bool, keeps: bool) -> ndarray:
    """The sum of each window, divided by `divisor`, or by how many elements it has."""
    planes = _Planes(x, len(windows), keeps)
    source = planes.of(x)
    out, target = planes.new([each.number for each in windows], x.dtype)
    divisors = _divisors(windows, divisor, padded, x.dtype, planes.last)

    def work(block: tuple[Any, ...]) -> None:
        total = source[block]
        for axis, each in enumerate(windows, 1):
            total = _add(total, ((there, here) for here, there in each.pairs()), axis, each.number)
        if total.dtype.kind in "iu":  # C's division, towards zero
            total = total - np.fmod(total, divisors)
            target[block] = total // divisors
        else:
            np.divide(total, divisors, out=target[block])

    planes.each(work)
    return out


def spread_average(
    grad: ndarray, extents: tuple[int, ...], windows: list[Windows], divisor: int | None, padded: bool
) -> ndarray:
    """For each element the sum of the windows' gradients that it is in, each divided as in `average`."""
    planes = _Planes(grad, len(windows), True)
    source = planes.of(grad)
    out, target = planes.new(extents, grad.dtype)
    divisors = _divisors(windows, divisor, padded, grad.dtype, planes.last)

    def work(block: tuple[Any, ...]) -> None:
        total = source[block] / divisors
        for axis, each in enumerate(windows, 1):
            total = _add(total, each.pairs(), axis, each.extent)
        target[block] = total

    planes.each(work)
    return out


def _add(x: ndarray, pairs: Pairs, axis: int, size: int) -> ndarray:
    """An array of `size` along a dimension; for each pair the slice `pair[0]` of `x` is added to `pair[1]` of it."""
    out = np.zeros(_sized(x.shape, axis, size), x.dtype)
    for here, there in pairs:
        out[_at(axis, there)] += x[_at(axis, here)]
    return out
