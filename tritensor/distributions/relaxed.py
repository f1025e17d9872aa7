"""Distributions on the unit interval and the simplex in place of discrete ones, with samples that have gradients."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import lgamma, log

from ..functional.elementwise.pointwise import where
from ..nn.functional import binary_cross_entropy_with_logits
from ..random import rand
from ..tensors import Tensor
from ..types.size import Size
from . import constraints
from .composed import TransformedDistribution
from .discrete import Binary, OfClasses
from .exp_family import ExponentialFamily
from .probabilities import clamp_probs, logits_to_probs, probs_to_logits
from .properties import Formula, lazy_property, stated
from .shapes import broadcast_all, like
from .transforms import ExpTransform, SigmoidTransform

__all__ = ["ContinuousBernoulli", "RelaxedBernoulli", "RelaxedOneHotCategorical"]
_Weights = Tensor | float | None


class ContinuousBernoulli(Binary, ExponentialFamily):
    """The continuous Bernoulli distribution on [0, 1], of density C probs^x (1 - probs)^(1 - x).

    Between `lims` series around 1/2 replace formulas that divide by 0 there (Loaiza-Ganem & Cunningham 2019).
    """

    support = constraints.unit_interval
    has_rsample = True
    _mean_carrier_measure = 0
    _natural_params = property(lambda self: (self.logits,))

    def __init__(
        self,
        probs: _Weights = None,
        logits: _Weights = None,
        lims: tuple[float, float] = (0.499, 0.501),
        validate_args: bool | None = None,
    ) -> None:
        if probs is not None and logits is None:
            (given,) = broadcast_all(probs)
            if validate_args is not None and not constraints.unit_interval.check(given).all():
                raise ValueError("The parameter probs has invalid values")
            probs = clamp_probs(given)
        self._lims = lims
        self._set_weights(probs, logits, validate_args)

    probs = stated(
        "The parameter, kept from 0 and 1.", lambda self: clamp_probs(logits_to_probs(self.logits, True)), lazy_property
    )

    def _outside_unstable_region(self) -> Tensor:
        return (self.probs <= self._lims[0]) | (self.probs > self._lims[1])

    def _either(self, formula: Callable[[Tensor], Tensor], series: Callable[[Tensor], Tensor]) -> Tensor:
        """A formula of the probability, and a series of its distance from 1/2 where it is near."""
        outside = self._outside_unstable_region()
        return where(outside, formula(where(outside, self.probs, self._lims[0])), series(self.probs - 0.5))

    def _cont_bern_log_norm(self) -> Tensor:
        return self._either(
            lambda p: ((-p).log1p() - p.log()).abs().log() - (1 - 2 * p).abs().log(),
            lambda x: log(2) + (4 / 3 + 104 / 45 * x**2) * x**2,
        )

    @property
    def mean(self) -> Tensor:
        """p / (2 p - 1) + 1 / (log(1 - p) - log p)."""
        return self._either(
            lambda p: p / (2 * p - 1) + 1 / ((-p).log1p() - p.log()), lambda x: 0.5 + (1 / 3 + 16 / 45 * x**2) * x
        )

    @property
    def variance(self) -> Tensor:
        """p (p - 1) / (1 - 2 p)^2 + 1 / (log(1 - p) - log p)^2."""
        return self._either(
            lambda p: p * (p - 1) / (1 - 2 * p) ** 2 + 1 / ((-p).log1p() - p.log()) ** 2,
            lambda x: 1 / 12 - (1 / 15 - 128 / 945 * x**2) * x**2,
        )

    _draw: Formula = lambda self, shape: self.icdf(like(rand, shape, self.probs))

    def _log_density(self, value: Tensor) -> Tensor:
        logits, value = broadcast_all(self.logits, value)
        return self._cont_bern_log_norm() - binary_cross_entropy_with_logits(logits, value, reduction="none")

    def _share(self, value: Tensor) -> Tensor:
        found = self._either(
            lambda p: (p**value * (1 - p) ** (1 - value) + p - 1) / (2 * p - 1), lambda x: value + 0 * x
        )
        return where(value <= 0, 0, where(value >= 1, 1, found))

    def _quantile(self, value: Tensor) -> Tensor:
        return self._either(
            lambda p: ((-p + value * (2 * p - 1)).log1p() - (-p).log1p()) / (p.log() - (-p).log1p()),
            lambda x: value + 0 * x,
        )

    def _nats(self) -> Tensor:
        rest = (-self.probs).log1p()
        return self.mean * (rest - self.probs.log()) - self._cont_bern_log_norm() - rest

    def _log_normalizer(self, x: Tensor) -> Tensor:
        outside = (x <= self._lims[0] - 0.5) | (x > self._lims[1] - 0.5)
        kept = where(outside, x, self._lims[0] - 0.5)
        return where(outside, kept.expm1().abs().log() - kept.abs().log(), x / 2 + x**2 / 24 - x**4 / 2880)


class LogitRelaxedBernoulli(Binary):
    """The log-odds of a RelaxedBernoulli's samples: logistic numbers around `logits`, over the temperature."""

    support = constraints.real
    _unexpanded = ("temperature",)

    def __init__(
        self, temperature: Tensor, probs: _Weights = None, logits: _Weights = None, validate_args: bool | None = None
    ) -> None:
        self.temperature = temperature
        super().__init__(probs, logits, validate_args)

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        probs = self.probs.expand(self._extended_shape(sample_shape))
        noise = probs_to_logits(like(rand, probs.shape, probs), True)
        return (noise + probs_to_logits(probs, True)) / self.temperature

    def _log_density(self, value: Tensor) -> Tensor:
        logits, value = broadcast_all(self.logits, value)
        away = logits - value * self.temperature
        return self.temperature.log() + away - 2 * away.exp().log1p()


class ExpRelaxedCategorical(OfClasses):
    """The logarithms of a RelaxedOneHotCategorical's samples (Maddison et al. 2017)."""

    support = constraints.real_vector
    has_rsample = True
    _unexpanded = ("temperature",)

    def __init__(
        self, temperature: Tensor, probs: _Weights = None, logits: _Weights = None, validate_args: bool | None = None
    ) -> None:
        self.temperature = temperature
        super().__init__(probs, logits, validate_args)

    def _draw(self, shape: Size) -> Tensor:
        noise = clamp_probs(like(rand, shape, self.logits))
        scores = (self.logits - (-noise.log()).log()) / self.temperature
        return scores - scores.logsumexp(-1, True)

    def _log_density(self, value: Tensor) -> Tensor:
        logits, value = broadcast_all(self.logits, value)
        scores = logits - value * self.temperature
        count = self._categorical._num_events
        front = lgamma(count) + (count - 1) * self.temperature.log()
        return (scores - scores.logsumexp(-1, True)).sum(-1) + front


class _Relaxed(TransformedDistribution):
    has_rsample = True
    temperature = stated(
        "The temperature; near 0 samples are nearly discrete.", lambda self: self.base_dist.temperature
    )
    probs = stated("The probabilities.", lambda self: self.base_dist.probs)
    logits = stated("Their log-odds, or logarithms.", lambda self: self.base_dist.logits)


class RelaxedBernoulli(_Relaxed):
    """A relaxed Bernoulli distribution: numbers in (0, 1) with gradients, near 0 and 1 at low temperatures."""

    arg_constraints = Binary.arg_constraints
    support = constraints.unit_interval

    def __init__(
        self, temperature: Tensor, probs: _Weights = None, logits: _Weights = None, validate_args: bool | None = None
    ) -> None:
        super().__init__(LogitRelaxedBernoulli(temperature, probs, logits), SigmoidTransform(), validate_args)


class RelaxedOneHotCategorical(_Relaxed):
    """A relaxed one-hot categorical distribution: shares with gradients, near one-hot at low temperatures."""

    arg_constraints = OfClasses.arg_constraints
    support = constraints.simplex

    def __init__(
        self, temperature: Tensor, probs: _Weights = None, logits: _Weights = None, validate_args: bool | None = None
    ) -> None:
        base = ExpRelaxedCategorical(temperature, probs, logits, validate_args)
        super().__init__(base, ExpTransform(), validate_args)
