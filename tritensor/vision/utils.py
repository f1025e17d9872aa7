"""Grids of pictures, as tensors and as files."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any, BinaryIO

from ..autograd.mode import no_grad
from ..functional.views.joining import cat, stack
from ..tensors import Tensor
from ..types import dtypes
from .transforms.functional import to_pil_image

__all__ = ["make_grid", "save_image"]


@no_grad()
def make_grid(
    tensor: Tensor | Sequence[Tensor],
    nrow: int = 8,
    padding: int = 2,
    normalize: bool = False,
    value_range: tuple[float, float] | None = None,
    scale_each: bool = False,
    pad_value: float = 0.0,
) -> Tensor:
    """Make a grid of images, one image (channels, height, width); a single one stays as it is.

    Args:
        tensor: (pictures, channels, height, width), a list of pictures of one size, or one picture; grey ones get three
            channels.
        nrow: how many pictures a row has. padding: how many elements are between them, of the value `pad_value`.
        normalize: whether the elements are scaled to 0 to 1, from `value_range` or, for None, from the least and the
            largest of all, or of each picture with `scale_each`.

    >>> import tritensor as torch
    >>> make_grid(torch.zeros(5, 1, 4, 4), nrow=3).shape
    tritensor.Size([3, 14, 20])

    Raises:
        TypeError: neither a tensor nor a list of tensors, or a range that is no tuple.
    """
    for each in tensor if isinstance(tensor, list) else [tensor]:
        if not isinstance(each, Tensor):
            within = "a list containing " if isinstance(tensor, list) else ""
            raise TypeError(f"tensor or list of tensors expected, got {within}{type(each)}")
    if value_range is not None and not isinstance(value_range, tuple):
        raise TypeError("value_range has to be a tuple (min, max) if specified. min and max are numbers")
    pictures = tensor if isinstance(tensor, Tensor) else stack(list(tensor))
    pictures = pictures.reshape(*[1] * (4 - pictures.ndim), *pictures.shape)
    if pictures.shape[1] == 1:
        pictures = cat((pictures, pictures, pictures), 1)
    if normalize:
        parts = [_scaled(part, value_range) for part in (pictures if scale_each else [pictures])]
        pictures = stack(parts) if scale_each else parts[0]
    count, channels = pictures.shape[:2]
    if count == 1:
        return pictures.squeeze(0)
    columns = min(nrow, count)
    height, width = pictures.shape[2] + padding, pictures.shape[3] + padding
    shape = (channels, height * -(-count // columns) + padding, width * columns + padding)
    grid = pictures.new_full(shape, pad_value)
    for place in range(count):
        top, left = place // columns * height + padding, place % columns * width + padding
        grid[:, top : top + height - padding, left : left + width - padding] = pictures[place]
    return grid


def _scaled(part: Tensor, value_range: tuple[float, float] | None) -> Tensor:
    low, high = (part.min().item(), part.max().item()) if value_range is None else value_range
    return part.clamp(low, high).sub(low).div(max(high - low, 1e-5))


@no_grad()
def save_image(
    tensor: Tensor | Sequence[Tensor], fp: str | os.PathLike[str] | BinaryIO, format: str | None = None, **kwargs: Any
) -> None:
    """Save an image, or the grid that `make_grid(tensor, **kwargs)` makes of several; elements are from 0 to 1.

    Args:
        fp: a path, or a file that is open for writing in binary mode.
        format: Pillow's name of the format; None for that of the path's ending.

    Raises:
        TypeError: see `make_grid`. ValueError: no format is known for the ending. OSError: the file cannot be written.
    """
    grid = make_grid(tensor, **kwargs).mul(255).add_(0.5).clamp_(0, 255).to("cpu", dtypes.uint8)
    to_pil_image(grid).save(fp, format=format)
