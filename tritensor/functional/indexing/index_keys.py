"""Splitting the key of `x[key]` into a view for its basic parts, and coordinates in the view for the others.

Integers, slices, None and Ellipsis make a view. Integer tensors, masks, lists and NumPy arrays index the view: each
becomes coordinates along one dimension (a mask along as many as it has), and all of them together one int64 tensor of
shape (k, *places), the argument of the operators in `kernels/indexing`.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ...errors import BoundsError, DeviceMismatchError, RangeError, ShapeError, warn
from ...kernels.indexing.family import check_bounds, mark_checked_range
from ...kernels.indexing.reference import indexed_shape
from ...memory.lifted import Batched
from ...tensors import Tensor
from ...types import dtypes, layout
from ...types.size import check_rank
from ..creation import creation
from ..views.joining import stack
from ..views.views import basic_index
from .search import nonzero

_BASIC = frozenset((int, slice, type(None), type(Ellipsis)))


def is_basic(key: object) -> bool:
    """True if `x[key]` is a view that NumPy's basic indexing makes."""
    if key.__class__ is tuple:
        return _BASIC.issuperset([part.__class__ for part in key])
    return key.__class__ in _BASIC


class Places(NamedTuple):
    """The meaning of a key.

    Attributes:
        view: what the basic parts make of the tensor.
        positions: coordinates in the view of shape (k, *places), on its device; None for a basic key.
        dims: the k dimensions of the view that they are along.
        of_mask: whether they are those of one mask, and of nothing else.
    """

    view: Tensor
    positions: Tensor | None = None
    dims: tuple[int, ...] = ()
    of_mask: bool = False


def resolve(x: Tensor, key: object) -> Places:
    """Split an index into a view and coordinates.

    Raises:
        RangeError: too many indices, one out of bounds, a mask of the wrong shape, or dtypes that cannot index.
        DeviceMismatchError: an index tensor on another CUDA device, or on one at all while `x` is on the CPU.
    """
    basic: list[Any] = []
    advanced: list[tuple[int, Tensor]] = []
    dim = 0
    for part in _expand(x, key):
        if isinstance(part, bool):
            part = creation.tensor(part)
        if not isinstance(part, Tensor):
            basic.append(part)
            dim += part.__class__ is not int
            continue
        advanced.append((dim, part))
        # the view keeps the dimensions that the tensor indexes whole; for a 0-dim mask it gets a new dimension
        basic.extend([slice(None)] * part.ndim if part.dtype is dtypes.bool_ else [slice(None)])
        if part.ndim == 0 and part.dtype is dtypes.bool_:
            basic.append(None)
        dim += max(part.ndim, 1) if part.dtype is dtypes.bool_ else 1
    view = (
        x
        if all(part.__class__ is slice and part == _ALL for part in basic)
        else basic_index(x, tuple(basic), to_write=True)
    )
    if not advanced:
        return Places(view if view is not x else basic_index(x, ...))
    return _locate(view, advanced)


_ALL = slice(None)


def _locate(x: Tensor, advanced: list[tuple[int, Tensor]]) -> Places:
    """All index tensors as one tensor of coordinates."""
    rows: list[Tensor] = []
    dims: list[int] = []
    unchecked: list[tuple[int, Tensor]] = []
    shape = x._data.shape
    for dim, part in advanced:
        if part.device is not x.device and part._off_host:
            raise DeviceMismatchError(
                "indices should be either on cpu or on the same device as the indexed tensor "
                f"({x.device.type if x._off_host else 'cpu'})",
                f"the tensor is on {x.device}, an index of shape {tuple(part.shape)} on {part.device}",
                remedy=f"move the index with .to({str(x.device)!r})",
            )
        if part.dtype is not dtypes.bool_:
            unchecked.append((dim, part))
            rows.append(part)
            dims.append(dim)
            continue
        _check_mask(part, shape, dim)
        found = nonzero(part if part.ndim else part.reshape(1))
        if len(advanced) == 1:
            dims = list(range(dim, dim + found.shape[1]))
            return Places(x, _placed(found.mT, x), tuple(dims), True)
        rows.extend(found.unbind(1))
        dims.extend(range(dim, dim + found.shape[1]))
    positions = _checked(stack_coordinates(rows, x), shape, tuple(dims), unchecked)
    return Places(x, _placed(positions, x), tuple(dims))


def _checked(
    positions: Tensor, shape: tuple[int, ...], dims: tuple[int, ...], unchecked: list[tuple[int, Tensor]]
) -> Tensor:
    """The coordinates, after the bounds of the index tensors that they come from were checked.

    PyTorch looks at no coordinate if the result has no elements; they are zeros then.
    """
    places = positions._data.shape[1:]
    if 0 not in places and any(shape[dim] == 0 for dim in dims):
        raise BoundsError(
            "index is out of bounds for dimension with size 0",
            f"the indexed tensor has shape {list(shape)}, an index shape {list(places)}",
        )
    target = indexed_shape(shape, places, dims)
    check_rank(len(target))
    if 0 in target:
        return positions.new_zeros(positions.shape)
    for dim, part in unchecked:
        check_bounds(part, shape[dim], dim)
    return positions


def _check_mask(mask: Tensor, shape: tuple[int, ...], dim: int) -> None:
    for axis, extent in enumerate(mask._data.shape):
        if shape[dim + axis] != extent:
            raise RangeError(
                f"The shape of the mask {list(mask.shape)} at index {axis} does not match the shape of "
                f"the indexed tensor {list(shape)} at index {dim + axis}"
            )


def stack_coordinates(rows: list[Tensor], x: Tensor) -> Tensor:
    """Integer tensors, broadcast and stacked to shape (k, *places)."""
    if len(rows) == 1:
        result = rows[0].unsqueeze(0)
    else:
        try:
            shape = layout.broadcast_shapes(*[row._data.shape for row in rows])
        except ShapeError:
            shapes = ", ".join(str(list(row.shape)) for row in rows)
            raise RangeError(
                f"shape mismatch: indexing tensors could not be broadcast together with shapes {shapes}"
            ) from None
        if any(row._off_host for row in rows):
            rows = [row.to(x.device) for row in rows]
        result = stack([row.to(dtypes.int64).expand(shape) for row in rows])
    return result


def _placed(positions: Tensor, x: Tensor) -> Tensor:
    """Coordinates that have been checked, on the device of `x`."""
    moved = positions.to(x.device)
    mark_checked_range(moved)
    return moved


def _expand(x: Tensor, key: object) -> list[Any]:
    """The parts of a key, one by one: sequences and arrays as tensors, the ellipsis as slices."""
    if key.__class__ is not tuple:
        key = tuple(key) if key.__class__ is list and _stands_for_tuple(key) else (key,)
    parts = [_part(part) for part in key]
    indexed = 0
    for part in parts:
        if isinstance(part, Tensor) and part.dtype is dtypes.bool_:
            indexed += part.ndim
        elif part is not None and part is not Ellipsis and not isinstance(part, bool):
            indexed += 1
    if indexed > x.ndim:
        if x.ndim == 0:
            layout.index((), (), 0, tuple(0 for _ in range(indexed)))
        raise RangeError(f"too many indices for tensor of dimension {x.ndim}")
    at = next((position for position, part in enumerate(parts) if part is Ellipsis), len(parts))
    rest = [part for part in parts[at + 1 :] if part is not Ellipsis]
    return [*parts[:at], *[slice(None)] * (x.ndim - indexed), *rest]


def _stands_for_tuple(key: list[Any]) -> bool:
    """PyTorch reads a list with anything but numbers in it as a tuple, and warns."""
    if len(key) < 32 and any(
        part is None or part is Ellipsis or isinstance(part, (slice, list, tuple, Tensor)) for part in key
    ):
        warn(
            "Using a non-tuple sequence for multidimensional indexing is deprecated; use x[tuple(seq)] "
            "instead of x[seq]"
        )
        return True
    return False


def _numbers(sequence: Any) -> Tensor:
    """An index from a list or an array of numbers: floating ones are truncated."""
    made = creation.tensor(sequence)
    of_mask = made.dtype in (dtypes.bool_, dtypes.uint8)
    return made if of_mask or made.dtype is dtypes.int64 else creation.tensor(sequence, dtype=dtypes.int64)


def _part(part: Any) -> Any:
    """One part of a key: an int, a bool, a slice, None, Ellipsis, or a tensor of int64, int32 or bool."""
    if part.__class__ in _BASIC or isinstance(part, bool):
        return part
    if isinstance(part, (np.bool_, np.integer)):
        return part.item()
    if isinstance(part, (list, tuple, range)):
        part = _numbers(list(part)) if len(part) else creation.zeros(0, dtype=dtypes.int64)
    elif isinstance(part, np.ndarray):
        part = _numbers(part)
    if not isinstance(part, Tensor):
        raise RangeError(
            "only integers, slices (`:`), ellipsis (`...`), None and long or byte Variables are valid "
            f"indices (got {type(part).__name__})"
        )
    if part.dtype is dtypes.uint8:
        warn("indexing with dtype torch.uint8 is now deprecated, please use a dtype torch.bool instead.")
        return part != 0
    if part.ndim == 0 and part.dtype.category == dtypes.INTEGER and not isinstance(part._data, Batched):
        return part.item()
    if part.dtype not in (dtypes.int64, dtypes.int32, dtypes.bool_):
        raise RangeError("tensors used as indices must be long, int, byte or bool tensors", f"got {part.dtype}")
    return part
