"""Distributions of matrices."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from math import log, pi
from typing import Any

from .. import linalg
from ..autograd.mode import no_grad
from ..errors import require
from ..functional.creation.ranges import arange
from ..random import randn
from ..special import digamma, gammaln, multigammaln
from ..tensors import Tensor
from ..types.dtypes import finfo
from ..types.layout import broadcast_shapes
from . import constraints
from .continuous import standard_gamma
from .distribution import Distribution, stated
from .exp_family import ExponentialFamily
from .multivariate import Beta, Spread


class LKJCholesky(Distribution):
    """Cholesky factors of correlation matrices, of a density proportional to det(L L^T)^(concentration - 1).

    Samples by the onion method of Lewandowski, Kurowicka & Joe (2009).
    """

    arg_constraints = {"concentration": constraints.positive}
    support = constraints.corr_cholesky

    def __init__(self, dim: int, concentration: Tensor | float = 1.0, validate_args: bool | None = None) -> None:
        words = "Expected dim to be an integer greater than or equal to 2. Found dim={}."
        require(dim >= 2, ValueError, words, dim)
        self.dim = dim
        self._set(validate_args, concentration=concentration)
        self._event_shape = type(self._event_shape)((dim, dim))

    def sample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        eta = self.concentration.unsqueeze(-1)
        with no_grad():
            row = arange(self.dim, dtype=eta.dtype, device=eta.device).sub(1).clamp(min=0) / 2
            shares = Beta(row + 0.5, eta + (self.dim - 2) / 2 - row, False).sample(sample_shape).unsqueeze(-1)
            x = randn(self._extended_shape(sample_shape), dtype=eta.dtype, device=eta.device).tril(-1)
            found = shares.sqrt() * x / x.norm(dim=-1, keepdim=True).clamp(min=finfo(x.dtype).tiny)
            return found + (1 - found.square().sum(-1)).clamp(min=finfo(x.dtype).tiny).sqrt().diag_embed()

    def log_prob(self, value: Tensor) -> Tensor:
        self._validate_sample(value)
        eta, rest = self.concentration, self.dim - 1
        order = 2 * (eta - 1).unsqueeze(-1) + arange(rest - 1, -1, -1, device=eta.device)
        found = (order * value.diagonal(dim1=-2, dim2=-1)[..., 1:].log()).sum(-1)
        alpha = eta + 0.5 * rest
        return found - 0.5 * rest * log(pi) - multigammaln(alpha - 0.5, rest) + gammaln(alpha) * rest


class Wishart(Spread, ExponentialFamily):
    """The Wishart distribution: of the scatter of `df` normal vectors, by one of covariance matrix, its inverse and
    its Cholesky factor."""

    support = constraints.positive_definite
    has_rsample = True
    _mean_carrier_measure = 0

    def __init__(
        self,
        df: Tensor | float,
        covariance_matrix: Tensor | None = None,
        precision_matrix: Tensor | None = None,
        scale_tril: Tensor | None = None,
        validate_args: bool | None = None,
    ) -> None:
        name, matrix = self._chosen(covariance_matrix, precision_matrix, scale_tril, AssertionError)
        n = matrix.shape[-1]
        given = df if isinstance(df, Tensor) else matrix.new_full((), df)
        batch = broadcast_shapes(matrix.shape[:-2], given.shape)
        self.df = given.expand(batch) if given is df else given
        words = "Value of df={} expected to be greater than ndim - 1 = {}."
        require((self.df > n - 1).all(), ValueError, words, df, n - 1)
        if (self.df < n).any():
            words = "Low df values detected. Singular samples are highly likely to occur for ndim - 1 < df < ndim."
            warnings.warn(words, stacklevel=2)
        self._set_factor(name, matrix, batch, (n, n), validate_args)

    @property
    def arg_constraints(self) -> Any:
        """The region of `df` depends on the size."""
        return {**Spread.arg_constraints, "df": constraints.greater_than(self._event_shape[-1] - 1)}

    def _of_matrix(self, numbers: Tensor) -> Tensor:
        return numbers.unsqueeze(-1).unsqueeze(-1)

    mean = stated("df covariance.", lambda self: self._of_matrix(self.df) * self.covariance_matrix)

    @property
    def mode(self) -> Tensor:
        """(df - n - 1) covariance, NaN where there is none."""
        factor = self.df - self._event_shape[-1] - 1
        return self._of_matrix(factor.masked_fill(factor <= 0, float("nan"))) * self.covariance_matrix

    @property
    def variance(self) -> Tensor:
        """df (v_ij^2 + v_ii v_jj), element by element."""
        v = self.covariance_matrix
        diagonal = v.diagonal(dim1=-2, dim2=-1)
        return self._of_matrix(self.df) * (v**2 + diagonal.unsqueeze(-1) * diagonal.unsqueeze(-2))

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        """Samples by the decomposition of Bartlett."""
        shape, like = self._extended_shape(sample_shape), self._unbroadcasted_scale_tril
        half = (self.df.unsqueeze(-1) - arange(shape[-1], dtype=like.dtype, device=like.device)) / 2
        roots = (2 * standard_gamma(half.expand(shape[:-1]))).sqrt().clamp(min=finfo(like.dtype).eps)
        factor = like @ (randn(shape, dtype=like.dtype, device=like.device).tril(-1) + roots.diag_embed())
        return factor @ factor.mT

    def log_prob(self, value: Tensor) -> Tensor:
        self._validate_sample(value)
        p, inner = self._event_shape[-1], value.cholesky_solve(self._unbroadcasted_scale_tril)
        trace = inner.diagonal(dim1=-2, dim2=-1).sum(-1)
        front = -self.df * (p * log(2) / 2 + self._half_log_determinant()) - multigammaln(self.df / 2, p)
        return front + (self.df - p - 1) / 2 * linalg.slogdet(value).logabsdet - trace / 2

    def entropy(self) -> Tensor:
        p, half = self._event_shape[-1], self.df / 2
        steps = arange(p, dtype=half.dtype, device=half.device) / 2
        slope = (self.df - p - 1) / 2 * digamma(half.unsqueeze(-1) - steps).sum(-1)
        return (p + 1) * (p * log(2) / 2 + self._half_log_determinant()) + multigammaln(half, p) - slope + half * p

    @property
    def _natural_params(self) -> Any:
        return -self.precision_matrix / 2, (self.df - self._event_shape[-1] - 1) / 2

    def _log_normalizer(self, x: Tensor, y: Tensor) -> Tensor:
        p = self._event_shape[-1]
        half = y + (p + 1) / 2
        return half * (log(2) * p - linalg.slogdet(-2 * x).logabsdet) + multigammaln(half, p)
