"""Distributions of vectors."""

from __future__ import annotations

from collections.abc import Sequence
from math import log, pi
from typing import Any

from ..errors import require
from ..functional.creation.ranges import eye
from ..functional.elementwise.pointwise import where
from ..functional.indexing.lookup import one_hot
from ..functional.views.joining import stack
from ..random import randn
from ..special import digamma, gammaln
from ..tensors import Tensor
from ..types.layout import broadcast_shapes
from . import constraints
from .continuous import standard_gamma
from .distribution import Distribution, broadcast_all, lazy, stated


class Dirichlet(Distribution):
    """The Dirichlet distribution: shares that add up to 1, gamma numbers of rate 1 over their sum."""

    arg_constraints = {"concentration": constraints.independent(constraints.positive, 1)}
    support = constraints.simplex
    has_rsample = True

    def __init__(self, concentration: Tensor, validate_args: bool | None = None) -> None:
        require(concentration.ndim >= 1, ValueError, "`concentration` parameter must be at least one-dimensional.")
        self._set(validate_args, 1, concentration=concentration)

    mean = stated("a / sum(a).", lambda self: self.concentration / self.concentration.sum(-1, True))

    @property
    def mode(self) -> Tensor:
        """(a - 1) / sum(a - 1), without what is below 0; where all are below 1 the first corner."""
        above = (self.concentration - 1).clamp(min=0)
        found = above / above.sum(-1, True)
        corner = one_hot(found.argmax(-1), found.shape[-1]).to(found.dtype)
        return where((self.concentration < 1).all(-1, True), corner, found)

    @property
    def variance(self) -> Tensor:
        """a (s - a) / (s^2 (s + 1)), with s = sum(a)."""
        a, s = self.concentration, self.concentration.sum(-1, True)
        return a * (s - a) / (s**2 * (s + 1))

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        found = standard_gamma(self.concentration.expand(self._extended_shape(sample_shape)))
        return found / found.sum(-1, True)

    def log_prob(self, value: Tensor) -> Tensor:
        self._validate_sample(value)
        a = self.concentration
        return (a - 1).xlogy(value).sum(-1) + gammaln(a.sum(-1)) - gammaln(a).sum(-1)

    def entropy(self) -> Tensor:
        a, s = self.concentration, self.concentration.sum(-1)
        n = a.shape[-1]
        found = gammaln(a).sum(-1) - gammaln(s) - (n - s) * digamma(s)
        return found - ((a - 1) * digamma(a)).sum(-1)


class Beta(Distribution):
    """The Beta distribution, of density x^(a - 1) (1 - x)^(b - 1) / B(a, b), with a = concentration1 and b =
    concentration0."""

    arg_constraints = {"concentration1": constraints.positive, "concentration0": constraints.positive}
    support = constraints.unit_interval
    has_rsample = True

    def __init__(self, concentration1: Any, concentration0: Any, validate_args: bool | None = None) -> None:
        both = stack(broadcast_all(concentration1, concentration0), -1)
        self._dirichlet = Dirichlet(both, validate_args)
        super().__init__(both.shape[:-1], (), validate_args)

    concentration1 = stated("a.", lambda self: self._dirichlet.concentration[..., 0])
    concentration0 = stated("b.", lambda self: self._dirichlet.concentration[..., 1])
    mean = stated("a / (a + b).", lambda self: self.concentration1 / (self.concentration1 + self.concentration0))
    mode = stated("(a - 1) / (a + b - 2), or an end.", lambda self: self._dirichlet.mode[..., 0])

    @property
    def variance(self) -> Tensor:
        """a b / ((a + b)^2 (a + b + 1))."""
        a, b = self.concentration1, self.concentration0
        return a * b / ((a + b) ** 2 * (a + b + 1))

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        return self._dirichlet.rsample(sample_shape)[..., 0]

    def log_prob(self, value: Tensor) -> Tensor:
        self._validate_sample(value)
        return self._dirichlet.log_prob(stack([value, 1.0 - value], -1))

    def entropy(self) -> Tensor:
        return self._dirichlet.entropy()


class MultivariateNormal(Distribution):
    """The multivariate normal distribution, by one of covariance matrix, its inverse and its Cholesky factor."""

    arg_constraints = {
        "loc": constraints.real_vector,
        "covariance_matrix": constraints.positive_definite,
        "precision_matrix": constraints.positive_definite,
        "scale_tril": constraints.lower_cholesky,
    }
    support = constraints.real_vector
    has_rsample = True

    def __init__(
        self,
        loc: Tensor,
        covariance_matrix: Tensor | None = None,
        precision_matrix: Tensor | None = None,
        scale_tril: Tensor | None = None,
        validate_args: bool | None = None,
    ) -> None:
        from .. import linalg

        require(loc.ndim >= 1, ValueError, "loc must be at least one-dimensional.")
        given = {"covariance_matrix": covariance_matrix, "precision_matrix": precision_matrix, "scale_tril": scale_tril}
        matrices = [(name, matrix) for name, matrix in given.items() if matrix is not None]
        if len(matrices) != 1:
            words = "Exactly one of covariance_matrix or precision_matrix or scale_tril may be specified."
            raise ValueError(words)
        ((name, matrix),) = matrices
        if matrix.ndim < 2:
            raise ValueError(f"{name} must be at least two-dimensional, with optional leading batch dimensions")
        n, batch = loc.shape[-1], broadcast_shapes(matrix.shape[:-2], loc.shape[:-1])
        self.loc = loc.expand(*batch, -1)
        setattr(self, name, matrix.expand(*batch, -1, -1))
        super().__init__(batch, (n,), validate_args)
        if name == "scale_tril":
            factor = matrix
        elif name == "covariance_matrix":
            factor = linalg.cholesky(matrix)
        else:  # of the inverse, from the factor of the matrix whose rows and columns are reversed
            turned = linalg.cholesky(matrix.flip((-2, -1)))
            upper = turned.flip((-2, -1)).mT
            factor = linalg.solve_triangular(upper, eye(n, dtype=loc.dtype, device=loc.device), upper=False)
        self._factor = factor.expand(*batch, -1, -1)

    @lazy
    def scale_tril(self) -> Tensor:
        """The Cholesky factor of the covariance."""
        return self._factor

    @lazy
    def covariance_matrix(self) -> Tensor:
        """The covariance."""
        return self._factor @ self._factor.mT

    @lazy
    def precision_matrix(self) -> Tensor:
        """The inverse of the covariance."""
        from .. import linalg

        inverse = linalg.solve_triangular(
            self._factor, eye(self._event_shape[0], dtype=self.loc.dtype, device=self.loc.device), upper=False
        )
        return inverse.mT @ inverse

    mean = stated("loc.", lambda self: self.loc)
    mode = stated("loc.", lambda self: self.loc)

    @property
    def variance(self) -> Tensor:
        """The diagonal of the covariance."""
        return self._factor.square().sum(-1).expand(*self._batch_shape, *self._event_shape)

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        x = randn(self._extended_shape(sample_shape), dtype=self.loc.dtype, device=self.loc.device)
        return self.loc + (self._factor @ x.unsqueeze(-1)).squeeze(-1)

    def _whitened(self, difference: Tensor) -> Tensor:
        from .. import linalg

        column = difference.unsqueeze(-1)
        return linalg.solve_triangular(self._factor, column, upper=False).squeeze(-1)

    def _half_log_determinant(self) -> Tensor:
        return self._factor.diagonal(dim1=-2, dim2=-1).log().sum(-1)

    def log_prob(self, value: Tensor) -> Tensor:
        self._validate_sample(value)
        squares = self._whitened(value - self.loc).square().sum(-1)
        return -0.5 * (self._event_shape[0] * log(2 * pi) + squares) - self._half_log_determinant()

    def entropy(self) -> Tensor:
        found = 0.5 * self._event_shape[0] * (1 + log(2 * pi)) + self._half_log_determinant()
        return found.expand(self._batch_shape)
