"""The sizes from and up to which native code is quicker than NumPy on this machine, where `python -m tritensor tune`
has measured them: a file beside the compiled kernels, for each kind of processor."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from contextlib import suppress
from functools import cache
from pathlib import Path

from .. import settings
from . import disk_cache

Ranges = Mapping[str, tuple[tuple[int, int], ...]]


def path() -> Path:
    """The file of this machine's processor."""
    from ..drivers.native.driver import processor

    return disk_cache.folder() / "sizes" / f"{hashlib.sha256(repr(processor()).encode()).hexdigest()[:32]}.json"


@cache
def _read(folder: str) -> Ranges:
    with suppress(OSError, ValueError, TypeError):
        found = json.loads(path().read_text())
        return {name: tuple([(int(low), int(high)) for low, high in ranges]) for name, ranges in found.items()}
    return {}


def ranges() -> Ranges:
    """What was measured: for an operator's name a range for float32, bfloat16 and float16."""
    return _read(settings.cache_dir.value)


def keep(found: Ranges) -> Path:
    """Keep what was measured beside what is kept of other operators; returns the file."""
    target = path()
    target.parent.mkdir(parents=True, exist_ok=True)
    spare = target.with_suffix(".new")
    spare.write_text(json.dumps({**ranges(), **found}, indent=1))
    spare.replace(target)
    _read.cache_clear()
    settings.changed()
    return target
