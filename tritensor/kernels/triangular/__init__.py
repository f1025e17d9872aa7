"""The triangular family: systems of equations whose matrix is triangular."""

from __future__ import annotations
