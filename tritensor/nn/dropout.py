"""Layers that drop values at random while training."""

from __future__ import annotations

from .. import functional as F
from ..tensor import Tensor
from .module import Module

__all__ = ["AlphaDropout", "Dropout", "Dropout1d", "Dropout2d", "Dropout3d", "FeatureAlphaDropout"]


class _Dropout(Module):
    """Base of the layers that drop with probability `p` in training mode; in evaluation mode they return their input.

    Raises:
        ValueError: a probability outside 0 to 1.
    """

    def __init__(self, p: float = 0.5, inplace: bool = False) -> None:
        super().__init__()
        if not 0 <= p <= 1:
            raise ValueError(f"dropout probability has to be between 0 and 1, but got {p}")
        self.p = p
        self.inplace = inplace

    def extra_repr(self) -> str:
        """The probability and whether it works in place."""
        return f"p={self.p}, inplace={self.inplace}"


class Dropout(_Dropout):
    """In training mode sets each element to zero with probability `p` and scales the others by 1 / (1 - p).

    In evaluation mode it returns its input.

    Raises:
        ValueError: a probability outside 0 to 1.
    """

    def forward(self, input: Tensor) -> Tensor:
        """The shape of the input."""
        return F.dropout(input, self.p, self.training, self.inplace)


class Dropout1d(_Dropout):
    """In training mode sets whole channels to zero with probability `p` and scales the others by 1 / (1 - p).

    >>> import tritensor as torch
    >>> torch.nn.Dropout1d(0.2)
    Dropout1d(p=0.2, inplace=False)
    """

    def forward(self, input: Tensor) -> Tensor:
        """Shape (N, C, L) or (C, L)."""
        return F.dropout1d(input, self.p, self.training, self.inplace)


class Dropout2d(_Dropout):
    """In training mode sets whole channels to zero with probability `p` and scales the others by 1 / (1 - p)."""

    def forward(self, input: Tensor) -> Tensor:
        """Shape (N, C, H, W), or (N, C, L)."""
        return F.dropout2d(input, self.p, self.training, self.inplace)


class Dropout3d(_Dropout):
    """In training mode sets whole channels to zero with probability `p` and scales the others by 1 / (1 - p)."""

    def forward(self, input: Tensor) -> Tensor:
        """Shape (N, C, D, H, W) or (C, D, H, W)."""
        return F.dropout3d(input, self.p, self.training, self.inplace)


class AlphaDropout(_Dropout):
    """In training mode sets elements to SELU's lowest value with probability `p`, and keeps mean 0 and variance 1.

    As in PyTorch it does not work in place, whatever `inplace` is.
    """

    def forward(self, input: Tensor) -> Tensor:
        """The shape of the input."""
        return F.alpha_dropout(input, self.p, self.training)


class FeatureAlphaDropout(_Dropout):
    """In training mode sets whole channels to SELU's lowest value with probability `p`; see `AlphaDropout`."""

    def forward(self, input: Tensor) -> Tensor:
        """Shape (N, C, *)."""
        return F.feature_alpha_dropout(input, self.p, self.training)
