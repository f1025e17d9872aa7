"""Operators that compute one element from many: sums, extremes, scans.

The modules in `SHARED` hold the family, its kernel and what they share; every other module holds declarations, and is
imported with the package.
"""

from __future__ import annotations

from ...ground.public import load_modules

SHARED = {"family", "functions", "host", "kernel"}

load_modules(__name__, __path__, SHARED)
