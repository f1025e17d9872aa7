"""The direction numbers of Sobol sequences.

`sobol.npz` has Joe and Kuo's of 1,111 dimensions, with their licence (`licence`); those of more dimensions, up to
21,201, are read from SciPy.
"""

from __future__ import annotations

import importlib.util
import os
from functools import cache

import numpy as np

from ...errors import ShapeError

MAXBIT = 30  # binary digits of a coordinate
MAXDIM = 21201


@cache
def _table(beyond: bool) -> tuple[np.ndarray, np.ndarray]:
    """The polynomials and first direction numbers: of 1,111 dimensions, or of all."""
    path = os.path.join(os.path.dirname(__file__), "sobol.npz")
    if beyond:
        found = importlib.util.find_spec("scipy")
        words = "SobolEngine of more than 1111 dimensions reads their direction numbers from SciPy"
        if found is None or found.origin is None:
            raise ShapeError(words, "SciPy is not installed", remedy="pip install scipy")
        path = os.path.join(os.path.dirname(found.origin), "stats", "_sobol_direction_numbers.npz")
    with np.load(path) as file:
        return file["poly"].astype(np.int64), file["vinit"].astype(np.int64)


def direction_numbers(dimension: int) -> np.ndarray:
    """The direction numbers, of (dimension, MAXBIT)."""
    polynomials, first = _table(dimension > len(_table(False)[0]))
    found = np.ones((dimension, MAXBIT), np.int64)
    degrees = np.array([int(each).bit_length() - 1 for each in polynomials[:dimension]])
    for degree in range(1, degrees.max() + 1):
        (rows,) = np.nonzero(degrees == degree)
        found[rows, :degree] = first[rows, :degree]
        for place in range(degree, MAXBIT):
            number = found[rows, place - degree]
            for k in range(1, degree + 1):
                used = polynomials[rows] >> (degree - k) & 1
                number = number ^ (used * found[rows, place - k] << k)
            found[rows, place] = number
    return found << np.arange(MAXBIT - 1, -1, -1)
