"""Operators that compute each element of their results from one element of each input.

The modules in `SHARED` hold the family, its kernels and what they share; every other module holds declarations, and is
imported with the package.
"""

from __future__ import annotations

from ...ground.public import load_modules

SHARED = {"coefficients", "family", "kernel", "methods", "one_text", "select", "tiles"}

load_modules(__name__, __path__, SHARED)
