"""Products of matrices and vectors, `einsum`, distances."""

from __future__ import annotations
