"""The programs in `programs/` import torch, and are run by `python -m tests.kernels`."""

from __future__ import annotations

collect_ignore = ["programs", "declared.py"]
