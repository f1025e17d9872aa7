"""Image transforms as functions, of which each takes a PIL image or a tensor (..., channels, height, width).

Their names, parameters and results are torchvision's. Anything else raises a TypeError, and so
does a tensor of fewer than two dimensions.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from enum import Enum
from typing import Any

import numpy as np
from PIL import Image, ImageOps

from ...errors import BoundsError, require, warn
from ...functional.creation.creation import as_tensor, from_numpy, tensor
from ...functional.creation.likeness import ones_like
from ...functional.elementwise.pointwise import where
from ...functional.views.joining import cat
from ...functional.window.filling import pad as pad_tensor
from ...functional.window.grid_sampling import grid_sample
from ...functional.window.resizing import interpolate
from ...tensors import Tensor
from ...types import dtypes
from .colours import *
from .conversion import *
from .conversion import check_image, check_picture

__all__ = ["InterpolationMode", "affine", "center_crop", "crop", "erase", "hflip", "normalize", "pad", "resize"]
__all__ += ["resized_crop", "rotate", "vflip"]
__all__ += ["adjust_brightness", "adjust_contrast", "adjust_hue", "adjust_saturation", "rgb_to_grayscale"]
__all__ += ["convert_image_dtype", "get_dimensions", "get_image_size", "pil_to_tensor", "to_pil_image", "to_tensor"]


class InterpolationMode(Enum):
    """The ways to interpolate pictures; `box`, `hamming` and `lanczos` are for PIL pictures only."""

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


def normalize(tensor: Tensor, mean: Sequence[float], std: Sequence[float], inplace: bool = False) -> Tensor:
    """Normalizes a tensor: (tensor - mean) / std, with a mean and a deviation for each channel.

    >>> import tritensor as torch
    >>> normalize(torch.tensor([[[0.0, 1.0]]]), (0.5,), (0.5,))
    tensor([[[-1.,  1.]]])

    Raises:
        TypeError: no floating dtype. ValueError: fewer than 3 dimensions, a deviation of 0.
    """
    if not check_image(tensor).dtype.is_floating_point:
        raise TypeError(f"Input tensor should be a float tensor. Got {tensor.dtype}.")
    if tensor.ndim < 3:
        words = "Expected tensor to be a tensor image of size (..., C, H, W)."
        raise ValueError(f"{words} Got tensor.size() = {tensor.shape}")
    shift, scale = (as_tensor(values, dtype=tensor.dtype) for values in (mean, std))
    if 0 in scale.flatten().tolist():
        raise ValueError(f"std evaluated to zero after conversion to {tensor.dtype}, leading to division by zero.")
    shift, scale = ((x.view(-1, 1, 1) if x.ndim == 1 else x).to(tensor.device) for x in (shift, scale))
    return (tensor if inplace else tensor.clone()).sub_(shift).div_(scale)


def resize(
    img: Any,
    size: int | Sequence[int],
    interpolation: Any = InterpolationMode.BILINEAR,
    max_size: int | None = None,
    antialias: bool | None = True,
) -> Any:
    """Resizes an image.

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
        raise ValueError(f"Size must be an int or a 1 or 2 element tuple/list, not a {len(wanted)} element tuple/list")
    if max_size is not None and len(wanted) != 1:
        words = "max_size should only be passed if size specifies the length of the smaller edge, i.e. size should be"
        raise ValueError(f"{words} an int or a sequence of length 1 in torchscript mode.")
    here = get_dimensions(img)[1:]
    if len(wanted) == 1:
        (least,), most = wanted, int(wanted[0] * max(here) / min(here))
        if max_size is not None and max_size <= least:
            words = f"max_size = {max_size} must be strictly greater than the requested size for the smaller edge size"
            raise ValueError(f"{words} = {least}")
        if max_size is not None and most > max_size:
            least, most = int(max_size * least / most), max_size
        wanted = [most, least] if here[1] <= here[0] else [least, most]
    if here == wanted:
        return img
    if isinstance(img, Tensor):
        return _resized(img, wanted, mode.value, bool(antialias))
    if antialias is False:
        warn("Anti-alias option is always applied for PIL Image input. Argument antialias is ignored.")
    return check_picture(img).resize((wanted[1], wanted[0]), mode.pillow)


def border(padding: Any, fill: Any, padding_mode: Any) -> list[int]:
    """[left, top, right, bottom] of the arguments of `pad`, or the errors for them."""
    require(isinstance(padding, (int, tuple, list)), TypeError, "Got inappropriate padding arg")
    require(isinstance(fill, (int, float, tuple, list)), TypeError, "Got inappropriate fill arg")
    require(isinstance(padding_mode, str), TypeError, "Got inappropriate padding_mode arg")
    around = [padding] if isinstance(padding, int) else list(padding)
    if len(around) not in (1, 2, 4):
        raise ValueError(f"Padding must be an int or a 1, 2, or 4 element tuple, not a {len(around)} element tuple")
    if padding_mode not in ("constant", "edge", "reflect", "symmetric"):
        raise ValueError("Padding mode should be either constant, edge, reflect or symmetric")
    return around * (4 // len(around))


def pad(img: Any, padding: Any, fill: Any = 0, padding_mode: str = "constant") -> Any:
    """Pads an image with a border, or takes away from it where a number is negative.

    Args:
        padding: how many elements at each edge; (left and right, top and bottom); or (left, top, right, bottom).
        fill: the value of new elements in the mode "constant"; for PIL pictures also one for each channel.
        padding_mode: "constant", "edge" (repeats the edge), "reflect" (without the edge) or "symmetric" (with it).

    >>> pad(Image.new("L", (4, 4)), (1, 2)).size
    (6, 8)

    Raises:
        TypeError: an argument of another type. ValueError: no such mode, or other than 1, 2 or 4 numbers.
        BoundsError: a border of a tensor that its elements do not suffice for.
    """
    fill = 0 if fill is None else fill
    left, top, right, bottom = border(padding, fill, padding_mode)
    is_tensor = isinstance(img, Tensor)
    _, height, width = get_dimensions(img if is_tensor else check_picture(img))
    if is_tensor and isinstance(fill, (tuple, list)):
        raise TypeError("Got inappropriate fill arg")
    if padding_mode != "constant":
        rows = _places(img, height, top, bottom, padding_mode)
        columns = _places(img, width, left, right, padding_mode)
        if is_tensor:
            rows, columns = (from_numpy(places).to(img.device) for places in (rows, columns))
            return img.index_select(-2, rows).index_select(-1, columns)
        made = Image.fromarray(np.asarray(img)[rows][:, columns])
    elif is_tensor:
        return pad_tensor(img, (left, right, top, bottom), "constant", float(fill))
    else:
        made = ImageOps.expand(img, border=(left, top, right, bottom), fill=_fill_of(fill, img))
    if img.mode == "P":
        made.putpalette(img.getpalette())
    return made


def _places(img: Any, size: int, before: int, after: int, mode: Any) -> Any:
    """Where the elements along one edge of a picture with a border come from."""
    kept = np.arange(max(-before, 0), size - max(-after, 0))
    around = max(before, after, 0)
    if isinstance(img, Tensor) and around > {"symmetric": size, "reflect": size - 1}.get(mode, around):
        words = "Padding size should be less than the corresponding input dimension, but got: padding"
        raise BoundsError(f"{words} ({before}, {after}) in the mode {mode} where there are {size} elements")
    return np.pad(kept, (max(before, 0), max(after, 0)), mode)


def _fill_of(fill: Any, img: Image.Image) -> Any:
    """A value for each channel of a picture, whole numbers unless its mode is "F"."""
    channels = len(img.getbands())
    values = list(fill) if isinstance(fill, (list, tuple)) else [0 if fill is None else fill]
    values *= channels if len(values) == 1 else 1
    if len(values) != channels:
        words = "The number of elements in 'fill' does not match the number of channels of the image"
        raise ValueError(f"{words} ({len(values)} != {channels})")
    if img.mode != "F":
        values = [int(value) for value in values]
    return tuple(values) if channels > 1 or isinstance(fill, (list, tuple)) else values[0]


def crop(img: Any, top: int, left: int, height: int, width: int) -> Any:
    """Crops a part of an image; what is beyond its edges is 0.

    >>> import tritensor as torch
    >>> crop(torch.arange(9).view(3, 3), 1, 1, 2, 3)
    tensor([[4, 5, 0],
            [7, 8, 0]])
    """
    if not isinstance(img, Tensor):
        return check_picture(img).crop((left, top, left + width, top + height))
    _, h, w = get_dimensions(img)
    bottom, right = top + height, left + width
    part = img[..., max(top, 0) : max(bottom, 0), max(left, 0) : max(right, 0)]
    before = max(min(0, right) - left, 0), max(min(0, bottom) - top, 0)
    around = (*before, max(right - max(w, left), 0), max(bottom - max(h, top), 0))
    return pad(part, around) if any(around) else part


def center_crop(img: Any, output_size: int | Sequence[int]) -> Any:
    """Crops the middle of an image, (height, width) or a square; what is beyond its edges is 0."""
    wanted = [int(output_size)] if isinstance(output_size, (int, float)) else list(output_size)
    height, width = wanted * 2 if len(wanted) == 1 else wanted
    _, h, w = get_dimensions(img)
    top, left = (round(much / 2) if much > 0 else -(-much // 2) for much in (h - height, w - width))
    return crop(img, top, left, height, width)


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
    """Crops an image and resizes it: `crop`, then `resize`."""
    return resize(crop(img, top, left, height, width), size, interpolation, antialias=antialias)


def hflip(img: Any) -> Any:
    """Flips an image horizontally: left and right are exchanged."""
    if isinstance(img, Tensor):
        return check_image(img).flip(-1)
    return check_picture(img).transpose(Image.Transpose.FLIP_LEFT_RIGHT)


def vflip(img: Any) -> Any:
    """Flips an image vertically: top and bottom are exchanged."""
    if isinstance(img, Tensor):
        return check_image(img).flip(-2)
    return check_picture(img).transpose(Image.Transpose.FLIP_TOP_BOTTOM)


def _inverse_matrix(
    center: Sequence[float], angle: float, translate: Sequence[float], scale: float, shear: Sequence[float]
) -> list[float]:
    """The inverse of moving to `center`, turning, shearing and scaling, moving back and translating, as six numbers
    (a, b, c, d, e, f): elements come from x = a x' + b y' + c, y = d x' + e y' + f."""
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
    """Rotates an image counter-clockwise, by degrees.

    Args:
        interpolation: an `InterpolationMode`, or Pillow's number of one; NEAREST or BILINEAR for tensors.
        expand: whether the result is large enough for all of the turned picture.
        center: (x, y), the point that stays where it is; None for the middle.
        fill: the value of what comes from beyond the edges, one for all channels or one for each; None for 0.

    Raises:
        TypeError: an argument of another type. ValueError: a mode that tensors do not have; too many values to fill.
    """
    mode = as_mode(interpolation)
    middle = _middle(img, angle, center)
    if isinstance(img, Tensor):
        return _transformed(img, _inverse_matrix(middle, -angle, (0, 0), 1.0, (0, 0)), mode.value, fill, expand)
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
    """Applies an affine transform: turns an image clockwise, moves, scales and shears it.

    Args:
        angle: degrees. translate: (to the right, down), in elements. scale: a factor.
        shear: degrees along x, or (along x, along y).
        interpolation, fill, center: see `rotate`.

    Raises:
        TypeError: an argument of another type. ValueError: a sequence of another length, a scale of 0 or less; a mode
            that tensors do not have; too many values to fill.
    """
    mode = as_mode(interpolation)
    middle = _middle(img, angle, center)
    require(isinstance(translate, (list, tuple)), TypeError, "Argument translate should be a sequence")
    require(len(translate) == 2, ValueError, "Argument translate should be a sequence of length 2")
    if scale <= 0.0:
        raise ValueError("Argument scale should be positive")
    if not isinstance(shear, (int, float, list, tuple)):
        raise TypeError("Shear should be either a single value or a sequence of two values")
    both = [shear, 0.0] if isinstance(shear, (int, float)) else list(shear) * (2 if len(shear) == 1 else 1)
    require(len(both) == 2, ValueError, "Shear should be a sequence containing two values. Got {}", both)
    matrix = _inverse_matrix(middle, angle, translate, scale, both)
    if isinstance(img, Tensor):
        return _transformed(img, matrix, mode.value, fill)
    picture: Any = check_picture(img)
    fill = _fill_of(fill, picture)
    return picture.transform(picture.size, Image.Transform.AFFINE, matrix, mode.pillow, fillcolor=fill)


def _middle(img: Any, angle: float, center: Any) -> Sequence[float]:
    """The point that stays where it is; of a tensor it is counted from its middle, as grids of `grid_sample` are."""
    require(isinstance(angle, (int, float)), TypeError, "Argument angle should be int or float")
    require(center is None or isinstance(center, (list, tuple)), TypeError, "Argument center should be a sequence")
    _, height, width = get_dimensions(img)
    x, y = (width * 0.5, height * 0.5) if center is None else center
    return (x - width * 0.5, y - height * 0.5) if isinstance(img, Tensor) else (x, y)


def erase(img: Tensor, i: int, j: int, h: int, w: int, v: Tensor, inplace: bool = False) -> Tensor:
    """Erases a part of a tensor: sets `h` rows from `i` on and `w` columns from `j` on to `v`; no PIL image."""
    img = check_image(img) if inplace else check_image(img).clone()
    img[..., i : i + h, j : j + w] = v
    return img


def _resized(img: Tensor, size: Sequence[int], mode: str, antialias: bool) -> Tensor:
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


def _transformed(img: Tensor, matrix: list[float], mode: str, fill: Any, expand: bool = False) -> Tensor:
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
