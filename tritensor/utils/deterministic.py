"""`torch.utils.deterministic`: whether new memory is filled while deterministic algorithms are asked for."""

from __future__ import annotations

import sys
from types import ModuleType

from ..errors import ShapeError, require
from ..operators.determinism import determinism


class _Settings(ModuleType):
    @property
    def fill_uninitialized_memory(self) -> bool:
        """True if new memory is filled: with NaN, the largest integer, or True."""
        return determinism.fill

    @fill_uninitialized_memory.setter
    def fill_uninitialized_memory(self, mode: bool) -> None:
        require(isinstance(mode, bool), ShapeError, "expected a bool, but got {}", type(mode).__name__)
        determinism.set(determinism.mode, mode)


sys.modules[__name__].__class__ = _Settings
