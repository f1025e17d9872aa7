"""The format of PyTorch before 1.6, which it still writes on request: pickles one after the other, then the raw
storages."""

from __future__ import annotations

import sys
from typing import Any

from .builder import Builder, StorageRecord
from .checkpoint import Checkpoint
from .malformed import Malformed
from .source import TRUNCATED, Source
from .unpickler import Unpickler

MAGIC_NUMBER, PROTOCOL_VERSION = 0x1950A86A20F9469CFC6C, 1001


class LegacyCheckpoint(Checkpoint):
    """Magic number, protocol version, facts about the machine, the object, the storage keys; then for each storage the
    number of its elements in eight bytes, and the elements."""

    def __init__(self, source: Source) -> None:
        super().__init__(source)
        self._offsets: dict[str, int] = {}
        self._claimed = 0
        self.swaps = sys.byteorder != "little"

    def claim(self, key: str, nbytes: int, itemsize: int) -> int:
        """See `Checkpoint.claim`."""
        self._claimed += nbytes
        if self._claimed > self.file_size:  # their sizes come after the pickle, so only the sum can be checked now
            raise Malformed(
                "the storages that the pickle refers to are larger than the file",
                entry=f"data/{key[:40]}",
                remedy=TRUNCATED,
            )
        return nbytes

    def read_object(self, builder: Builder, refused: list[Malformed] | None = None) -> Any:
        """See `Checkpoint.read_object`."""
        stream = self.source.reader(0)
        unpickler = Unpickler(stream, self.file_size, builder, "header", None)
        magic = unpickler.load()
        if type(magic) is not int or magic != MAGIC_NUMBER:
            raise Malformed("Invalid magic number; corrupt file?", "this is not a PyTorch checkpoint")
        version = unpickler.load()
        if type(version) is not int or version != PROTOCOL_VERSION:
            raise Malformed("Invalid protocol version", f"the file should say {PROTOCOL_VERSION}")
        unpickler.load()  # facts about the machine that wrote it; the storages are in little-endian order regardless
        unpickler.enter("object", refused)
        made = unpickler.load()
        unpickler.enter("storage keys", None)
        keys = unpickler.load()
        if type(keys) is not list or any(type(key) is not str for key in keys):
            raise Malformed("the list of storage keys is damaged", entry="storage keys")
        if sorted(keys) != sorted(builder.storages):
            raise Malformed("the storages of the file are not those that its object refers to", entry="storage keys")
        self._find_storages(self.file_size - unpickler.left, [builder.storages[key] for key in keys])
        return made

    def _find_storages(self, offset: int, records: list[StorageRecord]) -> None:
        for record in records:
            count = int.from_bytes(self.source.read_at(offset, 8, f"data/{record.key}"), "little")
            if count * record.type.dtype.itemsize != record.nbytes:
                raise Malformed(
                    "a storage does not have the size that the pickle says",
                    f"{count} elements are there",
                    entry=f"data/{record.key}",
                )
            self._offsets[record.key] = offset + 8
            offset += 8 + record.nbytes
        if offset > self.file_size:
            raise Malformed("the file ends too early", entry=f"data/{records[-1].key}", remedy=TRUNCATED)

    def locate(self, record: StorageRecord) -> tuple[int, int | None]:
        """See `Checkpoint.locate`."""
        return self._offsets[record.key], None
