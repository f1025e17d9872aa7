"""Layers, losses and the Module that they are built from. A layer is public when its module's `__all__` names it."""

from __future__ import annotations

from . import (
    activation,
    containers,
    dropout,
    embedding,
    functional,
    init,
    linear,
    loss,
    module,
    normalization,
    padding,
    parallel,
    parameter,
    parameter_containers,
    shape,
    upsampling,
    utils,
)
from .activation import *
from .audit import audit
from .containers import *
from .dropout import *
from .embedding import *
from .linear import *
from .loss import *
from .module import *
from .normalization import *
from .padding import *
from .parallel import DataParallel
from .parameter import *
from .parameter_containers import *
from .paths import parameter_path
from .shape import *
from .upsampling import *

__all__ = ["DataParallel", "audit", "functional", "init", "parallel", "parameter", "parameter_path", "utils"]
__all__ += activation.__all__
__all__ += containers.__all__
__all__ += dropout.__all__
__all__ += embedding.__all__
__all__ += linear.__all__
__all__ += loss.__all__
__all__ += module.__all__
__all__ += normalization.__all__
__all__ += padding.__all__
__all__ += parameter.__all__
__all__ += parameter_containers.__all__
__all__ += shape.__all__
__all__ += upsampling.__all__
