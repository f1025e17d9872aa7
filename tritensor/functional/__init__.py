"""Functions of tensors with PyTorch's names and parameters; importing them attaches the methods of Tensor.

Each function says where it is declared that it is public (`tritensor.public`), an operator by its declaration in
`tritensor.kernels`. Every module of this folder is imported.
"""

from __future__ import annotations

from ..kernels import elementwise as _elementwise  # noqa: F401 - its declarations are public functions
from ..kernels import reduction as _reduction  # noqa: F401
from ..public import FUNCTIONAL as _FUNCTIONAL
from ..public import load_modules as _load_modules

_load_modules(__name__, __path__)
globals().update(_FUNCTIONAL)

__all__ = sorted(_FUNCTIONAL)
