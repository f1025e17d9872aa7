"""Systems of equations in gradients."""

from __future__ import annotations

from ..tensors import Tensor
from .solvers import solution, substituted

__all__ = ["solved", "substituted"]


def solved(A: Tensor, B: Tensor) -> Tensor:
    """X of A X = B; NaN where A is singular."""
    return solution(A, B)[0]
