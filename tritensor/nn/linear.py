"""Layers around a matrix product."""

from __future__ import annotations

import math
from typing import Any

from .. import functional as F
from ..functional.creation import empty
from ..tensor import Tensor
from . import init
from .lazy import LazyModuleMixin, UninitializedParameter
from .module import Module
from .parameter import Parameter

__all__ = ["Identity", "LazyLinear", "Linear"]


class Identity(Module):
    """Returns its input; takes any arguments, so that it can replace any layer."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__()

    def forward(self, input: Tensor) -> Tensor:
        """The input itself."""
        return input


class Linear(Module):
    """`x @ weight.T + bias`, for inputs of shape (..., in_features).

    The weight has the shape (out_features, in_features); both start uniform in +-1/sqrt(in_features), as in PyTorch.

    >>> import tritensor as torch
    >>> torch.nn.Linear(3, 2)(torch.ones(5, 3)).shape
    tritensor.Size([5, 2])
    """

    weight: Parameter
    bias: Parameter | None

    def __init__(
        self, in_features: int, out_features: int, bias: bool = True, device: Any = None, dtype: Any = None
    ) -> None:
        super().__init__()
        self.in_features = in_features
        self.out_features = out_features
        self.weight = Parameter(empty(out_features, in_features, device=device, dtype=dtype))
        if bias:
            self.bias = Parameter(empty(out_features, device=device, dtype=dtype))
        else:
            self.register_parameter("bias", None)
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


class LazyLinear(LazyModuleMixin, Linear):
    """A `Linear` that takes its number of input features from its first input, and is an ordinary one from then on.

    >>> import tritensor as torch
    >>> layer = torch.nn.LazyLinear(2)
    >>> layer(torch.ones(5, 3)).shape, layer
    (tritensor.Size([5, 2]), Linear(in_features=3, out_features=2, bias=True))
    """

    cls_to_become = Linear

    def __init__(self, out_features: int, bias: bool = True, device: Any = None, dtype: Any = None) -> None:
        super().__init__(0, 0, False)
        self.out_features = out_features
        self.weight = UninitializedParameter(device=device, dtype=dtype)
        if bias:
            self.bias = UninitializedParameter(device=device, dtype=dtype)

    def initialize_parameters(self, input: Tensor) -> None:  # type: ignore[override]
        """Give weight and bias the shapes that the input asks for."""
        if self.has_uninitialized_params():
            self.in_features = input.shape[-1]
            for parameter, shape in (
                (self.weight, (self.out_features, self.in_features)),
                (self.bias, (self.out_features,)),
            ):
                if parameter is not None:
                    parameter.materialize(shape)  # type: ignore[attr-defined]
            self.reset_parameters()
        elif not self.in_features:  # loaded
            self.in_features = self.weight.shape[-1]
