"""Locks that a forked process finds free.

A fork copies a lock as it is; if another thread held it, nobody in the child ever releases it. What such a lock guards
is a table or a sum that a fork may catch between two changes, never one that is half written: Python's own lock sees to
that.
"""

from __future__ import annotations

import os
import threading
import weakref
from typing import Any

_made: weakref.WeakSet[Any] = weakref.WeakSet()


def lock() -> threading.RLock:  # type: ignore[valid-type, unused-ignore]
    """A new lock, which one thread may take several times."""
    made = threading.RLock()
    _made.add(made)
    return made


def _free_all() -> None:
    for made in list(_made):
        made._at_fork_reinit()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_free_all)
