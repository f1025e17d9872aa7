"""Replace a file as a whole: opening the name gives the old bytes or the new ones, never some of each."""

from __future__ import annotations

import errno
import os
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import BinaryIO

__all__ = ["atomic_file"]


@contextmanager
def atomic_file(path: str | bytes | os.PathLike[str]) -> Iterator[BinaryIO]:
    """A temporary file to write to, which is renamed to `path` when the block ends, and deleted if the block raises.

    The bytes are on the disk before the file is renamed: a power cut leaves one file or the other. A symbolic link is
    kept and its target is replaced; the permissions of a replaced file are kept. What is not a regular file, such as
    `/dev/stdout` or a pipe, is written directly.

    Raises:
        OSError: the folder does not exist, may not be written, or the disk is full.
    """
    target = os.fsdecode(os.path.realpath(path))
    mode = _mode(target)
    if mode is not None and stat.S_ISDIR(mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), os.fsdecode(path))
    if mode is not None and not stat.S_ISREG(mode):
        with open(target, "wb") as stream:
            yield stream
        return
    folder, name = os.path.split(target)
    # In the same folder, because a rename is one step only within a file system. Long names are cut: most systems take
    # 255 bytes.
    temporary = os.path.join(folder, f".{name[:60]}.{os.getpid()}-{secrets.token_hex(6)}.tmp")
    try:
        with open(temporary, "wb") as stream:
            yield stream
            stream.flush()
            os.fsync(stream.fileno())
        if mode is not None:
            with suppress(OSError):
                os.chmod(temporary, stat.S_IMODE(mode))
        os.replace(temporary, target)
    except BaseException:  # Ctrl-C too
        with suppress(OSError):
            os.unlink(temporary)
        raise
    _flush_folder(folder)


def _mode(path: str) -> int | None:
    try:
        return os.stat(path).st_mode
    except FileNotFoundError:
        return None


def _flush_folder(folder: str) -> None:
    """Flush the renamed entry of the folder to the disk. Windows cannot open folders, and some network file systems
    refuse."""
    with suppress(OSError, AttributeError):
        handle = os.open(folder or ".", os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
