"""Matrix products: tiles on tensor cores, streamed rows, and what joins them in one kernel."""

from __future__ import annotations
