"""Temporary files beside a file that is being saved, and the removal of those that killed processes left.

A temporary file's name holds that of its target, by which the next save finds it, and a tag of the machine. Its writer
holds a lock on it, which the system drops when the process ends, however it ends. Not every shared file system shows
the locks of other machines, and some systems have none (Windows): there a file is taken for abandoned when nobody has
written to it for an hour.
"""

from __future__ import annotations

import errno
import hashlib
import os
import platform
import re
import secrets
import sys
import time
from contextlib import suppress
from functools import cache
from typing import BinaryIO

UNTOUCHED = 3600.0  # seconds
LONGEST = 40  # characters of the target's name; most systems take 255 bytes, and a character may have four
ATTEMPTS = 10


def create_temporary(target: str) -> BinaryIO:
    """A new file beside `target`, open for writing and locked. It is in the same folder because a rename is one step
    only within a file system.

    Raises:
        OSError: the folder does not exist or may not be written.
    """
    for _ in range(ATTEMPTS):
        folder, name = os.path.split(target)
        path = os.path.join(folder, f".{_stem(name)}.{_machine()}-{secrets.token_hex(6)}.tmp")
        stream = open(path, "xb")  # noqa: SIM115 (the caller closes it)
        # Before it was locked, another save may have taken it for abandoned.
        if _lock(stream.fileno()) is not False and os.path.exists(path):
            return stream
        stream.close()
        with suppress(OSError):
            os.unlink(path)
    raise BlockingIOError(errno.EAGAIN, os.strerror(errno.EAGAIN), target)


def remove_abandoned(path: str | bytes | os.PathLike[str]) -> int:
    """Remove the temporary files of `path` that no live process owns, and return their number.

    What cannot be removed, such as another user's file, is passed over.
    """
    folder, name = os.path.split(os.path.realpath(os.fsdecode(path)))
    pattern = re.compile(rf"\.{re.escape(_stem(name))}\.([0-9a-f]{{8}})-[0-9a-f]{{12}}\.tmp")
    found = []
    with suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            match = pattern.fullmatch(entry.name)
            if match and entry.is_file(follow_symlinks=False):
                found.append((entry.path, match[1] == _machine()))
    return sum(_remove_if_abandoned(*each) for each in found)


def _remove_if_abandoned(path: str, of_this_machine: bool) -> bool:
    with suppress(OSError):
        if sys.platform == "win32":  # which deletes no file that a process has open
            if _untouched(os.stat(path)):
                os.unlink(path)
                return True
            return False
        # For writing, without which a network file system gives no exclusive lock.
        handle = os.open(path, os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK)
        try:
            locked = _lock(handle)
            if locked is not False and ((locked and of_this_machine) or _untouched(os.fstat(handle))):
                os.unlink(path)  # while it is locked, so that its writer cannot lock it in between
                return True
        finally:
            os.close(handle)
    return False


def _untouched(facts: os.stat_result) -> bool:
    return time.time() - facts.st_mtime > UNTOUCHED


def _lock(handle: int) -> bool | None:
    """Lock an open file until it is closed; False where another process, or this one, has it locked, None where the
    system has no such locks."""
    if sys.platform == "win32":
        return None
    import fcntl

    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        return None
    return True


def _stem(name: str) -> str:
    """The target's name, if it is short, or else its beginning and a hash of all of it."""
    if len(name) <= LONGEST:
        return name
    return f"{name[: LONGEST - 9]}~{hashlib.sha256(os.fsencode(name)).hexdigest()[:8]}"


@cache
def _machine() -> str:
    """A tag of the running kernel, among whose processes locks are always seen; containers share it. Where the kernel
    has no identity, that of the host's name."""
    try:
        with open("/proc/sys/kernel/random/boot_id", "rb") as file:
            identity = file.read()
    except OSError:
        identity = platform.node().encode()
    return hashlib.sha256(identity).hexdigest()[:8]
