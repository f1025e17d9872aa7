"""Matrix products: tiles on tensor cores and streamed rows, with a fused bias and activation."""

from __future__ import annotations
