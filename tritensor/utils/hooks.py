"""The handle that registering a hook returns."""

from __future__ import annotations

import itertools
import weakref
from collections import OrderedDict
from collections.abc import Iterable
from typing import Any

__all__ = ["RemovableHandle"]

_numbers = itertools.count()


class RemovableHandle:
    """Removes a hook: by `handle.remove()`, or at the end of a `with handle:` block.

    `hooks` is the table that holds the hook under `handle.id`; `also` are tables that hold its options under the same
    number. The references to the tables are weak, so a handle does not keep its module alive.
    """

    def __init__(self, hooks: OrderedDict[int, Any], also: Iterable[OrderedDict[int, Any]] = ()) -> None:
        self.id = next(_numbers)
        self._tables = [weakref.ref(table) for table in (hooks, *also)]

    def remove(self) -> None:
        """Remove the hook; a second call does nothing."""
        for reference in self._tables:
            table = reference()
            if table is not None:
                table.pop(self.id, None)

    # A module that keeps its own handle can still be copied and pickled: the copy's handle refers to the copy's tables.
    def __getstate__(self) -> tuple[int, list[Any]]:
        return self.id, [reference() for reference in self._tables]

    def __setstate__(self, state: tuple[int, list[Any]]) -> None:
        self.id, tables = state
        self._tables = [weakref.ref(table) for table in tables if table is not None]

    def __enter__(self) -> RemovableHandle:
        return self

    def __exit__(self, *exception: object) -> None:
        self.remove()
