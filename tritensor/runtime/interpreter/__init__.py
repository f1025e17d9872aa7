"""Runs kernels in Triton's interpreter on host memory, for simulated devices."""

from __future__ import annotations
