"""Functions of tensors with PyTorch's names and parameters.

The decorator `public` (`tritensor/ground/public.py`) makes a function public, the declaration in `tritensor.kernels` an
operator. A folder bears the name of the family in `kernels/` that its functions use most. A module is imported when one
of its names is first used (`tritensor/ground/index.py`).
"""

from __future__ import annotations

import sys as _sys
from types import ModuleType as _ModuleType
from typing import Any

from ..ground.index import namespace as _namespace
from ..ground.public import FUNCTIONAL as _FUNCTIONAL

__getattr__, __dir__ = _namespace(__name__, _FUNCTIONAL)


class _Functional(_ModuleType):
    def __setattr__(self, name: str, value: Any) -> None:
        if not (name == "matmul" and isinstance(value, _ModuleType)):  # it is the function, not the folder
            super().__setattr__(name, value)


_sys.modules[__name__].__class__ = _Functional
