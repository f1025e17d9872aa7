"""Copies of what convolutions read, so that what a step of their kernels reads lies side by side."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from ...memory import buffer
from ...memory.array import DeviceArray
from ...operators import copy_into
from ...runtime.launch import launch
from ...types import layout
from ..blocks import block_size, power_of_two
from .convolution_kernel import spread_kernel
from .geometry import Line

# The least and the longest step of a matrix instruction along the depth.
LEAST_DEPTH, STEP = 16, 64


def three(values: Sequence[int], missing: int) -> tuple[int, ...]:
    """Three dimensions, of which the first may be missing."""
    return (*[missing] * (3 - len(values)), *values)


def packed(array: DeviceArray, outer: Sequence[int], inner: Sequence[int]) -> DeviceArray:
    """A copy with some dimensions outside of those of space, and the others inside."""
    order = (*outer, *range(3, array.ndim), *inner)
    steps = layout.contiguous_strides(tuple([array.shape[axis] for axis in order]))
    strides = tuple([steps[order.index(axis)] for axis in range(array.ndim)])
    made = buffer.empty(array.shape, array.dtype, array.device, strides)
    copy_into(made, array)
    return made


class Fold(NamedTuple):
    """A correlation of few channels as one of as many as all taps of a line have: they lie side by side in a copy of
    the input with zeros around each line.

    With 3 channels 7 taps of a line are 28 elements with 4 channels, and 32 with zeros: 16 bytes can be copied at once,
    which begin at multiples of 16, and the depth is 7 * 32. One by one they take 15 times as long by the count.
    """

    #: channels side by side, those of a line's taps, and elements of a line
    width: int
    depth: int
    pitch: int
    lines: list[Line]

    @classmethod
    def of(cls, x: DeviceArray, lines: list[Line]) -> Fold:
        """That of a correlation of x."""
        line, width = lines[-1], max(power_of_two(x.shape[2]), 2)
        depth = line.taps * width
        depth = max(power_of_two(depth), LEAST_DEPTH) if depth <= STEP else -(-depth // STEP) * STEP
        pitch = (line.places - 1) * line.step * width + depth
        return cls(width, depth, -(-pitch // LEAST_DEPTH) * LEAST_DEPTH, lines)

    @property
    def folded(self) -> list[Line]:
        """Its dimensions then."""
        return [*(line._replace(start=0) for line in self.lines[:-1]), Line(self.lines[-1].places, 1, 0)]

    def spread(self, x: DeviceArray) -> DeviceArray:
        """The input as one of `depth` channels, which overlap, and with its padding."""
        *spans, _ = [line.within(0, line.places) for line in self.lines]
        first = (*[low for low, _ in spans], self.lines[-1].start)
        made = self._copied(x[:, 0], first, (*[high - low for low, high in spans], self.pitch))
        images, *sizes, _ = made.shape
        line = self.lines[-1]
        steps = (made.strides[0], 0, 1, *made.strides[1:-1], line.step * self.width)
        return made.as_strided((images, 1, self.depth, *sizes, line.places), steps, made.offset)

    def packed(self, weight: DeviceArray) -> DeviceArray:
        """The weights for it, of one tap along the last dimension."""
        rows, *taps = weight.shape[1], *weight.shape[3:-1]
        made = self._copied(weight[0], (0,) * len(self.lines), (*taps, self.depth))
        steps = (0, made.strides[0], 1, *made.strides[1:-1], 1)
        return made.as_strided((1, rows, self.depth, *taps, 1), steps, made.offset)

    def _copied(self, x: DeviceArray, first: tuple[int, ...], sizes: tuple[int, ...]) -> DeviceArray:
        made = buffer.empty((x.shape[0], *sizes), x.dtype, x.device)
        block = block_size(x, min(power_of_two(self.pitch), 1024), interpreted=1 << 16, count=sizes[-1])
        strides = (*x.strides[:2], *three(x.strides[2:], 0))
        reach = sum(abs(step) * (size + abs(at)) for step, size, at in zip(x.strides[2:], sizes, first, strict=True))
        far = max(layout.span(x.shape, x.strides, 0)[1] + reach, made.size)
        geometry = (*three(sizes, 1), three(first, 0), three(x.shape[2:], 1))
        launch(
            spread_kernel,
            (made.size // sizes[-1], -(-sizes[-1] // block)),
            (made, x, x.shape[1], *geometry, strides),
            {"WIDE": far >= 1 << 31, "WIDTH": self.width, "BLOCK": block},
            x.device,
            warps=max(min(block // 256, 4), 1),
            name="convolution_spread",
        )
        return made
