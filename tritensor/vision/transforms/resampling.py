"""How pictures are interpolated, and tensors in other sizes, turned and sheared."""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from typing import Any

import numpy as np
from PIL import Image

from ... import dtypes
from ...functional.creation import from_numpy, tensor
from ...functional.grid_sampling import grid_sample
from ...functional.joining import cat
from ...functional.likeness import ones_like
from ...functional.pointwise import where
from ...functional.resizing import interpolate
from ...tensor import Tensor

__all__ = ["InterpolationMode", "as_mode", "resized", "transformed"]


class InterpolationMode(Enum):
    """How pictures are interpolated; `box`, `hamming` and `lanczos` are for PIL pictures only."""

    NEAREST = "nearest"
    NEAREST_EXACT = "nearest-exact"
    BILINEAR = "bilinear"
    BICUBIC = "bicubic"
    BOX = "box"
    HAMMING = "hamming"
    LANCZOS = "lanczos"

    @property
    def pillow(self) -> Image.Resampling:
        """Pillow's number of the mode."""
        return Image.Resampling[self.name.removesuffix("_EXACT")]


def as_mode(interpolation: Any) -> InterpolationMode:
    """The mode that one of Pillow's numbers means (ValueError: it has no such number), or the mode itself."""
    if isinstance(interpolation, int):
        return InterpolationMode[Image.Resampling(interpolation).name]
    if not isinstance(interpolation, InterpolationMode):
        words = "Argument interpolation should be a InterpolationMode or a corresponding Pillow integer constant"
        raise TypeError(f"{words}, not {interpolation!r}")
    return interpolation


def resized(img: Tensor, size: Sequence[int], mode: str, antialias: bool) -> Tensor:
    """`functional.resize` of a tensor, with any dimensions before height and width."""
    if mode not in ("nearest", "nearest-exact", "bilinear", "bicubic"):
        raise ValueError(f"Interpolation mode '{mode}' is unsupported with Tensor input")
    smooth = mode.startswith("bi")
    corners = False if smooth else None
    made = interpolate(_images(img), list(size), mode=mode, align_corners=corners, antialias=smooth and antialias)
    if mode == "bicubic" and img.dtype is dtypes.uint8:
        made = made.clamp(0, 255)
    return _as_before(made, img)


def _images(img: Tensor) -> Tensor:
    """(pictures, channels, height, width), in float32 if it is not in float32 or float64."""
    images = img if img.ndim == 4 else img.reshape(1, -1, *img.shape[-2:])
    return images if images.dtype in (dtypes.float32, dtypes.float64) else images.to(dtypes.float32)


def _as_before(made: Tensor, img: Tensor) -> Tensor:
    """A result with the dtype and the leading dimensions of the tensor that it was made of."""
    whole = not img.dtype.is_floating_point and img.dtype is not dtypes.bool_
    made = (made.round() if whole else made).to(img.dtype)
    return made if img.ndim == 4 else made.reshape(*img.shape[:-2], *made.shape[-2:])


def transformed(img: Tensor, matrix: list[float], mode: str, fill: Any, expand: bool = False) -> Tensor:
    """`functional.rotate` and `functional.affine` of a tensor, counted from its middle."""
    channels = 1 if img.ndim == 2 else img.shape[-3]
    values = list(fill) if isinstance(fill, (list, tuple)) else [] if fill is None else [fill]
    if len(values) > 1 and len(values) != channels:
        words = "The number of elements in 'fill' cannot broadcast to match the number of channels of the image"
        raise ValueError(f"{words} ({len(values)} != {channels})")
    if mode not in ("nearest", "bilinear"):
        raise ValueError(f"Interpolation mode '{mode}' is unsupported with Tensor input")
    images = _images(img)
    if values:  # sampled along with a channel of ones, which says how much of an element comes from within
        images = cat((images, ones_like(images[:, :1])), 1)
    height, width = img.shape[-2:]
    rows, columns = _extents(matrix, height, width) if expand else (height, width)
    grid = from_numpy(_grid(matrix, height, width, rows, columns, images.dtype.numpy)).to(img.device)
    grid = grid.expand(images.shape[0], -1, -1, -1)
    made = grid_sample(images, grid, mode=mode, padding_mode="zeros", align_corners=False)
    if values:
        made, inside = made[:, :-1], made[:, -1:]
        repeated = values * (made.shape[1] // len(values))  # leading dimensions are among the channels here
        border = tensor(repeated, dtype=made.dtype, device=img.device).view(1, -1, 1, 1)
        made = where(inside < 0.5, border, made) if mode == "nearest" else made * inside + (1.0 - inside) * border
    return _as_before(made, img)


def _grid(matrix: list[float], height: int, width: int, rows: int, columns: int, kind: Any) -> np.ndarray[Any, Any]:
    """The place that each element comes from, (1, rows, columns, 2), from -1 to 1 across the tensor, in the steps in
    which torchvision computes it: the last digit decides between neighbours where a place is halfway."""
    base = np.ones((rows, columns, 3), kind)
    base[..., 0] = np.arange(columns) + (0.5 - columns * 0.5)
    base[..., 1] = (np.arange(rows) + (0.5 - rows * 0.5))[:, None]
    theta = np.array(matrix, kind).reshape(2, 3).T / np.array([0.5 * width, 0.5 * height], kind)
    return (base.reshape(-1, 3) @ theta).reshape(1, rows, columns, 2)


def _extents(matrix: list[float], height: int, width: int) -> tuple[int, int]:
    """(height, width) of what holds all of a turned tensor; where a corner is within 1e-4 of a whole number, that is
    where it is."""
    corners = np.array([[x * width, y * height, 1] for x in (-0.5, 0.5) for y in (-0.5, 0.5)], np.float32)
    places = corners @ np.array(matrix, np.float32).reshape(2, 3).T
    ends = np.stack([places.min(0), places.max(0)]) + np.array([width * 0.5, height * 0.5], np.float32)
    low, high = np.trunc(ends / np.float32(1e-4)) * np.float32(1e-4)
    columns, rows = (np.ceil(high) - np.floor(low)).astype(int).tolist()
    return rows, columns
