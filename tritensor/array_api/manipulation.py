"""Functions of the standard that change shapes and join arrays."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .. import functional, layout
from ..arguments import check_tensor
from ..errors import explain
from ..tensor import Tensor
from .data_types import promoted

__all__ = [
    "broadcast_arrays",
    "broadcast_to",
    "concat",
    "expand_dims",
    "flip",
    "moveaxis",
    "permute_dims",
    "repeat",
    "reshape",
    "roll",
    "squeeze",
    "stack",
    "tile",
    "unstack",
]

Axes = int | tuple[int, ...]


def broadcast_arrays(*arrays: Tensor) -> list[Tensor]:
    """All tensors in the shape that they broadcast to, as views."""
    return list(functional.broadcast_tensors(*arrays))


def broadcast_to(x: Tensor, /, shape: Sequence[int]) -> Tensor:
    """`x` in a shape that it broadcasts to, as a view."""
    return functional.broadcast_to(x, shape)


def concat(arrays: Sequence[Tensor], /, *, axis: int | None = 0) -> Tensor:
    """Tensors one after the other along an axis, or all elements for None, in the dtype that they promote to."""
    found = promoted("concat", *arrays)
    return functional.cat(found if axis is not None else [x.reshape(-1) for x in found], axis or 0)


def stack(arrays: Sequence[Tensor], /, *, axis: int = 0) -> Tensor:
    """Tensors of one shape along a new axis, in the dtype that they promote to."""
    return functional.stack(promoted("stack", *arrays), axis)


def expand_dims(x: Tensor, /, axis: int) -> Tensor:
    """`x` with a new axis of extent 1, as a view."""
    return functional.unsqueeze(x, axis)


def squeeze(x: Tensor, /, axis: Axes) -> Tensor:
    """`x` without axes of extent 1, as a view.

    Raises:
        ValueError: an axis has another extent.
    """
    check_tensor("squeeze", "x", 1, x)
    axes = layout.normalize_dims(axis, x.ndim)
    for each in axes:
        if x.shape[each] != 1:
            raise ValueError(explain("squeeze: an axis has another extent than 1", f"axis {each} of {list(x.shape)}"))
    return functional.squeeze(x, axes) if axes else x


def flip(x: Tensor, /, *, axis: Axes | None = None) -> Tensor:
    """The elements in reverse order along axes, or along all."""
    check_tensor("flip", "x", 1, x)
    return functional.flip(x, layout.normalize_dims(axis, x.ndim))


def moveaxis(x: Tensor, source: Axes, destination: Axes, /) -> Tensor:
    """`x` with axes moved to other places, as a view."""
    return functional.movedim(x, source, destination)


def permute_dims(x: Tensor, /, axes: Sequence[int]) -> Tensor:
    """`x` with its axes in another order, as a view."""
    return functional.permute(x, axes)


def repeat(x: Tensor, repeats: int | Tensor, /, *, axis: int | None = None) -> Tensor:
    """Every element, or every slice along an axis, several times; `repeats` is one number or a 1-dim tensor of them."""
    return functional.repeat_interleave(x, repeats.to("cpu" if not x.is_cuda else x.device).long() if isinstance(repeats, Tensor) else repeats, axis)


def reshape(x: Tensor, /, shape: Sequence[int], *, copy: bool | None = None) -> Tensor:
    """`x` in another shape of as many elements, of which one extent may be -1.

    Raises:
        ValueError: `copy` is False, and the elements have to be copied.
    """
    check_tensor("reshape", "x", 1, x)
    found = x.reshape(shape)
    if copy is False and found.data_ptr() != x.data_ptr():
        raise ValueError(explain("reshape: copy=False, but a copy is necessary", remedy="pass copy=None or copy=True"))
    return found.clone() if copy and found.data_ptr() == x.data_ptr() else found  # type: ignore[no-any-return]


def roll(x: Tensor, /, shift: Axes, *, axis: Axes | None = None) -> Tensor:
    """The elements moved by `shift` places along axes, or as one row; those that fall off come back at the start."""
    return functional.roll(x, shift, axis)


def tile(x: Tensor, repetitions: tuple[int, ...], /) -> Tensor:
    """Copies of `x` side by side, so many along each axis."""
    return functional.tile(x, repetitions)


def unstack(x: Tensor, /, *, axis: int = 0) -> tuple[Tensor, ...]:
    """The slices along an axis, as views."""
    return functional.unbind(x, axis)


_: Any = None
