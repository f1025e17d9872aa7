"""Operators that make one element of many: sums, extremes, scans.

The family, its kernel and what they share stand in the modules that `SHARED` names; every other module holds
declarations, and is imported with the package.
"""

from __future__ import annotations

from ...public import load_modules

SHARED = {"family", "functions", "host", "kernel"}

load_modules(__name__, __path__, SHARED)
