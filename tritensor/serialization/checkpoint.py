"""One interface to the two formats of PyTorch's checkpoint files: an object, and storages that are read on request."""

from __future__ import annotations

import io
import sys
from abc import ABC, abstractmethod
from typing import Any

import numpy as np

from .archive_reader import ArchiveReader
from .builder import Builder, StorageRecord
from .malformed import Malformed, compare_checksums
from .source import Source
from .unpickler import Unpickler


class Checkpoint(ABC):
    """A checkpoint file: `read_object` first, then its storages with `open_storage`."""

    can_map = False

    def __init__(self, source: Source) -> None:
        self.source = source
        self.file_size = source.size
        self.swaps = False

    @abstractmethod
    def claim(self, key: str, nbytes: int, itemsize: int) -> int:
        """The real size of storage `key`, of which the pickle says that it has `nbytes`."""

    @abstractmethod
    def read_object(self, builder: Builder, refused: list[Malformed] | None = None) -> Any:
        """The object that was saved, its tensors made by `builder`."""

    def open_storage(self, record: StorageRecord) -> StorageReader:
        """A reader of the bytes of one storage, from the first to the last."""
        offset, crc = self.locate(record)
        if self.swaps and not record.type.typed:
            raise Malformed(
                "a storage without a dtype cannot be brought to this machine's byte order", entry=f"data/{record.key}"
            )
        return StorageReader(self.source, record, offset, crc, self.swaps)

    @abstractmethod
    def locate(self, record: StorageRecord) -> tuple[int, int | None]:
        """The offset of a storage's bytes, and their CRC if it was recorded."""

    def verify(self, records: list[StorageRecord]) -> None:
        """Read every storage once and compare it with its checksum, in a fixed amount of memory."""
        scratch = np.empty(1 << 20, np.uint8)
        for record in records:
            reader = self.open_storage(record)
            while reader.left:
                reader.read_into(scratch[: min(reader.left, scratch.size)])


class StorageReader:
    """Reads one storage in any number of steps; the last one compares the checksum."""

    def __init__(self, source: Source, record: StorageRecord, offset: int, crc: int | None, swaps: bool) -> None:
        self._source, self._offset, self._expected = source, offset, crc
        self._entry = f"data/{record.key}"
        self._swap = np.dtype(record.type.dtype.numpy) if swaps and record.type.dtype.itemsize > 1 else None
        self._crc = 0
        self.left = record.nbytes

    def read_into(self, target: np.ndarray) -> None:
        """Fill `target`, a flat array of uint8, with the next bytes."""
        self._crc = self._source.read_into(self._offset, target, self._entry, self._crc)
        self._offset += target.size
        self.left -= target.size
        if not self.left and self._expected is not None:
            compare_checksums(self._crc, self._expected, self._entry)
        if self._swap is not None:
            whole = target[: target.size // self._swap.itemsize * self._swap.itemsize].view(self._swap)
            whole[...] = whole.byteswap()


class ZipCheckpoint(Checkpoint):
    """The format of `torch.save` since PyTorch 1.6: a zip archive of `data.pkl` and one record for each storage."""

    can_map = True

    def __init__(self, source: Source) -> None:
        super().__init__(source)
        self._archive = archive = ArchiveReader(source)
        order = archive.read("byteorder") if "byteorder" in archive.entries else b"little"
        if order not in (b"little", b"big"):
            raise Malformed(f"Unknown endianness type: {ascii(order)[1:40]}", entry="byteorder")
        self.swaps = order.decode() != sys.byteorder

    def claim(self, key: str, nbytes: int, itemsize: int) -> int:
        """See `Checkpoint.claim`."""
        entry = self._archive.entries.get(f"data/{key}")
        if entry is None:
            raise Malformed("the pickle refers to a storage that the archive does not have", entry=f"data/{key[:40]}")
        # A storage may end in less than one element: a float view of ten bytes of uint8.
        if not entry.nbytes - itemsize < nbytes <= entry.nbytes:
            raise Malformed(
                "a storage does not have the size that the pickle says",
                f"{entry.nbytes} bytes are there, {nbytes} are claimed",
                entry=entry.name,
            )
        return entry.nbytes

    def read_object(self, builder: Builder, refused: list[Malformed] | None = None) -> Any:
        """See `Checkpoint.read_object`."""
        data = self._archive.read("data.pkl")
        return Unpickler(io.BytesIO(data), len(data), builder, "data.pkl", refused).load()

    def locate(self, record: StorageRecord) -> tuple[int, int | None]:
        """See `Checkpoint.locate`."""
        entry = self._archive.entries[f"data/{record.key}"]
        return entry.offset, entry.crc if self._archive.has_checksums else None
