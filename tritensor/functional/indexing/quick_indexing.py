"""Quick paths on the CPU for common cases of indexing and joining; results are those of the operators' references.

Each function returns None (or False), and has changed nothing, if the case is another one or an error: the caller then
calls the operator, which handles all cases and raises the errors.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ...autograd.mode import recording
from ...autograd.precision import casts, state
from ...autograd.tape import Gradient, Node, record
from ...host.copying import FLOAT8
from ...kernels.indexing.family import index, mark_checked_range
from ...kernels.indexing.reference import mesh
from ...memory.deferred import Deferred
from ...operators.inplace import OverlapError, check_writable
from ...tensors import Tensor, wrap

ndarray = np.ndarray
_INT64, _BOOL = np.dtype(np.int64), np.dtype(np.bool_)
# numbers of which every floating dtype but float8 holds those of less than _MOST
_PLAIN, _MOST = frozenset((bool, int, float)), 65504
_REFUSED = (IndexError, ValueError, TypeError, OverflowError)


def place(key: object) -> ndarray | None:
    """An index along the first dimension, or a mask of the first ones, as an array; None for any other kind of key."""
    if isinstance(key, Tensor):
        where = key._data
    elif type(key) is list and key and type(key[0]) is int:
        try:
            where = np.array(key)
        except _REFUSED:  # a list with elements that are not numbers, which PyTorch reads as a tuple
            return None
    else:
        where = key
    if type(where) is not ndarray or where.ndim == 0 or (where.dtype != _INT64 and where.dtype != _BOOL):
        return None
    return where


def read(x: Tensor, key: object) -> Tensor | None:
    """`x[key]` for one index tensor, list of integers or mask."""
    data, where = x._data, place(key)
    recorded = x._needs and recording.enabled
    if where is None or type(data) is not ndarray or data.ndim == 0 or (recorded and where.dtype == _BOOL):
        return None
    try:
        result = wrap(data[where])
    except IndexError:
        return None
    if recorded:
        positions: Tensor = (key if isinstance(key, Tensor) else wrap(where)).unsqueeze(0)
        mark_checked_range(positions)
        index.record((result,), (x, positions), {"dims": (0,)})
    return result


def write(x: Tensor, key: Any, basic: bool, value: Any) -> bool:
    """`x[key] = value` where nothing is recorded, for a basic key, one index tensor or a mask; whether it was done."""
    data = x._data
    tensor = isinstance(value, Tensor)
    source = value._data if tensor else value
    if type(data) is not ndarray or (tensor and type(source) is not ndarray) or data.dtype in FLOAT8:
        return False
    if not tensor and (type(source) not in _PLAIN or not -_MOST < source < _MOST):
        return False  # whether it fits is worked out there
    if recording.enabled and (x._needs or x._origin is not None or (tensor and value._needs)):
        return False
    if basic:
        parts = key if type(key) is tuple else (key,)
        if any(type(part) is slice and part.step is not None for part in parts) or (
            tensor and source.dtype.kind == "c"
        ):
            return False
        where = key
    else:
        where = place(key)
        if where is None or (tensor and source.dtype != data.dtype):
            return False
    try:
        check_writable(x)
    except OverlapError:
        return False
    try:
        data[where] = source
    except _REFUSED:
        return False
    counter = x._counter = x._counter or [0]
    counter[0] += 1
    return True


def take(x: Tensor, where: Tensor, dim: int, along: bool) -> Tensor | None:
    """Slices of `x` (`along` False) or elements (as `gather`) at an index that has been checked, if no gradient is
    needed.
    """
    data, chosen = x._data, where._data
    if Deferred.used and Deferred in (type(data), type(chosen)) and not (x._needs and recording.enabled):
        return Deferred.rules.through("take", _taken, (x, where), dim, along) if data.ndim else None
    if type(data) is not ndarray or type(chosen) is not ndarray or (x._needs and recording.enabled) or data.ndim == 0:
        return None
    return wrap(_taken(data, chosen, dim, along))


def _taken(data: ndarray, chosen: ndarray, dim: int, along: bool) -> ndarray:
    return data[mesh(chosen, dim)] if along else data.take(chosen, dim)


class _Parts(Gradient):
    """Cuts the gradient of joined arrays into those of the arrays that need one: `parts` are (start, size, shape)."""

    __slots__ = ("dim", "name", "parts")

    def __init__(self, name: str, dim: int, parts: list[tuple[int, int, tuple[int, ...]]]) -> None:
        self.name, self.dim, self.parts = name, dim, parts

    def renamed(self, name: str) -> Gradient:
        self.name = name  # of one node alone
        return self

    def run(self, node: Node, gradient: Any) -> list[Any]:
        data = gradient._data
        if type(data) is not ndarray or recording.enabled:
            return [gradient.narrow(self.dim, start, size).reshape(shape) for start, size, shape in self.parts]
        before = (slice(None),) * self.dim
        return [data[(*before, slice(start, start + size))].reshape(shape) for start, size, shape in self.parts]


def join(
    name: str,
    tensors: Sequence[Tensor],
    dim: int,
    form: Callable[[ndarray], ndarray] | None = None,
    whole: tuple[int, ...] | None = None,
) -> Any:
    """Arrays of one dtype one after another along `dim`, of views by `form` if given; with one node, of this name.

    With `whole`, the shape of the result, arrays that are its rows: to put these together takes no view of each.
    """
    arrays = [x._data for x in tensors]
    kind = getattr(arrays[0], "dtype", None)
    if [True for array in arrays if type(array) is not ndarray or array.dtype is not kind] or (
        casts.on and state.watch
    ):
        return None
    if form is None and len(arrays) > 1 and arrays[0].shape == (0,) and arrays[-1].ndim > 1 and not tensors[0]._needs:
        tensors, arrays = tensors[1:], arrays[1:]  # with which a cache of keys begins; PyTorch joins it to any shape
    try:
        views = arrays if form is None or whole else [form(array) for array in arrays]
        joined = np.concatenate(views, dim)
        result = wrap(joined.reshape(whole) if whole else joined)
    except _REFUSED:
        return None
    if recording.enabled and [True for x in tensors if x._needs]:
        recorded, parts, start = [], [], 0
        dim %= joined.ndim
        for x, array, view in zip(tensors, arrays, views, strict=True):
            size = 1 if whole else view.shape[dim]
            if x._needs:
                recorded.append(x._edge())
                parts.append((start, size, array.shape))
            start += size
        result._node, result._needs = record(_Parts(name, dim, parts), tuple(recorded)), True
    return result
