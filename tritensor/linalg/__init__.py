"""Linear algebra by PyTorch's names: factorisations, solving, norms and functions of matrices."""

from __future__ import annotations

from ..errors import LinAlgError as LinAlgError
from . import factorizations, matrix_functions, norms, solving
from . import old_names as _old_names  # noqa: F401 - its functions are public names of the package
from .factorizations import *
from .matrix_functions import *
from .norms import *
from .solving import *

__all__ = sorted(["LinAlgError", *factorizations.__all__, *matrix_functions.__all__, *norms.__all__, *solving.__all__])
