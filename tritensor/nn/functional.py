"""The functions that layers are made of; the same as `tritensor.functional`, at PyTorch's place."""

from __future__ import annotations

from ..functional import *  # noqa: F403
from ..functional import __all__ as __all__
