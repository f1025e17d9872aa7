"""Programs written for PyTorch, run and read as they are: `python -m tritensor run` and `python -m tritensor scan`."""

from __future__ import annotations
