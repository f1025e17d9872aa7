"""The Python array API standard 2024.12 for tensors, which libraries get from `Tensor.__array_namespace__()`.

The namespace has the standard's names, parameters and rules of promotion; tensors and their operators keep PyTorch's.
Arrays that it makes of no tensor (`xp.asarray([1.0])`, `xp.zeros(3)`), and results with them, are of the class `Array`,
a Tensor whose operators follow the standard. docs/array_api.md says where the two differ.
"""

from __future__ import annotations

from math import e, inf, nan, pi

from . import creation as _creation
from . import data_types as _data_types
from . import elementwise as _elementwise
from . import fft, linalg
from . import statistics as _statistics
from .arrays import Array

__array_api_version__ = "2024.12"
__array_namespace_info__ = _data_types.Info
newaxis = None

_named = {name: getattr(_data_types, name) for name in _data_types.__all__}
_named |= _data_types.Info().dtypes() | _creation.FUNCTIONS | _elementwise.FUNCTIONS | _statistics.FUNCTIONS
_named |= {name: getattr(linalg, name) for name in ("matmul", "matrix_transpose", "tensordot", "vecdot")}
globals().update(_named)

__all__ = ["Array", "__array_api_version__", "__array_namespace_info__", *_named]
__all__ += ["e", "fft", "inf", "linalg", "nan", "newaxis", "pi"]
