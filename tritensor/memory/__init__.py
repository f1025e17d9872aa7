"""Memory: buffers on a device, the arrays in them, and copies between host and devices."""

from __future__ import annotations
