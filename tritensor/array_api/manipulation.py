"""Functions of the standard that change shapes and join arrays."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .. import functional, layout
from ..errors import explain
from ..functional import views
from ..tensor import Tensor
from .arrays import declared
from .data_types import promoted

_TEXTS = """
broadcast_arrays: All tensors in the shape that they broadcast to, as views in a list.
broadcast_to: `x` in a shape that it broadcasts to, as a view.
concat: Tensors one after the other along an axis, or all elements for None, in the dtype that they promote to.
expand_dims: `x` with a new axis of extent 1, as a view.
flip: The elements in reverse order along axes, or along all.
moveaxis: `x` with axes moved to other places, as a view.
permute_dims: `x` with its axes in another order, as a view.
repeat: Every element, or slice along an axis, several times: `repeats`, or as often as a 1-dim tensor says for each.
roll: The elements moved by `shift` places along axes, or as one row; those that fall off come back at the start.
stack: Tensors of one shape along a new axis, in the dtype that they promote to.
tile: Copies of `x` side by side, so many along each axis.
unstack: The slices along an axis, as views in a tuple.
"""


def _concat(arrays: Any, axis: int | None) -> Tensor:
    found = promoted("concat", *arrays)
    return functional.cat(found if axis is not None else [x.reshape(-1) for x in found], axis or 0)


def reshape(x: Tensor, /, shape: Sequence[int], *, copy: bool | None = None) -> Tensor:
    """`x` in another shape of as many elements, of which one extent may be -1.

    Raises:
        ValueError: `copy` is False, and the elements have to be copied.
    """
    found = x.reshape(shape)
    same = found.data_ptr() == x.data_ptr()
    if copy is False and not same:
        raise ValueError(explain("reshape: copy=False, but a copy is necessary", remedy="pass copy=None or copy=True"))
    return found.clone() if copy and same else found  # type: ignore[no-any-return]


def squeeze(x: Tensor, /, axis: int | tuple[int, ...]) -> Tensor:
    """`x` without axes of extent 1, as a view.

    Raises:
        ValueError: an axis has another extent.
    """
    axes = layout.normalize_dims(axis, x.ndim)
    wrong = [each for each in axes if x.shape[each] != 1]
    if wrong:
        raise ValueError(explain("squeeze: an axis has another extent than 1", f"axis {wrong[0]} of {list(x.shape)}"))
    return views.squeeze(x, axes) if axes else x


_made = declared(
    __name__,
    {
        "broadcast_arrays": lambda *arrays: list(views.broadcast_tensors(*arrays)),
        "broadcast_to": lambda x, /, shape: views.broadcast_to(x, shape),
        "concat": lambda arrays, /, *, axis=0: _concat(arrays, axis),
        "expand_dims": lambda x, /, axis: views.unsqueeze(x, axis),
        "flip": lambda x, /, *, axis=None: functional.flip(x, layout.normalize_dims(axis, x.ndim)),
        "moveaxis": lambda x, source, destination, /: views.movedim(x, source, destination),
        "permute_dims": lambda x, /, axes: views.permute(x, axes),
        "repeat": lambda x, repeats, /, *, axis=None: functional.repeat_interleave(
            x, repeats.long() if isinstance(repeats, Tensor) else repeats, axis
        ),
        "reshape": reshape,
        "roll": lambda x, /, shift, *, axis=None: functional.roll(x, shift, axis),
        "squeeze": squeeze,
        "stack": lambda arrays, /, *, axis=0: functional.stack(promoted("stack", *arrays), axis),
        "tile": lambda x, repetitions, /: functional.tile(x, repetitions),
        "unstack": lambda x, /, *, axis=0: tuple(views.unbind(x, axis)),
    },
    _TEXTS,
)
globals().update(_made)

__all__ = list(_made)
