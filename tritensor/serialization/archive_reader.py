"""Read the zip container of PyTorch checkpoints, checking everything that it says about itself.

Records are stored, never compressed, so the content cannot be larger than the file. Every record is checked to be
inside the file and not to overlap another, and what is read is compared with its CRC.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass

from .malformed import Malformed, compare_checksums
from .source import TRUNCATED, Source

LIMIT = 0xFFFFFFFF
KNOWN_FLAGS = 0x0808  # CRC and sizes after the data; name in UTF-8
NOT_AN_ARCHIVE = "PytorchStreamReader failed reading zip archive: "
TORCHSCRIPT = "Cannot use ``weights_only=True`` with TorchScript archives passed to ``torch.load``."
NO_CODE = "save the module's state_dict() instead: such an archive holds code"
REPACKED = "save it again with save(): an archive that was packed anew by another tool is not a checkpoint"


@dataclass(frozen=True, slots=True)
class Entry:
    """One record: its name below the archive's folder, where its bytes start, how many there are, their CRC."""

    name: str
    offset: int
    nbytes: int
    crc: int


class ArchiveReader:
    """The records of an archive by name (without the folder that all of them share)."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self.root = ""
        self.entries: dict[str, Entry] = {}
        start, size, count = self._find_directory()
        previous_end = 0
        found = sorted(self._read_directory(start, size, count))
        names: set[str] = set()
        for header, nbytes, crc, name in found:
            if name in names:
                raise Malformed(NOT_AN_ARCHIVE + "two records have the same name", entry=name)
            names.add(name)
            offset = self._data_offset(header, name)
            if header < previous_end or offset + nbytes > start:
                raise Malformed(NOT_AN_ARCHIVE + "records overlap", entry=name)
            previous_end = offset + nbytes
            self._add(name, offset, nbytes, crc)
        if "constants.pkl" in self.entries:
            raise Malformed(TORCHSCRIPT, remedy=NO_CODE)
        if "data.pkl" not in self.entries:
            raise Malformed(NOT_AN_ARCHIVE + "there is no record data.pkl", "this zip file is not a checkpoint")
        # PyTorch can be told to leave the checksums out; then all of them are 0.
        self.has_checksums = any(entry.crc for entry in self.entries.values())

    def read(self, name: str) -> bytes:
        """The bytes of a record, compared with its checksum."""
        data = bytearray(self.entries[name].nbytes)
        self.read_into(name, data)
        return bytes(data)

    def read_into(self, name: str, target: object) -> None:
        """Read a record into `target`, which has its size, and compare with its checksum."""
        entry = self.entries[name]
        crc = self._source.read_into(entry.offset, target, entry=name)
        if self.has_checksums:
            compare_checksums(crc, entry.crc, name)

    def _find_directory(self) -> tuple[int, int, int]:
        """The offset of the central directory, its size and its number of entries."""
        source = self._source
        tail_size = min(source.size, 22 + 0xFFFF + 20)
        tail = source.read_at(source.size - tail_size, tail_size)
        at = tail.rfind(b"PK\5\6", 0, len(tail) - 18)
        if at < 0:
            raise Malformed(NOT_AN_ARCHIVE + "failed finding central directory", remedy=TRUNCATED)
        disk, first_disk, here, count, size, start, comment = struct.unpack("<4H2IH", tail[at + 4 : at + 22])
        if at + 22 + comment != len(tail):
            raise Malformed(NOT_AN_ARCHIVE + "there are bytes behind its end", remedy=TRUNCATED)
        end = source.size - tail_size + at
        if tail[at - 20 : at - 16] == b"PK\6\7" and at >= 20:
            _, where, disks = struct.unpack("<IQI", tail[at - 16 : at])
            record = source.read_at(where, 56) if where + 56 <= end - 20 else b""
            if record[:4] != b"PK\6\6" or disks > 1:
                raise Malformed(NOT_AN_ARCHIVE + "the 64-bit end of the directory is not where it should be")
            disk, first_disk, here, count, size, start = struct.unpack("<2I4Q", record[16:56])
            end = where
        if disk or first_disk or here != count:
            raise Malformed(NOT_AN_ARCHIVE + "it is one part of several")
        if start + size != end or count * 46 > size:
            raise Malformed(NOT_AN_ARCHIVE + "the central directory is not where it should be", remedy=TRUNCATED)
        return start, size, count

    def _read_directory(self, start: int, size: int, count: int) -> list[tuple[int, int, int, str]]:
        """The entries of the central directory: header offset, size, CRC and name."""
        data, at, found = self._source.read_at(start, size), 0, []
        for _ in range(count):
            if data[at : at + 4] != b"PK\1\2" or at + 46 > size:
                raise Malformed(NOT_AN_ARCHIVE + "the central directory is damaged")
            (flags, method, _, _, crc, packed, nbytes, name_size, extra_size, comment_size, disk, _, _, header) = (
                struct.unpack("<4H3I5H2I", data[at + 8 : at + 46])
            )
            behind = at + 46 + name_size + extra_size + comment_size
            if behind > size:
                raise Malformed(NOT_AN_ARCHIVE + "the central directory is damaged")
            name = _decode_name(data[at + 46 : at + 46 + name_size])
            extra = data[at + 46 + name_size : at + 46 + name_size + extra_size]
            nbytes, packed, header = _widen(extra, name, nbytes, packed, header)
            if flags & ~KNOWN_FLAGS or disk not in (0, 0xFFFF):
                raise Malformed(NOT_AN_ARCHIVE + f"unknown flags {flags:#x} (encrypted?)", entry=name, remedy=REPACKED)
            if method != 0 and b"/constants.pkl" in data:
                raise Malformed(TORCHSCRIPT, remedy=NO_CODE)
            if method != 0 or packed != nbytes:
                raise Malformed(
                    NOT_AN_ARCHIVE + "the record is compressed, and PyTorch's never are",
                    f"{packed} bytes stand for {nbytes}",
                    entry=name,
                    remedy=REPACKED,
                )
            found.append((header, nbytes, crc, name))
            at = behind
        if at != size:
            raise Malformed(NOT_AN_ARCHIVE + "there are bytes behind the last entry of the central directory")
        return found

    def _data_offset(self, header: int, name: str) -> int:
        local = self._source.read_at(header, 30, entry=name)
        flags, method, name_size, extra_size = struct.unpack("<6x2H16x2H", local)
        encoded = self._source.read_at(header + 30, name_size, entry=name)
        if local[:4] != b"PK\3\4" or method != 0 or flags & ~KNOWN_FLAGS or encoded != name.encode():
            raise Malformed(NOT_AN_ARCHIVE + "the record's header and the central directory disagree", entry=name)
        return header + 30 + name_size + extra_size

    def _add(self, name: str, offset: int, nbytes: int, crc: int) -> None:
        root, _, below = name.partition("/")
        if name.endswith("/") and not nbytes:  # a folder, which some tools add
            return
        parts = name.split("/")
        if not root or not below or any(part in ("", ".", "..") for part in parts) or "\\" in name or ":" in root:
            raise Malformed(NOT_AN_ARCHIVE + "the record's name leads out of the archive", entry=name)
        if self.root and root != self.root:
            raise Malformed(
                NOT_AN_ARCHIVE + "records lie in more than one folder", f"{self.root}/ and {root}/", entry=name
            )
        self.root = root
        self.entries[below] = Entry(below, offset, nbytes, crc)


def _decode_name(encoded: bytes) -> str:
    try:
        name = encoded.decode("utf-8")
    except UnicodeDecodeError:
        name = ""
    if not name or not name.isprintable():
        raise Malformed(NOT_AN_ARCHIVE + f"a record is named {encoded[:80]!r}")
    return name


def _widen(extra: bytes, name: str, nbytes: int, packed: int, header: int) -> tuple[int, int, int]:
    """Replace the fields that say "too large" by their 64-bit form in the extra data."""
    wanted = [value == LIMIT for value in (nbytes, packed, header)]
    if not any(wanted):
        return nbytes, packed, header
    at = 0
    while at + 4 <= len(extra):
        kind, size = struct.unpack_from("<HH", extra, at)
        if kind == 1 and size >= 8 * sum(wanted) and at + 4 + size <= len(extra):
            wide = iter(struct.unpack_from(f"<{sum(wanted)}Q", extra, at + 4))
            nbytes, packed, header = (
                next(wide) if is_wide else value for is_wide, value in zip(wanted, (nbytes, packed, header))
            )
            return nbytes, packed, header
        at += 4 + size
    raise Malformed(NOT_AN_ARCHIVE + "a 64-bit size is announced and missing", entry=name)
