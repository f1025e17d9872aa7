"""Discrete distributions: of whole numbers, of classes, and of counts of classes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..autograd.mode import no_grad
from ..functional.pointwise import where
from ..functional.ranges import arange, eye
from ..random import bernoulli, multinomial, rand
from ..sampling import binomial, poisson
from ..special import gammaln
from ..tensor import Tensor
from . import constraints
from .distribution import Distribution, Weighted, stated, tiny

__all__ = ["Bernoulli", "Binomial", "Categorical", "Geometric", "Multinomial", "OneHotCategorical", "Poisson"]


def _softplus(logits: Tensor) -> Tensor:
    """log(1 + exp(logits)), without overflow."""
    return logits.clamp(min=0) + (-logits.abs()).exp().log1p()


class _Binary(Weighted):
    """By one probability for each of the batch."""

    arg_constraints: Any = {"probs": constraints.unit_interval, "logits": constraints.real}

    def __init__(self, probs: Any = None, logits: Any = None, validate_args: bool | None = None) -> None:
        self._set_weights(probs, logits, validate_args)


class Bernoulli(_Binary):
    """1 with probability `probs`, else 0.

    >>> import tritensor as torch
    >>> torch.distributions.Bernoulli(0.25).log_prob(torch.tensor(0.0))
    tensor(-0.2877)
    """

    support = constraints.boolean
    has_enumerate_support = True

    mean = stated("probs.", lambda self: self.probs)

    @property
    def mode(self) -> Tensor:
        """The more likely one; NaN where both are alike."""
        return where(self.probs == 0.5, float("nan"), (self.probs >= 0.5).to(self.probs.dtype))

    variance = stated("p (1 - p).", lambda self: self.probs * (1 - self.probs))

    def sample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        with no_grad():
            return bernoulli(self.probs.expand(self._extended_shape(sample_shape)))

    def log_prob(self, value: Tensor) -> Tensor:
        self._validate_sample(value)
        return value * self.logits - _softplus(self.logits)

    def entropy(self) -> Tensor:
        return _softplus(self.logits) - self.probs * self.logits

    def enumerate_support(self, expand: bool = True) -> Tensor:
        return self._values_of_axis(arange(2, dtype=self._weight.dtype, device=self._weight.device), expand)


class Geometric(_Binary):
    """The number of failures before the first success, of probability `probs`."""

    support = constraints.nonnegative_integer

    def __init__(self, probs: Any = None, logits: Any = None, validate_args: bool | None = None) -> None:
        super().__init__(probs, logits, validate_args)
        if self._validate_args and probs is not None and not (self.probs > 0).all():
            bad = self.probs[self.probs <= 0]
            raise ValueError(
                f"Expected parameter probs ({type(self.probs).__name__} of shape {tuple(self.probs.shape)}) of "
                f"distribution {self!r} to be positive but found invalid values:\n{bad}"
            )

    mean = stated("1 / p - 1.", lambda self: 1 / self.probs - 1)
    mode = stated("0.", lambda self: self.probs * 0)
    variance = stated("(1 / p - 1) / p.", lambda self: (1 / self.probs - 1) / self.probs)

    def sample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        with no_grad():
            u = rand(shape, dtype=self.probs.dtype, device=self.probs.device).clamp(min=tiny(self.probs) ** 2)
            return (u.log() / (-self.probs).log1p()).floor()

    def log_prob(self, value: Tensor) -> Tensor:
        self._validate_sample(value)
        rest = where((self.probs == 1) & (value == 0), 0, self.probs)
        return value * (-rest).log1p() + self.probs.log()

    def entropy(self) -> Tensor:
        return (_softplus(self.logits) - self.probs * self.logits) / self.probs


class Binomial(_Binary):
    """The number of successes in `total_count` trials."""

    has_enumerate_support = True

    def __init__(
        self, total_count: Any = 1, probs: Any = None, logits: Any = None, validate_args: bool | None = None
    ) -> None:
        self._set_weights(probs, logits, validate_args, total_count=total_count)

    @property
    def arg_constraints(self) -> Any:
        """Also of the number of trials."""
        return {"total_count": constraints.nonnegative_integer, **_Binary.arg_constraints}

    support = stated("From 0 to `total_count`.", lambda self: constraints.integer_interval(0, self.total_count))
    mean = stated("n p.", lambda self: self.total_count * self.probs)

    @property
    def mode(self) -> Tensor:
        """floor((n + 1) p), at most n."""
        return ((self.total_count + 1) * self.probs).floor().minimum(self.total_count)

    variance = stated("n p (1 - p).", lambda self: self.total_count * self.probs * (1 - self.probs))

    def sample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        with no_grad():
            return binomial(self.total_count.expand(shape), self.probs.expand(shape))  # type: ignore[no-any-return]

    def log_prob(self, value: Tensor) -> Tensor:
        self._validate_sample(value)
        n = self.total_count
        ways = gammaln(n + 1) - gammaln(value + 1) - gammaln(n - value + 1)
        return ways + value * self.logits - n * _softplus(self.logits)

    def entropy(self) -> Tensor:
        counts = self.enumerate_support(expand=False)
        found = self.log_prob(counts)
        return -(found.exp() * found).sum(0)

    def enumerate_support(self, expand: bool = True) -> Tensor:
        most = int(self.total_count.max().item())
        if not (self.total_count == most).all():
            raise NotImplementedError("Inhomogeneous total count not supported by `enumerate_support`.")
        return self._values_of_axis(arange(most + 1, dtype=self._weight.dtype, device=self._weight.device), expand)


class Poisson(Distribution):
    """The number of events at a rate."""

    arg_constraints = {"rate": constraints.nonnegative}
    support = constraints.nonnegative_integer

    def __init__(self, rate: Any, validate_args: bool | None = None) -> None:
        self._set(validate_args, rate=rate)

    mean = stated("rate.", lambda self: self.rate)
    mode = stated("floor(rate).", lambda self: self.rate.floor())
    variance = stated("rate.", lambda self: self.rate)

    def sample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        with no_grad():
            return poisson(self.rate.expand(self._extended_shape(sample_shape)))  # type: ignore[no-any-return]

    def log_prob(self, value: Tensor) -> Tensor:
        self._validate_sample(value)
        return value.xlogy(self.rate) - self.rate - gammaln(value + 1)


class Categorical(Weighted):
    """A class number, of the last dimension of `probs` or `logits`."""

    binary = False
    arg_constraints = {"probs": constraints.simplex, "logits": constraints.real_vector}
    has_enumerate_support = True

    def __init__(self, probs: Any = None, logits: Any = None, validate_args: bool | None = None) -> None:
        self._set_weights(probs, logits, validate_args)
        self._event_shape = type(self._event_shape)(())

    param_shape = stated("The shape of the weights.", lambda self: self._weight.shape)

    @property
    def _num_events(self) -> int:
        return int(self._weight.shape[-1])

    support = stated("The numbers of the classes.", lambda self: constraints.integer_interval(0, self._num_events - 1))
    mean = stated("NaN: classes have no mean.", lambda self: self.probs[..., 0] * float("nan"))
    mode = stated("The most likely class.", lambda self: self._weight.argmax(-1))
    variance = stated("NaN.", lambda self: self.mean)

    def sample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        with no_grad():
            rows = self.probs.reshape(-1, self._num_events)
            count = 1
            for size in sample_shape:
                count *= size
            if not count or not len(rows):
                return arange(0, device=rows.device).reshape(shape)
            return multinomial(rows, count, True).t().reshape(shape)

    def log_prob(self, value: Tensor) -> Tensor:
        self._validate_sample(value)
        places = value.long().unsqueeze(-1)
        logits = self.logits - self.logits.logsumexp(-1, True)
        batch = logits.expand(*_joined(places.shape[:-1], logits.shape[:-1]), logits.shape[-1])
        return batch.gather(-1, places.expand(*batch.shape[:-1], 1)).squeeze(-1)

    def entropy(self) -> Tensor:
        logits = self.logits - self.logits.logsumexp(-1, True)
        return -(self.probs * logits.clamp(min=_least(logits))).sum(-1)

    def enumerate_support(self, expand: bool = True) -> Tensor:
        return self._values_of_axis(arange(self._num_events, device=self._weight.device), expand)


def _least(x: Tensor) -> float:
    from ..dtypes import finfo

    return float(finfo(x.dtype).min)


def _joined(*shapes: Any) -> tuple[int, ...]:
    from ..layout import broadcast_shapes

    return tuple(broadcast_shapes(*shapes))


class OneHotCategorical(Weighted):
    """A class as a vector of zeros and a one."""

    binary = False
    arg_constraints = {"probs": constraints.simplex, "logits": constraints.real_vector}
    support = constraints.one_hot
    has_enumerate_support = True

    def __init__(self, probs: Any = None, logits: Any = None, validate_args: bool | None = None) -> None:
        self._set_weights(probs, logits, validate_args)
        self._categorical = Categorical(probs, logits, validate_args)

    def __repr__(self) -> str:
        return "OneHotCategorical()"

    mean = stated("probs.", lambda self: self.probs)
    mode = stated("The most likely class.", lambda self: self._hot(self.probs.argmax(-1)))
    variance = stated("p (1 - p).", lambda self: self.probs * (1 - self.probs))

    def _hot(self, classes: Tensor) -> Tensor:
        return eye(self._event_shape[0], dtype=self.probs.dtype, device=self.probs.device)[classes]

    def sample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        return self._hot(self._categorical.sample(sample_shape))

    def log_prob(self, value: Tensor) -> Tensor:
        self._validate_sample(value)
        return self._categorical.log_prob(value.argmax(-1))

    def entropy(self) -> Tensor:
        return self._categorical.entropy()

    def enumerate_support(self, expand: bool = True) -> Tensor:
        n = self._event_shape[0]
        found = self._hot(arange(n, device=self.probs.device)).reshape(n, *(1,) * len(self._batch_shape), n)
        return found.expand(n, *self._batch_shape, n) if expand else found


class Multinomial(Weighted):
    """How often each class came in `total_count` draws."""

    binary = False
    arg_constraints = {"probs": constraints.simplex, "logits": constraints.real_vector}

    def __init__(
        self, total_count: int = 1, probs: Any = None, logits: Any = None, validate_args: bool | None = None
    ) -> None:
        if not isinstance(total_count, int):
            raise NotImplementedError("inhomogeneous total_count is not supported")
        self.total_count = total_count
        self._set_weights(probs, logits, validate_args)
        self._categorical = Categorical(probs, logits, validate_args)

    def __repr__(self) -> str:
        return "Multinomial()"

    @property
    def support(self) -> Any:
        """Counts whose sum is at most `total_count`."""
        return constraints.multinomial(self.total_count)

    mean = stated("n p.", lambda self: self.probs * self.total_count)
    variance = stated("n p (1 - p).", lambda self: self.total_count * self.probs * (1 - self.probs))

    def sample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        drawn = self._categorical.sample((self.total_count, *sample_shape))
        classes = arange(self._event_shape[0], device=drawn.device)
        return (drawn.unsqueeze(-1) == classes).sum(0).to(self.probs.dtype)

    def log_prob(self, value: Tensor) -> Tensor:
        self._validate_sample(value)
        logits = self.logits - self.logits.logsumexp(-1, True)
        terms = where((value == 0) & (logits == -float("inf")), 0, logits) * value
        return gammaln(value.sum(-1) + 1) - gammaln(value + 1).sum(-1) + terms.sum(-1)

    def entropy(self) -> Tensor:
        n = self._probs_of_counts()
        total = gammaln(self.probs.new_ones(()) * (self.total_count + 1))
        counts = arange(1, self.total_count + 1, dtype=self.probs.dtype, device=self.probs.device)
        weights = gammaln(counts + 1).reshape(-1, *(1,) * self.probs.ndim)
        return self.total_count * self._categorical.entropy() - total + (n * weights).sum((0, -1))

    def _probs_of_counts(self) -> Tensor:
        whole = Binomial(self.total_count, probs=self.probs)
        return whole.log_prob(whole.enumerate_support(expand=False)[1:]).exp()
