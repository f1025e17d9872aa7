"""The kinds of difference that are meant, each with its reason. `docs/differences.md` is made from this table."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

REFUSED, ACCEPTED, ERROR, VALUE = "refused here alone", "accepted here alone", "another error", "value differs"


@dataclass(frozen=True)
class Known:
    """A kind: its outcome, what its last statement and its words look like, and why it is so."""

    title: str
    outcome: str
    statement: str
    words: str
    reason: str


KNOWN: tuple[Known, ...] = ()


def entry(found: Any, statements: Sequence[str]) -> Known | None:
    """The entry that a difference is of."""
    for kind in KNOWN:
        if (
            kind.outcome == found.outcome
            and re.search(kind.words, found.detail)
            and re.search(kind.statement, found.statement)
        ):
            return kind
    return None
