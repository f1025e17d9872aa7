"""Layers that drop values at random while training."""

from __future__ import annotations

from .. import functional as F
from ..tensor import Tensor
from .module import Module

__all__ = ["Dropout"]


class Dropout(Module):
    """In training mode sets each element to zero with probability `p` and scales the others by 1 / (1 - p).

    In evaluation mode it returns its input.

    Raises:
        ValueError: a probability outside 0 to 1.
    """

    def __init__(self, p: float = 0.5, inplace: bool = False) -> None:
        super().__init__()
        if not 0 <= p <= 1:
            raise ValueError(f"dropout probability has to be between 0 and 1, but got {p}")
        self.p = p
        self.inplace = inplace

    def forward(self, input: Tensor) -> Tensor:
        """The shape of the input."""
        return F.dropout(input, self.p, self.training, self.inplace)

    def extra_repr(self) -> str:
        """The probability and whether it works in place."""
        return f"p={self.p}, inplace={self.inplace}"
