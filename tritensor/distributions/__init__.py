"""Probability distributions by PyTorch's names: samples, densities, moments and divergences, on every device alike."""

from __future__ import annotations

from . import composed, constraints, continuous, discrete, kl, multivariate, relaxed, transforms
from .composed import *  # noqa: F403
from .constraint_registry import biject_to, transform_to
from .continuous import *  # noqa: F403
from .discrete import *  # noqa: F403
from .distribution import Distribution
from .exp_family import ExponentialFamily
from .kl import kl_divergence, register_kl
from .multivariate import *  # noqa: F403
from .relaxed import *  # noqa: F403
from .transforms import *  # noqa: F403

__all__ = ["Distribution", "ExponentialFamily", "biject_to", "constraints", "kl", "kl_divergence", "register_kl"]
__all__ += ["transform_to", "transforms", *composed.__all__, *continuous.__all__, *discrete.__all__]
__all__ += [*multivariate.__all__, *relaxed.__all__, *transforms.__all__]
