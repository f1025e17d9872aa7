"""Recurrent layers: all steps of one layer in one direction, in one operator."""

from __future__ import annotations
