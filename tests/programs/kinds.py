"""A kind of difference that is meant."""

from __future__ import annotations

from dataclasses import dataclass

REFUSED, ACCEPTED, ERROR, VALUE = "refused here alone", "accepted here alone", "another error", "value differs"
LAYOUT, CRASH = "layout differs", "crash"
DECIDED_BY_ROUNDING = "rounding decides it"  # in the detail of such a difference
OTHER_WAY = "PyTorch has this value by another way"


@dataclass(frozen=True)
class Known:
    """A kind: its outcome, what its statement and its words look like (regular expressions), and why it is so."""

    title: str
    outcome: str
    words: str
    reason: str
    example: str
    statement: str = ""
    program: str = ""
