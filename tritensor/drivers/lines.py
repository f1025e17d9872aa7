"""Source lines in messages about kernels: the user's, whatever is called there; and the order of a grid's programs."""

from __future__ import annotations

import os
import random
from collections.abc import Iterable, Sequence
from typing import TypeVar

_T = TypeVar("_T")
_LANGUAGE = os.path.join("triton", "language")


def place_of(frames: Sequence[tuple[str, int]]) -> str:
    """The line of a kernel that files and lines, innermost first, lead to, and that of a function that it calls.

    >>> place_of([("lib/triton/language/standard.py", 314), ("kernel.py", 9)])
    'kernel.py:9'
    >>> place_of([("helper.py", 4), ("kernel.py", 9)])
    'kernel.py:9 (calls helper.py:4)'
    >>> place_of([("", 0)])
    'an unknown line'
    """
    known = [frame for frame in frames if frame[0]]
    if not known:
        return "an unknown line"
    own = [frame for frame in known if _LANGUAGE not in frame[0]] or known
    first, last = (f"{os.path.basename(file)}:{line}" for file, line in (own[0], own[-1]))
    return last if first == last else f"{last} (calls {first})"


def arranged(programs: Iterable[_T], order: str) -> list[_T]:
    """The programs of a grid in an order: "forward", "reverse", or "shuffle", which is the same every time.

    >>> arranged(range(3), "reverse")
    [2, 1, 0]
    """
    listed = list(programs)
    if order == "reverse":
        listed.reverse()
    elif order == "shuffle":
        random.Random(len(listed)).shuffle(listed)
    return listed
