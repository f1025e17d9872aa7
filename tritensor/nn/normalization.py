"""Layers that bring values to zero mean and unit variance."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .. import functional as F
from ..tensors import Tensor
from ..types import Device, Dtype
from .layer import Layer, add_parameters, declared, one_and_zero
from .module import Module
from .parameter import Parameter

__all__ = ["GroupNorm", "LayerNorm", "LocalResponseNorm", "RMSNorm"]


class _RowNorm(Module):
    """Base of the layers that normalise the last dimensions."""

    normalized_shape: tuple[int, ...]
    eps: Any
    elementwise_affine: bool

    def _set_up(self, shape: int | Sequence[int], eps: float | None, affine: bool, place: Any, **wanted: bool) -> None:
        """Store the options, and make the parameters that are wanted."""
        self.normalized_shape = (shape,) if isinstance(shape, int) else tuple(shape)
        self.eps, self.elementwise_affine = eps, affine
        made: dict[str, Any] = {name: self.normalized_shape if each else None for name, each in wanted.items()}
        add_parameters(self, *place, **made)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Set the scale to one, and the shift (if there is one) to zero."""
        one_and_zero(self)

    def extra_repr(self: Any) -> str:
        """The shape, epsilon and whether there is a scale, and a shift."""
        shift = f", bias={self.bias is not None}" if "bias" in self._parameters else ""
        return f"{self.normalized_shape}, eps={self.eps}, elementwise_affine={self.elementwise_affine}{shift}"


class LayerNorm(_RowNorm):
    """Layer normalisation over the last dimensions, of shape `normalized_shape`, then a scale and a shift.

    >>> import tritensor as torch
    >>> torch.nn.LayerNorm(4)
    LayerNorm((4,), eps=1e-05, elementwise_affine=True, bias=True)
    """

    weight: Parameter | Any  # or None
    bias: Parameter | Any  # or None
    eps: float

    def __init__(
        self,
        normalized_shape: int | Sequence[int],
        eps: float = 1e-5,
        elementwise_affine: bool = True,
        bias: bool = True,
        device: Device = None,
        dtype: Dtype = None,
    ) -> None:
        super().__init__()
        wanted = {"weight": elementwise_affine, "bias": elementwise_affine and bias}
        self._set_up(normalized_shape, eps, elementwise_affine, (device, dtype), **wanted)

    def forward(self, input: Tensor) -> Tensor:
        """The shape of the input."""
        return F.layer_norm(input, self.normalized_shape, self.weight, self.bias, self.eps)


class RMSNorm(_RowNorm):
    """RMS normalisation over the last dimensions, of shape `normalized_shape`: over the root mean square, then a scale.

    >>> import tritensor as torch
    >>> torch.nn.RMSNorm(4)
    RMSNorm((4,), eps=None, elementwise_affine=True)
    """

    weight: Parameter | Any  # or None
    eps: float | None

    def __init__(
        self,
        normalized_shape: int | Sequence[int],
        eps: float | None = None,
        elementwise_affine: bool = True,
        device: Device = None,
        dtype: Dtype = None,
    ) -> None:
        super().__init__()
        self._set_up(normalized_shape, eps, elementwise_affine, (device, dtype), weight=elementwise_affine)

    def forward(self, input: Tensor) -> Tensor:
        """The shape of the input."""
        return F.rms_norm(input, self.normalized_shape, self.weight, self.eps)


class GroupNorm(Module):
    """Group normalisation: zero mean and unit variance in each of `num_groups` groups of channels, scale and shift.

    Inputs are (N, num_channels, ...). Source: Wu and He (2018).

    >>> import tritensor as torch
    >>> torch.nn.GroupNorm(2, 6)
    GroupNorm(2, 6, eps=1e-05, affine=True, bias=True)

    Args:
        affine: whether there are a scale and a shift for each channel; `bias=False` leaves out the shift.

    Raises:
        ValueError: `num_groups` does not divide `num_channels`.
    """

    weight: Parameter | Any  # or None
    bias: Parameter | Any  # or None

    def __init__(
        self,
        num_groups: int,
        num_channels: int,
        eps: float = 1e-5,
        affine: bool = True,
        device: Device = None,
        dtype: Dtype = None,
        *,
        bias: bool = True,
    ) -> None:
        super().__init__()
        if num_channels % num_groups:
            raise ValueError(f"num_channels ({num_channels}) must be divisible by num_groups ({num_groups})")
        self.num_groups, self.num_channels, self.eps, self.affine = num_groups, num_channels, eps, affine
        shape = (num_channels,) if affine else None
        add_parameters(self, device, dtype, weight=shape, bias=shape if bias else None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Set the scale to one and the shift to zero."""
        one_and_zero(self)

    def forward(self, input: Tensor) -> Tensor:
        """The shape of the input."""
        return F.group_norm(input, self.num_groups, self.weight, self.bias, self.eps)

    def extra_repr(self) -> str:
        """The arguments."""
        return (
            f"{self.num_groups}, {self.num_channels}, eps={self.eps}, affine={self.affine}, "
            f"bias={self.bias is not None}"
        )


@declared("local_response_norm")
class LocalResponseNorm(Layer):
    """Local response normalisation of (N, C, ...): divides by a power of the mean square of `size` nearby channels.

    >>> import tritensor as torch
    >>> torch.nn.LocalResponseNorm(2)
    LocalResponseNorm(2, alpha=0.0001, beta=0.75, k=1.0)
    """

    size: int
    alpha: float = 1e-4
    beta: float = 0.75
    k: float = 1.0

    def extra_repr(self) -> str:
        """The arguments."""
        return f"{self.size}, alpha={self.alpha}, beta={self.beta}, k={self.k}"
