"""Indexing, gathering and scattering, searching, sorting into bins."""

from __future__ import annotations
