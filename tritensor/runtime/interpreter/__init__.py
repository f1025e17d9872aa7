"""Kernels run by Triton's interpreter on host memory: what a simulated device does."""

from __future__ import annotations
