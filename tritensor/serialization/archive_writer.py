"""Write the zip container of PyTorch checkpoints: stored records, each aligned to 64 bytes, laid out as miniz does it.

The layout is the one that PyTorch predicts when it computes the offsets of records without reading their headers:
padding in an extra field named `FB`, the CRC in a descriptor after the data. Everything is written in one pass, so the
target may be a pipe or a socket, and no record is held in memory.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterable
from typing import Any

ALIGNMENT = 64
LIMIT = 0xFFFFFFFF  # a field that holds this is meant to be looked up in its 64-bit extension
UTF8, DESCRIPTOR = 0x0800, 0x0008  # flag bits: name in UTF-8; CRC and sizes follow the data
NO_TIME, NO_DATE = 0, 0x0021  # 1980-01-01: the same content gives the same bytes


class ArchiveWriter:
    """Write records to `stream` (anything with `write`), all under the folder `root`."""

    def __init__(self, stream: Any, root: str) -> None:
        self._stream = stream
        self._root = root
        self._position = 0
        self._directory: list[bytes] = []
        self._names = 0
        self._checksum = 0

    def write_record(self, name: str, nbytes: int, chunks: Iterable[Any]) -> None:
        """Write one record of `nbytes` bytes, given as bytes-like chunks."""
        encoded = f"{self._root}/{name}".encode()
        start = self._position
        flags = UTF8 | (DESCRIPTOR if nbytes else 0)
        wide = struct.pack("<QQ", nbytes, nbytes) if nbytes >= LIMIT else b""
        wide += struct.pack("<Q", start) if start >= LIMIT else b""
        extra = struct.pack("<HH", 1, len(wide)) + wide if wide else b""
        padding = -(start + 30 + len(encoded) + len(extra) + 4) % ALIGNMENT
        local_extra = extra + struct.pack("<2sH", b"FB", padding) + b"Z" * padding
        shown = LIMIT if nbytes >= LIMIT else 0
        self._write(
            struct.pack(
                "<4s5H3I2H",
                b"PK\3\4",
                45 if wide else 20,
                flags,
                0,
                NO_TIME,
                NO_DATE,
                0,
                shown,
                shown,
                len(encoded),
                len(local_extra),
            )
            + encoded
            + local_extra
        )
        crc = 0
        for chunk in chunks:
            crc = zlib.crc32(chunk, crc)
            self._write(chunk)
        if nbytes:
            self._write(struct.pack("<4sIQQ" if wide else "<4sIII", b"PK\7\10", crc, nbytes, nbytes))
        self._directory.append(
            struct.pack(
                "<4s6H3I5H2I",
                b"PK\1\2",
                45 if wide else 20,
                45 if wide else 20,
                flags,
                0,
                NO_TIME,
                NO_DATE,
                crc,
                min(nbytes, LIMIT),
                min(nbytes, LIMIT),
                len(encoded),
                len(extra),
                0,
                0,
                0,
                0,
                min(start, LIMIT),
            )
            + encoded
            + extra
        )
        self._names = zlib.crc32(encoded[len(self._root) :], self._names)
        self._checksum = zlib.crc32(struct.pack("<I", crc), self._checksum)

    def write_text(self, name: str, text: str) -> None:
        """Write a short record of text."""
        data = text.encode()
        self.write_record(name, len(data), [data])

    def finish(self) -> None:
        """Write the records that PyTorch puts last, and the central directory."""
        self.write_text("version", "3\n")
        # PyTorch's has the same width and is also computed from the names of the records and their checksums.
        self.write_text(".data/serialization_id", f"{self._names:020d}{self._checksum:020d}")
        start, count = self._position, len(self._directory)
        for header in self._directory:
            self._write(header)
        size, end = self._position - start, self._position
        self._write(struct.pack("<4sQ2H2I4Q", b"PK\6\6", 44, 45, 45, 0, 0, count, count, size, start))
        self._write(struct.pack("<4sIQI", b"PK\6\7", 0, end, 1))
        self._write(
            struct.pack(
                "<4s4H2IH",
                b"PK\5\6",
                0,
                0,
                min(count, 0xFFFF),
                min(count, 0xFFFF),
                min(size, LIMIT),
                min(start, LIMIT),
                0,
            )
        )

    def _write(self, chunk: Any) -> None:
        self._stream.write(chunk)
        self._position += len(chunk)
