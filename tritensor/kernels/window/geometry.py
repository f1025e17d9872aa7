"""The geometry of convolutions: sizes of results, and the sums along one dimension that a result is made of."""

from __future__ import annotations

from collections.abc import Sequence
from math import gcd
from typing import Any, NamedTuple

#: Taps up to which a processor's depthwise kernel has no loop over them, and sums in registers.
UNROLLED = 9


class Line(NamedTuple):
    """One dimension of a correlation, for i below `places` and j below `taps`:
    `out[first + i * every] = the sum over j of x[start + i * step + j * reach] * weight[tap + j * skip]`.
    """

    places: int
    taps: int
    start: int
    step: int = 1
    reach: int = 1
    first: int = 0
    every: int = 1
    tap: int = 0
    skip: int = 1

    @property
    def results(self) -> slice:
        """The elements of the result along the dimension."""
        return slice(self.first, self.first + (self.places - 1) * self.every + 1 if self.places else 0, self.every)

    @property
    def weights(self) -> slice:
        """The weights that are used, of a kernel along the dimension."""
        return slice(self.tap, self.tap + (self.taps - 1) * self.skip + 1 if self.taps else self.tap, self.skip)

    def within(self, start: int, stop: int) -> tuple[int, int]:
        """The range of the elements that the results from `start` to `stop` are made of."""
        far = (self.taps - 1) * self.reach
        return self.start + start * self.step + min(far, 0), self.start + (stop - 1) * self.step + max(far, 0) + 1


def forward_size(size: int, kernel: int, stride: int, padding: int, dilation: int) -> int:
    """The number of windows along a dimension; less than 1 where none fits.

    >>> forward_size(56, 3, 1, 1, 1), forward_size(224, 7, 2, 3, 1), forward_size(2, 3, 1, 0, 1)
    (56, 112, 0)
    """
    return (size + 2 * padding - dilation * (kernel - 1) - 1) // stride + 1


def transposed_size(size: int, kernel: int, stride: int, padding: int, dilation: int, more: int) -> int:
    """The size of a transposed convolution's result; `more` is the output padding.

    >>> transposed_size(5, 3, 2, 1, 1, 1)
    10
    """
    return (size - 1) * stride - 2 * padding + dilation * (kernel - 1) + more + 1


def same_padding(kernel: int, dilation: int) -> int:
    """The zeros before the first element for `padding="same"`; an odd one comes behind the last.

    >>> same_padding(3, 1), same_padding(2, 1)
    (1, 0)
    """
    return dilation * (kernel - 1) // 2


def forward_line(size: int, kernel: int, stride: int, padding: int, dilation: int) -> Line:
    """The dimension of a convolution with `size` results."""
    return Line(size, kernel, -padding, stride, dilation)


def backward_lines(size: int, kernel: int, stride: int, padding: int, dilation: int) -> list[Line]:
    """The dimension of a transposed convolution with `size` results: a correlation for each phase of the stride.

    Result r + t * stride gets the products of x[p] and weight[k] where p * stride + k * dilation - padding is that. For
    one r those k are every (stride / common)-th one, with the greatest common divisor of stride and dilation.

    >>> backward_lines(6, 3, 2, 1, 1)
    [Line(places=3, taps=1, start=0, step=1, reach=-1, first=0, every=2, tap=1, skip=2), \
Line(places=3, taps=2, start=1, step=1, reach=-1, first=1, every=2, tap=0, skip=2)]
    """
    common = gcd(stride, dilation)
    skip, reach = stride // common, -(dilation // common)
    lines = []
    for first in range(min(stride, size)):
        count = -(-(size - first) // stride)
        tap = next((k for k in range(min(skip, kernel)) if (first + padding - k * dilation) % stride == 0), kernel)
        taps = -(-(kernel - tap) // skip)
        start = (first + padding - tap * dilation) // stride
        lines.append(Line(count, taps, start, 1, reach, first, stride, min(tap, kernel), skip))
    return lines


def grouped(array: Any, groups: int) -> Any:
    """A view of an array of (images, channels, *sizes) with the groups in a dimension of their own."""
    images, channels, *sizes = array.shape
    return array.reshape((images, groups, channels // groups, *sizes))


def last(keys: Sequence[slice]) -> Any:
    """The index of slices of the last dimensions."""
    return (..., *keys)
