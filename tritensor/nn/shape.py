"""Layers that only change the shape of their input."""

from __future__ import annotations

from collections.abc import Sequence

from ..errors import ArgumentError
from ..functional.views import flatten, unflatten
from ..tensor import Tensor
from .module import Module

__all__ = ["Flatten", "Unflatten"]


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


class Unflatten(Module):
    """Takes dimension `dim` apart into several of the sizes `unflattened_size`, of which one may be -1.

    >>> import tritensor as torch
    >>> torch.nn.Unflatten(1, (2, 5))(torch.ones(8, 10)).shape
    tritensor.Size([8, 2, 5])

    Raises:
        TypeError: the sizes are no tuple or list of integers.
    """

    def __init__(self, dim: int, unflattened_size: Sequence[int]) -> None:
        super().__init__()
        if not isinstance(unflattened_size, (tuple, list)):
            raise ArgumentError(
                f"unflattened_size must be a tuple of ints, but found type {type(unflattened_size).__name__}"
            )
        for position, size in enumerate(unflattened_size):
            if not isinstance(size, int):
                raise ArgumentError(
                    "unflattened_size must be tuple of ints, but found element of type "
                    f"{type(size).__name__} at pos {position}"
                )
        self.dim = dim
        self.unflattened_size = unflattened_size

    def forward(self, input: Tensor) -> Tensor:
        """A view of the input."""
        return unflatten(input, self.dim, self.unflattened_size)

    def extra_repr(self) -> str:
        """The dimension and its sizes."""
        return f"dim={self.dim}, unflattened_size={self.unflattened_size}"
