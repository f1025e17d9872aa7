"""Functions of pictures, of which each takes a PIL picture or a tensor (..., channels, height, width).

Their names, parameters and results are torchvision's; a transform calls one of them with parameters that it drew.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from PIL import Image, ImageOps

from ...errors import warn
from ...functional.creation import as_tensor, tensor
from ...functional.filling import pad as pad_tensor
from ...tensor import Tensor
from ..pictures import channels_of
from .arguments import InterpolationMode, as_mode
from .colours import (
    adjust_brightness,
    adjust_contrast,
    adjust_hue,
    adjust_saturation,
    rgb_to_grayscale,
    to_grayscale,
)
from .conversion import (
    check_image,
    check_picture,
    convert_image_dtype,
    get_dimensions,
    get_image_num_channels,
    get_image_size,
    pil_to_tensor,
    to_pil_image,
    to_tensor,
)
from .resampling import resized, transformed

__all__ = [
    "InterpolationMode",
    "adjust_brightness",
    "adjust_contrast",
    "adjust_hue",
    "adjust_saturation",
    "affine",
    "center_crop",
    "convert_image_dtype",
    "crop",
    "erase",
    "get_dimensions",
    "get_image_num_channels",
    "get_image_size",
    "hflip",
    "normalize",
    "pad",
    "pil_to_tensor",
    "resize",
    "resized_crop",
    "rgb_to_grayscale",
    "rotate",
    "to_grayscale",
    "to_pil_image",
    "to_tensor",
    "vflip",
]

PADDING_MODES = ("constant", "edge", "reflect", "symmetric")


def normalize(tensor: Tensor, mean: Sequence[float], std: Sequence[float], inplace: bool = False) -> Tensor:
    """(tensor - mean) / std, with a mean and a deviation for each channel.

    >>> import tritensor as torch
    >>> normalize(torch.tensor([[[0.0, 1.0]]]), (0.5,), (0.5,))
    tensor([[[-1.,  1.]]])

    Raises:
        TypeError: no tensor, or none of a floating dtype. ValueError: fewer than 3 dimensions, a deviation of 0.
    """
    if not isinstance(tensor, Tensor):
        raise TypeError(f"img should be Tensor Image. Got {type(tensor)}")
    check_image(tensor)
    if not tensor.dtype.is_floating_point:
        raise TypeError(f"Input tensor should be a float tensor. Got {tensor.dtype}.")
    if tensor.ndim < 3:
        words = "Expected tensor to be a tensor image of size (..., C, H, W)."
        raise ValueError(f"{words} Got tensor.size() = {tensor.shape}")
    scale = as_tensor(std, dtype=tensor.dtype)
    if 0 in scale.flatten().tolist():
        words = f"std evaluated to zero after conversion to {tensor.dtype}, leading to division by zero."
        raise ValueError(words)
    shift, scale = (
        (part.view(-1, 1, 1) if part.ndim == 1 else part).to(tensor.device)
        for part in (as_tensor(mean, dtype=tensor.dtype), scale)
    )
    return (tensor if inplace else tensor.clone()).sub_(shift).div_(scale)


def resize(
    img: Any,
    size: int | Sequence[int],
    interpolation: Any = InterpolationMode.BILINEAR,
    max_size: int | None = None,
    antialias: bool | None = True,
) -> Any:
    """The picture in another size.

    Args:
        size: (height, width), or the length of the shorter edge; the longer one keeps its proportion.
        interpolation: an `InterpolationMode`, or Pillow's number of one; NEAREST, BILINEAR and BICUBIC for tensors.
        max_size: the most that the longer edge may have, if `size` is one number.
        antialias: whether a bilinear or bicubic tensor is low-passed where it becomes smaller; PIL pictures always are.

    >>> resize(Image.new("RGB", (40, 20)), 10).size
    (20, 10)

    Raises:
        ValueError: a size of other than one or two numbers, `max_size` with two, or one that is no larger than `size`;
            a mode that tensors do not have. TypeError: an interpolation that is none, or no picture.
    """
    mode = as_mode(interpolation)
    wanted = [size] if isinstance(size, int) else list(size)
    if len(wanted) not in (1, 2):
        words = f"Size must be an int or a 1 or 2 element tuple/list, not a {len(wanted)} element tuple/list"
        raise ValueError(words)
    if max_size is not None and len(wanted) != 1:
        raise ValueError(
            "max_size should only be passed if size specifies the length of the smaller edge, "
            "i.e. size should be an int or a sequence of length 1 in torchscript mode."
        )
    here = get_dimensions(img)[1:]
    there = wanted if len(wanted) == 2 else _in_proportion(here, wanted[0], max_size)
    if here == there:
        return img
    if isinstance(img, Tensor):
        return resized(img, there, mode.value, bool(antialias))
    if antialias is False:
        warn("Anti-alias option is always applied for PIL Image input. Argument antialias is ignored.")
    return check_picture(img).resize((there[1], there[0]), mode.pillow)


def _in_proportion(here: Sequence[int], wanted: int, max_size: int | None) -> list[int]:
    """(height, width) of a picture whose shorter edge becomes `wanted`."""
    shorter, longer = min(here), max(here)
    length = int(wanted * longer / shorter)
    if max_size is not None:
        if max_size <= wanted:
            words = f"max_size = {max_size} must be strictly greater than the requested size for the smaller edge size"
            raise ValueError(f"{words} = {wanted}")
        if length > max_size:
            wanted, length = int(max_size * wanted / length), max_size
    return [length, wanted] if here[1] <= here[0] else [wanted, length]


def pad(img: Any, padding: Any, fill: Any = 0, padding_mode: str = "constant") -> Any:
    """The picture with a border, or less of it where a number is negative.

    Args:
        padding: how many elements at each edge; (left and right, top and bottom); or (left, top, right, bottom).
        fill: the value of new elements in the mode "constant"; for PIL pictures also one for each channel.
        padding_mode: "constant", "edge" (repeats the edge), "reflect" (without the edge) or "symmetric" (with it).

    >>> pad(Image.new("L", (4, 4)), (1, 2)).size
    (6, 8)

    Raises:
        TypeError: an argument of another type. ValueError: no such mode, or other than 1, 2 or 4 numbers.
    """
    if not isinstance(padding, (int, tuple, list)):
        raise TypeError("Got inappropriate padding arg")
    kinds = (int, float) if isinstance(img, Tensor) else (int, float, tuple, list)
    value: Any = fill
    if fill is not None and not isinstance(fill, kinds):
        raise TypeError("Got inappropriate fill arg")
    if not isinstance(padding_mode, str):
        raise TypeError("Got inappropriate padding_mode arg")
    around = [padding] if isinstance(padding, int) else list(padding)
    if len(around) not in (1, 2, 4):
        raise ValueError(f"Padding must be an int or a 1, 2, or 4 element tuple, not a {len(around)} element tuple")
    if padding_mode not in PADDING_MODES:
        raise ValueError("Padding mode should be either constant, edge, reflect or symmetric")
    left, top, right, bottom = around * (4 // len(around))
    if isinstance(img, Tensor):
        check_image(img)
        if padding_mode == "symmetric":
            return _pad_symmetric(img, left, top, right, bottom)
        kind = "replicate" if padding_mode == "edge" else padding_mode
        value = float(value or 0) if kind == "constant" else None
        return pad_tensor(img, (left, right, top, bottom), kind, value)
    check_picture(img)
    palette = img.getpalette() if img.mode == "P" else None
    if padding_mode == "constant":
        made = ImageOps.expand(img, border=(left, top, right, bottom), fill=_fill_of(fill, img))
    else:
        kept = img.crop((max(-left, 0), max(-top, 0), img.width - max(-right, 0), img.height - max(-bottom, 0)))
        array = np.asarray(kept)
        width = [(max(top, 0), max(bottom, 0)), (max(left, 0), max(right, 0)), (0, 0)][: array.ndim]
        made = Image.fromarray(np.pad(array, width, mode=padding_mode))  # type: ignore[call-overload]
    if palette is not None:
        made.putpalette(palette)
    return made


def _pad_symmetric(img: Tensor, left: int, top: int, right: int, bottom: int) -> Tensor:
    height, width = img.shape[-2:]
    img = img[..., max(-top, 0) : height - max(-bottom, 0), max(-left, 0) : width - max(-right, 0)]
    for dim, before, after in ((-2, top, bottom), (-1, left, right)):
        size = img.shape[dim]
        if max(before, after) > size:
            raise ValueError(f"symmetric padding of {max(before, after)} needs as many elements, and there are {size}")
        places = [*range(before - 1, -1, -1), *range(size), *range(size - 1, size - 1 - after, -1)]
        img = img.index_select(dim, tensor(places, device=img.device))
    return img


def _fill_of(fill: Any, img: Image.Image) -> Any:
    """A value for each channel of a picture, whole numbers unless its mode is "F"."""
    channels = channels_of(img)
    values = list(fill) if isinstance(fill, (list, tuple)) else [0 if fill is None else fill]
    if len(values) == 1:
        values *= channels
    if len(values) != channels:
        words = "The number of elements in 'fill' does not match the number of channels of the image"
        raise ValueError(f"{words} ({len(values)} != {channels})")
    if img.mode != "F":
        values = [int(value) for value in values]
    return tuple(values) if channels > 1 or isinstance(fill, (list, tuple)) else values[0]


def crop(img: Any, top: int, left: int, height: int, width: int) -> Any:
    """A part of the picture; what is beyond its edges is 0.

    >>> import tritensor as torch
    >>> crop(torch.arange(9).view(3, 3), 1, 1, 2, 3)
    tensor([[4, 5, 0],
            [7, 8, 0]])

    Raises:
        TypeError: no picture.
    """
    if not isinstance(img, Tensor):
        return check_picture(img).crop((left, top, left + width, top + height))
    _, h, w = get_dimensions(img)
    bottom, right = top + height, left + width
    part = img[..., max(top, 0) : max(bottom, 0), max(left, 0) : max(right, 0)]
    if left >= 0 and top >= 0 and right <= w and bottom <= h:
        return part
    around = (
        max(min(0, right) - left, 0),
        max(min(0, bottom) - top, 0),
        max(right - max(w, left), 0),
        max(bottom - max(h, top), 0),
    )
    return pad(part, around)


def center_crop(img: Any, output_size: int | Sequence[int]) -> Any:
    """The middle of the picture, (height, width) or a square; what is beyond its edges is 0.

    Raises:
        TypeError: no picture.
    """
    wanted = [int(output_size)] if isinstance(output_size, (int, float)) else list(output_size)
    height, width = wanted * 2 if len(wanted) == 1 else wanted
    _, h, w = get_dimensions(img)
    if width > w or height > h:
        more, taller = max(width - w, 0), max(height - h, 0)
        img = pad(img, (more // 2, taller // 2, (more + 1) // 2, (taller + 1) // 2))
        _, h, w = get_dimensions(img)
    return crop(img, round((h - height) / 2.0), round((w - width) / 2.0), height, width)


def resized_crop(
    img: Any,
    top: int,
    left: int,
    height: int,
    width: int,
    size: int | Sequence[int],
    interpolation: Any = InterpolationMode.BILINEAR,
    antialias: bool | None = True,
) -> Any:
    """`crop`, then `resize`."""
    return resize(crop(img, top, left, height, width), size, interpolation, antialias=antialias)


def hflip(img: Any) -> Any:
    """The picture with left and right exchanged.

    Raises:
        TypeError: no picture.
    """
    if not isinstance(img, Tensor):
        return check_picture(img).transpose(Image.Transpose.FLIP_LEFT_RIGHT)
    check_image(img)
    return img.flip(-1)


def vflip(img: Any) -> Any:
    """The picture with top and bottom exchanged.

    Raises:
        TypeError: no picture.
    """
    if not isinstance(img, Tensor):
        return check_picture(img).transpose(Image.Transpose.FLIP_TOP_BOTTOM)
    check_image(img)
    return img.flip(-2)


def _inverse_matrix(
    center: Sequence[float], angle: float, translate: Sequence[float], scale: float, shear: Sequence[float]
) -> list[float]:
    """Where the elements of the result come from: the inverse of moving to `center`, turning, shearing and scaling,
    moving back and translating, as six numbers (a, b, c, d, e, f), x = a x' + b y' + c, y = d x' + e y' + f."""
    turn, sx, sy = math.radians(angle), math.radians(shear[0]), math.radians(shear[1])
    a = math.cos(turn - sy) / math.cos(sy)
    b = -math.cos(turn - sy) * math.tan(sx) / math.cos(sy) - math.sin(turn)
    c = math.sin(turn - sy) / math.cos(sy)
    d = -math.sin(turn - sy) * math.tan(sx) / math.cos(sy) + math.cos(turn)
    matrix = [x / scale for x in (d, -b, 0.0, -c, a, 0.0)]
    x, y = -center[0] - translate[0], -center[1] - translate[1]
    matrix[2] += matrix[0] * x + matrix[1] * y + center[0]
    matrix[5] += matrix[3] * x + matrix[4] * y + center[1]
    return matrix


def rotate(
    img: Any,
    angle: float,
    interpolation: Any = InterpolationMode.NEAREST,
    expand: bool = False,
    center: Sequence[int] | None = None,
    fill: Any = None,
) -> Any:
    """The picture turned counter-clockwise, by degrees.

    Args:
        interpolation: an `InterpolationMode`, or Pillow's number of one; NEAREST or BILINEAR for tensors.
        expand: whether the result is large enough for all of the turned picture.
        center: (x, y), the point that stays where it is; None for the middle.
        fill: the value of what comes from beyond the edges, one for all channels or one for each; None for 0.

    Raises:
        TypeError: an argument of another type. ValueError: a mode that tensors do not have; too many values to fill.
    """
    mode = as_mode(interpolation)
    if not isinstance(angle, (int, float)):
        raise TypeError("Argument angle should be int or float")
    _check_center(center)
    if isinstance(img, Tensor):
        matrix = _inverse_matrix(_from_the_middle(img, center), -angle, (0.0, 0.0), 1.0, (0.0, 0.0))
        return transformed(img, matrix, mode.value, fill, expand)
    picture: Any = check_picture(img)
    return picture.rotate(angle, mode.pillow, expand, center, fillcolor=_fill_of(fill, picture))


def affine(
    img: Any,
    angle: float,
    translate: Sequence[int],
    scale: float,
    shear: Any,
    interpolation: Any = InterpolationMode.NEAREST,
    fill: Any = None,
    center: Sequence[int] | None = None,
) -> Any:
    """The picture turned clockwise, moved, scaled and sheared.

    Args:
        angle: degrees. translate: (to the right, down), in elements. scale: a factor.
        shear: degrees along x, or (along x, along y).
        interpolation, fill, center: see `rotate`.

    Raises:
        TypeError: an argument of another type. ValueError: a sequence of another length, a scale of 0 or less; a mode
            that tensors do not have; too many values to fill.
    """
    mode = as_mode(interpolation)
    if not isinstance(angle, (int, float)):
        raise TypeError("Argument angle should be int or float")
    if not isinstance(translate, (list, tuple)):
        raise TypeError("Argument translate should be a sequence")
    if len(translate) != 2:
        raise ValueError("Argument translate should be a sequence of length 2")
    if scale <= 0.0:
        raise ValueError("Argument scale should be positive")
    if not isinstance(shear, (int, float, list, tuple)):
        raise TypeError("Shear should be either a single value or a sequence of two values")
    both = [shear, 0.0] if isinstance(shear, (int, float)) else list(shear) * (2 if len(shear) == 1 else 1)
    if len(both) != 2:
        raise ValueError(f"Shear should be a sequence containing two values. Got {both}")
    _check_center(center)
    if isinstance(img, Tensor):
        matrix = _inverse_matrix(_from_the_middle(img, center), angle, translate, scale, both)
        return transformed(img, matrix, mode.value, fill)
    picture: Any = check_picture(img)
    middle = [picture.width * 0.5, picture.height * 0.5] if center is None else center
    matrix = _inverse_matrix(middle, angle, translate, scale, both)
    fill = _fill_of(fill, picture)
    return picture.transform(picture.size, Image.Transform.AFFINE, matrix, mode.pillow, fillcolor=fill)


def _check_center(center: Any) -> None:
    if center is not None and not isinstance(center, (list, tuple)):
        raise TypeError("Argument center should be a sequence")


def _from_the_middle(img: Tensor, center: Sequence[int] | None) -> list[float]:
    """A point of a tensor, counted from its middle, as grids of `grid_sample` are."""
    _, height, width = get_dimensions(img)
    return [0.0, 0.0] if center is None else [center[0] - width * 0.5, center[1] - height * 0.5]


def erase(img: Tensor, i: int, j: int, h: int, w: int, v: Tensor, inplace: bool = False) -> Tensor:
    """The tensor with a part of `h` rows from `i` on and `w` columns from `j` on set to `v`.

    Raises:
        TypeError: no tensor, or one of fewer than two dimensions.
    """
    if not isinstance(img, Tensor):
        raise TypeError(f"img should be Tensor Image. Got {type(img)}")
    check_image(img)
    img = img if inplace else img.clone()
    img[..., i : i + h, j : j + w] = v
    return img
