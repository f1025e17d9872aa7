"""Tensors that are made of data, of numbers, or like other tensors, and what can be asked of them."""

from __future__ import annotations
