"""Comparing the collectives of all processes before they run.

Processes that start different collectives hang, or write results to the wrong tensors. In simulation and debug mode
each collective therefore begins with an exchange of short texts: its number, operator, shape and dtype, and the line
that called it. If they differ, every process raises an error that lists the call of each.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any, NamedTuple

from ..autograd.tape import inside_package
from ..errors import DistError

# Bytes of a text. All are sent in messages of one size, because exchanging sizes first would double the cost.
MESSAGE_SIZE = 512
_BETWEEN = "\x1f"


class Call(NamedTuple):
    """One collective: its text in messages, and what all processes must agree on."""

    operator: str
    sequence: int
    detail: str = ""  # "SUM", "src=0"
    shape: tuple[int, ...] | None = None
    dtype: Any = None

    def __str__(self) -> str:
        numbered = f"{self.operator} #{self.sequence}" if self.sequence else self.operator
        detail = f" ({self.detail})" if self.detail else ""
        tensor = "" if self.shape is None else f" of shape {tuple(self.shape)}, {self.dtype}"
        return numbered + detail + tensor


def compare(exchange: Callable[[str, Call], list[str]], call: Call) -> None:
    """Compare this process's next collective with those of all others.

    Args:
        exchange: sends a text to all processes and returns what each of them sent, by rank.
        call: the collective of this process.

    Raises:
        DistError: the collectives differ; it is raised in all processes.
    """
    # the line comes last, so that a long shape cuts off the line and not the reverse
    found = [text.partition(_BETWEEN) for text in exchange(f"{call}{_BETWEEN}{_call_site()}", call)]
    if len({what for what, _, _ in found}) == 1:
        return
    first = found[0][0]
    other = next(rank for rank, (what, _, _) in enumerate(found) if what != first)
    raise DistError(
        f"Detected mismatch between collectives on ranks. Rank 0 is running collective: {first}, but Rank {other} "
        f"is running collective: {found[other][0]}.",
        *_grouped(found),
        remedy="make all ranks start the same collectives in the same order, with tensors of the same shape and dtype",
    )


def _grouped(found: list[tuple[str, str, str]]) -> list[str]:
    """A line for each different text, with the ranks that sent it."""
    ranks: dict[tuple[str, str], list[int]] = {}
    for rank, (what, _, site) in enumerate(found):
        ranks.setdefault((what, site), []).append(rank)
    lines = []
    for (what, site), sent_by in ranks.items():
        shown = ", ".join(map(str, sent_by[:8])) + (f" and {len(sent_by) - 8} more" if len(sent_by) > 8 else "")
        lines.append(f"rank{'s' if len(sent_by) > 1 else ''} {shown}: {what} at {site}")
    return lines


def _call_site() -> str:
    """The line outside of this package that is being run."""
    frame: Any = sys._getframe(2)
    while frame.f_back is not None and inside_package(frame.f_code.co_filename):
        frame = frame.f_back
    return f"{frame.f_code.co_filename}:{frame.f_lineno}"
