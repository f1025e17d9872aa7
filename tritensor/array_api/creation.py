"""Functions of the standard that make arrays; `device` is a device or its name, None for the default one."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np

from .. import functional
from ..dtypes import dtype
from ..errors import explain
from ..functional import creation, likeness, ranges
from ..tensor import Tensor
from .arrays import declared


def asarray(obj: Any, /, *, dtype: dtype | None = None, device: Any = None, copy: bool | None = None) -> Tensor:
    """`obj` (a tensor, an array with a buffer, numbers, nested sequences of these) as a tensor.

    Args:
        copy: True for memory of its own; False for that of `obj`; None to copy where that is necessary.

    Raises:
        ValueError: `copy` is False, and the dtype, the device or the kind of `obj` needs a copy.
    """
    if copy:
        if isinstance(obj, Tensor):
            return obj.to(obj.device if device is None else device, dtype, copy=True)  # type: ignore[no-any-return]
        return creation.tensor(obj, dtype=dtype, device=device)
    found = creation.as_tensor(obj, dtype=dtype, device=device)
    if copy is None or found is obj or (isinstance(obj, np.ndarray) and found.data_ptr() == obj.ctypes.data):
        return found
    raise ValueError(explain("asarray: copy=False, but a copy is necessary", remedy="pass copy=None or copy=True"))


def from_dlpack(x: Any, /, *, device: Any = None, copy: bool | None = None) -> Tensor:
    """A tensor over the memory of another library's array that supports DLPack; on another device, a copy."""
    return asarray(creation.from_dlpack(x), device=device, copy=copy)


def arange(
    start: float,
    /,
    stop: float | None = None,
    step: float = 1,
    *,
    dtype: dtype | None = None,
    device: Any = None,
) -> Tensor:
    """The numbers from `start` (0 if it is the only bound) below `stop`, `step` apart; none if `step` leads away."""
    start, stop = (0, start) if stop is None else (start, stop)
    away = (stop - start) * (1 if step > 0 else -1) <= 0
    return ranges.arange(start, start if away else stop, step, dtype=dtype, device=device)


def linspace(
    start: complex, stop: complex, /, num: int, *, dtype: dtype | None = None, device: Any = None, endpoint: bool = True
) -> Tensor:
    """`num` numbers evenly apart from `start` to `stop`, which `endpoint` includes."""
    found = ranges.linspace(start, stop, num + (not endpoint), dtype=dtype, device=device)
    return found if endpoint else found[:-1]  # type: ignore[no-any-return]


def eye(
    n_rows: int, n_cols: int | None = None, /, *, k: int = 0, dtype: dtype | None = None, device: Any = None
) -> Tensor:
    """A matrix of shape (`n_rows`, `n_cols` or `n_rows`) with ones on the `k`-th diagonal and zeros elsewhere."""
    made = creation.zeros((n_rows, n_rows if n_cols is None else n_cols), dtype=dtype, device=device)
    if -made.shape[0] < k < made.shape[1]:
        made.diagonal(k).fill_(1)
    return made


def meshgrid(*arrays: Tensor, indexing: Literal["xy", "ij"] = "xy") -> list[Tensor]:
    """The coordinates of a grid, a tensor for each of the one-dimensional tensors; "xy" swaps the first dimensions."""
    return list(functional.meshgrid(*arrays, indexing=indexing)) if arrays else []


def _size(shape: Any) -> Any:
    return (shape,) if isinstance(shape, int) else shape


_TEXTS = """
empty: A tensor of any elements.
zeros: A tensor of zeros.
ones: A tensor of ones.
full: A tensor of one number, of the default dtype of its kind unless `dtype` is given.
empty_like: A tensor of any elements with the shape of `x`, and its dtype and device unless they are given.
zeros_like: A tensor of zeros with the shape of `x`, and its dtype and device unless they are given.
ones_like: A tensor of ones with the shape of `x`, and its dtype and device unless they are given.
full_like: A tensor of one number with the shape of `x`, and its dtype and device unless they are given.
tril: The elements of matrices on and below the `k`-th diagonal, zeros elsewhere.
triu: The elements of matrices on and above the `k`-th diagonal, zeros elsewhere.
"""


def _of_shape(make: Any) -> Any:
    return lambda shape, *, dtype=None, device=None: make(_size(shape), dtype=dtype, device=device)


def _like(make: Any) -> Any:
    return lambda x, /, *, dtype=None, device=None: make(x, dtype=dtype, device=device)


_made = declared(
    __name__,
    {
        **{each.__name__: each for each in (asarray, from_dlpack, arange, linspace, eye, meshgrid)},
        **{name: _of_shape(getattr(creation, name)) for name in ("empty", "zeros", "ones")},
        **{name: _like(getattr(likeness, name)) for name in ("empty_like", "zeros_like", "ones_like")},
        "full": lambda shape, fill_value, *, dtype=None, device=None: creation.full(
            _size(shape), fill_value, dtype=dtype, device=device
        ),
        "full_like": lambda x, /, fill_value, *, dtype=None, device=None: likeness.full_like(
            x, fill_value, dtype=dtype, device=device
        ),
        "tril": lambda x, /, *, k=0: functional.tril(x, k),
        "triu": lambda x, /, *, k=0: functional.triu(x, k),
    },
    _TEXTS,
)
globals().update(_made)

__all__ = list(_made)
