"""Which of many cases run in every run; the others are slow. Drawn by their names, so that every run has the same."""

from __future__ import annotations

import zlib
from collections.abc import Iterable
from typing import Any

import pytest


def named(case: Any) -> str:
    """The text that a case is drawn by: the names of what it consists of."""
    parts = case if isinstance(case, tuple) else (case,)
    return " ".join(str(getattr(part, "name", part)) for part in parts)


def some(cases: Iterable[Any], of: int, always: Iterable[str] = ()) -> list[Any]:
    """Parameters for `pytest.mark.parametrize`: one case of about `of`, and those named; the others marked as slow."""
    kept, made = set(always), []
    for case in cases:
        name = named(case)
        quick = name in kept or zlib.crc32(name.encode()) % of == 0
        made.append(
            pytest.param(*(case if isinstance(case, tuple) else (case,)), marks=() if quick else pytest.mark.slow)
        )
    return made
