"""Functions of tensors with PyTorch's names and parameters; importing them attaches the methods of Tensor.

The decorator `tritensor.public.public` makes a function public, the declaration in `tritensor.kernels` an operator.
Every module of this folder is imported.
"""

from __future__ import annotations

from ..kernels import elementwise as _elementwise  # noqa: F401 - its declarations are public functions
from ..kernels import reduction as _reduction  # noqa: F401
from ..public import FUNCTIONAL as _FUNCTIONAL
from ..public import load_modules as _load_modules
from . import derived as _derived

_load_modules(__name__, __path__)
_derived.functions_of_methods()
globals().update(_FUNCTIONAL)

__all__ = sorted(_FUNCTIONAL)
