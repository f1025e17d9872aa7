"""The kernels: one generic kernel per family of operators, and what launches them."""

from __future__ import annotations
