"""Operators that the host computes, for tensors of a device as well: factorisations of matrices, Fourier transforms."""

from __future__ import annotations
