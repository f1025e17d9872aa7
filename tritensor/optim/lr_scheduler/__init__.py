"""Schedules for the learning rate: each `step()` sets the rates of the optimizer's groups for the next epoch.

Those that multiply the current rate can be used together on one optimizer.
"""

from __future__ import annotations

from .base import LRScheduler, _LRScheduler  # noqa: F401 - an older name of it
from .combined import ChainedScheduler, SequentialLR
from .cycles import CosineAnnealingWarmRestarts, CyclicLR, OneCycleLR
from .decays import (
    ConstantLR,
    CosineAnnealingLR,
    ExponentialLR,
    LambdaLR,
    LinearLR,
    MultiplicativeLR,
    MultiStepLR,
    PolynomialLR,
    StepLR,
)
from .plateau import ReduceLROnPlateau

__all__ = ["ChainedScheduler", "ConstantLR", "CosineAnnealingLR", "CosineAnnealingWarmRestarts", "CyclicLR"]
__all__ += ["ExponentialLR", "LRScheduler", "LambdaLR", "LinearLR", "MultiStepLR", "MultiplicativeLR", "OneCycleLR"]
__all__ += ["PolynomialLR", "ReduceLROnPlateau", "SequentialLR", "StepLR"]
