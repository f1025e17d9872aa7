"""Distributions of vectors and matrices."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from math import log, pi
from typing import Any

from .. import linalg
from ..errors import require
from ..functional import one_hot, stack, where
from ..functional.creation.likeness import ones_like
from ..functional.creation.ranges import arange, eye
from ..operators.function import Function
from ..random import randn
from ..special import digamma, gammaln, multigammaln
from ..tensors import Tensor
from ..types.dtypes import finfo
from ..types.layout import broadcast_shapes
from ..types.size import Size
from . import constraints
from .continuous import standard_gamma
from .distribution import Distribution
from .exp_family import ExponentialFamily
from .probabilities import tiny
from .properties import Formula, lazy_property, stated
from .shapes import broadcast_all, like

__all__ = ["Beta", "Dirichlet", "LKJCholesky", "LowRankMultivariateNormal", "MultivariateNormal", "Wishart"]


def _fraction(x: Tensor, a: Tensor, b: Tensor) -> Tensor:
    """The continued fraction of the incomplete beta function (Press et al., Numerical Recipes, 6.4)."""
    c, d = ones_like(x), 1 / (1 - (a + b) * x / (a + 1))
    found = d
    for m in range(1, 64):
        for term in (
            m * (b - m) * x / ((a - 1 + 2 * m) * (a + 2 * m)),
            -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 1 + 2 * m)),
        ):
            c, d = 1 + term / c, 1 / (1 + term * d)
            found = found * c * d
    return found


def share_slope(x: Tensor, a: Tensor, b: Tensor) -> Tensor:
    """The derivative by `a` of a Beta number x, implicit: -dI_x(a, b)/da over the density, with the tail that is
    smaller."""
    upper = x > (a + 1) / (a + b + 2)
    step = a * 1e-5
    first, second = where(upper, b, a), where(upper, a, b)
    near = where(upper, 1 - x, x)
    ends = [_fraction(near, first + where(upper, 0, h), second + where(upper, h, 0)) for h in (step, -step)]
    front = x.log() - digamma(a) + digamma(a + b) - where(upper, 0, 1 / a)
    found = (ends[0] + ends[1]) / 2 * front + (ends[0] - ends[1]) / (2 * step)
    return where(upper, 1, -1) * x * (1 - x) / first * found


class _StandardDirichlet(Function):
    """Shares of gamma numbers, inside of (0, 1), with gradients that depend on the shares alone."""

    @staticmethod
    def forward(ctx: Any, concentration: Tensor) -> Tensor:
        numbers = standard_gamma(concentration)
        limits = finfo(numbers.dtype)
        shares = (numbers / numbers.sum(-1, True)).clamp(limits.tiny, 1 - limits.eps / 2)
        ctx.save_for_backward(concentration, shares)
        return shares

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Any:
        concentration, shares = (each.double() for each in ctx.saved_tensors)
        slope = share_slope(shares, concentration, concentration.sum(-1, True) - concentration) / (1 - shares)
        return (slope * (grad - (shares * grad).sum(-1, True))).to(grad.dtype)


class Dirichlet(ExponentialFamily):
    """The Dirichlet distribution: shares that add up to 1, gamma numbers of rate 1 over their sum."""

    arg_constraints = {"concentration": constraints.independent(constraints.positive, 1)}
    support = constraints.simplex
    has_rsample = True

    def __init__(self, concentration: Tensor, validate_args: bool | None = None) -> None:
        require(concentration.ndim >= 1, ValueError, "`concentration` parameter must be at least one-dimensional.")
        self._set(validate_args, 1, concentration=concentration)

    _natural_params = property(lambda self: (self.concentration,))
    _log_normalizer = staticmethod(lambda x: gammaln(x).sum(-1) - gammaln(x.sum(-1)))
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

    _draw: Formula = lambda self, shape: _StandardDirichlet.apply(self.concentration.expand(shape))

    def _log_density(self, value: Tensor) -> Tensor:
        a = self.concentration
        return (a - 1).xlogy(value).sum(-1) + gammaln(a.sum(-1)) - gammaln(a).sum(-1)

    def _nats(self) -> Tensor:
        a, s = self.concentration, self.concentration.sum(-1)
        n = a.shape[-1]
        found = gammaln(a).sum(-1) - gammaln(s) - (n - s) * digamma(s)
        return found - ((a - 1) * digamma(a)).sum(-1)


class Beta(ExponentialFamily):
    """The Beta distribution: x^(a - 1) (1 - x)^(b - 1) / B(a, b), a = concentration1, b = concentration0."""

    arg_constraints = {"concentration1": constraints.positive, "concentration0": constraints.positive}
    support = constraints.unit_interval
    has_rsample = True

    def __init__(self, concentration1: Any, concentration0: Any, validate_args: bool | None = None) -> None:
        both = stack(broadcast_all(concentration1, concentration0), -1)
        self._dirichlet = Dirichlet(both, validate_args)
        super().__init__(both.shape[:-1], (), validate_args)

    _natural_params = property(lambda self: (self.concentration1, self.concentration0))
    _log_normalizer = staticmethod(lambda x, y: gammaln(x) + gammaln(y) - gammaln(x + y))
    concentration1 = stated("a.", lambda self: self._dirichlet.concentration[..., 0])
    concentration0 = stated("b.", lambda self: self._dirichlet.concentration[..., 1])
    mean = stated("a / (a + b).", lambda self: self.concentration1 / (self.concentration1 + self.concentration0))
    mode = stated("(a - 1) / (a + b - 2), or an end.", lambda self: self._dirichlet.mode[..., 0])

    @property
    def variance(self) -> Tensor:
        """a b / ((a + b)^2 (a + b + 1))."""
        a, b = self.concentration1, self.concentration0
        return a * b / ((a + b) ** 2 * (a + b + 1))

    _draw: Formula = lambda self, shape: self._dirichlet._draw(Size((*shape, 2)))[..., 0]
    _log_density: Formula = lambda self, value: self._dirichlet.log_prob(stack([value, 1.0 - value], -1))
    _nats: Formula = lambda self: self._dirichlet.entropy()


class Spread(Distribution):
    """A covariance, given by one of its matrix, the inverse and the Cholesky factor; the others are computed."""

    arg_constraints: Any = {
        "covariance_matrix": constraints.positive_definite,
        "precision_matrix": constraints.positive_definite,
        "scale_tril": constraints.lower_cholesky,
    }

    @staticmethod
    def _chosen(
        covariance: Tensor | None, precision: Tensor | None, factor: Tensor | None, error: type[Exception] = ValueError
    ) -> tuple[str, Tensor]:
        given = {"covariance_matrix": covariance, "precision_matrix": precision, "scale_tril": factor}
        found = [(name, matrix) for name, matrix in given.items() if matrix is not None]
        words = "Exactly one of covariance_matrix or precision_matrix or scale_tril may be specified."
        require(len(found) == 1, error, words)
        ((name, matrix),) = found
        words = "{} must be at least two-dimensional, with optional leading batch dimensions"
        require(matrix.ndim >= 2, ValueError, words, name if error is ValueError else "scale_tril")
        return name, matrix

    def _set_factor(
        self, name: str, matrix: Tensor, batch: Sequence[int], event: Sequence[int], validate_args: bool | None
    ) -> None:
        setattr(self, name, matrix.expand(*batch, -1, -1))
        Distribution.__init__(self, batch, event, validate_args)
        if name == "covariance_matrix":
            matrix = linalg.cholesky(matrix)
        elif name == "precision_matrix":  # from the factor of the matrix whose rows and columns are reversed
            upper = linalg.cholesky(matrix.flip((-2, -1))).flip((-2, -1)).mT
            unit = like(eye, matrix.shape[-1], matrix)
            matrix = linalg.solve_triangular(upper, unit, upper=False)
        self._unbroadcasted_scale_tril = matrix.expand(*batch, -1, -1)

    scale_tril = stated(
        "The Cholesky factor of the covariance.", lambda self: self._unbroadcasted_scale_tril, lazy_property
    )

    @lazy_property
    def covariance_matrix(self) -> Tensor:
        """The covariance."""
        factor = self._unbroadcasted_scale_tril
        return (factor @ factor.mT).expand_as(factor)

    @lazy_property
    def precision_matrix(self) -> Tensor:
        """The inverse of the covariance."""
        factor = self._unbroadcasted_scale_tril
        return like(eye, factor.shape[-1], factor).cholesky_solve(factor).expand_as(factor)

    _half_log_determinant: Formula = lambda self: _log_diagonal(self._unbroadcasted_scale_tril)


class Gaussian(Distribution):
    """Normal vectors, of which a subclass knows the covariance's determinant and inverse."""

    support = constraints.real_vector
    has_rsample = True
    mean = stated("loc.", lambda self: self.loc)
    mode = stated("loc.", lambda self: self.loc)

    _half_log_determinant: Callable[[], Tensor]
    _squared: Callable[[Tensor], Tensor]  # x^T inverse x
    _roots: Callable[[], list[Tensor]]  # matrices R of which the covariance is the sum of all R R^T
    _trace: Callable[[Tensor], Tensor]  # that of the inverse times R R^T

    def _log_density(self, value: Tensor) -> Tensor:
        squares = self._squared(value - self.loc)
        return -0.5 * (self._event_shape[0] * log(2 * pi) + squares) - self._half_log_determinant()

    def _nats(self) -> Tensor:
        return 0.5 * self._event_shape[0] * (1 + log(2 * pi)) + self._half_log_determinant()


class MultivariateNormal(Spread, Gaussian):
    """The multivariate normal distribution, by one of covariance matrix, its inverse and its Cholesky factor."""

    arg_constraints = {"loc": constraints.real_vector, **Spread.arg_constraints}

    def __init__(
        self,
        loc: Tensor,
        covariance_matrix: Tensor | None = None,
        precision_matrix: Tensor | None = None,
        scale_tril: Tensor | None = None,
        validate_args: bool | None = None,
    ) -> None:
        require(loc.ndim >= 1, ValueError, "loc must be at least one-dimensional.")
        name, matrix = self._chosen(covariance_matrix, precision_matrix, scale_tril)
        batch = broadcast_shapes(matrix.shape[:-2], loc.shape[:-1])
        self.loc = loc.expand(*batch, -1)
        self._set_factor(name, matrix, batch, loc.shape[-1:], validate_args)

    @property
    def variance(self) -> Tensor:
        """The diagonal of the covariance."""
        return self._unbroadcasted_scale_tril.square().sum(-1).expand(*self._batch_shape, *self._event_shape)

    def _draw(self, shape: Size) -> Tensor:
        return self.loc + _batch_mv(self._unbroadcasted_scale_tril, like(randn, shape, self.loc))

    _squared: Formula = lambda self, difference: _batch_mahalanobis(self._unbroadcasted_scale_tril, difference)

    def _roots(self) -> list[Tensor]:
        return [self._unbroadcasted_scale_tril]

    def _trace(self, root: Tensor) -> Tensor:
        return linalg.solve_triangular(self._unbroadcasted_scale_tril, root, upper=False).square().sum((-2, -1))


def _batch_mahalanobis(factor: Tensor, difference: Tensor) -> Tensor:
    """x^T (L L^T)^-1 x of vectors x and Cholesky factors L."""
    return linalg.solve_triangular(factor, difference.unsqueeze(-1), upper=False).square().sum((-2, -1))


def _log_diagonal(factor: Tensor) -> Tensor:
    return factor.diagonal(dim1=-2, dim2=-1).log().sum(-1)


def _batch_mv(matrix: Tensor, vector: Tensor) -> Tensor:
    """The products of matrices and vectors."""
    return (matrix @ vector.unsqueeze(-1)).squeeze(-1)


class LowRankMultivariateNormal(Gaussian):
    """The multivariate normal distribution of the covariance W W^T + D, with W = cov_factor and diagonal D = cov_diag.

    Determinant and inverse are computed by the small matrix I + W^T D^-1 W (Woodbury).
    """

    arg_constraints = {
        "loc": constraints.real_vector,
        "cov_factor": constraints.independent(constraints.real, 2),
        "cov_diag": constraints.independent(constraints.positive, 1),
    }

    def __init__(self, loc: Tensor, cov_factor: Tensor, cov_diag: Tensor, validate_args: bool | None = None) -> None:
        require(loc.ndim >= 1, ValueError, "loc must be at least one-dimensional.")
        words = "cov_factor must be at least two-dimensional, with optional leading batch dimensions"
        require(cov_factor.ndim >= 2, ValueError, words)
        n, rank = loc.shape[-1], cov_factor.shape[-1]
        words = "cov_factor must be a batch of matrices with shape {} x m"
        require(cov_factor.shape[-2] == n, ValueError, words, n)
        require(cov_diag.shape[-1:] == (n,), ValueError, "cov_diag must be a batch of vectors with shape {}", (n,))
        shapes = loc.shape[:-1], cov_factor.shape[:-2], cov_diag.shape[:-1]
        try:
            batch = broadcast_shapes(*shapes)
        except RuntimeError as error:
            words = f"loc {loc.shape}, cov_factor {cov_factor.shape}, cov_diag {cov_diag.shape}"
            raise ValueError(f"Incompatible batch shapes: {words}") from error
        self.loc, self.cov_diag = loc.expand(*batch, -1), cov_diag.expand(*batch, -1)
        self.cov_factor = cov_factor.expand(*batch, -1, -1)
        super().__init__(batch, (n,), validate_args)
        small = (cov_factor.mT / cov_diag.unsqueeze(-2)) @ cov_factor
        small = linalg.cholesky(small + like(eye, rank, small))
        self._capacitance_tril = small.expand(*batch, -1, -1)

    variance = stated(
        "The diagonal of the covariance.", lambda self: self.cov_factor.square().sum(-1) + self.cov_diag, lazy_property
    )

    @lazy_property
    def scale_tril(self) -> Tensor:
        """The Cholesky factor of the covariance."""
        root = self.cov_diag.sqrt().unsqueeze(-1)
        scaled = self.cov_factor / root
        return root * linalg.cholesky(
            scaled @ scaled.mT + like(eye, root.shape[-2], root)
        )  # whose eigenvalues are 1 and more

    covariance_matrix = stated(
        "The covariance.", lambda self: self.cov_factor @ self.cov_factor.mT + self.cov_diag.diag_embed(), lazy_property
    )

    def _whitening(self) -> Tensor:
        """A of the inverse D^-1 - A^T A."""
        return linalg.solve_triangular(
            self._capacitance_tril, self.cov_factor.mT / self.cov_diag.unsqueeze(-2), upper=False
        )

    @lazy_property
    def precision_matrix(self) -> Tensor:
        """The inverse of the covariance."""
        part = self._whitening()
        return self.cov_diag.reciprocal().diag_embed() - part.mT @ part

    def _draw(self, shape: Size) -> Tensor:
        x, y = (like(randn, (*shape[:-1], n), self.loc) for n in (self.cov_factor.shape[-1], shape[-1]))
        return self.loc + _batch_mv(self.cov_factor, x) + self.cov_diag.sqrt() * y

    _half_log_determinant: Formula = lambda self: (
        _log_diagonal(self._capacitance_tril) + self.cov_diag.log().sum(-1) / 2
    )

    def _squared(self, difference: Tensor) -> Tensor:
        within = _batch_mv(self.cov_factor.mT, difference / self.cov_diag)
        return (difference.square() / self.cov_diag).sum(-1) - _batch_mahalanobis(self._capacitance_tril, within)

    def _roots(self) -> list[Tensor]:
        return [self.cov_factor, self.cov_diag.sqrt().diag_embed()]

    def _trace(self, root: Tensor) -> Tensor:
        whole = (root.square() / self.cov_diag.unsqueeze(-1)).sum((-2, -1))
        return whole - (self._whitening() @ root).square().sum((-2, -1))


class LKJCholesky(Distribution):
    """The LKJ distribution of Cholesky factors of correlations: density ~ det(L L^T)^(concentration - 1).

    Samples by the onion method of Lewandowski, Kurowicka & Joe (2009).
    """

    arg_constraints = {"concentration": constraints.positive}
    support = constraints.corr_cholesky

    def __init__(self, dim: int, concentration: Tensor | float = 1.0, validate_args: bool | None = None) -> None:
        words = "Expected dim to be an integer greater than or equal to 2. Found dim={}."
        require(dim >= 2, ValueError, words, dim)
        self.dim = dim
        self._set(validate_args, concentration=concentration)
        self._event_shape = Size((dim, dim))
        least = self.concentration + (dim - 2) / 2 - (dim - 2) / 2  # as samples and densities round it
        require(
            (least > 0).all(), ValueError, "Expected a concentration that does not round to 0, got {}", concentration
        )

    def _draw(self, shape: Size) -> Tensor:
        eta = self.concentration.unsqueeze(-1)
        row = like(arange, self.dim, eta).sub(1).clamp(min=0) / 2
        shares = Beta(row + 0.5, eta + (self.dim - 2) / 2 - row, False)._draw(shape[:-1]).unsqueeze(-1)
        x = like(randn, shape, eta).tril(-1)
        found = shares.sqrt() * x / x.norm(dim=-1, keepdim=True).clamp(min=finfo(x.dtype).tiny)
        return found + (1 - found.square().sum(-1)).clamp(min=finfo(x.dtype).tiny).sqrt().diag_embed()

    def _log_density(self, value: Tensor) -> Tensor:
        eta, rest = self.concentration, self.dim - 1
        order = 2 * (eta - 1).unsqueeze(-1) + arange(rest - 1, -1, -1, device=eta.device)
        found = (order * value.diagonal(dim1=-2, dim2=-1)[..., 1:].log()).sum(-1)
        alpha = eta + 0.5 * rest
        return found - 0.5 * rest * log(pi) - multigammaln(alpha - 0.5, rest) + gammaln(alpha) * rest


class Wishart(Spread, ExponentialFamily):
    """The Wishart distribution, of the scatter of `df` normal vectors, by covariance, its inverse or its factor."""

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

    mean = stated("df covariance.", lambda self: self.df[..., None, None] * self.covariance_matrix)

    @property
    def mode(self) -> Tensor:
        """(df - n - 1) covariance, NaN where there is none."""
        factor = self.df - self._event_shape[-1] - 1
        return factor.masked_fill(factor <= 0, float("nan"))[..., None, None] * self.covariance_matrix

    @property
    def variance(self) -> Tensor:
        """df (v_ij^2 + v_ii v_jj), element by element."""
        v = self.covariance_matrix
        diagonal = v.diagonal(dim1=-2, dim2=-1)
        return self.df[..., None, None] * (v**2 + diagonal.unsqueeze(-1) * diagonal.unsqueeze(-2))

    def _draw(self, shape: Size) -> Tensor:
        """Samples by the decomposition of Bartlett."""
        factor = self._unbroadcasted_scale_tril
        half = (self.df.unsqueeze(-1) - like(arange, shape[-1], factor)) / 2
        roots = (2 * standard_gamma(half.expand(shape[:-1]))).sqrt().clamp(min=tiny(factor))
        factor = factor @ (like(randn, shape, factor).tril(-1) + roots.diag_embed())
        return factor @ factor.mT

    def _log_density(self, value: Tensor) -> Tensor:
        p, inner = self._event_shape[-1], value.cholesky_solve(self._unbroadcasted_scale_tril)
        trace = inner.diagonal(dim1=-2, dim2=-1).sum(-1)
        front = -self.df * (p * log(2) / 2 + self._half_log_determinant()) - multigammaln(self.df / 2, p)
        return front + (self.df - p - 1) / 2 * linalg.slogdet(value).logabsdet - trace / 2

    def _nats(self) -> Tensor:
        p, half = self._event_shape[-1], self.df / 2
        steps = like(arange, p, half) / 2
        slope = (self.df - p - 1) / 2 * digamma(half.unsqueeze(-1) - steps).sum(-1)
        return (p + 1) * (p * log(2) / 2 + self._half_log_determinant()) + multigammaln(half, p) - slope + half * p

    @property
    def _natural_params(self) -> Any:
        return -self.precision_matrix / 2, (self.df - self._event_shape[-1] - 1) / 2

    def _log_normalizer(self, x: Tensor, y: Tensor) -> Tensor:
        p = self._event_shape[-1]
        half = y + (p + 1) / 2
        return half * (log(2) * p - linalg.slogdet(-2 * x).logabsdet) + multigammaln(half, p)
