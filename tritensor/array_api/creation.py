"""Functions of the standard that make arrays, reshape and join them, and select elements.

What takes `copy` raises ValueError if that is False and a copy is necessary.
"""

from __future__ import annotations

from collections import ChainMap
from typing import Any

import numpy as np

from .. import functional
from ..errors import explain
from ..functional.creation import creation, exchange, ranges
from ..functional.views import views
from ..ground.public import PACKAGE
from ..tensors import Tensor
from ..types import Device, Dtype, layout
from .declaring import functions_of
from .statistics import one_axis

_TABLE = """
arange(start, /, stop=None, step=1, *, dtype=None, device=None): The numbers from `start`, or 0, to below `stop`.
asarray(obj, /, *, dtype=None, device=None, copy=None): A tensor, an array, a number or nested sequences as a tensor.
broadcast_arrays(*arrays): All tensors in the shape that they broadcast to, as views in a list.
broadcast_to(x, /, shape) = broadcast_to(shape=size): `x` in a shape that it broadcasts to, as a view.
concat(arrays, /, *, axis=0): The tensors one after the other along an axis, or all elements for None, in one dtype.
empty(shape, *, dtype=None, device=None) = empty(shape=size): A tensor of any elements.
empty_like(x, /, *, dtype=None, device=None)
expand_dims(x, /, axis) = unsqueeze: `x` with a new axis of extent 1, as a view.
eye(n_rows, n_cols=None, /, *, k=0, dtype=None, device=None): A matrix of ones on the `k`-th diagonal, zeros elsewhere.
flip(x, /, *, axis=None): The elements in reverse order along axes, or along all.
from_dlpack(array, /, *, device=None, copy=None): A tensor over the memory of another library's array that has DLPack.
full(shape, fill_value, *, dtype=None, device=None): A tensor of one number, of its default dtype unless that is given.
full_like(x, /, fill_value, *, dtype=None, device=None)
linspace(start, stop, /, num, *, dtype=None, device=None, endpoint=True): `num` numbers evenly apart.
meshgrid(*arrays, indexing='xy'): The coordinates of a grid in a list; "xy" swaps the first two axes.
moveaxis(x, source, destination, /): `x` with axes moved to other places, as a view.
ones(shape, *, dtype=None, device=None) = ones(shape=size)
ones_like(x, /, *, dtype=None, device=None)
permute_dims(x, /, axes) = permute(axes=dims): `x` with its axes in another order, as a view.
repeat(x, repeats, /, *, axis=None): Every element, or slice along an axis, `repeats` times, or as a 1-dim tensor says.
reshape(x, /, shape, *, copy=None): `x` in another shape of as many elements, of which one extent may be -1.
roll(x, /, shift, *, axis=None) = roll(shift=shifts, axis=dims): The elements shifted along axes, or as one, in a ring.
squeeze(x, /, axis): `x` without axes of extent 1, as a view; ValueError for those of another extent.
stack(arrays, /, *, axis=0): Tensors of one shape along a new axis, in the dtype that they promote to.
take(x, indices, /, *, axis=None): The elements, or slices along an axis, at the places in a 1-dim tensor.
take_along_axis(x, indices, /, *, axis=-1): The elements at places along an axis, for each row; other extents broadcast.
tile(x, repetitions, /): Copies of `x` side by side, so many along each axis.
tril(x, /, *, k=0) = tril(k=diagonal): Matrices with zeros above the `k`-th diagonal.
triu(x, /, *, k=0) = triu(k=diagonal): Matrices with zeros below the `k`-th diagonal.
unstack(x, /, *, axis=0) = unbind: The slices along an axis, as views in a tuple.
zeros(shape, *, dtype=None, device=None) = zeros(shape=size)
zeros_like(x, /, *, dtype=None, device=None)
"""


def _numbers(found: Any) -> Any:
    """Nested sequences with their 0-dim tensors as Python's numbers."""
    if isinstance(found, (list, tuple)):
        return [_numbers(each) for each in found]
    return found.item() if isinstance(found, Tensor) and not found.ndim else found


def _asarray(obj: object, *, dtype: Dtype = None, device: Device = None, copy: bool | None = None) -> Tensor:
    obj = _numbers(obj) if isinstance(obj, (list, tuple)) else obj
    if copy and isinstance(obj, Tensor):
        return obj.to(obj.device if device is None else device, dtype, copy=True)
    if copy:
        return creation.tensor(obj, dtype=dtype, device=device)
    found = creation.as_tensor(obj, dtype=dtype, device=device)
    same = found is obj or (isinstance(obj, np.ndarray) and found.data_ptr() == obj.ctypes.data)
    return _checked("asarray", found, same, copy)


def _checked(call: str, found: Tensor, same: bool, copy: bool | None) -> Tensor:
    if copy is False and not same:
        raise ValueError(explain(f"{call}: copy=False, but a copy is necessary", remedy="pass copy=None or copy=True"))
    return found.clone() if copy and same else found


def _arange(start: float, stop: Any = None, step: float = 1, **made: Any) -> Tensor:
    start, stop = (0, start) if stop is None else (start, stop)
    if (stop - start) * (1 if step > 0 else -1) <= 0:  # `step` leads away
        start = stop = 0.0 if isinstance(start, float) or isinstance(stop, float) else 0
    return ranges.arange(start, stop, step, **made)


def _eye(n_rows: int, n_cols: int | None = None, *, k: int = 0, **made: Any) -> Tensor:
    found = creation.zeros((n_rows, n_rows if n_cols is None else n_cols), **made)
    if -found.shape[0] < k < found.shape[1]:
        found.diagonal(k).fill_(1)
    return found


def _reshape(x: Tensor, shape: Any, *, copy: bool | None = None) -> Tensor:
    found = x.reshape(shape)
    return _checked("reshape", found, found.data_ptr() == x.data_ptr(), copy)


def _squeeze(x: Tensor, axis: int | tuple[int, ...]) -> Tensor:
    axes = layout.normalize_dims(axis, x.ndim)
    wrong = [each for each in axes if x.shape[each] != 1]
    if wrong:
        raise ValueError(explain("squeeze: an axis has another extent than 1", f"axis {wrong[0]} of {list(x.shape)}"))
    return views.squeeze(x, axes) if axes else x


def _positive(x: Tensor, indices: Tensor, axis: int) -> Tensor:
    places = indices.long()
    return functional.where(places < 0, places + x.shape[axis], places)


def _take(x: Tensor, indices: Tensor, *, axis: int | None = None) -> Tensor:
    along = one_axis("take", x, axis)
    return functional.index_select(x, along, _positive(x, indices, along))


_OWN = {
    "arange": _arange,
    "asarray": _asarray,
    "broadcast_arrays": lambda *arrays: list(views.broadcast_tensors(*arrays)),
    "concat": lambda arrays, *, axis=0: functional.cat(
        arrays if axis is not None else [x.reshape(-1) for x in arrays], axis or 0
    ),
    "eye": _eye,
    "flip": lambda x, *, axis=None: functional.flip(x, layout.normalize_dims(axis, x.ndim)),
    "from_dlpack": exchange.from_dlpack,
    "full": lambda shape, fill_value, **made: creation.full(
        (shape,) if isinstance(shape, int) else shape, fill_value, **made
    ),
    "linspace": lambda start, stop, num, *, endpoint=True, **made: ranges.linspace(
        start, stop, num + (not endpoint), **made
    )[:num],
    "meshgrid": lambda *arrays, indexing="xy": list(functional.meshgrid(*arrays, indexing=indexing)) if arrays else [],
    "repeat": lambda x, repeats, *, axis=None: functional.repeat_interleave(
        x, repeats.long() if isinstance(repeats, Tensor) else repeats, axis
    ),
    "reshape": _reshape,
    "squeeze": _squeeze,
    "take": _take,
    "take_along_axis": lambda x, indices, *, axis=-1: functional.take_along_dim(x, _positive(x, indices, axis), axis),
}
FUNCTIONS = functions_of(__name__, _TABLE, ChainMap(_OWN, PACKAGE))
