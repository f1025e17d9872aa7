"""Layers that only change the shape of their input."""

from __future__ import annotations

from ..functional.views import flatten
from ..tensor import Tensor
from .module import Module

__all__ = ["Flatten"]


class Flatten(Module):
    """Joins the dimensions from `start_dim` to `end_dim` into one; by default all but the batch's.

    >>> import tritensor as torch
    >>> torch.nn.Flatten()(torch.ones(8, 2, 3)).shape
    tritensor.Size([8, 6])
    """

    def __init__(self, start_dim: int = 1, end_dim: int = -1) -> None:
        super().__init__()
        self.start_dim = start_dim
        self.end_dim = end_dim

    def forward(self, input: Tensor) -> Tensor:
        """A view where the memory allows it, else a copy."""
        return flatten(input, self.start_dim, self.end_dim)

    def extra_repr(self) -> str:
        """The two dimensions."""
        return f"start_dim={self.start_dim}, end_dim={self.end_dim}"
