"""Probability distributions by PyTorch's names: samples, densities, moments and divergences, on every device alike."""

from __future__ import annotations

from . import constraints, kl, transforms
from .composed import Gumbel, HalfNormal, Independent, LogNormal, MixtureSameFamily, TransformedDistribution, Weibull
from .continuous import Cauchy, Chi2, Exponential, Gamma, Laplace, Normal, StudentT, Uniform
from .discrete import Bernoulli, Binomial, Categorical, Geometric, Multinomial, OneHotCategorical, Poisson
from .distribution import Distribution
from .kl import kl_divergence, register_kl
from .multivariate import Beta, Dirichlet, MultivariateNormal
from .transforms import (
    AbsTransform,
    AffineTransform,
    ComposeTransform,
    ExpTransform,
    PowerTransform,
    SigmoidTransform,
    TanhTransform,
    Transform,
)

__all__ = ["AbsTransform", "AffineTransform", "Bernoulli", "Beta", "Binomial", "Categorical", "Cauchy", "Chi2"]
__all__ += ["ComposeTransform", "Dirichlet", "Distribution", "ExpTransform", "Exponential", "Gamma", "Geometric"]
__all__ += ["Gumbel", "HalfNormal", "Independent", "Laplace", "LogNormal", "MixtureSameFamily", "Multinomial"]
__all__ += ["MultivariateNormal", "Normal", "OneHotCategorical", "Poisson", "PowerTransform", "SigmoidTransform"]
__all__ += ["StudentT", "TanhTransform", "Transform", "TransformedDistribution", "Uniform", "Weibull", "constraints"]
__all__ += ["kl", "kl_divergence", "register_kl", "transforms"]
