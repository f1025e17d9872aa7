"""Comparing two runs of a program: the losses and parameters that each process recorded, and printed lines."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import numpy as np

NUMBER = re.compile(r"[-+]?(?:\d+\.\d*|\.\d+|\d+)(?:[eE][-+]?\d+)?")


def values(folder: Path) -> dict[str, dict[str, np.ndarray]]:
    """What was recorded, by the file's name without its ending: the rank, and which of its processes."""
    found = {}
    for path in sorted(folder.glob("watched/*.npz")):
        with np.load(path) as each:
            found[path.stem] = dict(each)
    return found


def differences(ours: Path, theirs: Path, close: float, only_parameters: bool = False) -> Iterator[str]:
    """What differs between the recorded values of two runs; `only_parameters` compares those of rank 0."""
    mine, wanted = values(ours), values(theirs)
    if only_parameters:
        mine, wanted = ({"0.0": each["0.0"]} if "0.0" in each else {} for each in (mine, wanted))
    if set(mine) != set(wanted):
        yield f"processes {sorted(mine)} recorded, with PyTorch {sorted(wanted)}"
    for name in sorted(set(mine) & set(wanted)):
        keys = set(mine[name]) | set(wanted[name])
        for key in sorted(keys - {"losses"} if only_parameters else keys):
            if key not in mine[name] or key not in wanted[name]:
                yield f"rank {name}: {key} is only there {'here' if key in mine[name] else 'with PyTorch'}"
                continue
            a, b = mine[name][key], wanted[name][key]
            if a.shape != b.shape:
                yield f"rank {name}: {key} has the shape {a.shape}, with PyTorch {b.shape}"
            elif a.size and not np.allclose(a, b, rtol=0, atol=close * max(1e-3, float(np.abs(b).max()))):
                yield f"rank {name}: {key} differs by {np.abs(a - b).max() / max(1e-3, np.abs(b).max()):.1e}"


def lines(text: str, printed: str) -> list[str]:
    """What an expression finds in each line, sorted, without a launcher's prefixes.

    It may find more than once: processes print their lines and the ends of these by themselves, so that two may be one.
    """
    plain = (re.sub(r"^\[[^\]]*rank\d+\]:\s*", "", line).strip() for line in text.splitlines())
    return sorted(" ".join(each.group().split()) for line in plain for each in re.finditer(printed, line))


def other_lines(ours: str, theirs: str, printed: str, close: float) -> Iterator[str]:
    """Lines that one of the runs printed and the other did not, numbers within rounding."""
    mine, wanted = lines(ours, printed), lines(theirs, printed)
    if not wanted:
        yield f"PyTorch's run printed no line with {printed!r}"
    if len(mine) != len(wanted):
        yield f"{len(mine)} lines with {printed!r}, with PyTorch {len(wanted)}"
        return
    for a, b in zip(mine, wanted, strict=True):
        if NUMBER.sub("#", a) != NUMBER.sub("#", b):
            yield f"printed {a!r}, with PyTorch {b!r}"
            continue
        pairs = zip(NUMBER.findall(a), NUMBER.findall(b), strict=True)
        if any(abs(float(x) - float(y)) > max(close, 1e-3) * max(1, abs(float(y))) for x, y in pairs):
            yield f"printed {a!r}, with PyTorch {b!r}"
