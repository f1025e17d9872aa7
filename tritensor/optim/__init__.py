"""Optimizers, and schedules of their learning rates."""

from __future__ import annotations

from . import lr_scheduler, swa_utils
from .adam import Adam, AdamW
from .optimizer import Optimizer
from .sgd import SGD

__all__ = ["Adam", "AdamW", "Optimizer", "SGD", "lr_scheduler", "swa_utils"]  # noqa: RUF022 - in the order of sorted()
