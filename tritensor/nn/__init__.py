"""Layers, losses and the Module that they are built from. A layer is public when its module's `__all__` names it."""

from __future__ import annotations

from . import (
    activation,
    adaptive,
    attention,
    batch_normalization,
    containers,
    convolution,
    distance,
    dropout,
    embedding,
    functional,
    grad,
    init,
    lazy,
    lazy_normalization,
    linear,
    loss,
    module,
    multi_head,
    normalization,
    padding,
    parallel,
    parameter,
    parameter_containers,
    pooling,
    recurrent,
    shape,
    sync_batch_normalization,
    transformer,
    upsampling,
    utils,
)
from .activation import *
from .adaptive import *
from .audit import audit
from .batch_normalization import *
from .containers import *
from .convolution import *
from .distance import *
from .dropout import *
from .embedding import *
from .lazy import *
from .lazy_normalization import *
from .linear import *
from .loss import *
from .module import *
from .multi_head import *
from .normalization import *
from .padding import *
from .parallel import DataParallel
from .parameter import *
from .parameter_containers import *
from .paths import parameter_path
from .pooling import *
from .recurrent import *
from .shape import *
from .sync_batch_normalization import *
from .transformer import *
from .upsampling import *

__all__ = ["DataParallel", "audit", "functional", "grad", "init", "parallel", "parameter", "parameter_path", "utils"]
__all__ += ["attention"]
__all__ += activation.__all__
__all__ += adaptive.__all__
__all__ += batch_normalization.__all__
__all__ += containers.__all__
__all__ += convolution.__all__
__all__ += distance.__all__
__all__ += dropout.__all__
__all__ += embedding.__all__
__all__ += lazy.__all__
__all__ += lazy_normalization.__all__
__all__ += linear.__all__
__all__ += loss.__all__
__all__ += module.__all__
__all__ += multi_head.__all__
__all__ += normalization.__all__
__all__ += padding.__all__
__all__ += parameter.__all__
__all__ += parameter_containers.__all__
__all__ += pooling.__all__
__all__ += recurrent.__all__
__all__ += shape.__all__
__all__ += sync_batch_normalization.__all__
__all__ += transformer.__all__
__all__ += upsampling.__all__
