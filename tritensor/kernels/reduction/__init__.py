"""Operators that make one element of many: sums, extremes, scans."""

from __future__ import annotations
