"""The programs in `programs/` import torch, and are run by `python -m tests.libraries`."""

from __future__ import annotations

collect_ignore = ["programs", "carried.py"]
