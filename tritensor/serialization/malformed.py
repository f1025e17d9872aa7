"""The exception of the modules that `load` uses: what is wrong, and in which entry. `load` adds the file's name and
raises."""

from __future__ import annotations

from ..errors import CheckpointError, explain

__all__ = ["Malformed"]


class Malformed(Exception):
    """Something in a checkpoint that is damaged or refused.

    Args:
        first: the fact, in PyTorch's words where PyTorch has words for it.
        facts: further facts, a line each.
        entry: the part of the file, such as `data.pkl` or `data/3`.
        remedy: what the user can do about it.
    """

    def __init__(self, first: str, *facts: str, entry: str = "", remedy: str = "") -> None:
        super().__init__(first)
        self.first, self.facts, self.entry, self.remedy = first, facts, entry, remedy

    def as_error(self, file: str) -> CheckpointError:
        """The error that the user sees: it names the file and the entry."""
        place = f"in {file}" + (f", entry {self.entry}" if self.entry else "")
        return CheckpointError(explain(self.first, place, *self.facts, remedy=self.remedy or None))
