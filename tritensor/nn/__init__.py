"""Layers, losses and the Module that they are built from."""

from __future__ import annotations

from . import functional, init, parallel, parameter, utils
from .activation import (
    ELU,
    GELU,
    Hardtanh,
    LeakyReLU,
    LogSigmoid,
    LogSoftmax,
    Mish,
    ReLU,
    ReLU6,
    Sigmoid,
    SiLU,
    Softmax,
    Softplus,
    Softsign,
    Tanh,
    Tanhshrink,
)
from .audit import audit
from .containers import ModuleDict, ModuleList, Sequential
from .dropout import Dropout
from .embedding import Embedding
from .linear import Identity, Linear
from .loss import BCEWithLogitsLoss, CrossEntropyLoss, L1Loss, MSELoss, NLLLoss
from .module import Module
from .normalization import LayerNorm, RMSNorm
from .parallel import DataParallel
from .parameter import Buffer, Parameter
from .parameter_containers import ParameterDict, ParameterList
from .paths import parameter_path
from .shape import Flatten

__all__ = [  # noqa: RUF022 - in the order of sorted(), as everywhere
    "BCEWithLogitsLoss",
    "Buffer",
    "CrossEntropyLoss",
    "DataParallel",
    "Dropout",
    "ELU",
    "Embedding",
    "Flatten",
    "GELU",
    "Hardtanh",
    "Identity",
    "L1Loss",
    "LayerNorm",
    "LeakyReLU",
    "Linear",
    "LogSigmoid",
    "LogSoftmax",
    "MSELoss",
    "Mish",
    "Module",
    "ModuleDict",
    "ModuleList",
    "NLLLoss",
    "Parameter",
    "ParameterDict",
    "ParameterList",
    "RMSNorm",
    "ReLU",
    "ReLU6",
    "Sequential",
    "SiLU",
    "Sigmoid",
    "Softmax",
    "Softplus",
    "Softsign",
    "Tanh",
    "Tanhshrink",
    "audit",
    "functional",
    "init",
    "parallel",
    "parameter",
    "parameter_path",
    "utils",
]
