"""Files of pictures to tensors (channels, height, width) of uint8, and tensors to files."""

from __future__ import annotations

import io
import os
from enum import Enum
from typing import Any

import numpy as np
from PIL import ImageOps

from .. import dtypes
from ..functional.creation import from_numpy
from ..serialization.atomic import atomic_file
from ..tensor import Tensor
from .pictures import open_picture
from .transforms.functional import pil_to_tensor, to_pil_image

__all__ = [
    "ImageReadMode",
    "decode_image",
    "encode_jpeg",
    "encode_png",
    "read_file",
    "read_image",
    "write_file",
    "write_jpeg",
    "write_png",
]

Path = str | os.PathLike[str]


class ImageReadMode(Enum):
    """What a picture is converted to as it is read; a word such as "RGB" can be passed in its place."""

    UNCHANGED = 0
    GRAY = 1
    GRAY_ALPHA = 2
    RGB = 3
    RGB_ALPHA = 4
    RGBA = RGB_ALPHA


PILLOW = {"GRAY": "L", "GRAY_ALPHA": "LA", "RGB": "RGB", "RGB_ALPHA": "RGBA"}


def read_file(path: Path) -> Tensor:
    """The bytes of a file, as a tensor of one dimension."""
    return from_numpy(np.fromfile(path, np.uint8))


def write_file(filename: Path, data: Tensor) -> None:
    """Write the bytes of a uint8 tensor; the file appears when all of them are written.

    Raises:
        TypeError: another dtype, or other than one dimension.
    """
    _check(data, "Input tensor elements should be bytes (uint8) of one dimension", data.ndim == 1)
    with atomic_file(filename) as stream:
        stream.write(data.numpy(force=True).tobytes())


def read_image(path: Path, mode: Any = ImageReadMode.UNCHANGED, apply_exif_orientation: bool = False) -> Tensor:
    """The picture in a file; see `decode_image`."""
    return decode_image(path, mode, apply_exif_orientation)


def decode_image(
    input: Tensor | Path, mode: Any = ImageReadMode.UNCHANGED, apply_exif_orientation: bool = False
) -> Tensor:
    """The picture in a file, or in the bytes of one, as a tensor (channels, height, width) of uint8 (uint16, if it has
    16 bits and is read unchanged).

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
        kind = picture.mode if kind.startswith("I;16") else kind if kind in ("L", "LA", "RGB", "RGBA") else "RGB"
    return pil_to_tensor(picture if kind == picture.mode else picture.convert(kind)).contiguous()


def encode_png(input: Tensor, compression_level: int = 6) -> Tensor:
    """The bytes of a PNG file with the picture (1 or 3, height, width) of uint8.

    Raises:
        TypeError: another dtype or shape. ValueError: a level that is not from 0 to 9.
    """
    if not 0 <= compression_level <= 9:
        raise ValueError("Compression level should be between 0 and 9")
    return _encoded(input, "PNG", compress_level=compression_level)


def encode_jpeg(input: Tensor, quality: int = 75) -> Tensor:
    """The bytes of a JPEG file with the picture (1 or 3, height, width) of uint8.

    Raises:
        TypeError: another dtype or shape. ValueError: a quality that is not from 1 to 100.
    """
    if not 1 <= quality <= 100:
        raise ValueError("Image quality should be a positive number between 1 and 100")
    return _encoded(input, "JPEG", quality=quality)


def write_png(input: Tensor, filename: Path, compression_level: int = 6) -> None:
    """Write `encode_png(input, compression_level)` to a file."""
    write_file(filename, encode_png(input, compression_level))


def write_jpeg(input: Tensor, filename: Path, quality: int = 75) -> None:
    """Write `encode_jpeg(input, quality)` to a file."""
    write_file(filename, encode_jpeg(input, quality))


def _check(data: Any, words: str, shaped: bool) -> None:
    if not isinstance(data, Tensor) or data.dtype is not dtypes.uint8 or not shaped:
        found = f"{data.dtype} of shape {tuple(data.shape)}" if isinstance(data, Tensor) else type(data).__name__
        raise TypeError(f"{words}, got {found}")


def _encoded(picture: Tensor, format: str, **options: Any) -> Tensor:
    fits = isinstance(picture, Tensor) and picture.ndim == 3 and picture.shape[0] in (1, 3) and picture.numel() > 0
    _check(picture, "Input should be a picture (1 or 3 channels, height, width) of uint8", fits)
    stream = io.BytesIO()
    to_pil_image(picture).save(stream, format=format, **options)
    return from_numpy(np.frombuffer(bytearray(stream.getvalue()), np.uint8))
