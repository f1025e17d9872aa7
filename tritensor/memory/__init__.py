"""Device memory: buffers, the arrays in them, and copies between host and devices."""

from __future__ import annotations
