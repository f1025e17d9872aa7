"""Continuous distributions of one number.

Formulas: Johnson, Kotz & Balakrishnan, Continuous Univariate Distributions.
"""

from __future__ import annotations

from math import log, pi, sqrt
from typing import Any

from ..functional.creation.creation import as_tensor
from ..functional.creation.likeness import full_like, zeros_like
from ..functional.elementwise.pointwise import where
from ..operators.function import Function
from ..random import rand, randn
from ..special import digamma, gammainc, gammaln, i0e, i1e
from ..tensors import Tensor
from ..types.dtypes import finfo
from ..types.size import Size
from . import constraints
from .distribution import Distribution
from .exp_family import ExponentialFamily
from .probabilities import tiny
from .properties import Formula, lazy_property, stated
from .shapes import like

__all__ = ["Cauchy", "Chi2", "Exponential", "FisherSnedecor", "Gamma", "GeneralizedPareto", "Laplace", "Normal"]
__all__ += ["StudentT", "Uniform", "VonMises"]
_Number = Tensor | float
_ROOT = log(sqrt(2 * pi))


def _uniform(shape: Size, of: Tensor) -> Tensor:
    """Uniform numbers, none of them 0 or 1."""
    return like(rand, shape, of).clamp(tiny(of) / 2, 1 - tiny(of) / 2)


class _Located(Distribution):
    """Any distribution with `loc` and `scale`: of (value - loc) / scale, the subclass knows the standard one."""

    arg_constraints = {"loc": constraints.real, "scale": constraints.positive}
    has_rsample = True

    def __init__(self, loc: Tensor | float, scale: Tensor | float, validate_args: bool | None = None) -> None:
        self._set(validate_args, loc=loc, scale=scale)

    mean = stated("loc.", lambda self: self.loc)
    mode = stated("loc.", lambda self: self.loc)
    _draw: Formula = lambda self, shape: self._quantile(_uniform(shape, self.loc))


class Normal(_Located, ExponentialFamily):
    """The normal distribution with mean `loc` and standard deviation `scale`.

    >>> import tritensor as torch
    >>> torch.distributions.Normal(0.0, 1.0).log_prob(torch.tensor(0.0))
    tensor(-0.9189)
    """

    _mean_carrier_measure = 0
    _natural_params = property(lambda self: (self.loc / self.scale**2, -0.5 * self.scale**-2))
    _log_normalizer = staticmethod(lambda x, y: -0.25 * x**2 / y + 0.5 * (-pi / y).log())
    stddev = stated("scale.", lambda self: self.scale)
    variance = stated("scale^2.", lambda self: self.scale**2)
    _draw: Formula = lambda self, shape: self.loc + self.scale * like(randn, shape, self.loc)

    def _log_density(self, value: Tensor) -> Tensor:
        return -((value - self.loc) ** 2) / (2 * self.scale**2) - self.scale.log() - _ROOT

    _share: Formula = lambda self, value: 0.5 * (1 + ((value - self.loc) * self.scale.reciprocal() / sqrt(2)).erf())
    _quantile: Formula = lambda self, value: self.loc + self.scale * (2 * value - 1).erfinv() * sqrt(2)
    _nats: Formula = lambda self: 0.5 + _ROOT + self.scale.log()


class Laplace(_Located):
    """The Laplace distribution, exp(-|x - loc| / scale) / (2 scale)."""

    variance = stated("2 scale^2.", lambda self: 2 * self.scale**2)
    stddev = stated("sqrt(2) scale.", lambda self: sqrt(2) * self.scale)

    _log_density: Formula = lambda self, value: -(2 * self.scale).log() - (value - self.loc).abs() / self.scale

    def _share(self, value: Tensor) -> Tensor:
        away = value - self.loc
        return 0.5 - 0.5 * away.sign() * (-away.abs() / self.scale).expm1()

    def _quantile(self, value: Tensor) -> Tensor:
        term = value - 0.5
        return self.loc - self.scale * term.sign() * (-2 * term.abs()).log1p()

    _nats: Formula = lambda self: 1 + (2 * self.scale).log()


class Cauchy(_Located):
    """The Cauchy distribution, which has no mean."""

    mean = stated("NaN.", lambda self: full_like(self.loc, float("nan")))
    variance = stated("Infinite, as PyTorch says.", lambda self: full_like(self.loc, float("inf")))
    _standard: Formula = lambda self, value: (value - self.loc) / self.scale
    _log_density: Formula = lambda self, value: -log(pi) - self.scale.log() - self._standard(value).square().log1p()
    _share: Formula = lambda self, value: self._standard(value).atan() / pi + 0.5
    _quantile: Formula = lambda self, value: (pi * (value - 0.5)).tan() * self.scale + self.loc
    _nats: Formula = lambda self: log(4 * pi) + self.scale.log()


class Uniform(Distribution):
    """The uniform distribution from `low` up to `high`."""

    has_rsample = True

    def __init__(self, low: Tensor | float, high: Tensor | float, validate_args: bool | None = None) -> None:
        self._set(validate_args, low=low, high=high)

    @property
    def arg_constraints(self) -> Any:
        """Each bound depends on the other."""
        return {"low": constraints.less_than(self.high), "high": constraints.greater_than(self.low)}

    support = constraints.dependent_property(
        lambda self: constraints.interval(self.low, self.high), is_discrete=False, event_dim=0
    )
    mean = stated("The middle.", lambda self: (self.high + self.low) / 2)
    mode = stated("NaN: all are alike.", lambda self: self.high * float("nan"))
    stddev = stated("(high - low) / sqrt(12).", lambda self: (self.high - self.low) / 12**0.5)
    variance = stated("(high - low)^2 / 12.", lambda self: (self.high - self.low) ** 2 / 12)
    _draw: Formula = lambda self, shape: self.low + like(rand, shape, self.low) * (self.high - self.low)

    def _log_density(self, value: Tensor) -> Tensor:
        inside = ((self.low <= value) & (value < self.high)).to(self.low.dtype)
        return inside.log() - (self.high - self.low).log()

    _share: Formula = lambda self, value: ((value - self.low) / (self.high - self.low)).clamp(0, 1)
    _quantile: Formula = lambda self, value: value * (self.high - self.low) + self.low
    _nats: Formula = lambda self: (self.high - self.low).log()


class Exponential(ExponentialFamily):
    """The exponential distribution, of density rate exp(-rate x)."""

    arg_constraints = {"rate": constraints.positive}
    support = constraints.nonnegative
    has_rsample = True

    def __init__(self, rate: Any, validate_args: bool | None = None) -> None:
        self._set(validate_args, rate=rate)

    _mean_carrier_measure = 0
    _natural_params = property(lambda self: (-self.rate,))
    _log_normalizer = staticmethod(lambda x: -(-x).log())
    mean = stated("1 / rate.", lambda self: self.rate.reciprocal())
    mode = stated("0.", lambda self: zeros_like(self.rate))
    stddev = stated("1 / rate.", lambda self: self.rate.reciprocal())
    variance = stated("1 / rate^2.", lambda self: self.rate**-2)
    _draw: Formula = lambda self, shape: -(-_uniform(shape, self.rate)).log1p() / self.rate
    _log_density: Formula = lambda self, value: self.rate.log() - self.rate * value
    _share: Formula = lambda self, value: 1 - (-self.rate * value).exp()
    _quantile: Formula = lambda self, value: -(-value).log1p() / self.rate
    _nats: Formula = lambda self: 1 - self.rate.log()


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
            x = like(randn, alpha.shape, alpha)
            u = like(rand, alpha.shape, alpha).clamp(min=tiny(alpha) / 2)
            v = (1 + c * x) ** 3
            good = missing & (v > 0) & (u.log() < x * x / 2 + d - d * v + d * v.clamp(min=1e-30).log())
            found, missing = where(good, d * v, found), missing & ~good
        boost = like(rand, alpha.shape, alpha).clamp(min=tiny(alpha) / 2)
        found = where(small, found * boost ** (1 / alpha), found).clamp(min=tiny(alpha) ** 4)
        ctx.save_for_backward(alpha, found)
        return found

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Any:
        alpha, x = (each.double() for each in ctx.saved_tensors)
        step = alpha * 1e-5
        slope = (gammainc(alpha + step, x) - gammainc(alpha - step, x)) / (2 * step)
        density = ((alpha - 1) * x.log() - x - gammaln(alpha)).exp()
        return grad * (-slope / density.clamp(min=1e-300)).to(grad.dtype)


def standard_gamma(alpha: Tensor) -> Tensor:
    """Gamma numbers of rate 1, of the shape of `alpha`."""
    return _StandardGamma.apply(alpha)


class Gamma(ExponentialFamily):
    """The gamma distribution, of density rate^a x^(a - 1) exp(-rate x) / Gamma(a), with a = concentration."""

    arg_constraints = {"concentration": constraints.positive, "rate": constraints.positive}
    support = constraints.nonnegative
    has_rsample = True

    def __init__(self, concentration: Any, rate: Any, validate_args: bool | None = None) -> None:
        self._set(validate_args, concentration=concentration, rate=rate)

    _mean_carrier_measure = 0
    _natural_params = property(lambda self: (self.concentration - 1, -self.rate))
    _log_normalizer = staticmethod(lambda x, y: gammaln(x + 1) + (x + 1) * (-y.reciprocal()).log())
    mean = stated("concentration / rate.", lambda self: self.concentration / self.rate)
    mode = stated("(concentration - 1) / rate, or 0.", lambda self: ((self.concentration - 1) / self.rate).clamp(min=0))
    variance = stated("concentration / rate^2.", lambda self: self.concentration / self.rate**2)
    _draw: Formula = lambda self, shape: standard_gamma(self.concentration.expand(shape)) / self.rate.expand(shape)

    def log_prob(self, value: Tensor) -> Tensor:
        return super().log_prob(like(as_tensor, value, self.rate))

    def _log_density(self, value: Tensor) -> Tensor:
        a, rate = self.concentration, self.rate
        return a.xlogy(rate) + (a - 1).xlogy(value) - rate * value - gammaln(a)

    _share: Formula = lambda self, value: gammainc(self.concentration, self.rate * value)

    def _nats(self) -> Tensor:
        a = self.concentration
        return a - self.rate.log() + gammaln(a) + (1 - a) * digamma(a)


class Chi2(Gamma):
    """The chi-squared distribution: the sum of the squares of `df` normal numbers."""

    arg_constraints = {"df": constraints.positive}

    def __init__(self, df: Any, validate_args: bool | None = None) -> None:
        super().__init__(0.5 * df, 0.5, validate_args)

    df = stated("The degrees of freedom.", lambda self: self.concentration * 2)


class StudentT(Distribution):
    """Student's t-distribution of `df` degrees of freedom."""

    arg_constraints = {"df": constraints.positive, "loc": constraints.real, "scale": constraints.positive}
    has_rsample = True

    def __init__(self, df: Tensor | float, loc: Any = 0.0, scale: Any = 1.0, validate_args: bool | None = None) -> None:
        self._set(validate_args, df=df, loc=loc, scale=scale)

    mean = stated("loc, NaN unless df is above 1.", lambda self: where(self.df > 1, self.loc, float("nan")))
    mode = stated("loc.", lambda self: self.loc)

    @property
    def variance(self) -> Tensor:
        """scale^2 df / (df - 2) for df above 2, infinite down to 1, NaN below."""
        finite = self.df > 2
        df, scale = where(finite, self.df, 3), where(finite, self.scale, 1)  # elsewhere gradients could be NaN
        found = where(finite, scale**2 * df / (df - 2), float("inf"))
        return where(self.df > 1, found, float("nan"))

    def _draw(self, shape: Size) -> Tensor:
        x = like(randn, shape, self.df)
        squares = 2 * standard_gamma((self.df / 2).expand(shape))
        return self.loc + self.scale * x * (squares / self.df).rsqrt()

    def _log_density(self, value: Tensor) -> Tensor:
        y, half = (value - self.loc) / self.scale, self.df / 2
        front = self.scale.log() + 0.5 * self.df.log() + 0.5 * log(pi) + gammaln(half) - gammaln(half + 0.5)
        return -(half + 0.5) * (y * y / self.df).log1p() - front

    def _nats(self) -> Tensor:
        half = self.df / 2
        beta = gammaln(half) + gammaln(half * 0 + 0.5) - gammaln(half + 0.5)
        return self.scale.log() + (half + 0.5) * (digamma(half + 0.5) - digamma(half)) + 0.5 * self.df.log() + beta


class FisherSnedecor(Distribution):
    """The F distribution: the ratio of two chi-squared numbers, each over its degrees of freedom."""

    arg_constraints = {"df1": constraints.positive, "df2": constraints.positive}
    support = constraints.positive
    has_rsample = True

    def __init__(self, df1: Tensor | float, df2: Tensor | float, validate_args: bool | None = None) -> None:
        self._set(validate_args, df1=df1, df2=df2)

    mean = stated("df2 / (df2 - 2), NaN for df2 up to 2.", lambda self: self._above(2) / (self._above(2) - 2))

    def _above(self, least: float) -> Tensor:
        return where(self.df2 <= least, float("nan"), self.df2)

    @property
    def mode(self) -> Tensor:
        """(df1 - 2) df2 / (df1 (df2 + 2)), NaN for df1 up to 2."""
        found = (self.df1 - 2) / self.df1 * self.df2 / (self.df2 + 2)
        return where(self.df1 <= 2, float("nan"), found)

    @property
    def variance(self) -> Tensor:
        """2 df2^2 (df1 + df2 - 2) / (df1 (df2 - 2)^2 (df2 - 4)), NaN for df2 up to 4."""
        df2 = self._above(4)
        return 2 * df2**2 * (self.df1 + df2 - 2) / (self.df1 * (df2 - 2) ** 2 * (df2 - 4))

    def _draw(self, shape: Size) -> Tensor:
        least = finfo(self.df1.dtype).tiny
        one, other = (standard_gamma((df / 2).expand(shape)) / df for df in (self.df1, self.df2))
        return (one / other.clamp(min=least)).clamp(min=least)

    def _log_density(self, value: Tensor) -> Tensor:
        a, b, ratio = self.df1 / 2, self.df2 / 2, self.df1 / self.df2
        front = gammaln(a + b) - gammaln(a) - gammaln(b)
        return front + a * ratio.log() + (a - 1) * value.log() - (a + b) * (ratio * value).log1p()


class GeneralizedPareto(Distribution):
    """The generalized Pareto distribution of what lies above `loc`; exponential where `concentration` is 0."""

    arg_constraints = {"loc": constraints.real, "scale": constraints.positive, "concentration": constraints.real}
    has_rsample = True

    def __init__(self, loc: _Number, scale: _Number, concentration: _Number, validate_args: bool | None = None) -> None:
        self._set(validate_args, loc=loc, scale=scale, concentration=concentration)

    @constraints.dependent_property(is_discrete=False, event_dim=0)
    def support(self) -> Any:
        """From loc on; of a negative concentration up to loc - scale / concentration."""
        c = self.concentration
        return constraints.interval(self.loc, where(c < 0, self.loc - self.scale / c, float("inf")))

    mode = stated("loc.", lambda self: self.loc)

    @property
    def mean(self) -> Tensor:
        """loc + scale / (1 - concentration), NaN for concentrations from 1 on."""
        known = self.concentration < 1
        return where(known, self.loc + self.scale / (1 - where(known, self.concentration, 0.5)), float("nan"))

    @property
    def variance(self) -> Tensor:
        """scale^2 / ((1 - c)^2 (1 - 2 c)), NaN for concentrations c from 0.5 on."""
        known = self.concentration < 0.5
        c = where(known, self.concentration, 0.25)
        return where(known, self.scale**2 / ((1 - c) ** 2 * (1 - 2 * c)), float("nan"))

    @property
    def _shape_or_one(self) -> tuple[Tensor, Tensor]:
        """Where the concentration is 0, and the concentration, 1 there."""
        none = self.concentration.isclose(zeros_like(self.concentration))
        return none, where(none, 1, self.concentration)

    _draw: Formula = lambda self, shape: self.icdf(like(rand, shape, self.loc))

    def _log_density(self, value: Tensor) -> Tensor:
        z, (none, c) = (value - self.loc) / self.scale, self._shape_or_one
        power = 1 / c + zeros_like(z) + 1
        return -self.scale.log() - where(none, z, where(power == 0, power, power * (c * z).log1p()))

    def log_survival_function(self, value: Tensor) -> Tensor:
        """The logarithm of the probability of more than `value`."""
        if self._validate_args:
            self._validate_sample(value)
        z, (none, c) = (value - self.loc) / self.scale, self._shape_or_one
        return where(none, -z, -(c * z).log1p() / c)

    def log_cdf(self, value: Tensor) -> Tensor:
        """The logarithm of the probability of at most `value`."""
        return (-self.log_survival_function(value).exp()).log1p()

    def cdf(self, value: Tensor) -> Tensor:
        return self.log_cdf(value).exp()

    def _quantile(self, value: Tensor) -> Tensor:
        rest, (none, c) = (-value).log1p(), self._shape_or_one
        return where(none, self.loc - self.scale * rest, self.loc + self.scale / c * (-c * rest).expm1())

    _nats: Formula = lambda self: self.scale.log() + self.concentration + 1


class VonMises(Distribution):
    """The von Mises distribution of angles, of density exp(concentration cos(x - loc)) over a Bessel function.

    Samples are drawn in double precision by the method of Best & Fisher (1979).
    """

    arg_constraints = {"loc": constraints.real, "concentration": constraints.positive}

    def __init__(self, loc: Tensor | float, concentration: Tensor | float, validate_args: bool | None = None) -> None:
        self._set(validate_args, loc=loc, concentration=concentration)

    mean = stated("loc: the mean on the circle.", lambda self: self.loc)
    mode = stated("loc.", lambda self: self.loc)

    @lazy_property
    def variance(self) -> Tensor:
        """The variance on the circle, 1 - I1(concentration) / I0(concentration)."""
        return 1 - i1e(self.concentration) / i0e(self.concentration)

    def _draw(self, shape: Size) -> Tensor:
        loc, k = (each.expand(shape).double() for each in (self.loc, self.concentration))
        tau = 1 + (1 + 4 * k**2).sqrt()
        rho = (tau - (2 * tau).sqrt()) / (2 * k)
        r = where(k < 1e-5, 1 / k + k, (1 + rho**2) / (2 * rho))  # by its series where rho is lost in rounding
        missing = (k > 0) & (k + loc).isfinite()
        found = where(missing, loc, float("nan"))
        while missing.any():
            u = like(rand, (3, *k.shape), k)
            z = (pi * u[0]).cos()
            f = (1 + r * z) / (r + z)
            c = k * (r - f)
            good = missing & ((c * (2 - c) > u[1]) | ((c / u[1]).log() + 1 - c >= 0))
            found, missing = where(good, (u[2] - 0.5).sign() * f.acos() + loc, found), missing & ~good
        return ((found + pi) % (2 * pi) - pi).to(self.loc.dtype)

    def _log_density(self, value: Tensor) -> Tensor:
        k = self.concentration
        return k * (value - self.loc).cos() - log(2 * pi) - i0e(k).log() - k
