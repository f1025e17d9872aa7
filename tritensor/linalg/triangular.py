"""Systems of equations in gradients."""

from __future__ import annotations

import numpy as np

from ..kernels.hosted.family import hosted
from ..tensor import Tensor
from .matrices import Matrices, adjoint

__all__ = ["solved", "substituted"]


@hosted(Matrices("solve"), name="solve_square", outputs=("X",))
def solved(A, B):
    """X of A X = B."""
    return np.linalg.solve(A, B)


@solved.gradient
def _(grad, A, X):
    of_b = solved(adjoint(A), grad)
    return -of_b @ adjoint(X), of_b


def substituted(A: Tensor, B: Tensor, *, upper: bool, left: bool = True) -> Tensor:
    """X of A X = B, or of X A = B, for a triangular A."""
    if not left:
        return substituted(A.mT, B.mT, upper=not upper).mT
    return solved(A, B)
