"""Comparing the collectives of all processes before their data are sent.

Processes that start different collectives hang, or write results to the wrong tensors: a float and an integer summed
to 1065353217, one number of a metric met 58 gradients of another process. On the host each collective therefore begins
with an exchange of short texts: its number, operator, dtype and number of elements (in simulation and debug mode its
shape), and the line that called it. If they differ, every process raises an error that lists the call of each.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from math import prod
from typing import Any, NamedTuple

import numpy as np

from ..drivers.ledger import call_site as call_site
from ..errors import DistError

# Bytes of a text. All are sent in messages of one size, because exchanging sizes first would double the cost.
MESSAGE_SIZE = 512
_BETWEEN = b"\x1f"


class Call(NamedTuple):
    """One collective: its text in messages, and what all processes must agree on."""

    operator: str
    sequence: int
    detail: str = ""  # "SUM", "src=0"
    shape: tuple[int, ...] | None = None
    dtype: Any = None
    sizes: tuple[list[int], list[int]] | None = None  # elements that are sent to and expected of each process
    peers: tuple[int, ...] = ()  # of a message the ranks of which one sends or receives it

    def __str__(self) -> str:
        numbered = f"{self.operator} #{self.sequence}" if self.sequence else self.operator
        detail = f" ({self.detail})" if self.detail else ""
        tensor = "" if self.shape is None else f" of shape {tuple(self.shape)}, {self.dtype}"
        return numbered + detail + tensor


def padded(text: bytes) -> np.ndarray:
    """A text as a message."""
    return np.frombuffer(text[:MESSAGE_SIZE].ljust(MESSAGE_SIZE, b"\0"), np.uint8)


def text_of(row: np.ndarray) -> str:
    """The text of a message."""
    return bytes(row).rstrip(b"\0").decode("utf-8", "replace")


def message(call: Call, shapes: bool) -> np.ndarray:
    """The message of a call: what has to agree, its text, and the line in the program.

    Args:
        call: the collective of this process.
        shapes: whether shapes have to agree, and not only numbers of elements.
    """
    shape = call.shape
    must = f"{call.operator}{call.sequence}{call.detail}{call.dtype}{shape if shapes or shape is None else prod(shape)}"
    # the line comes last, so that a long shape cuts off the line and not the reverse
    parts = must, str(call), call_site(), "" if call.sizes is None else json.dumps(call.sizes)
    return padded(_BETWEEN.join(part.encode("utf-8", "replace") for part in parts))


def difference(own: np.ndarray, rows: np.ndarray, ranks: Sequence[int]) -> DistError | None:
    """The error of a collective in which not all messages agree; None if they do."""
    length = own.tobytes().find(_BETWEEN)
    agree = (rows[:, : length + 1] == own[: length + 1]).all()
    if agree and own[-1] == 0 and own.tobytes().rstrip(b"\0").endswith(b"]"):
        return _uneven([json.loads(text_of(row).rpartition("\x1f")[2] or "null") for row in rows], rows, ranks)
    if agree:
        return None
    texts = [bytes(row).rstrip(b"\0").split(_BETWEEN) for row in rows]
    found = [tuple(part.decode("utf-8", "replace") for part in [*text, b"", b""][:3]) for text in texts]
    return _error(found, ranks)


def _uneven(sizes: list[Any], rows: np.ndarray, ranks: Sequence[int]) -> DistError | None:
    """The error of an exchange in which a process sends another number of elements than is expected."""
    for sender, source in enumerate(sizes):
        for receiver, target in enumerate(sizes):
            if source and target and source[0][receiver] != target[1][sender]:
                at = {place: text_of(rows[place]).split("\x1f")[1:3] for place in (sender, receiver)}
                return DistError(
                    f"Detected mismatch between collectives on ranks. Rank {ranks[sender]} sends {source[0][receiver]} "
                    f"elements to rank {ranks[receiver]}, which expects {target[1][sender]}",
                    *(f"rank {ranks[place]}: {what} at {site}" for place, (what, site) in at.items()),
                    remedy="make the sizes that are sent those that are expected",
                )
    return None


def compare(exchange: Callable[[str, Call], list[str]], call: Call, ranks: Sequence[int]) -> None:
    """Compare this process's next collective with those of all others.

    Args:
        exchange: sends a text to all processes and returns what each of them sent, by rank.
        call: the collective of this process.
        ranks: the ranks of those that take part.

    Raises:
        DistError: the collectives differ; it is raised in all processes.
    """
    own = message(call, shapes=True)
    rows = np.stack([padded(text.encode("utf-8", "replace")) for text in exchange(text_of(own), call)])
    error = difference(own, rows, ranks)
    if error is not None:
        raise error


def _error(found: list[tuple[str, ...]], ranks: Sequence[int]) -> DistError:
    first = found[0][0]
    other = next(place for place, (must, *_) in enumerate(found) if must != first)
    return DistError(
        f"Detected mismatch between collectives on ranks. Rank {ranks[0]} is running collective: {found[0][1]}, but "
        f"Rank {ranks[other]} is running collective: {found[other][1]}.",
        *_grouped([(what, site) for _, what, site in found], ranks),
        remedy="make all ranks start the same collectives in the same order, with tensors of the same shape and dtype",
    )


def _grouped(found: list[tuple[str, str]], ranks: Sequence[int]) -> list[str]:
    """A line for each different text, with the ranks that sent it."""
    senders: dict[tuple[str, str], list[int]] = {}
    for rank, text in zip(ranks, found, strict=True):
        senders.setdefault(text, []).append(rank)
    lines = []
    for (what, site), sent_by in senders.items():
        shown = ", ".join(map(str, sent_by[:8])) + (f" and {len(sent_by) - 8} more" if len(sent_by) > 8 else "")
        lines.append(f"rank{'s' if len(sent_by) > 1 else ''} {shown}: {what} at {site}")
    return lines
