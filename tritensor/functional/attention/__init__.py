"""Attention, layers of several heads, and recurrent layers."""

from __future__ import annotations
