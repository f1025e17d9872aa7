"""Discrete distributions: of whole numbers, of classes, and of counts of classes."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

from ..autograd.mode import no_grad
from ..functional import one_hot, where
from ..functional.creation.creation import tensor
from ..functional.creation.likeness import full_like, zeros_like
from ..functional.creation.ranges import arange
from ..functional.random.sampling import binomial, poisson
from ..functional.views.views import broadcast_tensors
from ..nn.functional import binary_cross_entropy_with_logits, logsigmoid
from ..random import bernoulli, multinomial, rand
from ..special import gammaln
from ..tensors import Tensor
from ..types.dtypes import finfo
from ..types.size import Size
from . import constraints
from .continuous import standard_gamma
from .distribution import Distribution, Weighted
from .exp_family import ExponentialFamily
from .probabilities import tiny
from .properties import Formula, stated
from .shapes import broadcast_all, like

__all__ = ["Bernoulli", "Binomial", "Categorical", "Geometric", "Multinomial", "NegativeBinomial", "OneHotCategorical"]
__all__ += ["OneHotCategoricalStraightThrough", "Poisson"]


class Binary(Weighted):
    """By one probability for each of the batch."""

    arg_constraints: Any = {"probs": constraints.unit_interval, "logits": constraints.real}


class Bernoulli(Binary, ExponentialFamily):
    """The Bernoulli distribution: 1 with probability `probs`, else 0.

    >>> import tritensor as torch
    >>> torch.distributions.Bernoulli(0.25).log_prob(torch.tensor(0.0))
    tensor(-0.2877)
    """

    support = constraints.boolean
    has_enumerate_support = True
    _mean_carrier_measure = 0
    _natural_params = property(lambda self: (self.probs.logit(),))
    _log_normalizer = staticmethod(lambda x: x.exp().log1p())
    mean = stated("probs.", lambda self: self.probs)

    @property
    def mode(self) -> Tensor:
        """The more likely one; NaN where both are alike."""
        return where(self.probs == 0.5, float("nan"), (self.probs >= 0.5).to(self.probs.dtype))

    variance = stated("p (1 - p).", lambda self: self.probs * (1 - self.probs))
    _draw: Formula = lambda self, shape: bernoulli(self.probs.expand(shape))

    def _log_density(self, value: Tensor) -> Tensor:
        logits, value = broadcast_all(self.logits, value)
        return -binary_cross_entropy_with_logits(logits, value, reduction="none")

    _nats: Formula = lambda self: binary_cross_entropy_with_logits(self.logits, self.probs, reduction="none")

    def enumerate_support(self, expand: bool = True) -> Tensor:
        return self._values_of_axis(like(arange, 2, self._param), expand)


class Geometric(Binary):
    """The geometric distribution: the number of failures before the first success, of probability `probs`."""

    support = constraints.nonnegative_integer

    def __init__(self, probs: Tensor | None = None, logits: Any = None, validate_args: bool | None = None) -> None:
        super().__init__(probs, logits, validate_args)
        if self._validate_args and probs is not None and not (self.probs > 0).all():
            words = f"of distribution {self!r} to be positive but"
            self._refuse("parameter probs", self.probs, words, self.probs[self.probs <= 0])

    mean = stated("1 / p - 1.", lambda self: 1 / self.probs - 1)
    mode = stated("0.", lambda self: zeros_like(self.probs))
    variance = stated("(1 / p - 1) / p.", lambda self: (1 / self.probs - 1) / self.probs)

    def _draw(self, shape: Size) -> Tensor:
        u = like(rand, shape, self.probs).clamp(min=tiny(self.probs) ** 2)
        return (u.log() / (-self.probs).log1p()).floor()

    def _log_density(self, value: Tensor) -> Tensor:
        value, probs = broadcast_all(value, self.probs)
        rest = where((probs == 1) & (value == 0), 0, probs)
        return value * (-rest).log1p() + self.probs.log()

    def _nats(self) -> Tensor:
        return binary_cross_entropy_with_logits(self.logits, self.probs, reduction="none") / self.probs


class Binomial(Binary):
    """The binomial distribution: the number of successes in `total_count` trials."""

    has_enumerate_support = True

    def __init__(
        self, total_count: Any = 1, probs: Tensor | None = None, logits: Any = None, validate_args: bool | None = None
    ) -> None:
        self._set_weights(probs, logits, validate_args, total_count=total_count)

    arg_constraints = {"total_count": constraints.nonnegative_integer, **Binary.arg_constraints}
    support = constraints.dependent_property(
        lambda self: constraints.integer_interval(0, self.total_count), is_discrete=True, event_dim=0
    )
    mean = stated("n p.", lambda self: self.total_count * self.probs)

    @property
    def mode(self) -> Tensor:
        """floor((n + 1) p), at most n."""
        return ((self.total_count + 1) * self.probs).floor().clamp(max=self.total_count)

    variance = stated("n p (1 - p).", lambda self: self.total_count * self.probs * (1 - self.probs))
    _draw: Formula = lambda self, shape: binomial(self.total_count.expand(shape), self.probs.expand(shape))

    def _log_density(self, value: Tensor) -> Tensor:
        n, logits = self.total_count, self.logits
        above = (logits.clamp(min=0) + logits - logits.clamp(max=0)) / 2  # whose gradient at 0 is a half
        rest = n * above + n * (-logits.abs()).exp().log1p() - gammaln(n + 1)
        return value * logits - gammaln(value + 1) - gammaln(n - value + 1) - rest

    def _nats(self) -> Tensor:
        counts = self.enumerate_support(expand=False)
        found = self.log_prob(counts)
        return -(found.exp() * found).sum(0)

    def enumerate_support(self, expand: bool = True) -> Tensor:
        most = int(self.total_count.max().item())
        if not (self.total_count == most).all():
            raise NotImplementedError("Inhomogeneous total count not supported by `enumerate_support`.")
        return self._values_of_axis(like(arange, most + 1, self._param), expand)


class NegativeBinomial(Weighted):
    """The negative binomial distribution: the number of successes before `total_count` failures."""

    support = constraints.nonnegative_integer
    arg_constraints = {
        "total_count": constraints.greater_than_eq(0),
        "probs": constraints.half_open_interval(0.0, 1.0),
        "logits": constraints.real,
    }

    def __init__(
        self, total_count: Any, probs: Tensor | None = None, logits: Any = None, validate_args: bool | None = None
    ) -> None:
        self._set_weights(probs, logits, validate_args, total_count=total_count)

    mean = stated("n p / (1 - p).", lambda self: self.total_count * self.logits.exp())

    @property
    def mode(self) -> Tensor:
        """floor((n - 1) p / (1 - p)), or 0."""
        return ((self.total_count - 1) * self.logits.exp()).floor().clamp(min=0)

    variance = stated("n p / (1 - p)^2.", lambda self: self.mean / (-self.logits).sigmoid())
    _draw: Formula = lambda self, shape: poisson(standard_gamma(self.total_count.expand(shape)) * self.logits.exp())

    def _log_density(self, value: Tensor) -> Tensor:
        n, logits = self.total_count, self.logits
        front = gammaln(1 + value) - gammaln(n + value) + gammaln(n)
        front = front.masked_fill(n + value == 0, 0)  # no trials: the infinities of two gamma functions
        return n * logsigmoid(-logits) + value * logsigmoid(logits) - front


class Poisson(ExponentialFamily):
    """The Poisson distribution: the number of events at a rate."""

    arg_constraints = {"rate": constraints.nonnegative}
    support = constraints.nonnegative_integer

    def __init__(self, rate: Tensor | float, validate_args: bool | None = None) -> None:
        self._set(validate_args, rate=rate)

    _natural_params = property(lambda self: (self.rate.log(),))
    _log_normalizer = staticmethod(lambda x: x.exp())
    mean = stated("rate.", lambda self: self.rate)
    mode = stated("floor(rate).", lambda self: self.rate.floor())
    variance = stated("rate.", lambda self: self.rate)
    _draw: Formula = lambda self, shape: poisson(self.rate.expand(shape))

    def _log_density(self, value: Tensor) -> Tensor:
        rate, value = broadcast_all(self.rate, value)
        return value.xlogy(rate) - rate - gammaln(value + 1)


class Categorical(Weighted):
    """The categorical distribution: a class number, of the last dimension of `probs` or `logits`."""

    binary = False
    arg_constraints = {"probs": constraints.simplex, "logits": constraints.real_vector}
    has_enumerate_support = True

    @property
    def _num_events(self) -> int:
        return int(self._param.shape[-1])

    support = constraints.dependent_property(
        lambda self: constraints.integer_interval(0, self._num_events - 1), is_discrete=True, event_dim=0
    )
    mean = stated("NaN: classes have no mean.", lambda self: full_like(self.probs[..., 0].detach(), float("nan")))
    mode = stated("The most likely class.", lambda self: self.probs.argmax(-1))
    variance = stated("NaN.", lambda self: self.mean)

    def sample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        with no_grad():
            rows = self.probs.reshape(-1, self._num_events)
            count = prod(sample_shape)
            if not count or not len(rows):
                return arange(0, device=rows.device).reshape(shape)
            return multinomial(rows, count, True).t().reshape(shape)

    def _log_density(self, value: Tensor) -> Tensor:
        places, logits = broadcast_tensors(value.long().unsqueeze(-1), self.logits)
        return logits.gather(-1, places[..., :1]).squeeze(-1)

    def _nats(self) -> Tensor:
        return -(self.logits.clamp(min=finfo(self.logits.dtype).min) * self.probs).sum(-1)

    def enumerate_support(self, expand: bool = True) -> Tensor:
        return self._values_of_axis(arange(self._num_events, device=self._param.device), expand)


class OfClasses(Distribution):
    """Events that are vectors, an element for each class of a Categorical."""

    arg_constraints = {"probs": constraints.simplex, "logits": constraints.real_vector}
    _categorical: Categorical

    def __init__(self, probs: Any = None, logits: Any = None, validate_args: bool | None = None) -> None:
        self._categorical = found = Categorical(probs, logits)
        super().__init__(found.batch_shape, found.param_shape[-1:], validate_args)

    probs = stated("The probabilities.", lambda self: self._categorical.probs)
    logits = stated("Their logarithms.", lambda self: self._categorical.logits)
    param_shape = stated("The shape of the weights.", lambda self: self._categorical.param_shape)


class OneHotCategorical(OfClasses):
    """The one-hot categorical distribution: a class as a vector of zeros and a one."""

    support = constraints.one_hot
    has_enumerate_support = True

    mean = stated("probs.", lambda self: self.probs)
    mode = stated("The most likely class.", lambda self: self._hot(self.probs.argmax(-1)))
    variance = stated("p (1 - p).", lambda self: self.probs * (1 - self.probs))

    def _hot(self, classes: Tensor) -> Tensor:
        return one_hot(classes, self._event_shape[0]).to(self.probs.dtype)

    def sample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        return self._hot(self._categorical.sample(sample_shape))

    _log_density: Formula = lambda self, value: self._categorical.log_prob(value.argmax(-1))
    _nats: Formula = lambda self: self._categorical.entropy()

    def enumerate_support(self, expand: bool = True) -> Tensor:
        return self._hot(self._categorical.enumerate_support(expand))


class OneHotCategoricalStraightThrough(OneHotCategorical):
    """The one-hot categorical distribution, whose samples have the gradients of the probabilities."""

    has_rsample = True

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        return self.sample(sample_shape) + (self.probs - self.probs.detach())


class Multinomial(OfClasses):
    """The multinomial distribution: the counts of each class in `total_count` draws."""

    def __init__(
        self, total_count: int = 1, probs: Any = None, logits: Tensor | None = None, validate_args: bool | None = None
    ) -> None:
        if not isinstance(total_count, int):
            raise NotImplementedError("inhomogeneous total_count is not supported")
        self.total_count = total_count
        super().__init__(probs, logits, validate_args)

    support = constraints.dependent_property(
        lambda self: constraints.multinomial(self.total_count), is_discrete=True, event_dim=1
    )
    mean = stated("n p.", lambda self: self.probs * self.total_count)
    variance = stated("n p (1 - p).", lambda self: self.total_count * self.probs * (1 - self.probs))

    def sample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        drawn = self._categorical.sample((self.total_count, *sample_shape))
        classes = arange(self._event_shape[0], device=drawn.device)
        return (drawn.unsqueeze(-1) == classes).sum(0).to(self.probs.dtype)

    def _log_density(self, value: Tensor) -> Tensor:
        logits, value = broadcast_all(self.logits, value)
        terms = where((value == 0) & (logits == -float("inf")), 0, logits) * value
        return gammaln(value.sum(-1) + 1) - gammaln(value + 1).sum(-1) + terms.sum(-1)

    def _nats(self) -> Tensor:
        whole = Binomial(self.total_count, probs=self.probs)
        counts = whole.enumerate_support(expand=False)[1:]
        weighted = (whole.log_prob(counts).exp() * gammaln(counts + 1)).sum((0, -1))
        return self.total_count * self._categorical.entropy() - gammaln(tensor(self.total_count + 1)) + weighted
