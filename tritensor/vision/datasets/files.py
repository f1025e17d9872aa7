"""Files of data sets fetched, checked and unpacked, without trust in what they say: no path outside of the folder, no
links, no bombs."""

from __future__ import annotations

import gzip
import hashlib
import lzma
import os
import shutil
import stat
import struct
import tarfile
import urllib.error
import zipfile
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from http.client import HTTPException
from pathlib import PurePosixPath, PureWindowsPath
from typing import Any, BinaryIO

from ...errors import DatasetError, explain
from ...serialization.atomic import atomic_file
from ...utils.downloads import receive

__all__ = ["check_integrity", "corrupted", "damaged", "extract_archive", "fetch", "open_compressed"]

Path = str | os.PathLike[str]

# What any archive may unpack to; a large one may unpack to RATIO times its size. Pictures are hardly compressible:
# CIFAR-10 takes 1.1 times its archive, MNIST 4.7 times its files.
ANY_ARCHIVE = 2**30
RATIO = 100
XZ_MEMORY = 2**28  # bytes that unpacking .xz may take; files of `xz -9` take 65 MB
BY_HAND = "if you trust it, unpack it by hand"
CHUNK = 1 << 20
BLOCK = 4096  # bytes that a file or folder takes on a disk at least
DEEPEST = 100  # folders within another
DAMAGED = (
    *(EOFError, LookupError, ValueError, OverflowError, struct.error, gzip.BadGzipFile, lzma.LZMAError, zlib.error),
    *(tarfile.TarError, zipfile.BadZipFile, NotImplementedError),
)


def corrupted(path: str, *facts: str) -> DatasetError:
    """The error for a file that is damaged, or another than it should be."""
    remedy = "delete it, and fetch it again with download=True, or write it again"
    return DatasetError(f"File not found or corrupted: {path}", *facts, remedy=remedy)


def check_integrity(path: Path, md5: str) -> bool:
    """True if a file exists and has this MD5."""
    return os.path.isfile(path) and _md5(path) == md5


def _md5(path: Path) -> str:
    with open(path, "rb") as stream:
        return hashlib.file_digest(stream, lambda: hashlib.md5(usedforsecurity=False)).hexdigest()


def fetch(urls: Sequence[str], folder: Path, md5: str) -> str:
    """The path of a file in a folder, which is fetched from the first URL that gives it unless it is there.

    The bytes go to `name.part`, which becomes `name` when it is whole and its checksum is right. What an interrupted
    attempt left there is completed by the next, of another URL or in another call.

    Raises:
        DatasetError: no URL gives it; the message has the reason of each. OSError: the disk does not take it.
    """
    path = os.path.join(folder, os.path.basename(urls[0]))
    if check_integrity(path, md5):
        return path
    os.makedirs(folder, exist_ok=True)
    reasons = []
    for url in urls:
        try:
            _attempt(url, path, md5)
            return path
        except (DatasetError, OSError, HTTPException) as error:
            if isinstance(error, OSError) and not isinstance(error, urllib.error.URLError) and error.filename:
                raise  # of the disk: no mirror can help
            reasons.append(f"Tried {url}, got:\n{error}\n")
    raise DatasetError(f"Error downloading {os.path.basename(path)}:\n{''.join(reasons)}")


def _attempt(url: str, path: str, md5: str) -> None:
    part = f"{path}.part"
    resumed = os.path.exists(part)
    receive(url, part)
    if check_integrity(part, md5):
        os.replace(part, path)
        return
    fact = f"{url} gave {os.path.getsize(part)} bytes with the checksum {_md5(part)}"
    os.unlink(part)
    if not resumed:
        raise DatasetError("File not found or corrupted.", fact, f"the file has the checksum {md5}")
    _attempt(url, path, md5)  # the beginning may have been of another file


def extract_archive(source: str, folder: str) -> None:
    """Unpack a .tar, .zip, .gz or .xz file, or a .tar.gz or .tar.xz, into a folder.

    All names of an archive are checked before anything is written.

    Raises:
        DatasetError: a member would be outside of the folder, or is a link or a device; the archive is damaged, or
            unpacks to more than 1 GiB or 100 times its size, whichever is more. RuntimeError: another kind of archive.
    """
    stem, suffix = os.path.splitext(os.path.basename(source))
    limit = max(ANY_ARCHIVE, RATIO * os.path.getsize(source))
    with damaged(source):
        if suffix in OPENERS and not stem.endswith(".tar"):
            os.makedirs(folder, exist_ok=True)
            with open_compressed(source, suffix) as stream, atomic_file(os.path.join(folder, stem)) as target:
                shutil.copyfileobj(_Counted(stream, source, limit), target, CHUNK)
            return
        if suffix not in (".zip", ".tar", *OPENERS):
            known = ", ".join([".tar", ".zip", *OPENERS])
            raise RuntimeError(explain(f"Unknown compression or archive type: '{suffix}'.", f"known are {known}"))
        for is_checked in (False, True):  # read twice: the first time nothing is written
            counted = _Counted(None, source, limit)
            for name, plain, opened in (_zipped if suffix == ".zip" else _tarred)(source, limit):
                counted.take(BLOCK)
                path = _inside(folder, name, plain, source)
                if is_checked:
                    os.makedirs(path if opened is None else os.path.dirname(path) or ".", exist_ok=True)
                if is_checked and opened is not None:
                    with opened() as counted.stream, open(path, "wb") as written:
                        shutil.copyfileobj(counted, written, CHUNK)


def _tarred(source: str, limit: int) -> Iterator[tuple[str, bool, Any]]:
    """Lists the members: the name, whether it is a plain file or a folder, and a function that opens it, None for a
    folder."""
    with open_compressed(source, os.path.splitext(source)[1]) as stream:
        counted: Any = _Counted(stream, source, limit)
        with tarfile.open(fileobj=counted, mode="r|") as archive:
            for member in archive:
                plain = member.isdir() or (member.isreg() and not member.issparse())
                yield member.name, plain, None if member.isdir() else partial(archive.extractfile, member)


def _zipped(source: str, limit: int) -> Iterator[tuple[str, bool, Any]]:
    with zipfile.ZipFile(source) as archive:
        for member in archive.infolist():
            kind = stat.S_IFMT(member.external_attr >> 16)
            plain = kind in (0, stat.S_IFREG, stat.S_IFDIR) and not member.flag_bits & 1
            yield member.filename, plain, None if member.is_dir() else partial(archive.open, member)


@contextmanager
def damaged(path: str) -> Iterator[None]:
    """Name the file when its compression or its structure is found to be damaged."""
    try:
        yield
    except DAMAGED as error:
        raise corrupted(path, str(error) or type(error).__name__) from None


class _Unxz:
    """Reads as `lzma.open` does, with a limit of the memory that the file can ask for."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream, self._xz = stream, lzma.LZMADecompressor(memlimit=XZ_MEMORY)

    def read(self, count: int) -> bytes:
        while not self._xz.eof:
            packed = self._stream.read(1 << 16) if self._xz.needs_input else b""
            if self._xz.needs_input and not packed:
                raise EOFError("Compressed file ended before the end-of-stream marker was reached")
            if data := self._xz.decompress(packed, count):
                return data
        return b""


OPENERS: dict[str, Callable[[BinaryIO], Any]] = {".gz": lambda stream: gzip.GzipFile(fileobj=stream), ".xz": _Unxz}


@contextmanager
def open_compressed(path: str, suffix: str) -> Iterator[Any]:
    """Opens a file to read what it unpacks to, for `read(count)`; the file itself if `suffix` is that of no
    compression."""
    with open(path, "rb") as stream:
        yield OPENERS[suffix](stream) if suffix in OPENERS else stream


class _Counted:
    """A stream that ends with an error after `limit` bytes."""

    def __init__(self, stream: Any, source: str, limit: int) -> None:
        self.stream, self._source, self._limit, self._taken = stream, source, limit, 0

    def read(self, count: int = CHUNK) -> bytes:
        data: bytes = self.stream.read(min(count, CHUNK))
        self.take(len(data))
        return data

    def take(self, count: int) -> None:
        """Count bytes that are unpacked.

        Raises:
            DatasetError: there are too many.
        """
        self._taken += count
        if self._taken > self._limit:
            fact = f"it has {os.path.getsize(self._source)} bytes and may unpack to {self._limit}"
            raise DatasetError(f"{self._source} unpacks to too many bytes", fact, remedy=BY_HAND)


def _inside(folder: str, name: str, plain: bool, source: str) -> str:
    """The path of a member, if that is a plain file or folder within `folder`, on every system."""
    paths = (PurePosixPath(name), PureWindowsPath(name))
    fact = ""
    parts = name.replace("\\", "/").split("/")
    if len(parts) > DEEPEST or any(len(os.fsencode(part)) > 255 for part in parts):
        fact = f"it lies more than {DEEPEST} folders deep, or has a name of more than 255 bytes"
        name = name[:80]
    elif not plain:
        fact = "it is no plain file: links, devices and encrypted files are not unpacked"
    elif not name or "\0" in name or any(path.drive or path.root or ".." in path.parts for path in paths):
        fact = "it would be outside of the folder that the archive is unpacked to"
    if fact:
        raise DatasetError(f"{source} has a member that is refused: {name!a}", fact)
    return os.path.join(folder, name)
