"""Layers that bring values to zero mean and unit variance."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .. import functional as F
from ..functional.creation import empty
from ..tensor import Tensor
from . import init
from .module import Module
from .parameter import Parameter

__all__ = ["GroupNorm", "LayerNorm", "LocalResponseNorm", "RMSNorm"]


class _RowNorm(Module):
    """Base of the layers that normalise the last dimensions."""

    normalized_shape: tuple[int, ...]
    eps: Any
    elementwise_affine: bool

    def _set_up(
        self,
        normalized_shape: int | Sequence[int],
        eps: float | None,
        elementwise_affine: bool,
        wanted: dict[str, bool],
        device: Any,
        dtype: Any,
    ) -> None:
        shape = (normalized_shape,) if isinstance(normalized_shape, int) else tuple(normalized_shape)
        self.normalized_shape = shape
        self.eps = eps
        self.elementwise_affine = elementwise_affine
        for name, present in wanted.items():
            self.register_parameter(name, Parameter(empty(shape, device=device, dtype=dtype)) if present else None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Set the scale to one, and the shift (if there is one) to zero."""
        for name, fill in (("weight", init.ones_), ("bias", init.zeros_)):
            parameter = self._parameters.get(name)
            if parameter is not None:
                fill(parameter)


class LayerNorm(_RowNorm):
    """Normalises over the last dimensions, of shape `normalized_shape`, then scales and shifts elementwise.

    >>> import tritensor as torch
    >>> torch.nn.LayerNorm(4)
    LayerNorm((4,), eps=1e-05, elementwise_affine=True, bias=True)
    """

    weight: Parameter | None
    bias: Parameter | None
    eps: float

    def __init__(
        self,
        normalized_shape: int | Sequence[int],
        eps: float = 1e-5,
        elementwise_affine: bool = True,
        bias: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        wanted = {"weight": elementwise_affine, "bias": elementwise_affine and bias}
        self._set_up(normalized_shape, eps, elementwise_affine, wanted, device, dtype)

    def forward(self, input: Tensor) -> Tensor:
        """The shape of the input."""
        return F.layer_norm(input, self.normalized_shape, self.weight, self.bias, self.eps)

    def extra_repr(self) -> str:
        """The shape, epsilon and whether there is a scale and a shift."""
        return (
            f"{self.normalized_shape}, eps={self.eps}, elementwise_affine={self.elementwise_affine}, "
            f"bias={self.bias is not None}"
        )


class RMSNorm(_RowNorm):
    """Divides the last dimensions, of shape `normalized_shape`, by the root of their mean square, then scales them.

    >>> import tritensor as torch
    >>> torch.nn.RMSNorm(4)
    RMSNorm((4,), eps=None, elementwise_affine=True)
    """

    weight: Parameter | None
    eps: float | None

    def __init__(
        self,
        normalized_shape: int | Sequence[int],
        eps: float | None = None,
        elementwise_affine: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        self._set_up(normalized_shape, eps, elementwise_affine, {"weight": elementwise_affine}, device, dtype)

    def forward(self, input: Tensor) -> Tensor:
        """The shape of the input."""
        return F.rms_norm(input, self.normalized_shape, self.weight, self.eps)

    def extra_repr(self) -> str:
        """The shape, epsilon and whether the scale is learned."""
        return f"{self.normalized_shape}, eps={self.eps}, elementwise_affine={self.elementwise_affine}"


class GroupNorm(Module):
    """Brings each of `num_groups` groups of channels of each example to zero mean and unit variance, and scales them.

    Inputs are (N, num_channels, ...). Source: Wu and He (2018).

    >>> import tritensor as torch
    >>> torch.nn.GroupNorm(2, 6)
    GroupNorm(2, 6, eps=1e-05, affine=True, bias=True)

    Args:
        affine: whether there are a scale and a shift for each channel; `bias=False` leaves out the shift.

    Raises:
        ValueError: `num_groups` does not divide `num_channels`.
    """

    weight: Parameter | None
    bias: Parameter | None

    def __init__(
        self,
        num_groups: int,
        num_channels: int,
        eps: float = 1e-5,
        affine: bool = True,
        device: Any = None,
        dtype: Any = None,
        *,
        bias: bool = True,
    ) -> None:
        super().__init__()
        if num_channels % num_groups:
            raise ValueError(f"num_channels ({num_channels}) must be divisible by num_groups ({num_groups})")
        self.num_groups = num_groups
        self.num_channels = num_channels
        self.eps = eps
        self.affine = affine
        for name, wanted in (("weight", affine), ("bias", affine and bias)):
            made = Parameter(empty(num_channels, device=device, dtype=dtype)) if wanted else None
            self.register_parameter(name, made)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Set the scale to one and the shift to zero."""
        if self.weight is not None:
            init.ones_(self.weight)
        if self.bias is not None:
            init.zeros_(self.bias)

    def forward(self, input: Tensor) -> Tensor:
        """The shape of the input."""
        return F.group_norm(input, self.num_groups, self.weight, self.bias, self.eps)

    def extra_repr(self) -> str:
        """The arguments."""
        return (
            f"{self.num_groups}, {self.num_channels}, eps={self.eps}, affine={self.affine}, "
            f"bias={self.bias is not None}"
        )


class LocalResponseNorm(Module):
    """Divides each element of (N, C, ...) by a power of the mean square of `size` neighbouring channels.

    >>> import tritensor as torch
    >>> torch.nn.LocalResponseNorm(2)
    LocalResponseNorm(2, alpha=0.0001, beta=0.75, k=1.0)
    """

    def __init__(self, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1.0) -> None:
        super().__init__()
        self.size = size
        self.alpha = alpha
        self.beta = beta
        self.k = k

    def forward(self, input: Tensor) -> Tensor:
        """The shape of the input."""
        return F.local_response_norm(input, self.size, self.alpha, self.beta, self.k)

    def extra_repr(self) -> str:
        """The arguments."""
        return f"{self.size}, alpha={self.alpha}, beta={self.beta}, k={self.k}"
