"""Weights that are computed from others: of a length of their own, with a bounded singular value, or orthogonal."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ... import functional as F
from ...autograd.mode import no_grad
from ...functional.attention.attention import normalize
from ...functional.creation.creation import from_numpy
from ...functional.creation.ranges import eye
from ...functional.views.joining import cat
from ...functional.window.native import norm_except_dim
from ...tensors import Tensor
from ...types.dtypes import complex128, finfo, float64
from ..module import Module
from . import parametrize

__all__ = ["orthogonal", "spectral_norm", "weight_norm"]


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
            self._u.copy_(normalize(F.mv(matrix, self._v), dim=0, eps=self.eps))
            self._v.copy_(normalize(F.mv(matrix.T, self._u), dim=0, eps=self.eps))

    def forward(self, weight: Tensor) -> Tensor:
        if weight.ndim == 1:
            return normalize(weight, dim=0, eps=self.eps)
        matrix = self._matrix(weight)
        if self.training:
            self._iterate(matrix.detach(), self.n_power_iterations)
        # copies, because the next call changes the estimates, and this one's gradient needs them
        u, v = self._u.clone(), self._v.clone()
        return weight / F.dot(u, F.mv(matrix, v))

    def right_inverse(self, value: Tensor) -> Tensor:
        return value


def output_dimension(module: Module) -> int:
    """The dimension of a layer's weight that its outputs have."""
    return int(any(kind.__name__.startswith("ConvTranspose") for kind in type(module).__mro__))


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
    dim = output_dimension(module) if dim is None else dim
    return parametrize.register_parametrization(module, name, _SpectralNorm(weight, n_power_iterations, dim, eps))


def _exponential(A: Tensor) -> Tensor:
    """I + A + A^2 / 2 + ..., of a matrix that is halved until its norm is at most 1/2, and squared as often."""
    norm = A.detach().abs().sum(-1).max().item() if A.numel() else 0.0
    halvings = max(0, math.frexp(norm)[1] + 1) if math.isfinite(norm) else 0
    A, one = A / 2**halvings, eye(A.shape[-1], dtype=A.dtype, device=A.device)
    out = one
    for order in range(14, 0, -1):  # what is left out is less than 0.5^15 / 15!, 2e-17
        out = one + A @ out / order
    for _ in range(halvings):
        out = out @ out
    return out


def _inverse(M: Tensor) -> Tensor:
    """The inverse of a matrix whose symmetric part is positive definite, or a triangular one, by its quarters."""
    half = M.shape[-1] // 2
    if not half:
        return 1 / M
    a, b, c, d = M[..., :half, :half], M[..., :half, half:], M[..., half:, :half], M[..., half:, half:]
    left = _inverse(a)
    right = left @ b
    below = _inverse(d - c @ right)
    corner = below @ (c @ left)
    return cat([cat([left + right @ corner, -right @ below], -1), cat([-corner, below], -1)], -2)


def _cayley(A: Tensor) -> Tensor:
    """(I + A/2) (I - A/2)^-1, which is 2 (I - A/2)^-1 - I."""
    one = eye(A.shape[-1], dtype=A.dtype, device=A.device)
    M = one - A / 2
    found = _inverse(M)
    found = found + found @ (one - M @ found)  # of large A the pivots are small: one step of Newton's iteration
    return 2 * found - one


def _reflected(X: Tensor) -> Tensor:
    """The first columns of the product of the reflections by the columns v of X below its diagonal, which is 1.

    The product is I - V T V', where T's inverse is the upper triangle of V'V with its diagonal halved (Schreiber and
    Van Loan 1989).
    """
    one = eye(*X.shape[-2:], dtype=X.dtype, device=X.device)
    V = X.tril(-1) + one
    product = V.mT @ V
    T = _inverse(product.triu(1) + product.triu().tril() / 2)
    Q = one - V @ (T @ V[..., : X.shape[-1], :].mT)
    return Q * _diagonal(X).detach().trunc()


def _diagonal(X: Tensor) -> Tensor:
    """The diagonal of a tall matrix as a row."""
    return X.triu().tril().sum(-2, keepdim=True)


class _Orthogonal(Module):
    base: Tensor | None

    def __init__(self, weight: Tensor, orthogonal_map: str, use_trivialization: bool) -> None:
        super().__init__()
        if weight.is_complex() and orthogonal_map == "householder":
            raise ValueError("The householder parametrization does not support complex tensors.")
        self.shape = weight.shape
        self.orthogonal_map = orthogonal_map
        if use_trivialization:
            self.register_buffer("base", None)

    def forward(self, X: Tensor) -> Tensor:
        transposed = X.shape[-2] < X.shape[-1]
        X = X.mT if transposed else X
        rows, columns = X.shape[-2:]
        if self.orthogonal_map == "householder":
            Q = _reflected(X)
        else:
            X = cat([X.tril(), X.new_zeros(*X.shape[:-1], rows - columns)], -1)
            A = X - X.mT.conj()
            Q = (_exponential(A) if self.orthogonal_map == "matrix_exp" else _cayley(A))[..., :columns]
        if "base" in self._buffers:
            Q = self.base @ Q  # type: ignore[operator]
        return Q.mT if transposed else Q

    @no_grad()
    def right_inverse(self, value: Tensor) -> Tensor:
        if value.shape != self.shape:
            raise ValueError(
                f"Expected a matrix or batch of matrices of shape {self.shape}. Got a tensor of shape {value.shape}."
            )
        tall = value.mT if value.shape[-2] < value.shape[-1] else value
        rows, columns = tall.shape[-2:]
        if "base" not in self._buffers and self.orthogonal_map != "householder":
            raise NotImplementedError(
                "It is not possible to assign to the matrix exponential or the Cayley parametrizations when "
                "use_trivialization=False."
            )
        # factorised as by `init.orthogonal_`: on the host, in float64
        if "base" not in self._buffers:
            reflections, tau = np.linalg.qr(_on_host(tall), mode="raw")
            found, place = np.swapaxes(reflections, -2, -1).copy(), np.arange(columns)
            signs = np.sign(found[..., place, place])
            found[..., place, place] = np.where(tau == 0, -signs, signs)
            X = from_numpy(found).to(value)
            return X.mT if tall is not value else X
        if rows != columns:
            more = tall.new_empty((*tall.shape[:-1], rows - columns), dtype=float64).normal_()
            tall = cat([tall, more.to(tall)], -1)
        self.base = tall.clone()
        matrix = _on_host(tall)
        gram = np.swapaxes(matrix.conj(), -2, -1) @ matrix
        if rows != columns or not np.allclose(gram, np.eye(rows), atol=10 * rows * finfo(value.dtype).eps):
            Q, R = np.linalg.qr(matrix)
            signs = np.sign(np.diagonal(R, axis1=-2, axis2=-1).real)
            self.base = from_numpy(Q * signs[..., None, :]).to(value)
        return value.new_zeros(value.shape) - eye(*value.shape[-2:], dtype=value.dtype, device=value.device)


def _on_host(x: Tensor) -> Any:
    return x.detach().to("cpu", complex128 if x.is_complex() else float64).numpy()


def orthogonal(
    module: Module, name: str = "weight", orthogonal_map: str | None = None, *, use_trivialization: bool = True
) -> Module:
    """Let a weight, or each matrix of a batch, have orthonormal columns; orthonormal rows if those are fewer.

    Optimizers change a matrix X without bounds, of which the weight is computed; complex weights become unitary.

    >>> from tritensor import eye, nn
    >>> layer = nn.utils.parametrizations.orthogonal(nn.Linear(20, 40))
    >>> bool(((layer.weight.T @ layer.weight - eye(20)).abs() < 1e-5).all())
    True

    Args:
        orthogonal_map: with the skew-symmetric A of X's lower triangle "matrix_exp", exp(A), or "cayley",
            (I + A/2) (I - A/2)^-1; or "householder", the product of the reflections by X's columns below the diagonal.
            "matrix_exp" for square and complex matrices and "householder" for others unless given.
        use_trivialization: multiply by a matrix `base`, a buffer, so that X is minus the identity at first (Lezcano
            Casado 2019). Without it only "householder" can be assigned to and starts from the weight.

    Raises:
        ValueError: no such parameter, fewer than two dimensions, no such map, or "householder" of a complex weight.
        NotImplementedError: an assignment where it is not possible.
    """
    weight = getattr(module, name, None)
    if not isinstance(weight, Tensor):
        raise ValueError(f"Module '{module}' has no parameter or buffer with name '{name}'")
    if weight.ndim < 2:
        raise ValueError(f"Expected a matrix or batch of matrices. Got a tensor of {weight.ndim} dimensions.")
    if orthogonal_map is None:
        square = weight.shape[-2] == weight.shape[-1]
        orthogonal_map = "matrix_exp" if square or weight.is_complex() else "householder"
    if orthogonal_map not in ("matrix_exp", "cayley", "householder"):
        raise ValueError(
            f'orthogonal_map has to be one of "matrix_exp", "cayley", "householder". Got: {orthogonal_map}'
        )
    made = _Orthogonal(weight, orthogonal_map, use_trivialization)
    return parametrize.register_parametrization(module, name, made, unsafe=True)
