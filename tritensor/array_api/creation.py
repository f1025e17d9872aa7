"""Functions of the standard that make arrays; `device` is a device or its name, None for the default one."""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import functional
from ..errors import explain
from ..functional import creation, ranges
from ..public import PACKAGE
from ..tensor import Tensor
from .declaring import declared

_TABLE = """
arange(start, /, stop=None, step=1, *, dtype=None, device=None)
asarray(obj, /, *, dtype=None, device=None, copy=None)
empty(shape, *, dtype=None, device=None) = empty(shape=size): A tensor of any elements.
empty_like(x, /, *, dtype=None, device=None)
eye(n_rows, n_cols=None, /, *, k=0, dtype=None, device=None)
from_dlpack(x, /, *, device=None, copy=None)
full(shape, fill_value, *, dtype=None, device=None)
full_like(x, /, fill_value, *, dtype=None, device=None)
linspace(start, stop, /, num, *, dtype=None, device=None, endpoint=True)
meshgrid(*arrays, indexing='xy')
ones(shape, *, dtype=None, device=None) = ones(shape=size)
ones_like(x, /, *, dtype=None, device=None)
tril(x, /, *, k=0) = tril(k=diagonal): Matrices with zeros above the `k`-th diagonal.
triu(x, /, *, k=0) = triu(k=diagonal): Matrices with zeros below the `k`-th diagonal.
zeros(shape, *, dtype=None, device=None) = zeros(shape=size)
zeros_like(x, /, *, dtype=None, device=None)
"""


def _numbers(found: Any) -> Any:
    """Nested sequences with their 0-dim tensors as Python's numbers."""
    if isinstance(found, (list, tuple)):
        return [_numbers(each) for each in found]
    return found.item() if isinstance(found, Tensor) and not found.ndim else found


def asarray(obj: Any, *, dtype: Any = None, device: Any = None, copy: bool | None = None) -> Tensor:
    """`obj` (a tensor, an array with a buffer, numbers, nested sequences of these) as a tensor.

    With `copy=True` in memory of its own, with None where that is necessary.

    Raises:
        ValueError: `copy` is False, and a copy is necessary.
    """
    if isinstance(obj, (list, tuple)):
        obj = _numbers(obj)
    if copy and not isinstance(obj, Tensor):
        return creation.tensor(obj, dtype=dtype, device=device)
    if copy:
        return obj.to(obj.device if device is None else device, dtype, copy=True)  # type: ignore[no-any-return]
    found = creation.as_tensor(obj, dtype=dtype, device=device)
    if copy is None or found is obj or (isinstance(obj, np.ndarray) and found.data_ptr() == obj.ctypes.data):
        return found
    raise ValueError(explain("asarray: copy=False, but a copy is necessary", remedy="pass copy=None or copy=True"))


def _from_dlpack(x: Any, *, device: Any = None, copy: bool | None = None) -> Tensor:
    """A tensor over the memory of another library's array that supports DLPack; on another device, a copy."""
    return asarray(creation.from_dlpack(x), device=device, copy=copy)


def _arange(start: Any, stop: Any = None, step: Any = 1, *, dtype: Any = None, device: Any = None) -> Tensor:
    """The numbers from `start` (0 if it is the only bound) below `stop`, `step` apart; none if `step` leads away."""
    start, stop = (0, start) if stop is None else (start, stop)
    away = (stop - start) * (1 if step > 0 else -1) <= 0
    return ranges.arange(start, start if away else stop, step, dtype=dtype, device=device)


def _linspace(start: Any, stop: Any, num: int, *, endpoint: bool = True, **made: Any) -> Tensor:
    """`num` numbers evenly apart from `start` to `stop`, which `endpoint` includes."""
    found = ranges.linspace(start, stop, num + (not endpoint), **made)
    return found if endpoint else found[:-1]  # type: ignore[no-any-return]


def _eye(n_rows: int, n_cols: int | None = None, *, k: int = 0, **made: Any) -> Tensor:
    """A matrix of shape (`n_rows`, `n_cols` or `n_rows`) with ones on the `k`-th diagonal and zeros elsewhere."""
    found = creation.zeros((n_rows, n_rows if n_cols is None else n_cols), **made)
    if -found.shape[0] < k < found.shape[1]:
        found.diagonal(k).fill_(1)
    return found


def _full(shape: Any, fill_value: Any, **made: Any) -> Tensor:
    """A tensor of one number, of the default dtype of its kind unless `dtype` is given."""
    return creation.full((shape,) if isinstance(shape, int) else shape, fill_value, **made)


def _meshgrid(*arrays: Tensor, indexing: str = "xy") -> list[Tensor]:
    """The coordinates of a grid, a tensor for each 1-dim tensor; "xy" swaps the first two dimensions."""
    return list(functional.meshgrid(*arrays, indexing=indexing)) if arrays else []


_OWN = {"arange": _arange, "asarray": asarray, "eye": _eye, "from_dlpack": _from_dlpack, "full": _full}
FUNCTIONS = declared(__name__, _TABLE, PACKAGE | _OWN | {"linspace": _linspace, "meshgrid": _meshgrid})
