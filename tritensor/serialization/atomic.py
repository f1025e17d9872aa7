"""Replace a file as a whole: opening the name gives the old bytes or the new ones, never some of each."""

from __future__ import annotations

import errno
import os
import stat
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import BinaryIO

from ..errors import explain
from .temporaries import create_temporary, remove_abandoned


@contextmanager
def atomic_file(path: str | bytes | os.PathLike[str]) -> Iterator[BinaryIO]:
    """A temporary file to write to, which is renamed to `path` when the block ends, and deleted if the block raises.

    The bytes are on the disk before the file is renamed: a power cut leaves one file or the other. A symbolic link is
    kept and its target is replaced, or made if the link dangles; the permissions of a replaced file are kept. What is
    not a regular file, such as `/dev/stdout` or a pipe, is written directly. Temporary files that killed processes left
    beside `path` are removed.

    Raises:
        OSError: the folder does not exist, may not be written, or the disk is full; it names `path`.
    """
    given = os.fsdecode(path)
    target = os.path.realpath(given)
    temporary: BinaryIO | None = None
    try:
        mode = _mode(given)
        if given.endswith((os.sep, os.altsep or os.sep)) or (mode is not None and stat.S_ISDIR(mode)):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), given)
        if mode is not None and not stat.S_ISREG(mode):
            with open(given, "wb") as stream:
                yield stream
            return
        remove_abandoned(target)
        temporary = _create(target)
        try:
            yield temporary
            temporary.flush()
            os.fsync(temporary.fileno())
            if mode is not None:
                with suppress(OSError):
                    os.chmod(temporary.name, stat.S_IMODE(mode))
            if sys.platform == "win32":  # which renames no open file
                temporary.close()
            os.replace(temporary.name, target)
            temporary.close()  # and so unlocked, not before
        except BaseException:  # Ctrl-C too
            with suppress(OSError):
                temporary.close()
            with suppress(OSError):
                os.unlink(temporary.name)
            raise
    except OSError as error:
        _name(error, given, target, temporary)
        raise
    _flush_folder(os.path.dirname(target))


def _mode(path: str) -> int | None:
    try:
        return os.stat(path).st_mode
    except (FileNotFoundError, NotADirectoryError):
        return None


def _create(target: str) -> BinaryIO:
    try:
        return create_temporary(target)
    except OSError as error:
        folder = os.path.dirname(target)
        if error.errno in (errno.ENOENT, errno.ENOTDIR):
            error.add_note(explain(f"save: there is no folder {folder}", remedy="make it with os.makedirs"))
        elif error.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
            error.add_note(
                explain(
                    f"save: no file can be made in the folder {folder}",
                    "a checkpoint is written beside the old one and then replaces it",
                    remedy="make the folder writable, or save to another",
                )
            )
        raise


def _name(error: OSError, given: str, target: str, temporary: BinaryIO | None) -> None:
    """Let an error of the file's own name the path that the user gave."""
    if error.errno is not None and (temporary is None or error.filename in (None, target, temporary.name)):
        error.filename = given
        del error.filename2


def _flush_folder(folder: str) -> None:
    """Flush the renamed entry of the folder to the disk. Windows cannot open folders, and some network file systems
    refuse."""
    with suppress(OSError, AttributeError):
        handle = os.open(folder or ".", os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
