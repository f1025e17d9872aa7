"""Distributions made of others: independent ones as one, transformed ones, mixtures."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..autograd.mode import no_grad
from ..tensor import Tensor
from . import constraints
from .continuous import Normal
from .discrete import Categorical
from .distribution import Distribution, stated
from .transforms import ComposeTransform, ExpTransform, Transform

__all__ = ["Independent", "LogNormal", "MixtureSameFamily", "TransformedDistribution"]


def _total(x: Tensor, count: int) -> Tensor:
    return x.sum(tuple(range(-count, 0))) if count else x


class Independent(Distribution):
    """The last dimensions of a distribution's batch as one event."""

    def __init__(
        self, base_distribution: Any, reinterpreted_batch_ndims: int, validate_args: bool | None = None
    ) -> None:
        shape, count = base_distribution.batch_shape, reinterpreted_batch_ndims
        if count > len(shape):
            words = "Expected reinterpreted_batch_ndims <= len(base_distribution.batch_shape), "
            raise ValueError(f"{words}actual {count} vs {len(shape)}")
        self.base_dist, self.reinterpreted_batch_ndims = base_distribution, count
        own = (*shape[len(shape) - count :], *base_distribution.event_shape)
        super().__init__(shape[: len(shape) - count], own, validate_args)
        self.has_rsample, self.has_enumerate_support = base_distribution.has_rsample, False

    @property
    def support(self) -> Any:
        """The base's."""
        found, count = self.base_dist.support, self.reinterpreted_batch_ndims
        return constraints.independent(found, count) if count else found

    mean = stated("The base's.", lambda self: self.base_dist.mean)
    mode = stated("The base's.", lambda self: self.base_dist.mode)
    variance = stated("The base's.", lambda self: self.base_dist.variance)

    def sample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        return self.base_dist.sample(sample_shape)  # type: ignore[no-any-return]

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        return self.base_dist.rsample(sample_shape)  # type: ignore[no-any-return]

    def log_prob(self, value: Tensor) -> Tensor:
        return _total(self.base_dist.log_prob(value), self.reinterpreted_batch_ndims)

    def entropy(self) -> Tensor:
        return _total(self.base_dist.entropy(), self.reinterpreted_batch_ndims)

    def __repr__(self) -> str:
        return f"Independent({self.base_dist!r}, {self.reinterpreted_batch_ndims})"


class TransformedDistribution(Distribution):
    """Samples of a distribution, transformed."""

    def __init__(self, base_distribution: Any, transforms: Any, validate_args: bool | None = None) -> None:
        given = [transforms] if isinstance(transforms, Transform) else list(transforms)
        if not all(isinstance(each, Transform) for each in given):
            raise ValueError(f"transforms must be a Transform or list, but was {transforms}")
        self.base_dist, self.transforms = base_distribution, given
        self._whole = ComposeTransform(given)
        more = max(0, self._whole.event_dim - len(base_distribution.event_shape))
        if more:
            self.base_dist = Independent(base_distribution, more)
        super().__init__(self.base_dist.batch_shape, self.base_dist.event_shape, validate_args)
        self.has_rsample = base_distribution.has_rsample

    @property
    def support(self) -> Any:
        """Where the last transform leads."""
        found, count = self._whole.codomain, len(self._event_shape)
        return constraints.independent(found, count) if count > found.event_dim else found

    def sample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        with no_grad():
            return self._whole(self.base_dist.sample(sample_shape))

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        return self._whole(self.base_dist.rsample(sample_shape))

    def log_prob(self, value: Tensor) -> Tensor:
        self._validate_sample(value)
        x = self._whole.inverse(value)
        slope = self._whole.log_abs_det_jacobian(x, value)
        return self.base_dist.log_prob(x) - _total(slope, len(self._event_shape) - self._whole.event_dim)  # type: ignore[no-any-return]

    def cdf(self, value: Tensor) -> Tensor:
        self._validate_sample(value)
        found = self.base_dist.cdf(self._whole.inverse(value))
        return self._whole.sign * (found - 0.5) + 0.5  # type: ignore[no-any-return]

    def icdf(self, value: Tensor) -> Tensor:
        return self._whole(self.base_dist.icdf(self._whole.sign * (value - 0.5) + 0.5))


class LogNormal(TransformedDistribution):
    """exp of normal numbers."""

    arg_constraints = {"loc": constraints.real, "scale": constraints.positive}

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

    def entropy(self) -> Tensor:
        return self.base_dist.entropy() + self.loc  # type: ignore[no-any-return]


class MixtureSameFamily(Distribution):
    """A component, drawn by a Categorical, of the last dimension of another distribution's batch."""

    def __init__(
        self, mixture_distribution: Any, component_distribution: Any, validate_args: bool | None = None
    ) -> None:
        if not isinstance(mixture_distribution, Categorical):
            words = " The Mixture distribution needs to be an  instance of torch.distributions.Categorical"
            raise ValueError(words)
        if not isinstance(component_distribution, Distribution):
            words = "The Component distribution need to be an instance of torch.distributions.Distribution"
            raise ValueError(words)
        shape = component_distribution.batch_shape
        if mixture_distribution.probs.shape[-1] != shape[-1]:
            raise ValueError("`mixture_distribution component` does not equal `component_distribution.batch_shape[-1]`")
        self._mixture, self._components = mixture_distribution, component_distribution
        super().__init__(shape[:-1], component_distribution.event_shape, validate_args)

    mixture_distribution = stated("The Categorical.", lambda self: self._mixture)
    component_distribution = stated("The components.", lambda self: self._components)
    support = stated("The components'.", lambda self: self._components.support)

    def _weights(self) -> Tensor:
        return self._mixture.probs.reshape(*self._mixture.probs.shape, *(1,) * len(self._event_shape))  # type: ignore[no-any-return]

    @property
    def mean(self) -> Tensor:
        """The weighted mean."""
        return (self._weights() * self._components.mean).sum(-1 - len(self._event_shape))  # type: ignore[no-any-return]

    @property
    def variance(self) -> Tensor:
        """Within the components, and between them."""
        dim, weights = -1 - len(self._event_shape), self._weights()
        away = self._components.mean - self.mean.unsqueeze(dim)
        return (weights * (self._components.variance + away.square())).sum(dim)  # type: ignore[no-any-return]

    def cdf(self, value: Tensor) -> Tensor:
        self._validate_sample(value)
        return (self._components.cdf(value.unsqueeze(-1)) * self._mixture.probs).sum(-1)  # type: ignore[no-any-return]

    def log_prob(self, value: Tensor) -> Tensor:
        self._validate_sample(value)
        found = self._components.log_prob(value.unsqueeze(-1 - len(self._event_shape)))
        return (found + self._mixture.logits.log_softmax(-1)).logsumexp(-1)  # type: ignore[no-any-return]

    def sample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        with no_grad():
            chosen, drawn = self._mixture.sample(sample_shape), self._components.sample(sample_shape)
            own = len(self._event_shape)
            dim = drawn.ndim - own - 1
            places = chosen.reshape(*chosen.shape, *(1,) * (own + 1))
            return drawn.gather(dim, places.expand(*chosen.shape, 1, *self._event_shape)).squeeze(dim)  # type: ignore[no-any-return]

    def __repr__(self) -> str:
        return f"MixtureSameFamily(\n  {self._mixture!r},\n  {self._components!r})"
