"""Functions of the standard that make arrays; `device` is a device or its name, None for the default one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np

from .. import dtypes, functional
from ..arguments import check_tensor
from ..dtypes import dtype
from ..errors import explain
from ..functional import creation, likeness, ranges
from ..tensor import Tensor
from .data_types import promoted

__all__ = [
    "arange",
    "asarray",
    "empty",
    "empty_like",
    "eye",
    "from_dlpack",
    "full",
    "full_like",
    "linspace",
    "meshgrid",
    "ones",
    "ones_like",
    "tril",
    "triu",
    "zeros",
    "zeros_like",
]

Shape = int | Sequence[int]


def asarray(obj: Any, /, *, dtype: dtype | None = None, device: Any = None, copy: bool | None = None) -> Tensor:
    """`obj` (a tensor, an array with a buffer, numbers, nested sequences of these) as a tensor.

    Args:
        copy: True for memory of its own; False for that of `obj`; None to copy where that is necessary.

    Raises:
        ValueError: `copy` is False, and the dtype, the device or the kind of `obj` needs a copy.
    """
    if copy:
        if isinstance(obj, Tensor):
            return obj.detach().to(obj.device if device is None else device, dtype, copy=True)  # type: ignore[no-any-return]
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
    if stop is None:
        start, stop = 0, start
    if (stop - start) * (1 if step > 0 else -1) <= 0:
        stop = start
    return ranges.arange(start, stop, step, dtype=dtype, device=device)


def linspace(
    start: complex,
    stop: complex,
    /,
    num: int,
    *,
    dtype: dtype | None = None,
    device: Any = None,
    endpoint: bool = True,
) -> Tensor:
    """`num` numbers evenly apart from `start` to `stop`, which `endpoint` includes."""
    if endpoint:
        return ranges.linspace(start, stop, num, dtype=dtype, device=device)
    return ranges.linspace(start, stop, num + 1, dtype=dtype, device=device)[:-1]  # type: ignore[no-any-return]


def eye(
    n_rows: int, n_cols: int | None = None, /, *, k: int = 0, dtype: dtype | None = None, device: Any = None
) -> Tensor:
    """A matrix of shape (`n_rows`, `n_cols` or `n_rows`) with ones on the `k`-th diagonal and zeros elsewhere."""
    made = creation.zeros((n_rows, n_rows if n_cols is None else n_cols), dtype=dtype, device=device)
    if -made.shape[0] < k < made.shape[1]:
        made.diagonal(k).fill_(1)
    return made


def _size(shape: Shape) -> Sequence[int]:
    return (shape,) if isinstance(shape, int) else shape


def empty(shape: Shape, *, dtype: dtype | None = None, device: Any = None) -> Tensor:
    """A tensor of any elements."""
    return creation.empty(_size(shape), dtype=dtype, device=device)


def zeros(shape: Shape, *, dtype: dtype | None = None, device: Any = None) -> Tensor:
    """A tensor of zeros."""
    return creation.zeros(_size(shape), dtype=dtype, device=device)


def ones(shape: Shape, *, dtype: dtype | None = None, device: Any = None) -> Tensor:
    """A tensor of ones."""
    return creation.ones(_size(shape), dtype=dtype, device=device)


def full(shape: Shape, fill_value: complex, *, dtype: dtype | None = None, device: Any = None) -> Tensor:
    """A tensor of one number, of the default dtype of its kind unless `dtype` is given."""
    return creation.full(_size(shape), fill_value, dtype=dtype, device=device)


def empty_like(x: Tensor, /, *, dtype: dtype | None = None, device: Any = None) -> Tensor:
    """A tensor of any elements with the shape of `x`, and its dtype and device if not given."""
    return likeness.empty_like(x, dtype=dtype, device=device)


def zeros_like(x: Tensor, /, *, dtype: dtype | None = None, device: Any = None) -> Tensor:
    """A tensor of zeros with the shape of `x`, and its dtype and device if not given."""
    return likeness.zeros_like(x, dtype=dtype, device=device)


def ones_like(x: Tensor, /, *, dtype: dtype | None = None, device: Any = None) -> Tensor:
    """A tensor of ones with the shape of `x`, and its dtype and device if not given."""
    return likeness.ones_like(x, dtype=dtype, device=device)


def full_like(x: Tensor, /, fill_value: complex, *, dtype: dtype | None = None, device: Any = None) -> Tensor:
    """A tensor of one number with the shape of `x`, and its dtype and device if not given."""
    return likeness.full_like(x, fill_value, dtype=dtype, device=device)


def tril(x: Tensor, /, *, k: int = 0) -> Tensor:
    """The elements of matrices on and below the `k`-th diagonal, zeros elsewhere."""
    return functional.tril(x, k)


def triu(x: Tensor, /, *, k: int = 0) -> Tensor:
    """The elements of matrices on and above the `k`-th diagonal, zeros elsewhere."""
    return functional.triu(x, k)


def meshgrid(*arrays: Tensor, indexing: Literal["xy", "ij"] = "xy") -> tuple[Tensor, ...]:
    """The coordinates of a grid, a tensor for each of the one-dimensional tensors; "xy" swaps the first dimensions."""
    for place, x in enumerate(arrays):
        check_tensor("meshgrid", "arrays", place + 1, x)
    return functional.meshgrid(*arrays, indexing=indexing) if arrays else ()


_ = dtypes, promoted
