"""Functions of tensors with PyTorch's names and parameters; importing them attaches the methods of Tensor.

The decorator `public` (`tritensor/ground/public.py`) makes a function public, the declaration in `tritensor.kernels` an
operator. A folder bears the name of the family in `kernels/` that its functions use most. All modules are
imported.
"""

from __future__ import annotations

from ..ground.public import FUNCTIONAL as _FUNCTIONAL
from ..ground.public import load_modules as _load_modules
from ..kernels import elementwise as _elementwise  # noqa: F401 - its declarations are public functions
from ..kernels import reduction as _reduction  # noqa: F401
from .views import derived as _derived

_load_modules(__name__, __path__)
_derived.functions_of_methods()
globals().update(_FUNCTIONAL)

__all__ = sorted(_FUNCTIONAL)
