"""Layers around a matrix product."""

from __future__ import annotations

import math
from typing import Any

from .. import functional as F
from ..tensors import Tensor
from ..types import Device, Dtype
from . import init
from .layer import add_parameters
from .lazy import LazyLayer, without_size
from .module import Module
from .parameter import Parameter

__all__ = ["Bilinear", "Identity", "LazyLinear", "Linear"]


class Identity(Module):
    """Returns its input; takes any arguments, so that it can replace any layer."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__()

    def forward(self, input: Tensor) -> Tensor:
        """The input itself."""
        return input


class Linear(Module):
    """Applies a linear (affine) transformation: `x @ weight.T + bias`, for inputs of shape (..., in_features).

    The weight has the shape (out_features, in_features); both start uniform in +-1/sqrt(in_features), as in PyTorch.

    >>> import tritensor as torch
    >>> torch.nn.Linear(3, 2)(torch.ones(5, 3)).shape
    tritensor.Size([5, 2])
    """

    weight: Parameter
    bias: Parameter | Any  # or None

    def __init__(
        self, in_features: int, out_features: int, bias: bool = True, device: Device = None, dtype: Dtype = None
    ) -> None:
        super().__init__()
        self.in_features = in_features
        self.out_features = out_features
        add_parameters(self, device, dtype, weight=(out_features, in_features), bias=(out_features,) if bias else None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw weight and bias anew."""
        # with a = sqrt(5) the bound of kaiming_uniform_ is 1 / sqrt(in_features)
        init.kaiming_uniform_(self.weight, a=math.sqrt(5))
        if self.bias is not None:
            bound = 1 / math.sqrt(self.in_features) if self.in_features > 0 else 0
            init.uniform_(self.bias, -bound, bound)

    def forward(self, input: Tensor) -> Tensor:
        """Shape (..., out_features)."""
        return F.linear(input, self.weight, self.bias)

    def extra_repr(self) -> str:
        """The two sizes and whether there is a bias."""
        return f"in_features={self.in_features}, out_features={self.out_features}, bias={self.bias is not None}"


class NonDynamicallyQuantizableLinear(Linear):
    """A `Linear`, under the name that PyTorch prints for the last projection of `MultiheadAttention`."""


class Bilinear(Module):
    """Applies a bilinear transformation: `x1 @ weight[k] @ x2 + bias[k]` for each output k.

    Weight (out_features, in1_features, in2_features) and bias start uniform in +-1/sqrt(in1_features).

    >>> import tritensor as torch
    >>> torch.nn.Bilinear(3, 2, 4)(torch.ones(5, 3), torch.ones(5, 2)).shape
    tritensor.Size([5, 4])

    Raises:
        ValueError: no input features.
    """

    weight: Parameter
    bias: Parameter | Any  # or None

    def __init__(
        self,
        in1_features: int,
        in2_features: int,
        out_features: int,
        bias: bool = True,
        device: Device = None,
        dtype: Dtype = None,
    ) -> None:
        super().__init__()
        if in1_features <= 0:
            raise ValueError(f"in1_features must be > 0, but got (in1_features={in1_features})")
        self.in1_features, self.in2_features, self.out_features = in1_features, in2_features, out_features
        shape = out_features, in1_features, in2_features
        add_parameters(self, device, dtype, weight=shape, bias=(out_features,) if bias else None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw weight and bias anew."""
        bound = 1 / math.sqrt(self.in1_features)
        for each in self.parameters():
            init.uniform_(each, -bound, bound)

    def forward(self, input1: Tensor, input2: Tensor) -> Tensor:
        """Shape (..., out_features)."""
        return F.bilinear(input1, input2, self.weight, self.bias)

    def extra_repr(self) -> str:
        """The sizes and whether there is a bias."""
        sizes = [f"{name}={getattr(self, name)}" for name in ("in1_features", "in2_features", "out_features")]
        return ", ".join([*sizes, f"bias={self.bias is not None}"])


class LazyLinear(LazyLayer, Linear):
    """A `Linear` that takes its number of input features from its first input, and is an ordinary one from then on.

    >>> import tritensor as torch
    >>> layer = torch.nn.LazyLinear(2)
    >>> layer(torch.ones(5, 3)).shape, layer
    (tritensor.Size([5, 2]), Linear(in_features=3, out_features=2, bias=True))
    """

    @without_size(Linear.__init__)
    def __init__(self) -> None: ...

    def _shapes(self, input: Tensor | None) -> dict[str, tuple[int, ...]]:
        self.in_features = (self.weight if input is None else input).shape[-1]
        return {"weight": (self.out_features, self.in_features), "bias": (self.out_features,)}
