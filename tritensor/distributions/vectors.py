"""Transforms of vectors and matrices: to the simplex, to Cholesky factors, to positive definite matrices."""

from __future__ import annotations

from collections.abc import Sequence
from math import log
from typing import Any

from .. import linalg
from ..errors import require
from ..functional.creation.ranges import arange, eye
from ..nn.functional import logsigmoid, pad, softplus
from ..tensors import Tensor
from ..types.dtypes import finfo
from ..types.size import Size
from . import constraints
from .transform import Transform, ValueTransform
from .utils import tril_matrix_to_vec, vec_to_tril_matrix

__all__ = ["CorrCholeskyTransform", "LowerCholeskyTransform", "PositiveDefiniteTransform", "SoftmaxTransform"]
__all__ += ["StickBreakingTransform"]
_FEW = "Too few dimensions on input"


class SoftmaxTransform(ValueTransform):
    """The softmax of vectors; it has no inverse, `inv` gives the logarithm."""

    domain, codomain = constraints.real_vector, constraints.simplex

    def _call(self, x: Tensor) -> Tensor:
        found = (x - x.max(-1, True)[0]).exp()
        return found / found.sum(-1, True)

    def _inverse(self, y: Tensor) -> Tensor:
        return y.log()

    def forward_shape(self, shape: Sequence[int]) -> Size:
        """The same shape."""
        require(len(shape) >= 1, ValueError, _FEW)
        return Size(shape)

    inverse_shape = forward_shape


class StickBreakingTransform(ValueTransform):
    """Vectors to shares of one more element: each is a sigmoid's part of what those before it left."""

    domain, codomain, bijective = constraints.real_vector, constraints.simplex, True

    def _offset(self, x: Tensor, count: int) -> Tensor:
        return arange(count, 0, -1, dtype=x.dtype, device=x.device).log()

    def _call(self, x: Tensor) -> Tensor:
        limits = finfo(x.dtype)
        z = (x - self._offset(x, x.shape[-1])).sigmoid().clamp(limits.tiny, 1 - limits.eps)
        return pad(z, [0, 1], value=1) * pad((1 - z).cumprod(-1), [1, 0], value=1)

    def _inverse(self, y: Tensor) -> Tensor:
        kept = y[..., :-1]
        rest = (1 - kept.cumsum(-1)).clamp(min=finfo(y.dtype).tiny)
        return kept.log() - rest.log() + self._offset(y, kept.shape[-1])

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        """The sum of the logarithms of each share and of what it leaves."""
        x = x - self._offset(x, x.shape[-1])
        return (logsigmoid(x) - x + y[..., :-1].log()).sum(-1)

    def forward_shape(self, shape: Sequence[int]) -> Size:
        """One element more."""
        require(len(shape) >= 1, ValueError, _FEW)
        return Size((*shape[:-1], shape[-1] + 1))

    def inverse_shape(self, shape: Sequence[int]) -> Size:
        """One element less."""
        require(len(shape) >= 1, ValueError, _FEW)
        return Size((*shape[:-1], shape[-1] - 1))


class LowerCholeskyTransform(ValueTransform):
    """Square matrices to lower triangular ones with a positive diagonal, of which the logarithms were given."""

    domain, codomain = constraints.independent(constraints.real, 2), constraints.lower_cholesky

    def _call(self, x: Tensor) -> Tensor:
        return x.tril(-1) + x.diagonal(dim1=-2, dim2=-1).exp().diag_embed()

    def _inverse(self, y: Tensor) -> Tensor:
        return y.tril(-1) + y.diagonal(dim1=-2, dim2=-1).log().diag_embed()


class PositiveDefiniteTransform(LowerCholeskyTransform):
    """Square matrices to positive definite ones: L L^T of the result of `LowerCholeskyTransform`."""

    codomain: Any = constraints.positive_definite

    def _call(self, x: Tensor) -> Tensor:
        x = super()._call(x)
        return x @ x.mT

    def _inverse(self, y: Tensor) -> Tensor:
        return super()._inverse(linalg.cholesky(y))


class CorrCholeskyTransform(Transform):
    """Vectors of D (D - 1) / 2 elements to Cholesky factors of D x D correlation matrices, whose rows have norm 1.

    Formulas: Stan Reference Manual, Cholesky factors of correlation matrices.
    """

    domain, codomain, bijective = constraints.real_vector, constraints.corr_cholesky, True

    def _call(self, x: Tensor) -> Tensor:
        x = x.tanh()
        step = finfo(x.dtype).eps
        r = vec_to_tril_matrix(x.clamp(-1 + step, 1 - step), -1)
        rest = (1 - r**2).sqrt().cumprod(-1)
        return (r + eye(r.shape[-1], dtype=r.dtype, device=r.device)) * pad(rest[..., :-1], [1, 0], value=1)

    def _inverse(self, y: Tensor) -> Tensor:
        rest = pad((1 - (y * y).cumsum(-1))[..., :-1], [1, 0], value=1)
        t = tril_matrix_to_vec(y, -1) / tril_matrix_to_vec(rest, -1).sqrt()
        return (t.log1p() - (-t).log1p()) / 2

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        """The logarithm for the lower triangle of the factor."""
        rest = tril_matrix_to_vec(1 - (y * y).cumsum(-1), -2).log().sum(-1) / 2
        return rest - 2 * (x + softplus(-2 * x) - log(2)).sum(-1)

    def forward_shape(self, shape: Sequence[int]) -> Size:
        """The shape of the factors."""
        require(len(shape) >= 1, ValueError, _FEW)
        count = shape[-1]
        n = round((0.25 + 2 * count) ** 0.5 + 0.5)
        require(n * (n - 1) // 2 == count, ValueError, "Input is not a flattened lower-diagonal number")
        return Size((*shape[:-1], n, n))

    def inverse_shape(self, shape: Sequence[int]) -> Size:
        """The shape of the vectors."""
        require(len(shape) >= 2, ValueError, _FEW)
        require(shape[-2] == shape[-1], ValueError, "Input is not square")
        return Size((*shape[:-2], shape[-1] * (shape[-1] - 1) // 2))
