"""Optimizers, and schedules of their learning rates."""

from __future__ import annotations

from . import lr_scheduler
from .adam import Adam, Adamax, AdamW, NAdam, RAdam
from .optimizer import Optimizer
from .sgd import ASGD, SGD, Rprop
from .squares import Adadelta, Adagrad, RMSprop

__all__ = [  # noqa: RUF022 - in the order of sorted()
    "ASGD",
    "Adadelta",
    "Adagrad",
    "Adam",
    "AdamW",
    "Adamax",
    "NAdam",
    "Optimizer",
    "RAdam",
    "RMSprop",
    "Rprop",
    "SGD",
    "lr_scheduler",
]
