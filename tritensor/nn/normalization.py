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

__all__ = ["LayerNorm", "RMSNorm"]


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
