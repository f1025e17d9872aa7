"""Archives unpacked without trust in what they say: no path outside of the folder, no links, no bombs."""

from __future__ import annotations

import bz2
import gzip
import lzma
import os
import stat
import struct
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import PurePosixPath, PureWindowsPath
from typing import IO, Any, BinaryIO

from ...errors import DatasetError, explain
from ...serialization.atomic import atomic_file
from .download import download_url

__all__ = ["damaged", "download_and_extract_archive", "extract_archive", "open_compressed"]

# What any archive may unpack to; a large one may unpack to RATIO times its size. Pictures are hardly compressible:
# CIFAR-10 takes 1.1 times its archive, MNIST 4.7 times its files.
ANY_ARCHIVE = 2**30
RATIO = 100
XZ_MEMORY = 2**28  # bytes that unpacking .xz may take; files of `xz -9` take 65 MB
CHUNK = 1 << 20
DAMAGED = (
    *(EOFError, LookupError, ValueError, OverflowError, struct.error, gzip.BadGzipFile, lzma.LZMAError, zlib.error),
    *(tarfile.TarError, zipfile.BadZipFile, NotImplementedError),
)
LONG = {".tgz": ".tar.gz", ".tbz": ".tar.bz2", ".tbz2": ".tar.bz2", ".txz": ".tar.xz"}


def extract_archive(
    from_path: str | os.PathLike[str],
    to_path: str | os.PathLike[str] | None = None,
    remove_finished: bool = False,
    *,
    max_bytes: int | None = None,
) -> str:
    """Unpack a .tar, .zip, .gz, .xz or .bz2 file, or a compressed .tar, into a folder, and return the folder's path.

    All names of an archive are checked before anything is written. Of a file that is compressed but no archive the
    path of the unpacked file is returned.

    Args:
        to_path: None for the folder of the file.
        remove_finished: whether the archive is deleted afterwards.
        max_bytes: the most bytes to unpack; None for 1 GiB or 100 times the archive's size, whichever is more.

    Raises:
        DatasetError: a member would be outside of the folder, or is a link or a device; the archive is damaged, or
            unpacks to more bytes than allowed. RuntimeError: its name says no kind of archive that is known.
    """
    source = os.fspath(from_path)
    folder = os.path.dirname(source) if to_path is None else os.fspath(to_path)
    stem, suffix = os.path.splitext(os.path.basename(source))
    stem, suffix = os.path.splitext(stem + LONG.get(suffix, suffix))
    limit = max(ANY_ARCHIVE, RATIO * os.path.getsize(source)) if max_bytes is None else max_bytes
    result = folder or "."
    with damaged(source):
        if suffix == ".zip":
            _unzip(source, result, limit)
        elif suffix == ".tar" or (suffix in OPENERS and stem.endswith(".tar")):
            _untar(source, suffix, result, limit)
        elif suffix in OPENERS:
            os.makedirs(result, exist_ok=True)
            result = os.path.join(folder, stem)
            with open_compressed(source, suffix) as stream, atomic_file(result) as target:
                _copy(_Counted(stream, source, limit), target)
        else:
            known = ", ".join(sorted({".tar", ".zip", *OPENERS, *LONG}))
            raise RuntimeError(explain(f"Unknown compression or archive type: '{suffix}'.", f"known are {known}"))
    if remove_finished:
        os.unlink(source)
    return result


def download_and_extract_archive(
    url: str,
    download_root: str | os.PathLike[str],
    extract_root: str | os.PathLike[str] | None = None,
    filename: str | None = None,
    md5: str | None = None,
    remove_finished: bool = False,
) -> None:
    """`download_url`, then `extract_archive` into `extract_root`, by default the folder that it was fetched to."""
    folder = os.path.expanduser(download_root)
    name = filename or os.path.basename(url)
    download_url(url, folder, name, md5)
    extract_archive(os.path.join(folder, name), extract_root or folder, remove_finished)


@contextmanager
def damaged(path: str) -> Iterator[None]:
    """Name the file when its compression or its structure is found to be damaged."""
    try:
        yield
    except DAMAGED as error:
        words = str(error) or type(error).__name__
        remedy = "delete it, and fetch or write it again"
        raise DatasetError(explain(f"File not found or corrupted: {path}", words, remedy=remedy)) from None


class _Unxz:
    """What `lzma.open` reads, with a limit of the memory that the file can ask for."""

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


OPENERS: dict[str, Callable[[BinaryIO], Any]] = {
    ".gz": lambda stream: gzip.GzipFile(fileobj=stream),
    ".bz2": bz2.BZ2File,
    ".xz": _Unxz,
}


@contextmanager
def open_compressed(path: str, suffix: str) -> Iterator[Any]:
    """What a file unpacks to, for `read(count)`; the file itself if `suffix` is that of no compression."""
    with open(path, "rb") as stream:
        yield OPENERS[suffix](stream) if suffix in OPENERS else stream


class _Counted:
    """A stream that ends with an error after `limit` bytes."""

    def __init__(self, stream: Any, source: str, limit: int) -> None:
        self._stream, self._source, self._limit, self._taken = stream, source, limit, 0

    def read(self, count: int) -> bytes:
        data: bytes = self._stream.read(min(count, CHUNK))
        self._taken += len(data)
        if self._taken > self._limit:
            fact = f"it has {os.path.getsize(self._source)} bytes and may unpack to {self._limit}"
            remedy = "if you trust it, unpack it by hand, or pass max_bytes to extract_archive"
            raise DatasetError(explain(f"{self._source} unpacks to too many bytes", fact, remedy=remedy))
        return data


def _copy(stream: Any, target: IO[bytes]) -> None:
    while chunk := stream.read(CHUNK):
        target.write(chunk)


def _inside(folder: str, name: str, plain: bool, source: str) -> str:
    """The path of a member, if that is a plain file or folder within `folder`, on every system."""
    fact = ""
    if not plain:
        fact = "it is no plain file: links, devices and encrypted files are not unpacked"
    elif (
        not name
        or "\0" in name
        or any(
            path.is_absolute() or path.drive or path.root or ".." in path.parts
            for path in (PurePosixPath(name), PureWindowsPath(name))
        )
    ):
        fact = "it would be outside of the folder that the archive is unpacked to"
    if fact:
        raise DatasetError(explain(f"{source} has a member that is refused: {name!a}", fact))
    return os.path.join(folder, name)


def _untar(source: str, suffix: str, folder: str, limit: int) -> None:
    for is_checked in (False, True):  # read twice: the first time nothing is written
        with open_compressed(source, suffix) as stream:
            counted: Any = _Counted(stream, source, limit)
            with tarfile.open(fileobj=counted, mode="r|") as archive:
                for member in archive:
                    plain = member.isdir() or (member.isreg() and not member.issparse())
                    target = _inside(folder, member.name, plain, source)
                    if is_checked:
                        _write(target, None if member.isdir() else archive.extractfile(member))


def _unzip(source: str, folder: str, limit: int) -> None:
    with zipfile.ZipFile(source) as archive:
        targets = []
        for member in archive.infolist():
            kind = stat.S_IFMT(member.external_attr >> 16)
            plain = kind in (0, stat.S_IFREG, stat.S_IFDIR) and not member.flag_bits & 1
            targets.append(_inside(folder, member.filename, plain, source))
        room = limit
        for member, target in zip(archive.infolist(), targets):
            if member.is_dir():
                _write(target, None)
                continue
            with archive.open(member) as stream:
                _write(target, _Counted(stream, source, room))
            room -= member.file_size  # which zipfile holds the stream to


def _write(target: str, stream: Any) -> None:
    """Make a folder, or a file of what a stream has."""
    os.makedirs(target if stream is None else os.path.dirname(target) or ".", exist_ok=True)
    if stream is not None:
        with open(target, "wb") as written:
            _copy(stream, written)
