"""Read image files into tensors (channels, height, width) of uint8, and write tensors to files."""

from __future__ import annotations

import io
import os
from enum import Enum
from typing import Any

from PIL import ImageOps

from ..serialization.atomic import atomic_file
from ..tensors import Tensor
from ..types import dtypes
from .transforms.conversion import open_picture
from .transforms.functional import pil_to_tensor, to_pil_image

__all__ = ["ImageReadMode", "decode_image", "read_image", "write_png"]

Path = str | os.PathLike[str]


class ImageReadMode(Enum):
    """The channels that a picture is read with; a word such as "RGB" can be passed in its place."""

    UNCHANGED = 0
    GRAY = 1
    GRAY_ALPHA = 2
    RGB = 3
    RGB_ALPHA = 4
    RGBA = RGB_ALPHA


PILLOW = {"GRAY": "L", "GRAY_ALPHA": "LA", "RGB": "RGB", "RGB_ALPHA": "RGBA"}


def read_image(path: Path, mode: Any = ImageReadMode.UNCHANGED, apply_exif_orientation: bool = False) -> Tensor:
    """Read an image file into a tensor; see `decode_image`."""
    return decode_image(path, mode, apply_exif_orientation)


def decode_image(
    input: Tensor | Path, mode: Any = ImageReadMode.UNCHANGED, apply_exif_orientation: bool = False
) -> Tensor:
    """Decode an image file, or the bytes of one, into a tensor (channels, height, width) of uint8.

    It is of uint16 if the image has 16 bits and is read unchanged.

    Args:
        mode: what it is converted to, an `ImageReadMode` or its name; pictures with a palette become RGB.
        apply_exif_orientation: whether it is turned upright, if the camera noted how it was held.

    Raises:
        OSError: it is truncated or no picture (`PIL.UnidentifiedImageError`); the message names the file.
        PIL.Image.DecompressionBombError: it has too many elements. KeyError: no such mode.
    """
    wanted = ImageReadMode[mode.upper()] if isinstance(mode, str) else ImageReadMode(mode)
    if isinstance(input, Tensor):
        _check(input, "Expected a 1-dimensional uint8 tensor of the bytes of a picture", input.ndim == 1)
        picture = open_picture(io.BytesIO(input.numpy(force=True).tobytes()), "the bytes that were passed")
    else:
        picture = open_picture(input, os.fspath(input))
    if apply_exif_orientation:
        picture = ImageOps.exif_transpose(picture)
    kind = PILLOW.get(wanted.name)
    if kind is None:
        kind = {"1": "L", "P": "RGBA" if "transparency" in picture.info else "RGB"}.get(picture.mode, picture.mode)
        kind = kind if kind.startswith("I;16") or kind in PILLOW.values() else "RGB"
    return pil_to_tensor(picture if kind == picture.mode else picture.convert(kind)).contiguous()


def write_png(input: Tensor, filename: Path, compression_level: int = 6) -> None:
    """Write an image (1 or 3, height, width) of uint8 as a PNG file, which appears when it is whole.

    Raises:
        TypeError: another dtype or shape. ValueError: a level that is not from 0 to 9.
    """
    if not 0 <= compression_level <= 9:
        raise ValueError("Compression level should be between 0 and 9")
    fits = isinstance(input, Tensor) and input.ndim == 3 and input.shape[0] in (1, 3) and input.numel() > 0
    _check(input, "Input should be a picture (1 or 3 channels, height, width) of uint8", fits)
    with atomic_file(filename) as stream:
        to_pil_image(input).save(stream, format="PNG", compress_level=compression_level)


def _check(data: Tensor, words: str, fits: bool) -> None:
    if not isinstance(data, Tensor) or data.dtype is not dtypes.uint8 or not fits:
        found = f"{data.dtype} of shape {tuple(data.shape)}" if isinstance(data, Tensor) else type(data).__name__
        raise TypeError(f"{words}, got {found}")
