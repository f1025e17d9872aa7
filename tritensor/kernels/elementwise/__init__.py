"""Operators that compute each element of their results from one element of each input.

A module with declarations is imported when one of their names is first used (`tritensor/ground/index.py`).
"""

from __future__ import annotations
