"""The functions that layers are made of; those of `tritensor.functional`, under PyTorch's name."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ..functional import *  # noqa: F403
else:
    from ..ground.index import namespace
    from ..ground.public import FUNCTIONAL

    __getattr__, __dir__ = namespace(__name__, FUNCTIONAL)
