"""The file that is being read: reads at an offset that return all bytes or raise if they are missing."""

from __future__ import annotations

import io
import mmap
import os
import stat
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from .malformed import Malformed
from .progress import Progress

# Large enough that a read call costs little compared with the copy, small enough for the level-2 cache, where the CRC
# is computed.
CHUNK = 1 << 20


class Source:
    """A readable file of known size; offsets count from its position when it was passed in."""

    def __init__(self, stream: Any, name: str, path: str | None = None) -> None:
        self._stream = stream
        self.name = name
        self.path = path
        self._start: int = stream.tell()
        self.size: int = stream.seek(0, os.SEEK_END) - self._start
        self.progress = Progress("load", 0)

    def read_at(self, offset: int, count: int, entry: str = "") -> bytes:
        """Exactly `count` bytes from `offset`."""
        if offset < 0 or count < 0 or offset + count > self.size:
            raise Malformed(
                "the file ends too early",
                f"bytes {offset} to {offset + count} of {self.size} are wanted",
                entry=entry,
                remedy=TRUNCATED,
            )
        self._stream.seek(self._start + offset)
        data = self._stream.read(count)
        if len(data) != count:
            raise Malformed("the file became shorter while it was read", entry=entry)
        return data

    def read_into(self, offset: int, target: Any, entry: str = "", crc: int = 0) -> int:
        """Fill `target` (a writable flat byte view) from `offset`; the CRC of what was read, continued from `crc`."""
        view, done = memoryview(target), 0
        self._stream.seek(self._start + offset)
        while done < len(view):
            part = view[done : done + CHUNK]
            count = self._read_part(part)
            if not count:
                raise Malformed("the file became shorter while it was read", entry=entry)
            crc = zlib.crc32(part[:count], crc)
            done += count
            self.progress.update(count)
        return crc

    @contextmanager
    def showing(self, nbytes: int) -> Iterator[None]:
        """Show the progress of reading `nbytes` bytes in the block, if there are many."""
        self.progress = Progress("load", nbytes, os.path.basename(self.name))
        try:
            yield
        finally:
            self.progress.close()

    def _read_part(self, part: memoryview) -> int:
        if hasattr(self._stream, "readinto"):
            return self._stream.readinto(part) or 0
        data = self._stream.read(len(part))
        part[: len(data)] = data
        return len(data)

    def reader(self, offset: int) -> io.BufferedReader:
        """A stream of the bytes from `offset` on, for data whose length is not written before it."""
        return io.BufferedReader(_Tail(self, offset), 1 << 16)

    def map(self) -> mmap.mmap:
        """The whole file as private pages of memory: nothing is read before it is used, and what the program writes
        there never reaches the file."""
        with open(self.path or "", "rb") as file:
            return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_COPY)


TRUNCATED = "fetch it again: the file was not written or copied to its end"


class _Tail(io.RawIOBase):
    """The part of a source after an offset, as a raw stream."""

    def __init__(self, source: Source, offset: int) -> None:
        self._source, self._offset = source, offset

    def readable(self) -> bool:
        return True

    def readinto(self, target: Any) -> int:
        count = max(0, min(len(target), self._source.size - self._offset))
        target[:count] = self._source.read_at(self._offset, count)
        self._offset += count
        return count


@contextmanager
def open_source(f: Any) -> Iterator[Source]:
    """Open a path, or wrap a readable, seekable file object.

    Raises:
        OSError: the path does not exist, is a directory, or may not be read.
        Malformed: it is neither a regular file nor a block of memory (a pipe, a device).
        AttributeError: an object that cannot be read or positioned, with PyTorch's words.
    """
    if isinstance(f, (str, os.PathLike)):
        path = os.fspath(f)
        mode = os.stat(path).st_mode
        if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):  # opening a pipe would wait for a writer for ever
            raise Malformed("not a regular file", remedy="read it into an io.BytesIO and load that")
        with open(path, "rb", buffering=0) as stream:
            yield Source(stream, str(path), str(path))
        return
    for method in ("read", "seek", "tell"):
        if not hasattr(f, method):
            raise AttributeError(
                f"'{type(f).__name__}' object has no attribute '{method}'. You can only torch.load from a file that is "
                "seekable. Please pre-load the data into a buffer like io.BytesIO and try to load from it instead."
            )
    yield Source(f, str(getattr(f, "name", f"<{type(f).__name__}>")))
