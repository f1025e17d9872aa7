"""Layers, losses and the Module that they are built from. A layer is public when its module's `__all__` names it."""

from __future__ import annotations

from . import functional, init, parallel, parameter, utils
from .activation import *
from .audit import audit
from .batch_normalization import *
from .containers import *
from .convolution import *
from .dropout import *
from .embedding import *
from .lazy import *
from .lazy_normalization import *
from .linear import *
from .loss import *
from .module import *
from .normalization import *
from .padding import *
from .parallel import DataParallel
from .parameter import *
from .parameter_containers import *
from .paths import parameter_path
from .pooling import *
from .shape import *
from .sync_batch_normalization import *
from .upsampling import *

__all__ = ["DataParallel", "audit", "functional", "init", "parallel", "parameter", "parameter_path", "utils"]
# and what came with a star
_own = globals()
_parts = [each for each in list(_own.values()) if isinstance(each, type(init))]
_names = {
    name for part in _parts for name in getattr(part, "__all__", ()) if _own.get(name, init) is vars(part).get(name)
}
__all__ += _names.difference(__all__)
