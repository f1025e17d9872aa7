"""What pictures are, PIL's and tensors; PIL's are made from NumPy's arrays and read from files with errors that name
them."""

from __future__ import annotations

import os
from typing import Any, BinaryIO

import numpy as np
from PIL import Image, UnidentifiedImageError

from ..errors import explain
from ..tensor import Tensor

__all__ = ["check_image", "check_picture", "from_array", "open_picture"]


def check_picture(img: Any, name: str = "img") -> Image.Image:
    """The picture itself; a TypeError if it is no PIL picture."""
    if not isinstance(img, Image.Image):
        raise TypeError(f"{name} should be PIL Image. Got {type(img)}")
    return img


def check_image(img: Any, channels: tuple[int, ...] = ()) -> Tensor:
    """The tensor itself; a TypeError unless it has height and width, and one of these numbers of channels."""
    if not isinstance(img, Tensor):
        raise TypeError(f"img should be Tensor Image. Got {type(img)}")
    if img.ndim < 2:
        raise TypeError("Tensor is not a torch image.")
    found = 1 if img.ndim == 2 else img.shape[-3]
    if channels and found not in channels:
        raise TypeError(f"Input image tensor permitted channel values are {list(channels)}, but found {found}")
    return img


def from_array(array: np.ndarray[Any, Any], mode: str) -> Image.Image:
    """A picture with a copy of the bytes of an array (height, width) or (height, width, channels), as they are.

    `Image.fromarray` took a mode until Pillow 12.
    """
    array = np.ascontiguousarray(array)
    return Image.frombytes(mode, (array.shape[1], array.shape[0]), array.tobytes())


def open_picture(source: str | os.PathLike[str] | BinaryIO, name: str, mode: str | None = None) -> Image.Image:
    """The picture in a file, read to its end, in its own mode or converted to `mode`; messages call the file `name`.

    Raises:
        PIL.UnidentifiedImageError: it is no picture. OSError: it is truncated or damaged.
        PIL.Image.DecompressionBombError: more elements than `2 * PIL.Image.MAX_IMAGE_PIXELS`.
    """
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
