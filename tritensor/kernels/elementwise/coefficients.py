"""The tables of coefficients in `coefficients.txt`."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import Any

_PATH = str(Path(__file__).with_suffix(".txt"))


@functools.cache
def _sections() -> dict[str, str]:
    text: str = __spec__.loader.get_data(_PATH).decode()  # type: ignore[union-attr]  # of an archive, too
    parts = text.split("\n\n")[1:]
    return dict(part.split(":\n", 1) for part in parts)


def tables(section: str) -> Any:
    """The tables of a section, in order: tuples of numbers."""
    return tuple(tuple(map(float, table.split())) for table in _sections()[section].split(";"))
