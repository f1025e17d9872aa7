"""The Python array API standard 2024.12 for tensors, which libraries get from `Tensor.__array_namespace__()`.

    xp = tensor.__array_namespace__()
    xp.sum(x, axis=(0, 1), keepdims=True)

The namespace has the standard's names, parameters and rules of promotion; tensors and their operators keep PyTorch's.
Arrays that it makes of no tensor (`xp.asarray([1.0])`, `xp.zeros(3)`), and results with them, are of the class `Array`,
a Tensor whose operators follow the standard. docs/array_api.md says where the two differ.
"""

from __future__ import annotations

import math as _math

from ..version import __version__
from . import creation as _creation
from . import elementwise as _elementwise
from . import fft, linalg
from . import manipulation as _manipulation
from . import statistics as _statistics
from .arrays import Array
from .data_types import astype, can_cast, finfo, iinfo, isdtype, result_type
from .info import Info as _Info

__array_api_version__ = "2024.12"
e, inf, nan, pi = _math.e, _math.inf, _math.nan, _math.pi
newaxis = None
__array_namespace_info__ = _Info

_named = _Info().dtypes() | _creation.FUNCTIONS | _elementwise.FUNCTIONS | _manipulation.FUNCTIONS
_named |= _statistics.FUNCTIONS
_named |= {name: getattr(linalg, name) for name in ("matmul", "matrix_transpose", "tensordot", "vecdot")}
globals().update(_named)

__all__ = [
    "Array",
    "__array_api_version__",
    "__array_namespace_info__",
    "__version__",
    "astype",
    "can_cast",
    "e",
    "fft",
]
__all__ += ["finfo", "iinfo", "inf", "isdtype", "linalg", "nan", "newaxis", "pi", "result_type", *_named]
