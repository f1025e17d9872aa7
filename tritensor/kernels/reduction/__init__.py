"""Operators that compute one element from many: sums, extremes, scans.

A module with declarations is imported when one of their names is first used (`tritensor/ground/index.py`).
"""

from __future__ import annotations
