"""Which tiles, warps and stages a kernel is launched with, where `cuda.tune` has tried them: a file a kind of card.

A launcher that has several configurations for a problem asks `of` for one. It gets what was found the best, or else
what the launcher itself would choose.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import NamedTuple, Protocol, TypeVar

from .. import settings
from ..drivers import DeviceProperties
from . import disk_cache


class Entry(NamedTuple):
    """The best configuration of a problem, its seconds and those of the default, and whether a card took them."""

    best: tuple[object, ...]
    seconds: float
    default: float
    measured: bool


T = TypeVar("T", bound=tuple[object, ...])


class Tuner(Protocol):
    """Tries the configurations of a problem: `again` launches it with the one that is in `forced`."""

    def __call__(self, key: str, found: Sequence[T], default: T, again: Callable[[], None]) -> T:
        """The best of them."""


tuner: Tuner | None = None
#: while a configuration is tried, the problem that it is of and itself
forced: tuple[str, tuple[object, ...]] | None = None


def of(
    kind: str,
    facts: tuple[object, ...],
    device: DeviceProperties,
    candidates: Callable[[], Sequence[T]],
    default: Callable[[], T],
    again: Callable[[], None],
) -> T:
    """The configuration to launch a kernel with.

    Args:
        kind: of the kernel. facts: of the problem: two with equal facts have the same best configuration.
        again: launches the kernel once more, by way of this function.
    """
    kept = entries(device)
    if tuner is None and not kept:
        return default()
    key = f"{kind} {facts!r}"
    if forced is not None and forced[0] == key:
        return forced[1]  # type: ignore[return-value]
    if tuner is not None:
        usual = default()
        return tuner(key, [usual, *(each for each in dict.fromkeys(candidates()) if each != usual)], usual, again)
    if key in kept:
        # a file of an earlier version may name what is no longer there
        for each in candidates():
            if tuple(each) == kept[key].best:
                return each
    return default()


def path(device: DeviceProperties) -> Path:
    """The file of a kind of card, which its compute capability and its multiprocessors tell."""
    return _path(device.major, device.minor, device.multi_processor_count)


def _path(major: int, minor: int, processors: int) -> Path:
    try:
        compiler = version("triton")
    except PackageNotFoundError:
        compiler = "none"
    return disk_cache.folder() / "choices" / f"sm_{major}{minor}-{processors}-triton-{compiler}.json"


def entries(device: DeviceProperties) -> Mapping[str, Entry]:
    """What was found for a kind of card, by kernel and problem."""
    return _read(settings.cache_dir.value, device.major, device.minor, device.multi_processor_count)


@cache
def _read(folder: str, *card: int) -> Mapping[str, Entry]:
    with suppress(OSError, ValueError, TypeError, AttributeError):
        found = json.loads(_path(*card).read_text(encoding="utf-8"))
        return {key: Entry(tuple(best), *rest) for key, (best, *rest) in found.items()}
    return {}


def keep(device: DeviceProperties, found: Mapping[str, Entry]) -> Path:
    """Keep what was found beside what is kept of other problems; returns the file. What a card took stays."""
    target, kept = path(device), dict(entries(device))
    kept |= {key: entry for key, entry in found.items() if entry.measured or not (key in kept and kept[key].measured)}
    target.parent.mkdir(parents=True, exist_ok=True)
    spare = target.with_suffix(".new")
    spare.write_text(json.dumps(kept, indent=1), encoding="utf-8")
    spare.replace(target)
    _read.cache_clear()
    settings.changed()
    return target
