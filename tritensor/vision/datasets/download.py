"""Files fetched from the net: checked, resumed where an earlier attempt ended, from the first mirror that has them."""

from __future__ import annotations

import hashlib
import os
import re
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Sequence
from contextlib import suppress
from http.client import HTTPException
from pathlib import Path

from ...errors import DatasetError, explain

__all__ = ["check_integrity", "checksum", "download_from_mirrors", "download_url"]

CHUNK = 1 << 16
TIMEOUT = 30.0  # seconds without a byte
ATTEMPTS = 10  # to go on after an interruption, as long as each brings some bytes
ALGORITHMS = {32: "md5", 40: "sha1", 64: "sha256"}  # by the length of what they give


def checksum(path: str | os.PathLike[str], like: str) -> str:
    """The checksum of a file, of the kind that `like` is one of: MD5, SHA-1 or SHA-256."""
    if len(like) not in ALGORITHMS:
        raise ValueError(f"a checksum has 32, 40 or 64 hexadecimal digits, not {len(like)}: {like!r}")
    with open(path, "rb") as stream:
        found = hashlib.file_digest(stream, lambda: hashlib.new(ALGORITHMS[len(like)], usedforsecurity=False))
    return found.hexdigest()


def check_integrity(fpath: str | os.PathLike[str], md5: str | None = None) -> bool:
    """Whether a file exists, and has this checksum (MD5, SHA-1 or SHA-256) if one is passed."""
    return os.path.isfile(fpath) and (md5 is None or checksum(fpath, md5) == md5.lower())


def download_url(
    url: str,
    root: str | os.PathLike[str],
    filename: str | None = None,
    md5: str | None = None,
    max_redirect_hops: int = 3,
) -> None:
    """Fetch a file into the folder `root`, which is made if it does not exist; a file that is there stays.

    The bytes go to `filename.part`, which becomes `filename` when it is whole and its checksum is right. What an
    interrupted call left there is completed by the next, if a checksum says in the end whether the parts fit together.

    Args:
        filename: None for the last part of the URL's path.
        md5: the MD5, SHA-1 or SHA-256 that the file must have; None to take any.
        max_redirect_hops: how many redirections are followed.

    Raises:
        DatasetError: the file that came is not the one expected. urllib.error.URLError, OSError: nothing came.
        ValueError: the URL is not one of http or https.
    """
    parts = urllib.parse.urlsplit(url)
    if parts.scheme not in ("http", "https"):
        raise ValueError(explain(f"unknown url type: {url!r}", "files are fetched by http and https"))
    name = filename or os.path.basename(urllib.parse.unquote(parts.path))
    if not name or name in (".", ".."):
        raise ValueError(explain(f"no file name in the url {url!r}", remedy="pass filename"))
    path = os.path.join(os.path.expanduser(root), name)
    if check_integrity(path, md5):
        return
    os.makedirs(os.path.dirname(path), exist_ok=True)
    part = f"{path}.part"
    while True:
        resumed = _complete(url, part, name, md5, max_redirect_hops)
        if check_integrity(part, md5):
            os.replace(part, path)
            return
        size, found = os.path.getsize(part), checksum(part, md5 or "")
        os.unlink(part)
        if not resumed:  # otherwise the beginning may have been of another file
            facts = (f"{url} gave {size} bytes with the checksum {found}", f"{name} has the checksum {md5}")
            raise DatasetError(explain("File not found or corrupted.", *facts))


class _Interrupted(OSError):
    """The connection ended before the file did."""


def _complete(url: str, part: str, name: str, md5: str | None, hops: int) -> bool:
    """Fetch until the file is whole, and tell whether some of it was there before."""
    if md5 is None:
        with suppress(FileNotFoundError):
            os.unlink(part)
    resumed = _size(part) > 0
    for attempt in range(ATTEMPTS):
        before = _size(part)
        try:
            _fetch(url, part, name, hops)
        except (_Interrupted, ConnectionError, TimeoutError, HTTPException):
            if md5 is None or _size(part) <= before or attempt == ATTEMPTS - 1:
                raise
        else:
            break
    return resumed


def _size(path: str) -> int:
    return os.path.getsize(path) if os.path.exists(path) else 0


def _fetch(url: str, part: str, name: str, hops: int) -> None:
    """One request, from the end of `part` on if the server can do that."""
    from tqdm import tqdm

    redirections = urllib.request.HTTPRedirectHandler()
    redirections.max_redirections = hops  # type: ignore[misc]
    start = _size(part)
    headers = {"User-Agent": "tritensor/vision", **({"Range": f"bytes={start}-"} if start else {})}
    request = urllib.request.Request(url, headers=headers)
    try:
        response = urllib.request.build_opener(redirections).open(request, timeout=TIMEOUT)
    except urllib.error.HTTPError as error:
        error.close()
        if error.code == 416 and start:  # there is nothing after `start`: the checksum says whether it is whole
            return
        raise
    with response:
        goes_on = response.status == 206
        if goes_on and not re.match(rf"bytes {start}-", response.headers.get("Content-Range", "")):
            raise OSError(f"{url} sent another part of the file than the one that was asked for")
        start = start if goes_on else 0
        length = response.headers.get("Content-Length", "")
        total = start + int(length) if length.isdecimal() else None
        bar = tqdm(total=total, initial=start, unit="B", unit_scale=True, desc=name, disable=None)
        with open(part, "ab" if goes_on else "wb") as stream, bar:
            while chunk := response.read(CHUNK):
                stream.write(chunk)
                bar.update(len(chunk))
    if total is not None and _size(part) < total:
        raise _Interrupted(f"the connection to {url} ended after {_size(part)} of {total} bytes")


def download_from_mirrors(mirrors: Sequence[str], filename: str, root: str | Path, md5: str | None) -> None:
    """Fetch a file from the first mirror that gives it; what one mirror sent is completed by the next.

    Raises:
        DatasetError: none does; the message has the reason of each.
    """
    reasons = []
    for mirror in mirrors:
        try:
            return download_url(f"{mirror}{filename}", root, filename, md5)
        except (DatasetError, OSError, HTTPException) as error:
            if isinstance(error, OSError) and not isinstance(error, urllib.error.URLError) and error.filename:
                raise  # of the disk: no mirror can help
            reasons.append(f"Tried {mirror}, got:\n{error}\n")
    raise DatasetError(f"Error downloading {filename}:\n{''.join(reasons)}")
