"""Distributions made of others: independent ones as one, transformed ones, mixtures."""

from __future__ import annotations

from collections.abc import Sequence
from math import log, pi, prod, sqrt
from typing import Any

from ..autograd.mode import no_grad
from ..errors import require
from ..functional.creation.creation import as_tensor
from ..functional.creation.likeness import full_like, ones_like, zeros_like
from ..functional.elementwise.pointwise import where
from ..special import digamma, gammaln
from ..tensors import Tensor
from ..types.dtypes import finfo
from ..types.size import Size
from . import constraints
from .continuous import Cauchy, Exponential, Gamma, Normal, Uniform
from .discrete import Categorical
from .distribution import Distribution
from .probabilities import euler_constant
from .properties import Formula, stated
from .shapes import broadcast_all, like, sum_rightmost
from .transform import ComposeTransform, Transform
from .transforms import AbsTransform, AffineTransform, ExpTransform, PowerTransform, StickBreakingTransform

__all__ = ["Gumbel", "HalfCauchy", "HalfNormal", "Independent", "InverseGamma", "Kumaraswamy", "LogNormal"]
__all__ += ["LogisticNormal", "MixtureSameFamily", "Pareto", "TransformedDistribution", "Weibull"]


class Independent(Distribution):
    """A distribution that counts the last dimensions of another's batch as one event."""

    def __init__(
        self, base_distribution: Distribution, reinterpreted_batch_ndims: int, validate_args: bool | None = None
    ) -> None:
        shape, count = base_distribution.batch_shape, reinterpreted_batch_ndims
        words = "Expected reinterpreted_batch_ndims <= len(base_distribution.batch_shape), actual {} vs {}"
        require(count <= len(shape), ValueError, words, count, len(shape))
        self.base_dist, self.reinterpreted_batch_ndims = base_distribution, count
        own = (*shape[len(shape) - count :], *base_distribution.event_shape)
        super().__init__(shape[: len(shape) - count], own, validate_args)
        self.has_rsample = base_distribution.has_rsample
        self.has_enumerate_support = not count and base_distribution.has_enumerate_support

    @constraints.dependent_property
    def support(self) -> Any:
        """The base's."""
        found, count = self.base_dist.support, self.reinterpreted_batch_ndims
        return constraints.independent(found, count) if count else found

    mean = stated("The base's.", lambda self: self.base_dist.mean)
    mode = stated("The base's.", lambda self: self.base_dist.mode)
    variance = stated("The base's.", lambda self: self.base_dist.variance)

    def sample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        return self.base_dist.sample(sample_shape)

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        return self.base_dist.rsample(sample_shape)

    def log_prob(self, value: Tensor) -> Tensor:
        return sum_rightmost(self.base_dist.log_prob(value), self.reinterpreted_batch_ndims)

    _nats: Formula = lambda self: sum_rightmost(self.base_dist.entropy(), self.reinterpreted_batch_ndims)

    def enumerate_support(self, expand: bool = True) -> Tensor:
        if self.reinterpreted_batch_ndims:
            raise NotImplementedError("Enumeration over cartesian product is not implemented")
        return self.base_dist.enumerate_support(expand)

    def __repr__(self) -> str:
        return f"Independent({self.base_dist!r}, {self.reinterpreted_batch_ndims})"


class TransformedDistribution(Distribution):
    """The distribution of a base distribution's samples after transforms."""

    def __init__(self, base_distribution: Distribution, transforms: Any, validate_args: bool | None = None) -> None:
        given = [transforms] if isinstance(transforms, Transform) else transforms
        words = "transforms must be a Transform or list, but was {}"
        require(isinstance(given, list), ValueError, words, transforms)
        words = "transforms must be a Transform or a list of Transforms"
        require(all(isinstance(each, Transform) for each in given), ValueError, words)
        whole, own = ComposeTransform(given), len(base_distribution.event_shape)
        base_shape, dims = base_distribution._extended_shape(), whole.domain.event_dim
        words = "base_distribution needs to have shape with size at least {}, but got {}."
        require(len(base_shape) >= dims, ValueError, words, dims, base_shape)
        shape = whole.forward_shape(base_shape)
        before = whole.inverse_shape(shape)
        if before != base_shape:
            base_distribution = base_distribution.expand(before[: len(before) - own])
        self.base_dist = Independent(base_distribution, dims - own) if dims > own else base_distribution
        self.transforms = given
        cut = len(shape) - max(whole.codomain.event_dim, own + whole.codomain.event_dim - dims)
        super().__init__(shape[:cut], shape[cut:], validate_args)

    has_rsample = stated("True if the base has one.", lambda self: self.base_dist.has_rsample)

    @constraints.dependent_property(is_discrete=False)
    def support(self) -> Any:
        """The support: the codomain of the last transform."""
        if not self.transforms:
            return self.base_dist.support
        found, count = self.transforms[-1].codomain, len(self._event_shape)
        return constraints.independent(found, count - found.event_dim) if count > found.event_dim else found

    def _transformed(self, x: Tensor) -> Tensor:
        for transform in self.transforms:
            x = transform(x)
        return x

    def sample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        with no_grad():
            return self._transformed(self.base_dist.sample(sample_shape))

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        return self._transformed(self.base_dist.rsample(sample_shape))

    def _log_density(self, value: Tensor) -> Tensor:
        found: Any = 0.0
        y, dims = value, len(self._event_shape)
        for transform in reversed(self.transforms):
            x, own = transform.inv(y), transform.domain.event_dim
            dims += own - transform.codomain.event_dim
            found, y = found - sum_rightmost(transform.log_abs_det_jacobian(x, y), dims - own), x
        return found + sum_rightmost(self.base_dist.log_prob(y), dims - len(self.base_dist.event_shape))

    def _monotone(self, share: Tensor) -> Tensor:
        sign = prod(transform.sign for transform in self.transforms)
        return share if isinstance(sign, int) and sign == 1 else sign * (share - 0.5) + 0.5

    def cdf(self, value: Tensor) -> Tensor:
        for transform in reversed(self.transforms):
            value = transform.inv(value)
        if self._validate_args:
            self.base_dist._validate_sample(value)
        return self._monotone(self.base_dist.cdf(value))

    _quantile: Formula = lambda self, value: self._transformed(self.base_dist.icdf(self._monotone(value)))


class _Half(TransformedDistribution):
    """The absolute value of a number of a symmetric distribution around 0."""

    arg_constraints = {"scale": constraints.positive}
    support = constraints.nonnegative
    has_rsample = True
    scale = stated("The scale of the symmetric distribution.", lambda self: self.base_dist.scale)
    mode = stated("0.", lambda self: zeros_like(self.scale))
    _symmetric: type[Normal | Cauchy]

    def __init__(self, scale: Tensor | float, validate_args: bool | None = None) -> None:
        super().__init__(self._symmetric(0, scale, False), AbsTransform(), validate_args)

    def _log_density(self, value: Tensor) -> Tensor:
        return where(value >= 0, self.base_dist.log_prob(value) + log(2), -float("inf"))

    def cdf(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        return 2 * self.base_dist.cdf(value) - 1

    _quantile: Formula = lambda self, value: self.base_dist.icdf((value + 1) / 2)
    _nats: Formula = lambda self: self.base_dist.entropy() - log(2)


class HalfNormal(_Half):
    """The half-normal distribution: the absolute value of a normal number of mean 0."""

    _symmetric = Normal
    mean = stated("scale sqrt(2 / pi).", lambda self: self.scale * sqrt(2 / pi))
    variance = stated("scale^2 (1 - 2 / pi).", lambda self: self.scale**2 * (1 - 2 / pi))


class HalfCauchy(_Half):
    """The half-Cauchy distribution: the absolute value of a Cauchy number around 0; its mean is infinite."""

    _symmetric = Cauchy
    mean = stated("Infinite.", lambda self: full_like(self.scale, float("inf")))

    variance = stated("Infinite.", lambda self: self.base_dist.variance)

    def _log_density(self, value: Tensor) -> Tensor:
        return super()._log_density(like(as_tensor, value, self.scale))


class Gumbel(TransformedDistribution):
    """The Gumbel distribution, that of the largest of many numbers."""

    arg_constraints = {"loc": constraints.real, "scale": constraints.positive}
    support = constraints.real

    def __init__(self, loc: Tensor | float, scale: Tensor | float, validate_args: bool | None = None) -> None:
        self.loc, self.scale = broadcast_all(loc, scale)
        limits, log_of = finfo(self.loc.dtype), ExpTransform().inv
        base = Uniform(full_like(self.loc, limits.tiny), full_like(self.loc, 1 - limits.eps), False)
        parts = [log_of, AffineTransform(0, -ones_like(self.scale)), log_of, AffineTransform(self.loc, -self.scale)]
        super().__init__(base, parts, validate_args)

    mean = stated("loc + scale times Euler's constant.", lambda self: self.loc + self.scale * euler_constant)
    mode = stated("loc.", lambda self: self.loc)
    variance = stated("(pi scale)^2 / 6.", lambda self: self.stddev**2)
    stddev = stated("pi scale / sqrt(6).", lambda self: pi / sqrt(6) * self.scale)

    def _log_density(self, value: Tensor) -> Tensor:
        y = (self.loc - value) / self.scale
        return y - y.exp() - self.scale.log()

    cdf = Distribution.cdf
    _share: Formula = lambda self, value: (-((self.loc - value) / self.scale).exp()).exp()
    _nats: Formula = lambda self: self.scale.log() + (1 + euler_constant)


class Weibull(TransformedDistribution):
    """The Weibull distribution: (x / scale)^concentration is exponential."""

    arg_constraints = {"scale": constraints.positive, "concentration": constraints.positive}
    support = constraints.positive

    def __init__(self, scale: Tensor | float, concentration: Tensor | float, validate_args: bool | None = None) -> None:
        self.scale, self.concentration = broadcast_all(scale, concentration)
        self.concentration_reciprocal = self.concentration.reciprocal()
        parts = [PowerTransform(self.concentration_reciprocal), AffineTransform(0, self.scale)]
        super().__init__(Exponential(ones_like(self.scale), validate_args), parts, validate_args)

    def _moment(self, order: int) -> Tensor:
        return gammaln(1 + order * self.concentration_reciprocal).exp()

    mean = stated("scale Gamma(1 + 1 / concentration).", lambda self: self.scale * self._moment(1))

    @property
    def mode(self) -> Tensor:
        """scale ((k - 1) / k)^(1 / k)."""
        k = self.concentration
        return self.scale * ((k - 1) / k) ** k.reciprocal()

    @property
    def variance(self) -> Tensor:
        """The second moment, less the square of the mean."""
        return self.scale**2 * (self._moment(2) - (2 * gammaln(1 + self.concentration_reciprocal)).exp())

    def _nats(self) -> Tensor:
        inverse = self.concentration_reciprocal
        return euler_constant * (1 - inverse) + (self.scale * inverse).log() + 1


class LogNormal(TransformedDistribution):
    """The log-normal distribution: exp of normal numbers."""

    arg_constraints = {"loc": constraints.real, "scale": constraints.positive}
    support = constraints.positive
    has_rsample = True

    def __init__(self, loc: Any, scale: Any, validate_args: bool | None = None) -> None:
        super().__init__(Normal(loc, scale, validate_args), ExpTransform(), validate_args)

    loc = stated("The mean of the logarithm.", lambda self: self.base_dist.loc)
    scale = stated("The standard deviation of the logarithm.", lambda self: self.base_dist.scale)
    mean = stated("exp(loc + scale^2 / 2).", lambda self: (self.loc + self.scale**2 / 2).exp())
    mode = stated("exp(loc - scale^2).", lambda self: (self.loc - self.scale**2).exp())

    @property
    def variance(self) -> Tensor:
        """(exp(scale^2) - 1) exp(2 loc + scale^2)."""
        return (self.scale**2).expm1() * (2 * self.loc + self.scale**2).exp()

    _nats: Formula = lambda self: self.base_dist.entropy() + self.loc


class InverseGamma(TransformedDistribution):
    """The inverse gamma distribution: 1 / x of gamma numbers x."""

    arg_constraints = {"concentration": constraints.positive, "rate": constraints.positive}
    support = constraints.positive
    has_rsample = True

    def __init__(self, concentration: Tensor | float, rate: Tensor | float, validate_args: bool | None = None) -> None:
        base = Gamma(concentration, rate, validate_args)
        super().__init__(base, PowerTransform(-base.rate.new_ones(())), validate_args)

    concentration = stated("The parameter of the gamma numbers.", lambda self: self.base_dist.concentration)
    rate = stated("The parameter of the gamma numbers.", lambda self: self.base_dist.rate)
    mode = stated("rate / (concentration + 1).", lambda self: self.rate / (self.concentration + 1))

    @property
    def mean(self) -> Tensor:
        """rate / (concentration - 1), infinite for concentrations up to 1."""
        return where(self.concentration > 1, self.rate / (self.concentration - 1), float("inf"))

    @property
    def variance(self) -> Tensor:
        """rate^2 / ((a - 1)^2 (a - 2)), infinite for concentrations a up to 2."""
        a = self.concentration
        return where(a > 2, self.rate**2 / ((a - 1) ** 2 * (a - 2)), float("inf"))

    def _nats(self) -> Tensor:
        a = self.concentration
        return a + self.rate.log() + gammaln(a) - (1 + a) * digamma(a)


class Kumaraswamy(TransformedDistribution):
    """The Kumaraswamy distribution, CDF 1 - (1 - x^a)^b, with a = concentration1 and b = concentration0."""

    arg_constraints = {"concentration1": constraints.positive, "concentration0": constraints.positive}
    support = constraints.unit_interval
    has_rsample = True

    def __init__(
        self, concentration1: Tensor | float, concentration0: Tensor | float, validate_args: bool | None = None
    ) -> None:
        self.concentration1, self.concentration0 = broadcast_all(concentration1, concentration0)
        one, other = (PowerTransform(each.reciprocal()) for each in (self.concentration0, self.concentration1))
        base = Uniform(zeros_like(self.concentration0), ones_like(self.concentration0), validate_args)
        super().__init__(base, [one, AffineTransform(1.0, -1.0), other], validate_args)

    def _moment(self, order: int) -> Tensor:
        b, part = self.concentration0, 1 + order / self.concentration1
        return b * (gammaln(part) + gammaln(b) - gammaln(part + b)).exp()

    mean = stated("b B(1 + 1 / a, b).", lambda self: self._moment(1))
    variance = stated("The second moment, less the square of the mean.", lambda self: self._moment(2) - self.mean**2)

    @property
    def mode(self) -> Tensor:
        """By its logarithm; NaN where a or b is below 1."""
        a, b = self.concentration1, self.concentration0
        found = b.reciprocal() * (-b).log1p() - (-b * a).log1p()
        return where((b < 1) | (a < 1), float("nan"), found).exp()

    def _nats(self) -> Tensor:
        a, b = self.concentration1, self.concentration0
        harmonic = digamma(b + 1) + euler_constant
        return 1 - b.reciprocal() + (1 - a.reciprocal()) * harmonic - a.log() - b.log()


class LogisticNormal(TransformedDistribution):
    """The logistic-normal distribution of shares: normal numbers through `StickBreakingTransform`."""

    arg_constraints = {"loc": constraints.real, "scale": constraints.positive}
    support = constraints.simplex
    has_rsample = True

    def __init__(self, loc: Tensor | float, scale: Tensor | float, validate_args: bool | None = None) -> None:
        base = Normal(loc, scale, validate_args)
        base = base if base.batch_shape else base.expand((1,))
        super().__init__(base, StickBreakingTransform(), validate_args)

    loc = stated("The mean of the normal numbers.", lambda self: self.base_dist.base_dist.loc)
    scale = stated("The deviation of the normal numbers.", lambda self: self.base_dist.base_dist.scale)


class Pareto(TransformedDistribution):
    """The Pareto distribution: scale exp(x) of exponential numbers x of the rate `alpha`."""

    arg_constraints = {"alpha": constraints.positive, "scale": constraints.positive}
    support = constraints.dependent_property(
        lambda self: constraints.greater_than_eq(self.scale), is_discrete=False, event_dim=0
    )

    def __init__(self, scale: Tensor | float, alpha: Tensor | float, validate_args: bool | None = None) -> None:
        self.scale, self.alpha = broadcast_all(scale, alpha)
        parts: list[Transform] = [ExpTransform(), AffineTransform(0, self.scale)]
        super().__init__(Exponential(self.alpha, validate_args), parts, validate_args)

    mode = stated("scale.", lambda self: self.scale)

    @property
    def mean(self) -> Tensor:
        """alpha scale / (alpha - 1), infinite for alpha up to 1."""
        a = self.alpha.clamp(min=1)
        return a * self.scale / (a - 1)

    @property
    def variance(self) -> Tensor:
        """alpha scale^2 / ((alpha - 1)^2 (alpha - 2)), infinite for alpha up to 2."""
        a = self.alpha.clamp(min=2)
        return self.scale**2 * a / ((a - 1) ** 2 * (a - 2))

    _nats: Formula = lambda self: (self.scale / self.alpha).log() + (1 + self.alpha.reciprocal())


class MixtureSameFamily(Distribution):
    """A mixture: a component, drawn by a Categorical, of the last dimension of another distribution's batch."""

    def __init__(
        self, mixture_distribution: Categorical, component_distribution: Distribution, validate_args: bool | None = None
    ) -> None:
        words = " The Mixture distribution needs to be an  instance of torch.distributions.Categorical"
        require(isinstance(mixture_distribution, Categorical), ValueError, words)
        words = "The Component distribution needs to be an instance of torch.distributions.Distribution"
        require(isinstance(component_distribution, Distribution), ValueError, words)
        batch, shape = mixture_distribution.batch_shape, component_distribution.batch_shape
        fits = all(one in (1, other) or other == 1 for one, other in zip(batch[::-1], shape[-2::-1], strict=False))
        words = (
            "`mixture_distribution.batch_shape` ({}) is not compatible with `component_distribution.batch_shape`({})"
        )
        require(fits, ValueError, words, batch, shape[:-1])
        count = mixture_distribution.logits.shape[-1]
        words = "`mixture_distribution component` ({}) does not equal `component_distribution.batch_shape[-1]` ({})"
        require(count == shape[-1], ValueError, words, count, shape[-1])
        self._mixture, self._components = mixture_distribution, component_distribution
        super().__init__(shape[:-1], component_distribution.event_shape, validate_args)

    mixture_distribution = stated("The Categorical.", lambda self: self._mixture)
    component_distribution = stated("The components.", lambda self: self._components)
    support = constraints.dependent_property(
        lambda self: constraints.MixtureSameFamilyConstraint(self._components.support)
    )

    def expand(self, batch_shape: Sequence[int], _instance: Any = None) -> Any:
        made = self._get_checked_instance(type(self), _instance)
        vars(made).update(vars(self), _batch_shape=Size(batch_shape))
        made._mixture = self._mixture.expand(batch_shape)  # its batch may be shorter, or larger
        made._components = self._components.expand((*batch_shape, self._components.batch_shape[-1]))
        return made

    def _weights(self) -> Tensor:
        return self._mixture.probs.reshape(*self._mixture.probs.shape, *(1,) * len(self._event_shape))

    mean = stated(
        "The weighted mean.", lambda self: (self._weights() * self._components.mean).sum(-1 - len(self._event_shape))
    )

    @property
    def variance(self) -> Tensor:
        """Within the components, and between them."""
        dim, weights = -1 - len(self._event_shape), self._weights()
        away = self._components.mean - self.mean.unsqueeze(dim)
        return (weights * self._components.variance).sum(dim) + (weights * away.square()).sum(dim)

    def cdf(self, value: Tensor) -> Tensor:
        found = self._components.cdf(value.unsqueeze(-1 - len(self._event_shape)))
        return (found * self._mixture.probs).sum(-1)

    def _log_density(self, value: Tensor) -> Tensor:
        found = self._components.log_prob(value.unsqueeze(-1 - len(self._event_shape)))
        return (found + self._mixture.logits.log_softmax(-1)).logsumexp(-1)

    def sample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        with no_grad():
            chosen, drawn = self._mixture.sample(sample_shape), self._components.sample(sample_shape)
            own = len(self._event_shape)
            dim = drawn.ndim - own - 1
            places = chosen.reshape(*chosen.shape, *(1,) * (own + 1))
            return drawn.gather(dim, places.expand(*chosen.shape, 1, *self._event_shape)).squeeze(dim)

    def __repr__(self) -> str:
        return f"MixtureSameFamily(\n  {self._mixture!r},\n  {self._components!r})"
