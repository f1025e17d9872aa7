"""Sparse tensors: coordinates and values of the elements that are not zero."""

from __future__ import annotations
