"""The runtime: everything from a kernel's source to its launch, on simulated and real devices."""

from __future__ import annotations
