"""Operators on whole rows: softmax, norms, losses."""

from __future__ import annotations
