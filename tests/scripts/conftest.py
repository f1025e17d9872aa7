"""The programs in `tutorials/` are run, not imported: they import torch, and begin when they are imported."""

from __future__ import annotations

collect_ignore = ["tutorials"]
