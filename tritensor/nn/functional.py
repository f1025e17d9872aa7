"""The functions that layers are made of; those of `tritensor.functional`, under PyTorch's name."""

from __future__ import annotations

from ..functional import *  # noqa: F403
from ..functional import __all__ as __all__
