"""Files in MNIST's format, IDX: 0, 0, a code of the type, the number of dimensions, the dimensions in four bytes each,
and the elements, all big-endian (http://yann.lecun.com/exdb/mnist/)."""

from __future__ import annotations

import math
import os
from typing import Any

import numpy as np

from ...errors import DatasetError, explain
from .utils import damaged, open_compressed

__all__ = ["find_idx", "read_idx"]

DTYPES = {8: "u1", 9: "i1", 11: ">i2", 12: ">i4", 13: ">f4", 14: ">f8"}
PACKED = (".gz", ".xz")
# The most bytes of elements that a compressed file may say it has: four times those of the largest set, EMNIST.
LARGEST_PACKED = 2**31
# Elements are read in pieces: what a file says of its length is not believed before it is there.
PIECE = 1 << 22


def find_idx(path: str) -> str | None:
    """The file itself or, if there is none, the compressed file beside it; None if there is neither."""
    return next((found for end in ("", *PACKED) if os.path.isfile(found := path + end)), None)


def read_idx(path: str) -> np.ndarray[Any, Any]:
    """The array in an IDX file, which may be compressed (.gz, .xz); a DatasetError that names it if it is damaged."""
    suffix = os.path.splitext(path)[1]
    with damaged(path), open_compressed(path, suffix) as stream:
        magic = _exactly(stream, 4)
        if magic[:2] != b"\0\0" or magic[2] not in DTYPES or not 1 <= magic[3] <= 3:
            raise ValueError(f"an IDX file begins with 0, 0, a type of {sorted(DTYPES)} and 1 to 3, not {list(magic)}")
        dtype = np.dtype(DTYPES[magic[2]])
        shape = [int(length) for length in np.frombuffer(_exactly(stream, 4 * magic[3]), ">u4")]
        nbytes = math.prod(shape) * dtype.itemsize
        if suffix in PACKED and nbytes > LARGEST_PACKED:
            fact = f"it says that it has elements of the shape {tuple(shape)}, which is {nbytes} bytes"
            remedy = "if you trust it, unpack it by hand"
            raise DatasetError(explain(f"{path} unpacks to too many bytes", fact, remedy=remedy))
        array = np.frombuffer(_exactly(stream, nbytes), dtype).reshape(shape)
        if stream.read(1):
            raise ValueError(f"after the elements, whose shape is {tuple(shape)}, comes more")
    return array.astype(dtype.newbyteorder("="), copy=False)


def _exactly(stream: Any, count: int) -> bytearray:
    """The next `count` bytes."""
    found = bytearray()
    while len(found) < count:
        piece = stream.read(min(count - len(found), PIECE))
        if not piece:
            raise EOFError(f"it ends {count - len(found)} bytes too early")
        found += piece
    return found
