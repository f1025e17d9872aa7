"""Optimizers, and schedules of their learning rates."""

from __future__ import annotations

from . import lr_scheduler
from .adam import Adam, Adamax, AdamW, NAdam, RAdam
from .lbfgs import LBFGS
from .optimizer import Optimizer
from .sgd import ASGD, SGD, Rprop
from .sparse_adam import SparseAdam
from .squares import Adadelta, Adagrad, RMSprop
from .stacked import Adafactor, Muon

__all__ = [  # noqa: RUF022 - in the order of sorted()
    "ASGD",
    "Adadelta",
    "Adafactor",
    "Adagrad",
    "Adam",
    "AdamW",
    "Adamax",
    "LBFGS",
    "Muon",
    "NAdam",
    "Optimizer",
    "RAdam",
    "RMSprop",
    "Rprop",
    "SGD",
    "SparseAdam",
    "lr_scheduler",
]
