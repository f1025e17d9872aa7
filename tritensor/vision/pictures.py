"""Pillow's pictures: made from NumPy's arrays, and read from files with errors that name them."""

from __future__ import annotations

import os
from typing import Any, BinaryIO

import numpy as np
from PIL import Image, UnidentifiedImageError

from ..errors import explain

__all__ = ["channels_of", "from_array", "open_picture"]


def channels_of(picture: Image.Image) -> int:
    """How many bands a picture has: 1 for "L", 3 for "RGB"."""
    return len(picture.getbands())


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
