"""Pictures from files and arrays, pictures to tensors, tensors to pictures, and how large either is."""

from __future__ import annotations

import os
import sys
from typing import Any, BinaryIO

import numpy as np
from PIL import Image, UnidentifiedImageError

from ...errors import DtypeError, explain, require
from ...functional.creation.creation import from_numpy
from ...tensors import Tensor
from ...types import dtypes

__all__ = ["convert_image_dtype", "get_dimensions", "get_image_size", "pil_to_tensor", "to_pil_image", "to_tensor"]

DEEP = "I;16" if sys.byteorder == "little" else "I;16B"
ONE_CHANNEL = {"uint8": "L", "int16": DEEP, "int32": "I", "float32": "F"}
# The modes that a picture of 2, 3 or 4 channels may have; the first is the usual one.
MODES = {2: ["LA"], 3: ["RGB", "YCbCr", "HSV"], 4: ["RGBA", "CMYK", "RGBX"]}


def check_picture(img: Any, name: str = "img") -> Image.Image:
    """The picture itself; a TypeError if it is no PIL picture."""
    require(isinstance(img, Image.Image), TypeError, "{} should be PIL Image. Got {}", name, type(img))
    return img


def check_image(img: Any, channels: tuple[int, ...] = ()) -> Tensor:
    """The tensor itself; a TypeError unless it has height and width, and one of these numbers of channels."""
    require(isinstance(img, Tensor), TypeError, "img should be Tensor Image. Got {}", type(img))
    require(img.ndim >= 2, TypeError, "Tensor is not a torch image.")
    found = 1 if img.ndim == 2 else img.shape[-3]
    if channels and found not in channels:
        raise TypeError(f"Input image tensor permitted channel values are {list(channels)}, but found {found}")
    return img


def from_array(array: np.ndarray[Any, Any], mode: str) -> Image.Image:
    """A picture with a copy of the bytes of an array (height, width) or (height, width, channels), as they are;
    `Image.fromarray` took a mode until Pillow 12."""
    array = np.ascontiguousarray(array)
    return Image.frombytes(mode, (array.shape[1], array.shape[0]), array.tobytes())


def open_picture(source: str | os.PathLike[str] | BinaryIO, name: str, mode: str | None = None) -> Image.Image:
    """The picture in a file, read to its end, in its own mode or converted to `mode`; errors name the file `name`: a
    PIL.UnidentifiedImageError (no picture), OSError (damaged), or PIL.Image.DecompressionBombError (more elements than
    `2 * PIL.Image.MAX_IMAGE_PIXELS`)."""
    place = f"the file is {name}"
    try:
        with Image.open(source) as picture:
            picture.load()
            return picture.copy() if mode is None else picture.convert(mode)
    except (UnidentifiedImageError, Image.DecompressionBombError) as error:
        raise type(error)(explain(str(error), place)) from None
    except Warning:  # one that the user made an error
        raise
    except Exception as error:  # Pillow's readers raise what Python does where a damaged file leads them
        if isinstance(error, OSError) and error.errno is not None:  # of the disk
            raise
        words = str(error) or type(error).__name__
        raise OSError(explain(words, place, remedy="fetch or write the file again, or leave it out")) from None


def get_dimensions(img: Any) -> list[int]:
    """The dimensions of a picture: [channels, height, width].

    >>> import tritensor as torch
    >>> get_dimensions(torch.zeros(8, 3, 4, 5))
    [3, 4, 5]
    """
    if isinstance(img, Tensor):
        check_image(img)
        return [1 if img.ndim == 2 else img.shape[-3], *img.shape[-2:]]
    require(isinstance(img, Image.Image), TypeError, "Unexpected type {}", type(img))
    return [len(img.getbands()), img.height, img.width]


def get_image_size(img: Any) -> list[int]:
    """The size of a picture: [width, height]."""
    return get_dimensions(img)[:0:-1]


def to_tensor(pic: Any) -> Tensor:
    """Converts a PIL image or an array (height, width, channels) to a tensor (channels, height, width).

    Elements of uint8 become floating numbers from 0 to 1, others stay what they are.

    >>> import numpy as np
    >>> to_tensor(np.array([[[0, 51, 255]]], dtype=np.uint8)).flatten()
    tensor([0.0000, 0.2000, 1.0000])

    Raises:
        ValueError: an array of other than 2 or 3 dimensions.
    """
    if not isinstance(pic, (np.ndarray, Image.Image)):
        raise TypeError(f"pic should be PIL Image or ndarray. Got {type(pic)}")
    array = np.array(pic)
    require(array.ndim in (2, 3), ValueError, "pic should be 2/3 dimensional. Got {} dimensions.", array.ndim)
    mode = getattr(pic, "mode", None)
    array = array * np.uint8(255) if mode == "1" else array.view(np.int16) if mode == DEEP else array
    made = from_numpy(np.ascontiguousarray(_channels_first(array)))
    return made.to(dtypes.get_default_dtype()).div(255) if made.dtype is dtypes.uint8 else made


def pil_to_tensor(pic: Any) -> Tensor:
    """Converts a PIL image to a tensor (channels, height, width) with the same elements."""
    return from_numpy(_channels_first(np.array(check_picture(pic, "pic"))))


def _channels_first(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    return array[None] if array.ndim == 2 else array.transpose(2, 0, 1)


def to_pil_image(pic: Any, mode: str | None = None) -> Image.Image:
    """Converts a tensor (channels, height, width) or an array (height, width[, channels]) to a PIL image.

    Its mode is `mode` or, for None, the usual one of the number of channels and the dtype. Floating elements are taken
    for numbers from 0 to 1, except for the mode "F".

    Raises:
        TypeError: a dtype that no mode has. ValueError: other than 2 or 3 dimensions, more than 4 channels, or another
            mode than the dtype or the number of channels can have.
    """
    require(isinstance(pic, (Tensor, np.ndarray)), TypeError, "pic should be Tensor or ndarray. Got {}.", type(pic))
    array = pic.numpy(force=True) if isinstance(pic, Tensor) else pic
    array = array.transpose(1, 2, 0) if isinstance(pic, Tensor) and array.ndim == 3 else array
    require(array.ndim in (2, 3), ValueError, "pic should be 2/3 dimensional. Got {} dimensions.", array.ndim)
    channels = 1 if array.ndim == 2 else array.shape[2]
    if channels > 4:
        raise ValueError(f"pic should not have > 4 channels. Got {channels} channels.")
    if np.issubdtype(array.dtype, np.floating) and mode != "F":
        with np.errstate(invalid="ignore"):
            array = (array * 255).astype(np.int32).astype(np.uint8)  # beyond 0 to 1 it wraps, on every processor
    if channels <= 1:
        expected = ONE_CHANNEL.get(array.dtype.name)
        if mode is not None and mode != expected:
            raise ValueError(f"Incorrect mode ({mode}) supplied for input type {array.dtype}. Should be {expected}")
        mode = expected
    elif mode is None:
        mode = MODES[channels][0] if array.dtype == np.uint8 else None
    elif mode not in MODES[channels]:
        raise ValueError(f"Only modes {MODES[channels]} are supported for {channels}D inputs")
    if mode is None:
        raise TypeError(f"Input type {array.dtype} is not supported")
    return from_array(array, mode)


def largest(dtype: dtypes.dtype) -> int:
    """The value of white: the largest number of an integer dtype, otherwise 1."""
    return int(np.iinfo(dtype.numpy).max) if dtype.numpy.kind in "iu" else 1


def convert_image_dtype(image: Tensor, dtype: dtypes.dtype = dtypes.float32) -> Tensor:
    """Converts a tensor to another dtype, scaled so that white stays white: 255 in uint8, 1 in floating dtypes.

    >>> import tritensor as torch
    >>> convert_image_dtype(torch.tensor([0, 51, 255], dtype=torch.uint8))
    tensor([0.0000, 0.2000, 1.0000])

    Raises:
        DtypeError: a floating dtype to an integer one that has more digits.
    """
    require(isinstance(image, Tensor), TypeError, "Input img should be Tensor Image")
    source = image.dtype
    if source is dtype or (source.is_floating_point and dtype.is_floating_point):
        return image.to(dtype)
    if source.is_floating_point:
        if dtype in {4: (dtypes.int32, dtypes.int64), 8: (dtypes.int64,)}.get(source.itemsize, ()):
            words = f"The cast from {source} to {dtype} cannot be performed safely."
            raise DtypeError(words, remedy="convert to float64 first, or to a smaller integer dtype")
        return image.mul(largest(dtype) + 1.0 - 1e-3).to(dtype)  # so that as many numbers become 255 as become 254
    if dtype.is_floating_point:
        return image.to(dtype) / float(largest(source))
    # in floats, as torchvision's: the largest int64 is 2^63 there
    here, there = float(largest(source)), float(largest(dtype))
    if here > there:
        return image.div(int((here + 1) // (there + 1)), rounding_mode="floor").to(dtype)
    return image.to(dtype) * int((there + 1) // (here + 1))
