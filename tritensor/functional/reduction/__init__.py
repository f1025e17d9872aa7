"""Reductions, order statistics, running sums, norms of matrices."""

from __future__ import annotations
