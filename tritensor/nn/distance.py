"""Distances between vectors as modules."""

from __future__ import annotations

from .layer import Layer, declared

__all__ = ["CosineSimilarity", "PairwiseDistance"]


@declared("cosine_similarity", shown=())
class CosineSimilarity(Layer):
    """The cosine of the angle between vectors along `dim`."""

    dim: int = 1
    eps: float = 1e-8


@declared("pairwise_distance", shown=())
class PairwiseDistance(Layer):
    """The p-norm of `x1 - x2 + eps` along the last dimension."""

    p: float = 2.0
    eps: float = 1e-6
    keepdim: bool = False

    def _prepare(self) -> None:
        self.norm = self.p  # PyTorch's name of the attribute
