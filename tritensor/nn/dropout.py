"""Layers that drop values at random while training."""

from __future__ import annotations

from .. import functional as F
from ..tensors import Tensor
from .layer import Layer, declared

__all__ = ["AlphaDropout", "Dropout", "Dropout1d", "Dropout2d", "Dropout3d", "FeatureAlphaDropout"]


@declared("dropout")
class _DropoutNd(Layer):
    """Base of the layers that drop with probability `p` in training mode; in evaluation mode they return their input.

    Raises:
        ValueError: a probability outside 0 to 1.
    """

    p: float = 0.5
    inplace: bool = False

    def _prepare(self) -> None:
        if not 0 <= self.p <= 1:
            raise ValueError(f"dropout probability has to be between 0 and 1, but got {self.p}")

    def extra_repr(self) -> str:
        """The probability and whether it works in place."""
        return f"p={self.p}, inplace={self.inplace}"


class Dropout(_DropoutNd):
    """Applies dropout: in training sets each element to zero with probability `p`, scales the others by 1 / (1 - p).

    In evaluation mode it returns its input.

    Raises:
        ValueError: a probability outside 0 to 1.
    """


class Dropout1d(_DropoutNd, rank=1):
    """Applies channel dropout: in training sets channels of (N, C, L) or (C, L) to zero with probability `p`.

    >>> import tritensor as torch
    >>> torch.nn.Dropout1d(0.2)
    Dropout1d(p=0.2, inplace=False)
    """


class Dropout2d(_DropoutNd, rank=2):
    """Applies channel dropout: in training sets channels of (N, C, H, W) or (N, C, L) to zero with probability `p`."""


class Dropout3d(_DropoutNd, rank=3):
    """Applies channel dropout: in training sets channels of (N, C, D, H, W) or (C, D, H, W) to zero."""


class AlphaDropout(_DropoutNd):
    """Applies alpha dropout: in training sets elements to SELU's lowest value, and keeps mean and variance.

    As in PyTorch it does not work in place, whatever `inplace` is.
    """

    def forward(self, input: Tensor) -> Tensor:
        """The shape of the input."""
        return F.alpha_dropout(input, self.p, self.training)


class FeatureAlphaDropout(_DropoutNd):
    """Applies alpha dropout to channels: in training sets them to SELU's lowest value with probability `p`."""

    def forward(self, input: Tensor) -> Tensor:
        """Shape (N, C, *)."""
        return F.feature_alpha_dropout(input, self.p, self.training)
