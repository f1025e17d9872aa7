"""The order of steps. The rows of all steps lie one step after the other, as those of a packed sequence.

`sizes` has the number of rows of each step, which never grows; row i of a step belongs to sequence i. With `reverse`
the last step comes first, and shorter sequences begin later. Gradients are computed in the opposite order.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np

Sizes = tuple[int, ...]


@lru_cache(128)
def steps(sizes: Sizes, reverse: bool) -> tuple[tuple[int, int, int, int], ...]:
    """For each step its first row and its rows, the first row of the step before, and how many rows go on from there.

    >>> steps((2, 1), True)
    ((2, 1, 0, 0), (0, 2, 2, 1))
    """
    starts = [0, *np.cumsum(sizes)[:-1].tolist()]
    order = list(zip(starts, sizes, strict=True))[:: -1 if reverse else 1]
    both = zip(order, [(0, 0), *order[:-1]], strict=True)
    return tuple([(start, count, before, min(count, known)) for (start, count), (before, known) in both])


@lru_cache(128)
def ends(sizes: Sizes, reverse: bool) -> slice | np.ndarray:
    """The row of each sequence's last step.

    >>> ends((2, 1), False), ends((2, 1), True)
    (array([2, 1]), slice(0, 2, None))
    """
    start, count, _, _ = steps(sizes, reverse)[-1]
    if count == sizes[0]:
        return slice(start, start + count)
    found = np.empty(sizes[0], np.int64)
    for start, count, _, _ in steps(sizes, reverse):
        found[:count] = range(start, start + count)
    return found


@lru_cache(128)
def places_before(sizes: Sizes, reverse: bool) -> np.ndarray:
    """For each row that of the step before it, among the first states and then the rows of all steps.

    >>> places_before((2, 1), False), places_before((2, 1), True)
    (array([0, 1, 2]), array([4, 1, 0]))
    """
    found = np.empty(sum(sizes), np.int64)
    for start, count, before, known in steps(sizes, reverse):
        row = np.arange(count)
        found[start : start + count] = np.where(row < known, row + before + sizes[0], row)
    return found
