"""Linear algebra by PyTorch's names: factorisations, solving, norms and functions of matrices."""

from __future__ import annotations

from ..errors import LinAlgError as LinAlgError
from . import factorizations
from . import old_names as _old_names  # noqa: F401 - its functions are public names of the package
from .factorizations import *

__all__ = sorted(["LinAlgError", *factorizations.__all__])
