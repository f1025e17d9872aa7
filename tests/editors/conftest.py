"""The programs in `programs/` are run and checked, not imported: they begin when they are imported."""

from __future__ import annotations

collect_ignore = ["programs"]
