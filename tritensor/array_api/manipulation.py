"""Functions of the standard that change shapes, join arrays, and take elements by their places."""

from __future__ import annotations

from collections.abc import Sequence

from .. import functional, layout
from ..errors import explain
from ..functional import views
from ..public import PACKAGE
from ..tensor import Tensor
from .declaring import declared
from .statistics import one_axis

_TABLE = """
broadcast_arrays(*arrays): All tensors in the shape that they broadcast to, as views in a list.
broadcast_to(x, /, shape) = broadcast_to(shape=size): `x` in a shape that it broadcasts to, as a view.
concat(arrays, /, *, axis=0): The tensors one after the other along an axis, or all elements for None, in one dtype.
expand_dims(x, /, axis) = unsqueeze: `x` with a new axis of extent 1, as a view.
flip(x, /, *, axis=None): The elements in reverse order along axes, or along all.
moveaxis(x, source, destination, /): `x` with axes moved to other places, as a view.
permute_dims(x, /, axes) = permute(axes=dims): `x` with its axes in another order, as a view.
repeat(x, repeats, /, *, axis=None): Every element, or slice along an axis, `repeats` times, or as a 1-dim tensor says.
reshape(x, /, shape, *, copy=None)
roll(x, /, shift, *, axis=None) = roll(shift=shifts, axis=dims): The elements shifted in a ring.
squeeze(x, /, axis)
stack(arrays, /, *, axis=0) = stack: Tensors of one shape along a new axis, in the dtype that they promote to.
take(x, indices, /, *, axis=None): The elements, or slices along an axis, at the places in a 1-dim tensor.
take_along_axis(x, indices, /, *, axis=-1): The elements at places along an axis, for each row; other extents broadcast.
tile(x, repetitions, /): Copies of `x` side by side, so many along each axis.
unstack(x, /, *, axis=0) = unbind: The slices along an axis, as views in a tuple.
"""


def _reshape(x: Tensor, shape: Sequence[int], *, copy: bool | None = None) -> Tensor:
    """`x` in another shape of as many elements, of which one extent may be -1.

    Raises:
        ValueError: `copy` is False, and the elements have to be copied.
    """
    found = x.reshape(shape)
    same = found.data_ptr() == x.data_ptr()
    if copy is False and not same:
        raise ValueError(explain("reshape: copy=False, but a copy is necessary", remedy="pass copy=None or copy=True"))
    return found.clone() if copy and same else found  # type: ignore[no-any-return]


def _squeeze(x: Tensor, axis: int | tuple[int, ...]) -> Tensor:
    """`x` without axes of extent 1, as a view.

    Raises:
        ValueError: an axis has another extent.
    """
    axes = layout.normalize_dims(axis, x.ndim)
    wrong = [each for each in axes if x.shape[each] != 1]
    if wrong:
        raise ValueError(explain("squeeze: an axis has another extent than 1", f"axis {wrong[0]} of {list(x.shape)}"))
    return views.squeeze(x, axes) if axes else x


def _positive(x: Tensor, indices: Tensor, axis: int) -> Tensor:
    places = indices.long()
    return functional.where(places < 0, places + x.shape[axis], places)  # type: ignore[no-any-return]


def _take(x: Tensor, indices: Tensor, *, axis: int | None = None) -> Tensor:
    along = one_axis("take", x, axis)
    return functional.index_select(x, along, _positive(x, indices, along))


_OWN = {
    "broadcast_arrays": lambda *arrays: list(views.broadcast_tensors(*arrays)),
    "concat": lambda arrays, *, axis=0: functional.cat(
        arrays if axis is not None else [x.reshape(-1) for x in arrays], axis or 0
    ),
    "flip": lambda x, *, axis=None: functional.flip(x, layout.normalize_dims(axis, x.ndim)),
    "repeat": lambda x, repeats, *, axis=None: functional.repeat_interleave(
        x, repeats.long() if isinstance(repeats, Tensor) else repeats, axis
    ),
    "reshape": _reshape,
    "squeeze": _squeeze,
    "take": _take,
    "take_along_axis": lambda x, indices, *, axis=-1: functional.take_along_dim(x, _positive(x, indices, axis), axis),
}
FUNCTIONS = declared(__name__, _TABLE, PACKAGE | _OWN)
