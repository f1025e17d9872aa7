"""Divergences between distributions: a formula for each pair of classes."""

from __future__ import annotations

from collections.abc import Callable
from math import log, pi
from typing import Any

from ..functional.elementwise.pointwise import where
from ..nn.functional import softplus
from ..special import digamma, gammaln
from ..tensors import Tensor
from . import composed, continuous, discrete, multivariate
from .distribution import Distribution, sum_rightmost

__all__ = ["kl_divergence", "register_kl"]

Formula = Callable[[Any, Any], Tensor]
_formulas: dict[tuple[type, type], Formula] = {}


def register_kl(type_p: type, type_q: type) -> Callable[[Formula], Formula]:
    """A decorator that declares the formula for two classes, and for their subclasses."""

    def declare(formula: Formula) -> Formula:
        _formulas[type_p, type_q] = formula
        return formula

    return declare


def kl_divergence(p: Distribution, q: Distribution) -> Tensor:
    """The Kullback-Leibler divergence E_p[log p - log q], for each of the batch.

    >>> from tritensor.distributions import Normal, kl_divergence
    >>> kl_divergence(Normal(0.0, 1.0), Normal(1.0, 1.0))
    tensor(0.5000)

    Raises:
        NotImplementedError: no formula for these classes.
    """
    for one in type(p).__mro__:
        for other in type(q).__mro__:
            formula = _formulas.get((one, other))
            if formula is not None:
                return formula(p, q)
    raise NotImplementedError(
        f"No KL(p || q) is implemented for p type {type(p).__name__} and q type {type(q).__name__}"
    )


def _same(kind: type) -> Callable[[Formula], Formula]:
    return register_kl(kind, kind)


@_same(continuous.Normal)
def _(p: continuous.Normal, q: continuous.Normal) -> Tensor:
    ratio = (p.scale / q.scale) ** 2
    return 0.5 * (ratio + ((p.loc - q.loc) / q.scale) ** 2 - 1 - ratio.log())


@_same(continuous.Laplace)
def _(p: continuous.Laplace, q: continuous.Laplace) -> Tensor:
    ratio, away = p.scale / q.scale, (p.loc - q.loc).abs()
    return -ratio.log() + away / q.scale + ratio * (-away / p.scale).exp() - 1


@_same(continuous.Cauchy)
def _(p: continuous.Cauchy, q: continuous.Cauchy) -> Tensor:
    return ((p.scale + q.scale) ** 2 + (p.loc - q.loc) ** 2).log() - (4 * p.scale * q.scale).log()


@_same(composed.Gumbel)
def _(p: composed.Gumbel, q: composed.Gumbel) -> Tensor:
    ratio, own, other, euler = p.scale / q.scale, p.loc / q.scale, q.loc / q.scale, 0.57721566490153286
    return -ratio.log() - other + own + ratio * euler + (other + gammaln(1 + ratio) - own).exp() - (1 + euler)


@_same(composed.HalfNormal)
def _(p: composed.HalfNormal, q: composed.HalfNormal) -> Tensor:
    ratio = (p.scale / q.scale) ** 2
    return 0.5 * (ratio - 1 - ratio.log())


@_same(continuous.Uniform)
def _(p: continuous.Uniform, q: continuous.Uniform) -> Tensor:
    found = ((q.high - q.low) / (p.high - p.low)).log()
    return where((q.low > p.low) | (q.high < p.high), float("inf"), found)


@_same(continuous.Exponential)
def _(p: continuous.Exponential, q: continuous.Exponential) -> Tensor:
    ratio = q.rate / p.rate
    return -ratio.log() + ratio - 1


@_same(continuous.Gamma)
def _(p: continuous.Gamma, q: continuous.Gamma) -> Tensor:
    a, b = p.concentration, q.concentration
    found = b * (p.rate / q.rate).log() + gammaln(b) - gammaln(a)
    return found + (a - b) * digamma(a) + (q.rate - p.rate) * (a / p.rate)


@_same(multivariate.Beta)
def _(p: multivariate.Beta, q: multivariate.Beta) -> Tensor:
    a, b, c, d = p.concentration1, p.concentration0, q.concentration1, q.concentration0
    front = gammaln(c) + gammaln(d) + gammaln(a + b) - (gammaln(a) + gammaln(b) + gammaln(c + d))
    return front + (a - c) * digamma(a) + (b - d) * digamma(b) + (c + d - (a + b)) * digamma(a + b)


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


@_same(discrete.Geometric)
def _(p: discrete.Geometric, q: discrete.Geometric) -> Tensor:
    return -p.entropy() - (-q.probs).log1p() / p.probs - q.logits


@_same(discrete.Poisson)
def _(p: discrete.Poisson, q: discrete.Poisson) -> Tensor:
    return p.rate * (p.rate.log() - q.rate.log()) - (p.rate - q.rate)


@_same(discrete.Categorical)
def _(p: discrete.Categorical, q: discrete.Categorical) -> Tensor:
    terms = p.probs * (p.logits - q.logits)
    terms = where(q.probs == 0, float("inf"), terms)
    return where(p.probs == 0, 0, terms).sum(-1)


@_same(discrete.OneHotCategorical)
def _(p: discrete.OneHotCategorical, q: discrete.OneHotCategorical) -> Tensor:
    return kl_divergence(p._categorical, q._categorical)


@_same(multivariate.Dirichlet)
def _(p: multivariate.Dirichlet, q: multivariate.Dirichlet) -> Tensor:
    a, b, total = p.concentration, q.concentration, p.concentration.sum(-1)
    front = gammaln(total) - gammaln(b.sum(-1)) + (gammaln(b) - gammaln(a)).sum(-1)
    return front + ((a - b) * (digamma(a) - digamma(total).unsqueeze(-1))).sum(-1)


@_same(multivariate.MultivariateNormal)
def _(p: multivariate.MultivariateNormal, q: multivariate.MultivariateNormal) -> Tensor:
    from .. import linalg

    spread = linalg.solve_triangular(q._factor, p._factor, upper=False).square().sum((-2, -1))
    away = q._whitened(q.loc - p.loc).square().sum(-1)
    return q._half_log_determinant() - p._half_log_determinant() + 0.5 * (spread + away - p.event_shape[0])


@_same(composed.Independent)
def _(p: composed.Independent, q: composed.Independent) -> Tensor:
    if p.reinterpreted_batch_ndims != q.reinterpreted_batch_ndims:
        raise NotImplementedError
    return sum_rightmost(kl_divergence(p.base_dist, q.base_dist), p.reinterpreted_batch_ndims)


@_same(composed.TransformedDistribution)
def _(p: composed.TransformedDistribution, q: composed.TransformedDistribution) -> Tensor:
    if p.transforms != q.transforms:
        raise NotImplementedError
    return kl_divergence(p.base_dist, q.base_dist)


@register_kl(continuous.Uniform, continuous.Normal)
def _(p: continuous.Uniform, q: continuous.Normal) -> Tensor:
    width = p.high - p.low
    middle = (p.high + p.low - 2 * q.loc) / 2
    return 0.5 * log(2 * pi) + (q.scale / width).log() + (width**2 / 12 + middle**2) / (2 * q.scale**2)


@register_kl(continuous.Exponential, continuous.Gamma)
def _(p: continuous.Exponential, q: continuous.Gamma) -> Tensor:
    ratio = q.rate / p.rate
    return (
        -q.concentration * ratio.log()
        + ratio
        + gammaln(q.concentration)
        + q.concentration * 0.57721566490153286
        - (1 + 0.57721566490153286)
    )


@register_kl(continuous.Laplace, continuous.Normal)
def _(p: continuous.Laplace, q: continuous.Normal) -> Tensor:
    variance = q.scale**2
    ratio, away = p.scale**2 / variance, p.loc**2 / 2 - p.loc * q.loc + q.loc**2 / 2
    return -0.5 * (2 * ratio / pi).log() + ratio + away / variance - 1
