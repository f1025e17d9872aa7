"""Tensors in other sizes."""

from __future__ import annotations

from collections.abc import Sequence

from ... import dtypes
from ...functional.resizing import interpolate
from ...tensor import Tensor

__all__ = ["resized"]


def resized(img: Tensor, size: Sequence[int], mode: str, antialias: bool) -> Tensor:
    """`functional.resize` of a tensor, with any dimensions before height and width.

    Raises:
        ValueError: a mode that only PIL pictures have.
    """
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
