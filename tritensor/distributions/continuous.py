"""Continuous distributions of one number.

Formulas: Johnson, Kotz & Balakrishnan, Continuous Univariate Distributions.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import log, pi, sqrt
from typing import Any

from ..function import Function
from ..functional.pointwise import where
from ..random import rand, randn
from ..special import digamma, gammaln
from ..tensor import Tensor
from . import constraints
from .distribution import Distribution, stated, tiny

__all__ = [
    *("Beta", "Cauchy", "Chi2", "Exponential", "Gamma", "Gumbel", "HalfNormal", "Laplace", "Normal", "StudentT"),
    *("Uniform", "Weibull"),
]
_EULER = 0.57721566490153286
_ROOT = log(sqrt(2 * pi))


def _like(made: Any, distribution: Distribution, of: Tensor, sample_shape: Sequence[int]) -> Tensor:
    return made(distribution._extended_shape(sample_shape), dtype=of.dtype, device=of.device)  # type: ignore[no-any-return]


def _uniform(distribution: Distribution, of: Tensor, sample_shape: Sequence[int]) -> Tensor:
    """Uniform numbers, none of them 0 or 1."""
    return _like(rand, distribution, of, sample_shape).clamp(tiny(of) / 2, 1 - tiny(of) / 2)


class _Located(Distribution):
    """Any distribution with `loc` and `scale`: of (value - loc) / scale, the subclass knows the standard one."""

    arg_constraints = {"loc": constraints.real, "scale": constraints.positive}
    has_rsample = True

    def __init__(self, loc: Any, scale: Any, validate_args: bool | None = None) -> None:
        self._set(validate_args, loc=loc, scale=scale)

    def _standard(self, value: Tensor) -> Tensor:
        self._validate_sample(value)
        return (value - self.loc) / self.scale

    mean = stated("loc.", lambda self: self.loc)
    mode = stated("loc.", lambda self: self.loc)


class Normal(_Located):
    """The normal distribution with mean `loc` and standard deviation `scale`.

    >>> import tritensor as torch
    >>> torch.distributions.Normal(0.0, 1.0).log_prob(torch.tensor(0.0))
    tensor(-0.9189)
    """

    stddev = stated("scale.", lambda self: self.scale)
    variance = stated("scale^2.", lambda self: self.scale**2)

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        return self.loc + self.scale * _like(randn, self, self.loc, sample_shape)

    def log_prob(self, value: Tensor) -> Tensor:
        return -self._standard(value).square() / 2 - self.scale.log() - _ROOT

    def cdf(self, value: Tensor) -> Tensor:
        return 0.5 * (1 + (self._standard(value) / sqrt(2)).erf())

    def icdf(self, value: Tensor) -> Tensor:
        return self.loc + self.scale * (2 * value - 1).erfinv() * sqrt(2)

    def entropy(self) -> Tensor:
        return 0.5 + _ROOT + self.scale.log()


class Laplace(_Located):
    """The Laplace distribution, exp(-|x - loc| / scale) / (2 scale)."""

    variance = stated("2 scale^2.", lambda self: 2 * self.scale**2)

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        u = 2 * _uniform(self, self.loc, sample_shape) - 1
        return self.loc - self.scale * u.sign() * (-u.abs()).log1p()

    def log_prob(self, value: Tensor) -> Tensor:
        return -(2 * self.scale).log() - self._standard(value).abs()

    def cdf(self, value: Tensor) -> Tensor:
        z = self._standard(value)
        return 0.5 - 0.5 * z.sign() * (-z.abs()).expm1()

    def icdf(self, value: Tensor) -> Tensor:
        term = value - 0.5
        return self.loc - self.scale * term.sign() * (-2 * term.abs()).log1p()

    def entropy(self) -> Tensor:
        return 1 + (2 * self.scale).log()


class Cauchy(_Located):
    """The Cauchy distribution, which has no mean."""

    mean = stated("NaN.", lambda self: self.loc * float("nan"))
    variance = stated("Infinite, as PyTorch says.", lambda self: self.loc * 0 + float("inf"))

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        return self.icdf(_uniform(self, self.loc, sample_shape))

    def log_prob(self, value: Tensor) -> Tensor:
        return -log(pi) - self.scale.log() - self._standard(value).square().log1p()

    def cdf(self, value: Tensor) -> Tensor:
        return self._standard(value).atan() / pi + 0.5

    def icdf(self, value: Tensor) -> Tensor:
        return (pi * (value - 0.5)).tan() * self.scale + self.loc

    def entropy(self) -> Tensor:
        return log(4 * pi) + self.scale.log()


class Gumbel(_Located):
    """The distribution of the largest of many numbers."""

    mean = stated("loc + scale times Euler's constant.", lambda self: self.loc + self.scale * _EULER)
    variance = stated("(pi scale)^2 / 6.", lambda self: self.stddev**2)
    stddev = stated("pi scale / sqrt(6).", lambda self: pi / sqrt(6) * self.scale)

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        return self.icdf(_uniform(self, self.loc, sample_shape))

    def log_prob(self, value: Tensor) -> Tensor:
        y = -self._standard(value)
        return y - y.exp() - self.scale.log()

    def cdf(self, value: Tensor) -> Tensor:
        return (-(-self._standard(value)).exp()).exp()

    def icdf(self, value: Tensor) -> Tensor:
        return self.loc - self.scale * (-value.log()).log()

    def entropy(self) -> Tensor:
        return self.scale.log() + 1 + _EULER


class HalfNormal(Distribution):
    """The absolute value of a normal number of mean 0."""

    arg_constraints = {"scale": constraints.positive}
    support = constraints.nonnegative
    has_rsample = True

    def __init__(self, scale: Any, validate_args: bool | None = None) -> None:
        self._set(validate_args, scale=scale)

    mean = stated("scale sqrt(2 / pi).", lambda self: self.scale * sqrt(2 / pi))
    mode = stated("0.", lambda self: self.scale * 0)
    variance = stated("scale^2 (1 - 2 / pi).", lambda self: self.scale**2 * (1 - 2 / pi))

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        return (self.scale * _like(randn, self, self.scale, sample_shape)).abs()

    def log_prob(self, value: Tensor) -> Tensor:
        self._validate_sample(value)
        found = log(2) - (value / self.scale).square() / 2 - self.scale.log() - _ROOT
        return where(value >= 0, found, -float("inf"))

    def cdf(self, value: Tensor) -> Tensor:
        self._validate_sample(value)
        return (value / self.scale / sqrt(2)).erf()

    def icdf(self, value: Tensor) -> Tensor:
        return self.scale * sqrt(2) * value.erfinv()

    def entropy(self) -> Tensor:
        return 0.5 + _ROOT + self.scale.log() - log(2)


class Uniform(Distribution):
    """Numbers from `low` up to `high`, all alike."""

    has_rsample = True

    def __init__(self, low: Any, high: Any, validate_args: bool | None = None) -> None:
        self._set(validate_args, low=low, high=high)

    @property
    def arg_constraints(self) -> Any:
        """Each bound depends on the other."""
        return {"low": constraints.less_than(self.high), "high": constraints.greater_than(self.low)}

    support = stated("From low to high.", lambda self: constraints.interval(self.low, self.high))
    mean = stated("The middle.", lambda self: (self.high + self.low) / 2)
    mode = stated("NaN: all are alike.", lambda self: self.high * float("nan"))
    variance = stated("(high - low)^2 / 12.", lambda self: (self.high - self.low) ** 2 / 12)

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        return self.low + _like(rand, self, self.low, sample_shape) * (self.high - self.low)

    def log_prob(self, value: Tensor) -> Tensor:
        self._validate_sample(value)
        inside = ((self.low <= value) & (value < self.high)).to(self.low.dtype)
        return inside.log() - (self.high - self.low).log()

    def cdf(self, value: Tensor) -> Tensor:
        self._validate_sample(value)
        return ((value - self.low) / (self.high - self.low)).clamp(0, 1)

    def icdf(self, value: Tensor) -> Tensor:
        return value * (self.high - self.low) + self.low

    def entropy(self) -> Tensor:
        return (self.high - self.low).log()


class Exponential(Distribution):
    """rate exp(-rate x)."""

    arg_constraints = {"rate": constraints.positive}
    support = constraints.nonnegative
    has_rsample = True

    def __init__(self, rate: Any, validate_args: bool | None = None) -> None:
        self._set(validate_args, rate=rate)

    mean = stated("1 / rate.", lambda self: self.rate.reciprocal())
    mode = stated("0.", lambda self: self.rate * 0)
    stddev = stated("1 / rate.", lambda self: self.rate.reciprocal())
    variance = stated("1 / rate^2.", lambda self: self.rate**-2)

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        return -(-_uniform(self, self.rate, sample_shape)).log1p() / self.rate

    def log_prob(self, value: Tensor) -> Tensor:
        self._validate_sample(value)
        return self.rate.log() - self.rate * value

    def cdf(self, value: Tensor) -> Tensor:
        self._validate_sample(value)
        return 1 - (-self.rate * value).exp()

    def icdf(self, value: Tensor) -> Tensor:
        return -(-value).log1p() / self.rate

    def entropy(self) -> Tensor:
        return 1 - self.rate.log()


class _StandardGamma(Function):
    """Gamma numbers of rate 1, by the method of Marsaglia & Tsang (2000).

    A proposal is accepted with 95 % or more, so that of 12 rounds none is accepted in one of 10^15. The gradient is
    implicit: -dP(a, x)/da / density, with the derivative of the incomplete gamma function by central differences.
    """

    @staticmethod
    def forward(ctx: Any, alpha: Tensor) -> Tensor:
        small = alpha < 1
        d = where(small, alpha + 1, alpha) - 1 / 3
        c = 1 / (9 * d).sqrt()
        found, missing = d, alpha > 0
        for _ in range(12):
            x = randn(alpha.shape, dtype=alpha.dtype, device=alpha.device)
            u = rand(alpha.shape, dtype=alpha.dtype, device=alpha.device).clamp(min=tiny(alpha) / 2)
            v = (1 + c * x) ** 3
            good = missing & (v > 0) & (u.log() < x * x / 2 + d - d * v + d * v.clamp(min=1e-30).log())
            found, missing = where(good, d * v, found), missing & ~good
        boost = rand(alpha.shape, dtype=alpha.dtype, device=alpha.device).clamp(min=tiny(alpha) / 2)
        found = where(small, found * boost ** (1 / alpha), found).clamp(min=tiny(alpha) ** 4)
        ctx.save_for_backward(alpha, found)
        return found

    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:
        alpha, x = (each.double() for each in ctx.saved_tensors)
        from ..special import gammainc

        step = alpha * 1e-5
        slope = (gammainc(alpha + step, x) - gammainc(alpha - step, x)) / (2 * step)
        density = ((alpha - 1) * x.log() - x - gammaln(alpha)).exp()
        return grad * (-slope / density.clamp(min=1e-300)).to(grad.dtype)


def standard_gamma(alpha: Tensor) -> Tensor:
    """Gamma numbers of rate 1, of the shape of `alpha`."""
    return _StandardGamma.apply(alpha)  # type: ignore[no-any-return]


class Gamma(Distribution):
    """rate^a x^(a - 1) exp(-rate x) / Gamma(a), with a = concentration."""

    arg_constraints = {"concentration": constraints.positive, "rate": constraints.positive}
    support = constraints.nonnegative
    has_rsample = True

    def __init__(self, concentration: Any, rate: Any, validate_args: bool | None = None) -> None:
        self._set(validate_args, concentration=concentration, rate=rate)

    mean = stated("concentration / rate.", lambda self: self.concentration / self.rate)
    mode = stated("(concentration - 1) / rate, or 0.", lambda self: ((self.concentration - 1) / self.rate).clamp(min=0))
    variance = stated("concentration / rate^2.", lambda self: self.concentration / self.rate**2)

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        return standard_gamma(self.concentration.expand(shape)) / self.rate.expand(shape)

    def log_prob(self, value: Tensor) -> Tensor:
        self._validate_sample(value)
        a, rate = self.concentration, self.rate
        return a.xlogy(rate) + (a - 1).xlogy(value) - rate * value - gammaln(a)

    def cdf(self, value: Tensor) -> Tensor:
        from ..special import gammainc

        self._validate_sample(value)
        return gammainc(self.concentration, self.rate * value)  # type: ignore[no-any-return]

    def entropy(self) -> Tensor:
        a = self.concentration
        return a - self.rate.log() + gammaln(a) + (1 - a) * digamma(a)


class Chi2(Gamma):
    """The sum of the squares of `df` normal numbers."""

    arg_constraints = {"df": constraints.positive}

    def __init__(self, df: Any, validate_args: bool | None = None) -> None:
        self._set(validate_args, concentration=df, rate=df)
        half: Tensor = vars(self)["concentration"] / 2
        self.concentration, self.rate = half, half * 0 + 0.5

    df = stated("The degrees of freedom.", lambda self: self.concentration * 2)


class Beta(Distribution):
    """x^(a - 1) (1 - x)^(b - 1) / B(a, b), with a = concentration1 and b = concentration0."""

    arg_constraints = {"concentration1": constraints.positive, "concentration0": constraints.positive}
    support = constraints.unit_interval
    has_rsample = True

    def __init__(self, concentration1: Any, concentration0: Any, validate_args: bool | None = None) -> None:
        self._set(validate_args, concentration1=concentration1, concentration0=concentration0)

    mean = stated("a / (a + b).", lambda self: self.concentration1 / (self.concentration1 + self.concentration0))

    @property
    def mode(self) -> Tensor:
        """(a - 1) / (a + b - 2) where both are above 1, else the end with the larger density, or NaN."""
        a, b = self.concentration1, self.concentration0
        inner = (a - 1) / (a + b - 2)
        ends = where(a == b, float("nan"), (a > b).to(a.dtype))
        return where((a > 1) & (b > 1), inner, where((a < 1) & (b < 1), float("nan"), ends))

    @property
    def variance(self) -> Tensor:
        """a b / ((a + b)^2 (a + b + 1))."""
        a, b = self.concentration1, self.concentration0
        return a * b / ((a + b) ** 2 * (a + b + 1))

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        a, b = (standard_gamma(each.expand(shape)) for each in (self.concentration1, self.concentration0))
        return (a / (a + b)).clamp(tiny(a) / 2, 1 - tiny(a) / 2)

    def log_prob(self, value: Tensor) -> Tensor:
        self._validate_sample(value)
        a, b = self.concentration1, self.concentration0
        return (a - 1).xlogy(value) + (b - 1).xlogy(1 - value) + gammaln(a + b) - gammaln(a) - gammaln(b)

    def entropy(self) -> Tensor:
        a, b = self.concentration1, self.concentration0
        total = a + b
        found = gammaln(a) + gammaln(b) - gammaln(total) - (a - 1) * digamma(a) - (b - 1) * digamma(b)
        return found + (total - 2) * digamma(total)


class StudentT(Distribution):
    """Student's distribution of `df` degrees of freedom."""

    arg_constraints = {"df": constraints.positive, "loc": constraints.real, "scale": constraints.positive}
    has_rsample = True

    def __init__(self, df: Any, loc: Any = 0.0, scale: Any = 1.0, validate_args: bool | None = None) -> None:
        self._set(validate_args, df=df, loc=loc, scale=scale)

    mean = stated("loc, NaN unless df is above 1.", lambda self: where(self.df > 1, self.loc, float("nan")))
    mode = stated("loc.", lambda self: self.loc)

    @property
    def variance(self) -> Tensor:
        """scale^2 df / (df - 2) for df above 2, infinite down to 1, NaN below."""
        found = where(self.df > 2, self.scale**2 * self.df / (self.df - 2), float("inf"))
        return where(self.df > 1, found, float("nan"))

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        x = _like(randn, self, self.loc, sample_shape)
        squares = 2 * standard_gamma((self.df / 2).expand(x.shape))
        return self.loc + self.scale * x * (squares / self.df).rsqrt()

    def log_prob(self, value: Tensor) -> Tensor:
        self._validate_sample(value)
        y, half = (value - self.loc) / self.scale, self.df / 2
        front = self.scale.log() + 0.5 * self.df.log() + 0.5 * log(pi) + gammaln(half) - gammaln(half + 0.5)
        return -(half + 0.5) * (y * y / self.df).log1p() - front

    def entropy(self) -> Tensor:
        half = self.df / 2
        beta = gammaln(half) + gammaln(half * 0 + 0.5) - gammaln(half + 0.5)
        return self.scale.log() + (half + 0.5) * (digamma(half + 0.5) - digamma(half)) + 0.5 * self.df.log() + beta


class Weibull(Distribution):
    """The Weibull distribution: (x / scale)^concentration is exponential."""

    arg_constraints = {"scale": constraints.positive, "concentration": constraints.positive}
    support = constraints.positive
    has_rsample = True

    def __init__(self, scale: Any, concentration: Any, validate_args: bool | None = None) -> None:
        self._set(validate_args, scale=scale, concentration=concentration)

    def _moment(self, order: int) -> Tensor:
        return self.scale**order * gammaln(1 + order / self.concentration).exp()

    mean = stated("scale Gamma(1 + 1 / concentration).", lambda self: self._moment(1))

    @property
    def mode(self) -> Tensor:
        """scale ((k - 1) / k)^(1 / k)."""
        k = self.concentration
        return self.scale * ((k - 1) / k) ** (1 / k)

    @property
    def variance(self) -> Tensor:
        """The second moment, less the square of the mean."""
        return self._moment(2) - self._moment(1) ** 2

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        return self.scale * (-_uniform(self, self.scale, sample_shape).log()) ** (1 / self.concentration)

    def log_prob(self, value: Tensor) -> Tensor:
        self._validate_sample(value)
        ratio, k = value / self.scale, self.concentration
        return k.log() - self.scale.log() + (k - 1) * ratio.log() - ratio**k

    def cdf(self, value: Tensor) -> Tensor:
        self._validate_sample(value)
        return 1 - (-((value / self.scale) ** self.concentration)).exp()

    def entropy(self) -> Tensor:
        k = self.concentration
        return _EULER * (1 - 1 / k) + (self.scale / k).log() + 1
