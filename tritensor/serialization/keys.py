"""Checks the values of a file that are to be keys of a dict or members of a set.

Hashing a key is the one operation whose cost a file could choose: nested tuples, thirty levels deep and each holding
the next one twice, take 2**30 steps to hash, and keys that were chosen to have one hash make a dict quadratic. Both are
refused here.
"""

from __future__ import annotations

from typing import Any

from ..types.devices import device
from ..types.dtypes import dtype
from .malformed import Malformed

SIMPLE = (str, bytes, float, bool, type(None), dtype, device)  # their hashes are seeded, or collide a few times at most
MOST_PARTS = 1000
MOST_COLLISIONS = 32


class KeyCheck:
    """Checks the keys of one file, and counts equal hashes of those whose hash a file can choose."""

    def __init__(self) -> None:
        self._known: dict[int, list[Any]] = {}

    def check(self, key: Any) -> None:
        """Raise `Malformed` unless hashing and comparing `key` is cheap."""
        kind = type(key)
        if kind in SIMPLE or (kind is int and -(2**63) <= key < 2**64):
            return
        if _parts(key) > MOST_PARTS:
            raise Malformed(f"the pickle uses a {kind.__name__} of more than {MOST_PARTS} parts as a key")
        alike = self._known.setdefault(hash(key), [])
        if key not in alike:
            alike.append(key)
        if len(alike) > MOST_COLLISIONS:
            raise Malformed("the pickle uses keys that were made to have the same hash")


def _parts(key: Any) -> int:
    """The number of values in a key, counted up to the limit and without recursion."""
    todo, parts = [key], 0
    while todo and parts <= MOST_PARTS:
        value = todo.pop()
        parts += 1
        if isinstance(value, (tuple, frozenset)):
            todo.extend(value)
        elif type(value) not in SIMPLE and type(value) not in (int, complex):
            raise Malformed(f"unhashable type: '{type(value).__name__}'", "the pickle uses it as a key")
    return parts
