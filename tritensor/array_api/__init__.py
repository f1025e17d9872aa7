"""The Python array API standard 2024.12 for tensors, which libraries get from `Tensor.__array_namespace__()`.

    xp = tensor.__array_namespace__()
    xp.sum(x, axis=(0, 1), keepdims=True)

The namespace has the standard's names, parameters and rules of promotion; the tensor's own functions and operators keep
PyTorch's. [The page](../../docs/array_api.md) says where the two differ.
"""

from __future__ import annotations

import math as _math

from ..version import __version__
from . import creation as _creation
from . import data_types as _data_types
from . import elementwise as _elementwise
from . import fft, linalg
from . import manipulation as _manipulation
from . import searching as _searching
from . import statistics as _statistics
from .info import __array_namespace_info__
from .linalg import matmul, matrix_transpose, tensordot, vecdot

__array_api_version__ = "2024.12"

e, inf, nan, pi = _math.e, _math.inf, _math.nan, _math.pi
newaxis = None
_NAMED = {name: getattr(module, name) for module in (
    _creation, _data_types, _elementwise, _manipulation, _searching, _statistics) for name in module.__all__}
globals().update(_NAMED, **__array_namespace_info__().dtypes())

__all__ = [
    *("__array_api_version__", "__array_namespace_info__", "__version__", "e", "fft", "inf", "linalg", "matmul"),
    *("matrix_transpose", "nan", "newaxis", "pi", "tensordot", "vecdot"),
    *__array_namespace_info__().dtypes(),
    *_NAMED,
]
