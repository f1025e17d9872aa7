"""pixel_shuffle, pixel_unshuffle and channel_shuffle: elements exchanged between channels and other dimensions."""

from __future__ import annotations

from ...errors import ShapeError
from ...ground.arguments import whole
from ...ground.public import public
from ...tensors import Tensor
from ...types.formats import channels_last, contiguous_format, suggested
from ..views.view_operators import standing_alone


@public()
def pixel_shuffle(input: Tensor, upscale_factor: int) -> Tensor:
    """Pixel shuffle by a factor r: channels to squares of pixels, (*, C * r * r, H, W) to (*, C, H * r, W * r).

    From "Real-time single image and video super-resolution using an efficient sub-pixel convolutional neural network"
    (Shi and others, 2016).

    >>> import tritensor as torch
    >>> torch.pixel_shuffle(torch.arange(4.0).view(4, 1, 1), 2)
    tensor([[[0., 1.],
             [2., 3.]]])

    Raises:
        ShapeError: fewer than three dimensions, channels that the factor's square does not divide, a factor below 1.
    """
    r = whole("pixel_shuffle", "upscale_factor", upscale_factor)
    *batch, channels, height, width = _picture("pixel_shuffle", input, "upscale_factor", r)
    if channels % (r * r):
        raise ShapeError(
            "pixel_shuffle expects its input's 'channel' dimension to be divisible by the square of upscale_factor, "
            f"but input.size(-3)={channels} is not divisible by {r * r}"
        )
    parts = input.reshape(*batch, channels // (r * r), r, r, height, width)
    shape = (*batch, channels // (r * r), height * r, width * r)
    return standing_alone(_joined(input, parts, (0, 3, 1, 4, 2), 1, shape), "pixel_shuffle")


@public()
def pixel_unshuffle(input: Tensor, downscale_factor: int) -> Tensor:
    """Inverts `pixel_shuffle`: squares of pixels to channels, (*, C, H * r, W * r) to (*, C * r * r, H, W).

    >>> import tritensor as torch
    >>> torch.pixel_unshuffle(torch.arange(4.0).view(1, 2, 2), 2).shape
    tritensor.Size([4, 1, 1])

    Raises:
        ShapeError: fewer than three dimensions, sizes that the factor does not divide, a factor below 1.
    """
    r = whole("pixel_unshuffle", "downscale_factor", downscale_factor)
    *batch, channels, height, width = _picture("pixel_unshuffle", input, "downscale_factor", r)
    for name, place, size in (("height", -2, height), ("width", -1, width)):
        if size % r:
            raise ShapeError(
                f"pixel_unshuffle expects {name} to be divisible by downscale_factor, "
                f"but input.size({place})={size} is not divisible by {r}"
            )
    parts = input.reshape(*batch, channels, height // r, r, width // r, r)
    shape = (*batch, channels * r * r, height // r, width // r)
    return standing_alone(_joined(input, parts, (0, 2, 4, 1, 3), 3, shape), "pixel_unshuffle")


@public()
def channel_shuffle(input: Tensor, groups: int) -> Tensor:
    """Shuffles the channels of (N, C, *), `groups` groups in turn: the first of each, then the second of each.

    >>> import tritensor as torch
    >>> torch.channel_shuffle(torch.arange(6).view(1, 6, 1), 2).flatten()
    tensor([0, 3, 1, 4, 2, 5])

    Raises:
        ShapeError: fewer than three dimensions, or a number of groups below 1 or that does not divide the channels.
    """
    groups = whole("channel_shuffle", "groups", groups)
    shape = tuple(input.shape)
    if len(shape) < 3:
        raise ShapeError(f"channel_shuffle expects input with > 2 dims, but got input with sizes {list(shape)}")
    if groups < 1:
        raise ShapeError(f"Number of groups to divide channels in must be positive. Value of groups:{groups}")
    if shape[1] % groups:
        raise ShapeError(
            f"Number of channels must be divisible by groups. Got {shape[1]} channels and {groups} groups."
        )
    parts = input.reshape(shape[0], groups, shape[1] // groups, *shape[2:])
    order = (1, 0, *range(2, len(shape)))
    return standing_alone(_joined(input, parts, order, 2, shape), "channel_shuffle")


def _picture(call: str, x: Tensor, name: str, factor: int) -> tuple[int, ...]:
    """The shape of an input with channels, height and width, which the factor suits."""
    if x.ndim < 3:
        raise ShapeError(
            f"{call} expects input to have at least 3 dimensions, but got input with {x.ndim} dimension(s)"
        )
    if factor < 1:
        raise ShapeError(f"{call} expects a positive {name}, but got {factor}")
    return tuple(x.shape)


def _joined(x: Tensor, parts: Tensor, order: tuple[int, ...], channels: int, shape: tuple[int, ...]) -> Tensor:
    """`parts` with its last dimensions in another order, as a copy of a shape, in the memory format of `x`.

    Args:
        channels: of how many dimensions in `order` the channels are made.
    """
    batch = parts.ndim - len(order)
    turned = parts.permute(*range(batch), *[batch + dim for dim in order])
    if suggested(tuple(x.shape), x.stride()) is not channels_last:
        return turned.clone(memory_format=contiguous_format).view(shape)
    last = (*range(batch), *range(batch + channels, parts.ndim), *range(batch, batch + channels))
    moved = turned.permute(last).clone(memory_format=contiguous_format)
    return moved.view(shape[0], *shape[2:], shape[1]).permute(0, 3, 1, 2)
