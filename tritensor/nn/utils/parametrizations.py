"""Weights that are computed from others: of a length of their own, or with a bounded largest singular value."""

from __future__ import annotations

from typing import Any

from ... import functional as F
from ...autograd.mode import no_grad
from ...functional.attention import normalize
from ...functional.native import norm_except_dim
from ...tensor import Tensor
from ..module import Module
from . import parametrize

__all__ = ["spectral_norm", "weight_norm"]


class _WeightNorm(Module):
    def __init__(self, dim: int | None = 0) -> None:
        super().__init__()
        self.dim = -1 if dim is None else dim

    def forward(self, weight_g: Tensor, weight_v: Tensor) -> Tensor:
        return weight_v * (weight_g / norm_except_dim(weight_v, 2, self.dim))

    def right_inverse(self, weight: Tensor) -> tuple[Tensor, Tensor]:
        return norm_except_dim(weight, 2, self.dim), weight


def weight_norm(module: Module, name: str = "weight", dim: int | None = 0) -> Module:
    """Let a weight be g * v / |v|, with a length g for each slice along `dim` (Salimans and Kingma 2016).

    g and v are `module.parametrizations.weight.original0` and `original1`. State dicts with `weight_g` and `weight_v`,
    the names of PyTorch's older function, can be loaded.

    >>> from tritensor import nn
    >>> layer = nn.utils.parametrizations.weight_norm(nn.Linear(3, 2))
    >>> [(name, tuple(value.shape)) for name, value in layer.parametrizations.named_parameters()]
    [('weight.original0', (2, 1)), ('weight.original1', (2, 3))]

    Args:
        dim: None for one length of the whole weight.

    Raises:
        ValueError: no such parameter.
    """
    parametrize.register_parametrization(module, name, _WeightNorm(dim), unsafe=True)

    def rename(module: Module, state: dict[str, Any], prefix: str, *_: Any) -> None:
        older = [f"{prefix}{name}_{each}" for each in "gv"]
        if all(key in state for key in older):
            for position, key in enumerate(older):
                state[f"{prefix}parametrizations.{name}.original{position}"] = state.pop(key)

    module.register_load_state_dict_pre_hook(rename)
    return module


class _SpectralNorm(Module):
    _u: Tensor
    _v: Tensor

    def __init__(self, weight: Tensor, n_power_iterations: int = 1, dim: int = 0, eps: float = 1e-12) -> None:
        super().__init__()
        if not -weight.ndim <= dim < weight.ndim:
            raise IndexError(
                f"Dimension out of range (expected to be in range of [-{weight.ndim}, {weight.ndim - 1}] but got {dim})"
            )
        if n_power_iterations <= 0:
            raise ValueError(
                f"Expected n_power_iterations to be positive, but got n_power_iterations={n_power_iterations}"
            )
        self.dim = dim % weight.ndim
        self.eps = eps
        if weight.ndim > 1:
            self.n_power_iterations = n_power_iterations
            matrix = self._matrix(weight.detach())
            for buffer, size in zip(("_u", "_v"), matrix.shape, strict=True):
                self.register_buffer(buffer, normalize(matrix.new_empty(size).normal_(0, 1), dim=0, eps=eps))
            self._iterate(matrix, 15)

    def _matrix(self, weight: Tensor) -> Tensor:
        return weight.movedim(self.dim, 0).flatten(1)

    @no_grad()
    def _iterate(self, matrix: Tensor, count: int) -> None:
        """Improve the estimates of the singular vectors of the largest singular value."""
        for _ in range(count):
            self._u.copy_(normalize(matrix @ self._v, dim=0, eps=self.eps))
            self._v.copy_(normalize(matrix.T @ self._u, dim=0, eps=self.eps))

    def forward(self, weight: Tensor) -> Tensor:
        if weight.ndim == 1:
            return normalize(weight, dim=0, eps=self.eps)
        matrix = self._matrix(weight)
        if self.training:
            self._iterate(matrix.detach(), self.n_power_iterations)
        # copies, because the next call changes the estimates, and this one's gradient needs them
        u, v = self._u.clone(), self._v.clone()
        return weight / F.dot(u, matrix @ v)

    def right_inverse(self, value: Tensor) -> Tensor:
        return value


def spectral_norm(
    module: Module, name: str = "weight", n_power_iterations: int = 1, eps: float = 1e-12, dim: int | None = None
) -> Module:
    """Let a weight be divided by an estimate of its largest singular value (Miyato et al. 2018).

    In training each use improves the estimate by the power method.

    >>> from tritensor import nn
    >>> layer = nn.utils.parametrizations.spectral_norm(nn.Linear(3, 2))
    >>> list(layer.state_dict())
    ['bias', 'parametrizations.weight.original', 'parametrizations.weight.0._u', 'parametrizations.weight.0._v']

    Args:
        n_power_iterations: steps of the power method at each use.
        eps: the least length that a vector is divided by.
        dim: the dimension of the outputs; 1 for transposed convolutions and 0 for others unless given.

    Raises:
        ValueError: no such parameter, or no iterations. IndexError: no such dimension.
    """
    weight = getattr(module, name, None)
    if not isinstance(weight, Tensor):
        raise ValueError(f"Module '{module}' has no parameter or buffer with name '{name}'")
    if dim is None:
        dim = int(any(kind.__name__.startswith("ConvTranspose") for kind in type(module).__mro__))
    return parametrize.register_parametrization(module, name, _SpectralNorm(weight, n_power_iterations, dim, eps))
