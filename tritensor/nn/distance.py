"""Distances between vectors as modules."""

from __future__ import annotations

from ..functional.matmul.distances import pairwise_distance
from ..tensors import Tensor
from .layer import Layer, declared

__all__ = ["CosineSimilarity", "PairwiseDistance"]


@declared("cosine_similarity", shown=())
class CosineSimilarity(Layer):
    """The cosine similarity of vectors, the cosine of their angle, along `dim`."""

    dim: int = 1
    eps: float = 1e-8


@declared("pairwise_distance", shown=())
class PairwiseDistance(Layer):
    """The pairwise distance of vectors: the p-norm of `x1 - x2 + eps` along the last dimension."""

    p: float = 2.0
    eps: float = 1e-6
    keepdim: bool = False

    def _prepare(self) -> None:
        self.norm = self.__dict__.pop("p")  # PyTorch's name of the attribute

    def forward(self, x1: Tensor, x2: Tensor) -> Tensor:
        """The distances; the last dimension stays as one where `keepdim` says so."""
        return pairwise_distance(x1, x2, self.norm, self.eps, self.keepdim)
