"""Probability distributions by PyTorch's names: samples, densities, moments and divergences, on every device alike."""

from __future__ import annotations

from . import constraints, kl, transforms
from .composed import (
    Gumbel,
    HalfCauchy,
    HalfNormal,
    Independent,
    InverseGamma,
    Kumaraswamy,
    LogisticNormal,
    LogNormal,
    MixtureSameFamily,
    Pareto,
    TransformedDistribution,
    Weibull,
)
from .constraint_registry import biject_to, transform_to
from .continuous import (
    Cauchy,
    Chi2,
    Exponential,
    FisherSnedecor,
    Gamma,
    GeneralizedPareto,
    Laplace,
    Normal,
    StudentT,
    Uniform,
    VonMises,
)
from .discrete import (
    Bernoulli,
    Binomial,
    Categorical,
    Geometric,
    Multinomial,
    NegativeBinomial,
    OneHotCategorical,
    OneHotCategoricalStraightThrough,
    Poisson,
)
from .distribution import Distribution
from .exp_family import ExponentialFamily
from .kl import kl_divergence, register_kl
from .multivariate import Beta, Dirichlet, LKJCholesky, LowRankMultivariateNormal, MultivariateNormal, Wishart
from .relaxed import ContinuousBernoulli, RelaxedBernoulli, RelaxedOneHotCategorical
from .transforms import *  # noqa: F403

__all__ = ["Bernoulli", "Beta", "Binomial", "Categorical", "Cauchy", "Chi2", "ContinuousBernoulli", "Dirichlet"]
__all__ += ["Distribution", "Exponential", "ExponentialFamily", "FisherSnedecor", "Gamma", "GeneralizedPareto"]
__all__ += ["Geometric", "Gumbel", "HalfCauchy", "HalfNormal", "Independent", "InverseGamma", "Kumaraswamy"]
__all__ += ["LKJCholesky", "Laplace", "LogNormal", "LogisticNormal", "LowRankMultivariateNormal", "MixtureSameFamily"]
__all__ += ["Multinomial", "MultivariateNormal", "NegativeBinomial", "Normal", "OneHotCategorical"]
__all__ += ["OneHotCategoricalStraightThrough", "Pareto", "Poisson", "RelaxedBernoulli", "RelaxedOneHotCategorical"]
__all__ += ["StudentT", "TransformedDistribution", "Uniform", "VonMises", "Weibull", "Wishart", "biject_to"]
__all__ += ["constraints", "kl", "kl_divergence", "register_kl", "transform_to", "transforms", *transforms.__all__]
