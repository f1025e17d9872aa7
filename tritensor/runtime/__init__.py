"""The runtime: from a kernel's source to a launch, simulated or real."""

from __future__ import annotations
