"""Functions that change colours."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from PIL import Image, ImageEnhance

from ...errors import require
from ...functional.creation.likeness import zeros_like
from ...functional.elementwise.pointwise import where
from ...functional.views.joining import stack
from ...tensors import Tensor
from ...types import dtypes
from .conversion import check_image, check_picture, convert_image_dtype, from_array, largest

__all__ = ["adjust_brightness", "adjust_contrast", "adjust_hue", "adjust_saturation", "rgb_to_grayscale"]


def rgb_to_grayscale(img: Any, num_output_channels: int = 1) -> Any:
    """Converts an image to grayscale, 0.2989 red + 0.587 green + 0.114 blue; 3 channels are alike.

    Raises:
        TypeError: a tensor of other than 1 or 3 channels. ValueError: another number of channels wanted than 1 or 3.
    """
    if not isinstance(img, Tensor):
        check_picture(img)
    elif img.ndim < 3:
        raise TypeError(f"Input image tensor should have at least 3 dimensions, but found {img.ndim}")
    else:
        check_image(img, (1, 3))
    require(num_output_channels in (1, 3), ValueError, "num_output_channels should be either 1 or 3")
    if not isinstance(img, Tensor):
        grey = img.convert("L")
        return grey if num_output_channels == 1 else Image.merge("RGB", (grey, grey, grey))
    if img.shape[-3] == 1:
        mixed = img.clone()
    else:
        red, green, blue = img.unbind(-3)
        mixed = (0.2989 * red + 0.587 * green + 0.114 * blue).to(img.dtype).unsqueeze(-3)
    return mixed.expand(*img.shape[:-3], 3, *img.shape[-2:]) if num_output_channels == 3 else mixed


def adjust_brightness(img: Any, brightness_factor: float) -> Any:
    """Adjusts the brightness of an image by a factor: 0 gives black, 1 the image itself.

    Raises:
        ValueError: a negative factor, of a tensor. TypeError: a tensor of other than 1 or 3 channels.
    """
    return _adjusted(img, "brightness", brightness_factor, ImageEnhance.Brightness, zeros_like)


def adjust_contrast(img: Any, contrast_factor: float) -> Any:
    """Adjusts the contrast of an image by a factor, of which 0 gives its mean grey; see `adjust_brightness`."""

    def mean(img: Tensor) -> Tensor:
        grey = rgb_to_grayscale(img) if img.ndim > 2 else img
        grey = grey if grey.dtype.is_floating_point else grey.to(dtypes.float32)
        return grey.mean(dim=tuple(range(-min(img.ndim, 3), 0)), keepdim=True)

    return _adjusted(img, "contrast", contrast_factor, ImageEnhance.Contrast, mean)


def adjust_saturation(img: Any, saturation_factor: float) -> Any:
    """Adjusts the saturation of an image by a factor, of which 0 gives grey; see `adjust_brightness`."""

    def grey(img: Tensor) -> Tensor:
        return img if img.ndim == 2 or img.shape[-3] == 1 else rgb_to_grayscale(img)

    return _adjusted(img, "saturation", saturation_factor, ImageEnhance.Color, grey)


def _adjusted(img: Any, name: str, factor: float, enhancer: Any, other: Callable[[Tensor], Tensor]) -> Any:
    """factor * picture + (1 - factor) * what `other` makes of it, which Pillow's enhancer does for its pictures."""
    if not isinstance(img, Tensor):
        return enhancer(check_picture(img)).enhance(factor)
    if factor < 0:
        raise ValueError(f"{name}_factor ({factor}) is not non-negative.")
    base = other(check_image(img, (1, 3)))
    if base is img:
        return img
    return (float(factor) * img + (1.0 - factor) * base).clamp(0, largest(img.dtype)).to(img.dtype)


def adjust_hue(img: Any, hue_factor: float) -> Any:
    """Adjusts the hue of an image, turned by -0.5 to 0.5 of a whole turn; greys stay as they are.

    Raises:
        ValueError: a factor beyond these. TypeError: a tensor of other than 1 or 3 channels.
    """
    require(-0.5 <= hue_factor <= 0.5, ValueError, "hue_factor ({}) is not in [-0.5, 0.5].", hue_factor)
    if not isinstance(img, Tensor):
        if check_picture(img).mode in ("L", "1", "I", "F"):
            return img
        hue, saturation, value = img.convert("HSV").split()
        turned = np.array(hue) + np.int32(hue_factor * 255).astype(np.uint8)  # beyond 255 it goes on from 0
        return Image.merge("HSV", (from_array(turned, "L"), saturation, value)).convert(img.mode)
    check_image(img, (1, 3))
    if img.ndim == 2 or img.shape[-3] == 1:
        return img
    h, s, v = _rgb_to_hsv(convert_image_dtype(img, dtypes.float32)).unbind(-3)
    return convert_image_dtype(_hsv_to_rgb((h + hue_factor) % 1.0, s, v), img.dtype)


def _rgb_to_hsv(img: Tensor) -> Tensor:
    """Smith, Color gamut transform pairs, 1978, in the order of operations of Pillow's Convert.c."""
    r, g, b = img.unbind(-3)
    most, least = img.amax(-3), img.amin(-3)
    grey = most == least
    spread = most - least
    s = spread / where(grey, 1.0, most)
    divisor = where(grey, 1.0, spread)
    rc, gc, bc = ((most - part) / divisor for part in (r, g, b))
    h = where(most == r, bc - gc, where(most == g, 2.0 + rc - bc, 4.0 + gc - rc))
    return stack(((h / 6.0 + 1.0).fmod(1.0), s, most), -3)


def _hsv_to_rgb(h: Tensor, s: Tensor, v: Tensor) -> Tensor:
    sixth = (h * 6.0).floor()
    f = h * 6.0 - sixth
    p = (v * (1.0 - s)).clamp(0.0, 1.0)
    q = (v * (1.0 - s * f)).clamp(0.0, 1.0)
    t = (v * (1.0 - s * (1.0 - f))).clamp(0.0, 1.0)
    at = (sixth.to(dtypes.int64) % 6).unsqueeze(-3)
    choices = ((v, q, p, p, t, v), (t, v, v, q, p, p), (p, p, t, v, v, q))
    return stack([stack(six, -3).gather(-3, at).squeeze(-3) for six in choices], -3)
