"""Download checkpoints into a folder, by `torch.hub`'s names. Repositories of programs are not run."""

from __future__ import annotations

import hashlib
import os
import re
import sys
import tempfile
from pathlib import Path
from typing import Any
from urllib.parse import urlparse

from .errors import explain
from .serialization import load
from .utils.downloads import receive

__all__ = ["download_url_to_file", "get_dir", "load_state_dict_from_url", "set_dir"]

HASH_REGEX = re.compile(r"-([a-f0-9]{6,})\.")
_set: list[str] = []


def get_dir() -> str:
    """The folder of the hub: that of `set_dir`, or `hub` in $TORCH_HOME, $XDG_CACHE_HOME/torch or ~/.cache/torch."""
    return _set[-1] if _set else os.path.join(_get_torch_home(), "hub")


def _get_torch_home() -> str:
    cache = os.environ.get("XDG_CACHE_HOME", "~/.cache")
    return str(Path(os.environ.get("TORCH_HOME", Path(cache) / "torch")).expanduser())


def set_dir(d: str | os.PathLike[str]) -> None:
    """Set the folder of the hub."""
    _set.append(os.path.expanduser(d))


def download_url_to_file(url: str, dst: str, hash_prefix: str | None = None, progress: bool = True) -> None:
    """Download a URL to a file, which appears only when it is complete.

    Args:
        hash_prefix: what the SHA-256 of the content must begin with.
        progress: whether a bar is shown on stderr.

    Raises:
        RuntimeError: the content has another hash. urllib.error.URLError: nothing is there. OSError: the connection
            ended early, or the disk.
    """
    dst = os.path.expanduser(dst)
    with tempfile.TemporaryDirectory(dir=os.path.dirname(os.path.abspath(dst)), prefix=".download-") as folder:
        part = os.path.join(folder, os.path.basename(dst))
        receive(url, part, progress)
        with open(part, "rb") as stream:
            found = hashlib.file_digest(stream, "sha256").hexdigest()
        if hash_prefix and not found.startswith(hash_prefix):
            words = f'invalid hash value (expected "{hash_prefix}", got "{found[: len(hash_prefix)]}")'
            raise RuntimeError(explain(words, f"{url} gave {os.path.getsize(part)} bytes"))
        os.replace(part, dst)


def load_state_dict_from_url(
    url: str,
    model_dir: str | None = None,
    map_location: Any = None,
    progress: bool = True,
    check_hash: bool = False,
    file_name: str | None = None,
    weights_only: bool = True,
) -> dict[str, Any]:
    """Load the checkpoint (state dict) at a URL, which is downloaded unless it is in the folder.

    Args:
        model_dir: the folder, `get_dir()/checkpoints` unless given.
        map_location, weights_only: as for `load`, which executes nothing in either case.
        check_hash: whether the name (`resnet18-f37072fd.pth`) says what the SHA-256 begins with.
        file_name: the name in the folder, the URL's unless given.

    Raises:
        What `download_url_to_file` and `load` raise.
    """
    folder = os.path.join(get_dir(), "checkpoints") if model_dir is None else model_dir
    os.makedirs(folder, exist_ok=True)
    name = file_name or os.path.basename(urlparse(url).path)
    path = os.path.join(folder, name)
    if not os.path.exists(path):
        sys.stderr.write(f'Downloading: "{url}" to {path}\n')
        found = HASH_REGEX.search(name) if check_hash else None
        download_url_to_file(url, path, found.group(1) if found else None, progress)
    loaded: dict[str, Any] = load(path, map_location=map_location, weights_only=weights_only)
    return loaded
