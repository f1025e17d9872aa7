"""The ledger: a list of the copies between host and device, and of the host's waits."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from .current import used

# The last two are functions that the package generates, behind which a program's frame is.
_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep, "<tritensor", "<string>"
_open: list[Ledger] = []


@dataclass(frozen=True)
class Entry:
    """One copy (`h2d`, `d2h`, `d2d`) or wait (`sync`), with the line of the user's code that caused it."""

    kind: str
    nbytes: int
    pinned: bool
    site: str


@dataclass(eq=False)
class Ledger:
    """The entries of a `with tritensor.cuda.transfers() as t:` block, in order."""

    entries: list[Entry] = field(default_factory=list)
    #: the simulation that the block is in; it counts no copies of others
    simulation: Any = field(default=None, repr=False)

    def count(self, kind: str) -> int:
        """The number of entries of a kind: `h2d`, `d2h`, `d2d` or `sync`."""
        return sum(1 for entry in self.entries if entry.kind == kind)

    def nbytes(self, kind: str) -> int:
        """The bytes that were copied by the entries of a kind."""
        return sum(entry.nbytes for entry in self.entries if entry.kind == kind)

    def assert_at_most(
        self, *, h2d: int | None = None, d2h: int | None = None, d2d: int | None = None, syncs: int | None = None
    ) -> None:
        """Fail if there were more copies or waits than these limits; None allows any number.

        Raises:
            AssertionError: a limit was exceeded; the text lists the entries with their lines.
        """
        for kind, limit in (("h2d", h2d), ("d2h", d2h), ("d2d", d2d), ("sync", syncs)):
            if limit is not None and self.count(kind) > limit:
                found = [entry for entry in self.entries if entry.kind == kind]
                lines = "\n".join(f"  {_describe(entry)}" for entry in found)
                raise AssertionError(f"expected at most {limit} {kind}, found {len(found)}:\n{lines}")

    def __str__(self) -> str:
        return "\n".join(_describe(entry) for entry in self.entries)


def _describe(entry: Entry) -> str:
    size = f" {entry.nbytes} bytes" if entry.kind != "sync" else ""
    return f"{entry.kind}{size}{' (pinned)' if entry.pinned else ''} at {entry.site}"


def note(kind: str, nbytes: int = 0, pinned: bool = False) -> None:
    """Add an entry to every open ledger; costs 60 ns when there is none."""
    if _open:
        entry = Entry(kind, nbytes, pinned, call_site())
        simulations = used.get()
        for ledger in _open:
            if ledger.simulation is None or ledger.simulation in simulations:
                ledger.entries.append(entry)


class _Purpose:
    """In `name`, what memory is made for now, where counted devices cannot see it: by a message between ranks."""

    name = ""


purpose = _Purpose()


@contextmanager
def memory_for(name: str) -> Iterator[None]:
    """Say what the memory is for that is made in the block; counted devices list it so."""
    before, purpose.name = purpose.name, name
    try:
        yield
    finally:
        purpose.name = before


def call_site() -> str:
    """The innermost line outside of tritensor on the call stack: `file.py:12`."""
    frame = sys._getframe(2)
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_PACKAGE):
        frame = frame.f_back
    return f"{frame.f_code.co_filename}:{frame.f_lineno}"


@contextmanager
def transfers() -> Iterator[Ledger]:
    """Record every copy between host and device, and every wait of the host, that happens in the block.

    Counts are the same on simulated and real devices, so a test can check those of a training step on any machine. All
    threads are counted, but in a simulation only those that it belongs to.
    """
    ledger = Ledger(simulation=next(reversed(used.get()), None))
    _open.append(ledger)
    try:
        yield ledger
    finally:
        _open.remove(ledger)
