"""NumPy on all cores: the threads, blocks and copies of large arrays, numbers as elements of a dtype."""

from __future__ import annotations
