"""Layers that only change the shape or the order of their input."""

from __future__ import annotations

from collections.abc import Sequence

from ..errors import ArgumentError
from ..functional.views.views import flatten, unflatten
from ..tensors import Tensor
from .layer import Layer, declared

__all__ = ["ChannelShuffle", "Flatten", "PixelShuffle", "PixelUnshuffle", "Unflatten"]


@declared()
class Flatten(Layer):
    """Flattens the dimensions from `start_dim` to `end_dim` into one; by default all but the batch's.

    >>> import tritensor as torch
    >>> torch.nn.Flatten()(torch.ones(8, 2, 3)).shape
    tritensor.Size([8, 6])
    """

    start_dim: int = 1
    end_dim: int = -1

    def forward(self, input: Tensor) -> Tensor:
        """A view where the memory allows it, else a copy."""
        return flatten(input, self.start_dim, self.end_dim)


@declared()
class Unflatten(Layer):
    """Splits dimension `dim` into several of the sizes `unflattened_size`, of which one may be -1.

    >>> import tritensor as torch
    >>> torch.nn.Unflatten(1, (2, 5))(torch.ones(8, 10)).shape
    tritensor.Size([8, 2, 5])

    Raises:
        TypeError: the sizes are no tuple or list of integers.
    """

    dim: int
    unflattened_size: Sequence[int]

    def _prepare(self) -> None:
        sizes = self.unflattened_size
        if not isinstance(sizes, (tuple, list)):
            raise ArgumentError(f"unflattened_size must be a tuple of ints, but found type {type(sizes).__name__}")
        for position, size in enumerate(sizes):
            if not isinstance(size, int):
                found = f"{type(size).__name__} at pos {position}"
                raise ArgumentError(f"unflattened_size must be tuple of ints, but found element of type {found}")

    def forward(self, input: Tensor) -> Tensor:
        """A view of the input."""
        return unflatten(input, self.dim, self.unflattened_size)


@declared("pixel_shuffle")
class PixelShuffle(Layer):
    """Pixel shuffle by a factor r: channels to squares of pixels, (*, C * r * r, H, W) to (*, C, H * r, W * r).

    >>> import tritensor as torch
    >>> torch.nn.PixelShuffle(2)(torch.ones(1, 8, 3, 3)).shape
    tritensor.Size([1, 2, 6, 6])
    """

    upscale_factor: int


@declared("pixel_unshuffle")
class PixelUnshuffle(Layer):
    """Inverts `PixelShuffle`: squares of pixels to channels, (*, C, H * r, W * r) to (*, C * r * r, H, W)."""

    downscale_factor: int


@declared("channel_shuffle")
class ChannelShuffle(Layer):
    """Shuffles channels: puts those of `groups` groups in turn, the first of each, then the second of each."""

    groups: int
