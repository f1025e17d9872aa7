"""The exception of the modules that `load` uses: what is wrong, and in which entry. `load` adds the file's name and
raises."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from ..errors import CheckpointError, OutOfMemoryError


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
        return CheckpointError(self.first, place, *self.facts, remedy=self.remedy or None)


def compare_checksums(found: int, recorded: int, entry: str) -> None:
    """Raise Malformed if the checksum of an entry's bytes is another than was recorded."""
    if found != recorded:
        facts = f"CRC-32 {found:08x}, recorded {recorded:08x}"
        remedy = "fetch it again: the file was damaged after it was written"
        raise Malformed("the bytes do not match their checksum", facts, entry=entry, remedy=remedy)


class CallersError(Exception):
    """Carries an error of the caller's own code, such as `map_location`, past `refusing`."""


@contextmanager
def refusing(name: str) -> Iterator[None]:
    """Read a file in this block: whatever its content makes Python or NumPy raise is a CheckpointError with its name.

    What the file has no part in passes: errors of the system, of memory, and of the caller's own code.
    """
    try:
        yield
    except Malformed as error:
        raise error.as_error(name) from None
    except CallersError as error:
        raise error.__cause__ from None  # type: ignore[misc]
    except (CheckpointError, OutOfMemoryError, OSError, MemoryError):
        raise
    except Exception as error:
        fact = f"{type(error).__name__}: {error}".split("\n", 1)[0][:200]
        raise Malformed("the file is damaged", fact).as_error(name) from None
