"""Divergences between distributions: a formula for each pair of classes.

Most pairs of two classes need none of their own: the divergence is the cross entropy, by the moments of the first, less
the entropy of the first; and it is infinite where the second excludes what the first does not.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import cache
from math import log, pi, sqrt
from typing import Any

from ..errors import require
from ..functional.creation.likeness import full_like
from ..functional.elementwise.pointwise import where
from ..nn.functional import softplus
from ..special import digamma, gammaln
from ..tensors import Tensor
from . import composed, continuous, discrete, exp_family, multivariate, relaxed
from .distribution import Distribution
from .probabilities import euler_constant
from .properties import Formula
from .shapes import sum_rightmost

__all__ = ["kl_divergence", "register_kl"]

_KL_REGISTRY: dict[tuple[type, type], Formula] = {}


def register_kl(type_p: type, type_q: type) -> Callable[[Formula], Formula]:
    """A decorator that declares the formula for two classes, and for their subclasses.

    Raises:
        TypeError: one is no class.
    """
    for name, kind in (("type_p", type_p), ("type_q", type_q)):
        require(isinstance(kind, type), TypeError, "Expected {} to be a Distribution subclass but got {}", name, kind)

    def declare(formula: Formula) -> Formula:
        _KL_REGISTRY[type_p, type_q] = formula
        _formula.cache_clear()
        return formula

    return declare


@cache
def _formula(kind_p: type, kind_q: type) -> Formula | None:
    """The formula of the closest classes: closest to p first, or to q, between which a warning tells a difference."""
    found = [pair for pair in _KL_REGISTRY if pair[0] in kind_p.__mro__ and pair[1] in kind_q.__mro__]
    if not found:
        return None
    far = {pair: (kind_p.__mro__.index(pair[0]), kind_q.__mro__.index(pair[1])) for pair in found}
    left, right = min(found, key=far.__getitem__), min(found, key=lambda pair: far[pair][::-1])
    if _KL_REGISTRY[left] is not _KL_REGISTRY[right]:
        names = [kind.__name__ for kind in (kind_p, kind_q, left[0], right[1])]
        words = "Ambiguous kl_divergence({}, {}). Please register_kl({}, {})".format(*names)
        warnings.warn(words, RuntimeWarning, stacklevel=3)
    return _KL_REGISTRY[left]


def kl_divergence(p: Distribution, q: Distribution) -> Tensor:
    """The Kullback-Leibler divergence E_p[log p - log q], for each of the batch.

    >>> from tritensor.distributions import Normal, kl_divergence
    >>> kl_divergence(Normal(0.0, 1.0), Normal(1.0, 1.0))
    tensor(0.5000)

    Raises:
        NotImplementedError: no formula for these classes.
    """
    kinds: Any = type(p), type(q)
    formula = _formula(*kinds)
    if formula is None:
        words = f"p type {type(p).__name__} and q type {type(q).__name__}"
        raise NotImplementedError(f"No KL(p || q) is implemented for {words}")
    return formula(p, q)


def _excess(ratio: Tensor) -> Tensor:
    return ratio - 1 - ratio.log()


_SAME: dict[type, Formula] = {  # the formulas for two of a class
    continuous.Normal: lambda p, q: 0.5 * (_excess((p.scale / q.scale) ** 2) + ((p.loc - q.loc) / q.scale) ** 2),
    composed.HalfNormal: lambda p, q: 0.5 * _excess((p.scale / q.scale) ** 2),
    continuous.Cauchy: lambda p, q: (
        ((p.scale + q.scale) ** 2 + (p.loc - q.loc) ** 2).log() - (4 * p.scale * q.scale).log()
    ),
    continuous.Exponential: lambda p, q: _excess(q.rate / p.rate),
    continuous.Uniform: lambda p, q: where(
        (q.low > p.low) | (q.high < p.high), float("inf"), ((q.high - q.low) / (p.high - p.low)).log()
    ),
    composed.Pareto: lambda p, q: where(
        p.scale < q.scale, float("inf"), q.alpha * (p.scale / q.scale).log() + _excess(q.alpha / p.alpha)
    ),
    multivariate.Beta: lambda p, q: kl_divergence(p._dirichlet, q._dirichlet),
    discrete.OneHotCategorical: lambda p, q: kl_divergence(p._categorical, q._categorical),
    discrete.Categorical: lambda p, q: where(
        p.probs == 0, 0, where(q.probs == 0, float("inf"), p.probs * (p.logits - q.logits))
    ).sum(-1),
    discrete.Geometric: lambda p, q: -p.entropy() - (-q.probs).log1p() / p.probs - q.logits,
    discrete.Poisson: lambda p, q: p.rate * (p.rate.log() - q.rate.log()) - (p.rate - q.rate),
    relaxed.ContinuousBernoulli: lambda p, q: p.mean * (p.logits - q.logits) + _rest(p) - _rest(q),
}
for _kind, _own in _SAME.items():
    register_kl(_kind, _kind)(_own)


def _rest(p: relaxed.ContinuousBernoulli) -> Tensor:
    return p._cont_bern_log_norm() + (-p.probs).log1p()


def _same(kind: type) -> Callable[[Formula], Formula]:
    return register_kl(kind, kind)


@_same(continuous.Laplace)
def _(p: continuous.Laplace, q: continuous.Laplace) -> Tensor:
    ratio, away = p.scale / q.scale, (p.loc - q.loc).abs()
    return -ratio.log() + away / q.scale + ratio * (-away / p.scale).exp() - 1


@_same(composed.Gumbel)
def _(p: composed.Gumbel, q: composed.Gumbel) -> Tensor:
    ratio, own, other = p.scale / q.scale, p.loc / q.scale, q.loc / q.scale
    found = -ratio.log() - other + own + ratio * euler_constant
    return found + (other + gammaln(1 + ratio) - own).exp() - (1 + euler_constant)


@_same(continuous.Gamma)
def _(p: continuous.Gamma, q: continuous.Gamma) -> Tensor:
    a, b = p.concentration, q.concentration
    found = b * (p.rate / q.rate).log() + gammaln(b) - gammaln(a)
    return found + (a - b) * digamma(a) + (q.rate - p.rate) * (a / p.rate)


@_same(discrete.Bernoulli)
def _(p: discrete.Bernoulli, q: discrete.Bernoulli) -> Tensor:
    one = where(q.probs == 0, float("inf"), p.probs * (softplus(-q.logits) - softplus(-p.logits)))
    other = where(q.probs == 1, float("inf"), (1 - p.probs) * (softplus(q.logits) - softplus(p.logits)))
    return where(p.probs == 0, 0, one) + where(p.probs == 1, 0, other)


@_same(discrete.Binomial)
def _(p: discrete.Binomial, q: discrete.Binomial) -> Tensor:
    if (p.total_count < q.total_count).any():
        raise NotImplementedError("KL between Binomials where q.total_count > p.total_count is not implemented")
    found = p.total_count * (p.probs * (p.logits - q.logits) + (-p.probs).log1p() - (-q.probs).log1p())
    return where(p.total_count > q.total_count, float("inf"), found)


@_same(multivariate.Dirichlet)
def _(p: multivariate.Dirichlet, q: multivariate.Dirichlet) -> Tensor:
    a, b, total = p.concentration, q.concentration, p.concentration.sum(-1)
    front = gammaln(total) - gammaln(b.sum(-1)) + (gammaln(b) - gammaln(a)).sum(-1)
    return front + ((a - b) * (digamma(a) - digamma(total).unsqueeze(-1))).sum(-1)


@_same(exp_family.ExponentialFamily)
def _kl_expfamily_expfamily(p: exp_family.ExponentialFamily, q: exp_family.ExponentialFamily) -> Tensor:
    if type(p) is not type(q):
        words = "The cross KL-divergence between different exponential families cannot be computed using Bregman "
        raise NotImplementedError(f"{words}divergences")
    value, parts = p._normalized()
    found = q._log_normalizer(*q._natural_params) - value
    for (own, slope), other in zip(parts, q._natural_params, strict=True):
        found = found - sum_rightmost((other - own) * slope, own.ndim - len(p.batch_shape))
    return found


def _gaussians(p: multivariate.Gaussian, q: multivariate.Gaussian) -> Tensor:
    words = "KL-divergence between two Multivariate Normals with different event shapes cannot be computed"
    require(p.event_shape == q.event_shape, ValueError, words)
    spread = sum(q._trace(root) for root in p._roots())
    away = q._squared(q.loc - p.loc)
    return q._half_log_determinant() - p._half_log_determinant() + 0.5 * (spread + away - p.event_shape[0])


for _gaussian in (multivariate.MultivariateNormal, multivariate.LowRankMultivariateNormal):
    for _second in (multivariate.MultivariateNormal, multivariate.LowRankMultivariateNormal):
        register_kl(_gaussian, _second)(_gaussians)


@_same(composed.Independent)
def _(p: composed.Independent, q: composed.Independent) -> Tensor:
    if p.reinterpreted_batch_ndims != q.reinterpreted_batch_ndims:
        raise NotImplementedError
    return sum_rightmost(kl_divergence(p.base_dist, q.base_dist), p.reinterpreted_batch_ndims)


@_same(composed.TransformedDistribution)
def _(p: composed.TransformedDistribution, q: composed.TransformedDistribution) -> Tensor:
    if p.transforms != q.transforms or p.event_shape != q.event_shape:
        raise NotImplementedError
    return kl_divergence(p.base_dist, q.base_dist)


@register_kl(continuous.Normal, continuous.Laplace)
def _(p: continuous.Normal, q: continuous.Laplace) -> Tensor:
    away = p.loc - q.loc
    ratio = away / p.scale
    spread = sqrt(2 / pi) * p.scale * (-0.5 * ratio**2).exp() + away * (sqrt(0.5) * ratio).erf()
    return spread / q.scale - (p.scale / q.scale).log() - 0.5 * (1 + log(0.5 * pi))


# Of pairs of two classes: E_p[-log q] by the moments of p.


def _mean(p: Distribution) -> Tensor:
    """E[x], by the formula that holds where it is finite, and has gradients elsewhere."""
    return p.alpha * p.scale / (p.alpha - 1) if isinstance(p, composed.Pareto) else p.mean


def _variance(p: Distribution) -> Tensor:
    """E[(x - E[x])^2], in the same way."""
    if not isinstance(p, composed.Pareto):
        return p.variance
    return p.alpha * (p.scale / (p.alpha - 1)) ** 2 / (p.alpha - 2)


def _log_mean(p: Distribution, mirrored: bool = False) -> Tensor:
    """E[log x], or E[log (1 - x)]."""
    if isinstance(p, multivariate.Beta):
        own = p.concentration0 if mirrored else p.concentration1
        return digamma(own) - digamma(p.concentration1 + p.concentration0)
    if isinstance(p, composed.Pareto):
        return p.scale.log() + p.alpha.reciprocal()
    if isinstance(p, continuous.Exponential):
        return -p.rate.log() - euler_constant
    if isinstance(p, continuous.Gamma):
        return digamma(p.concentration) - p.rate.log()
    low, high = (1 - p.high, 1 - p.low) if mirrored else (p.low, p.high)
    return (high.xlogy(high) - low.xlogy(low)) / (high - low) - 1


def _shrunk_mean(p: Distribution, q: composed.Gumbel) -> Tensor:
    """E[exp((loc - x) / scale)]."""
    if isinstance(p, continuous.Normal):
        return ((q.loc - p.loc) / q.scale + 0.5 * (p.scale / q.scale) ** 2).exp()
    if isinstance(p, continuous.Uniform):
        return q.scale / (p.high - p.low) * (((q.loc - p.low) / q.scale).exp() - ((q.loc - p.high) / q.scale).exp())
    product = p.rate * q.scale
    if isinstance(p, continuous.Exponential):
        return (q.loc / q.scale).exp() * product / (product + 1)
    return (q.loc / q.scale).exp() * (1 + product.reciprocal()) ** -p.concentration


def _beside_beta(p: Distribution, q: multivariate.Beta) -> Tensor:
    a, b = q.concentration1, q.concentration0
    front = gammaln(a) + gammaln(b) - gammaln(a + b)
    return front + (1 - a) * _log_mean(p) + (1 - b) * _log_mean(p, mirrored=True)


def _beside_gamma(p: Distribution, q: continuous.Gamma) -> Tensor:
    a = q.concentration
    return gammaln(a) - a * q.rate.log() + (1 - a) * _log_mean(p) + q.rate * _mean(p)


_CROSS: dict[type, tuple[Formula, str]] = {  # E_p[-log q], and the classes of p that it is for
    discrete.Poisson: (lambda p, q: q.rate - p.probs * q.rate.log(), "Bernoulli"),
    relaxed.ContinuousBernoulli: (
        lambda p, q: -_mean(p) * q.logits - (-q.probs).log1p() - q._cont_bern_log_norm(),
        "Beta Uniform",
    ),
    continuous.Exponential: (
        lambda p, q: q.rate * _mean(p) - q.rate.log(),
        "Beta ContinuousBernoulli Gamma Pareto Uniform",
    ),
    continuous.Gamma: (_beside_gamma, "Beta Exponential Pareto Uniform"),
    composed.Gumbel: (
        lambda p, q: q.scale.log() + (_mean(p) - q.loc) / q.scale + _shrunk_mean(p, q),
        "Exponential Gamma Normal Uniform",
    ),
    continuous.Normal: (
        lambda p, q: 0.5 * log(2 * pi) + q.scale.log() + (_variance(p) + (_mean(p) - q.loc) ** 2) / (2 * q.scale**2),
        "Beta ContinuousBernoulli Exponential Gamma Gumbel Laplace Pareto Uniform",
    ),
    continuous.Uniform: (lambda p, q: (q.high - q.low).log(), "Beta ContinuousBernoulli"),
    multivariate.Beta: (_beside_beta, "Uniform"),
    composed.Pareto: (lambda p, q: (q.alpha + 1) * _log_mean(p) - q.alpha * q.scale.log() - q.alpha.log(), "Uniform"),
}


def _excluded(p: Distribution, q: Distribution) -> Tensor | None:
    """Where p has numbers that q excludes, and where both have infinite means."""
    if isinstance(p, composed.Pareto):
        return p.alpha <= (2 if isinstance(q, continuous.Normal) else 1)
    if isinstance(p, relaxed.ContinuousBernoulli) and isinstance(q, continuous.Uniform):
        return (q.low >= 0) | (q.high <= 1)  # as PyTorch has it
    if isinstance(p, continuous.Uniform) and isinstance(q, relaxed.ContinuousBernoulli):
        return (p.high >= 1) | (p.low <= 0)
    low = getattr(q.support, "lower_bound", None)
    if not isinstance(p, (continuous.Uniform, multivariate.Beta)) or low is None:
        return None
    high = getattr(q.support, "upper_bound", float("inf"))
    outside = (p.support.lower_bound < low) | (p.support.upper_bound > high)
    return outside if isinstance(outside, Tensor) else None  # all of a Beta is inside of numbers that are known


def _crossed(p: Distribution, q: Distribution) -> Tensor:
    kind = next(kind for kind in type(q).__mro__ if kind in _CROSS)
    found = _CROSS[kind][0](p, q) - p.entropy()
    outside = _excluded(p, q)
    return found if outside is None else where(outside, float("inf"), found)


def _infinite(p: Distribution, q: Distribution) -> Tensor:
    return full_like(getattr(p, next(iter(p.arg_constraints))), float("inf"))


_KINDS = {
    name: kind
    for module in (composed, continuous, discrete, multivariate, relaxed)
    for name, kind in vars(module).items()
}
_NEVER = {
    "Beta ContinuousBernoulli": "Pareto",
    "Exponential Gamma Pareto": "Beta ContinuousBernoulli Pareto Uniform",
    "Gumbel Laplace Normal": "Beta ContinuousBernoulli Exponential Gamma Pareto Uniform",
    "Poisson": "Bernoulli Binomial",
}
for _other, (_, _names) in _CROSS.items():
    for _name in _names.split():
        register_kl(_KINDS[_name], _other)(_crossed)
for _names, _others in _NEVER.items():
    for _name in _names.split():
        for _excluding in _others.split():
            if _name != _excluding:
                register_kl(_KINDS[_name], _KINDS[_excluding])(_infinite)
