"""Signal processing: windows, which tell how much each sample of a frame counts."""

from __future__ import annotations

from . import windows

__all__ = ["windows"]
