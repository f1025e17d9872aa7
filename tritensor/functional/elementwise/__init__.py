"""Functions of each element: activations, powers, complex numbers, differences."""

from __future__ import annotations
