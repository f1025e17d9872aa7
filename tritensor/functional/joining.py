"""Joining tensors: one after another (`cat`) or along a new dimension (`stack`), and their short forms."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .. import layout
from ..arguments import check_tensors
from ..autograd.backward import joins_by
from ..autograd.gradients import called
from ..errors import ArgumentError, ShapeError
from ..kernels.indexing.joining import cat as cat_operator
from ..outputs import JOINED, into, takes_out
from ..public import public
from ..tensor import Tensor
from .quick_indexing import join


def _tensors(name: str, tensors: Any) -> list[Any]:
    if not isinstance(tensors, (tuple, list)):
        raise ArgumentError(
            f"{name}(): argument 'tensors' (position 1) must be tuple of Tensors, not {type(tensors).__name__}"
        )
    for position, x in enumerate(tensors):
        if not isinstance(x, Tensor):
            raise ArgumentError(f"expected Tensor as element {position} in argument 0, but got {type(x).__name__}")
    if not tensors and name != "cat":
        raise ShapeError(f"{name} expects a non-empty TensorList")
    return list(tensors)


@public("concat", "concatenate")
def cat(tensors: Sequence[Tensor], dim: int = 0, *, out: Tensor | None = None) -> Tensor:
    """The tensors one after another along `dim`, in their common dtype; the other sizes must agree.

    >>> import tritensor as torch
    >>> torch.cat([torch.zeros(1, 2), torch.ones(2, 2)]).shape
    tritensor.Size([3, 2])

    Raises:
        ShapeError: sizes or ranks differ. ValueError: there are no tensors.
    """
    if out is not None:
        return into(cat, JOINED, out, (tensors, dim), {})  # type: ignore[no-any-return]
    found = _tensors("cat", tensors)
    if not found:
        raise ValueError("torch.cat(): expected a non-empty list of Tensors")
    joined = join(found, dim, stacked=False)
    return cat_operator(*found, dim=dim) if joined is None else joined


@public(out=takes_out(JOINED))
def stack(tensors: Sequence[Tensor], dim: int = 0) -> Tensor:
    """The tensors, all of one shape, along a new dimension.

    >>> import tritensor as torch
    >>> torch.stack([torch.zeros(2), torch.ones(2)], dim=1)
    tensor([[0., 1.],
            [0., 1.]])
    """
    found = _tensors("stack", tensors)
    first = found[0]._data.shape
    for position, x in enumerate(found):
        if x._data.shape != first:
            raise ShapeError(
                f"stack expects each tensor to be equal size, but got {list(first)} at entry 0 and "
                f"{list(x.shape)} at entry {position}"
            )
    dim = layout.normalize_dim(dim, len(first) + 1)
    joined = join(found, dim, stacked=True)
    if joined is not None:
        return called("StackBackward0", joined)  # type: ignore[no-any-return]
    return called("StackBackward0", cat_operator(*[x.unsqueeze(dim) for x in found], dim=dim))  # type: ignore[no-any-return]


joins_by(stack)


def _at_least(x: Any, rank: int) -> Any:
    """A tensor with dimensions of size 1 added as by PyTorch's atleast_1d, atleast_2d and atleast_3d."""
    if x.ndim == 0:
        x = x.view(1)
    if rank >= 2 and x.ndim == 1:
        x = x.unsqueeze(0)
    return x.unsqueeze(-1) if rank == 3 and x.ndim == 2 else x


def _at_least_function(rank: int, how: str) -> None:
    """Declare `atleast_1d` and its like."""

    def call(*tensors: Any) -> Any:
        listed = len(tensors) == 1 and isinstance(tensors[0], (tuple, list))
        found = tensors[0] if listed else tensors
        if len(found) == 1 and not listed and not isinstance(found[0], Tensor):
            words = f"invalid combination of arguments - got ({type(found[0]).__name__})"
            raise ArgumentError(f"atleast_{rank}d() received an {words}")
        check_tensors(found)
        made = tuple([_at_least(x, rank) for x in found])
        return made if listed or len(made) != 1 else made[0]

    call.__name__ = call.__qualname__ = f"atleast_{rank}d"
    call.__doc__ = f"The tensor, or all of several or of a list, with {rank} dimensions at least: {how}."
    public(functional=False)(call)


_at_least_function(1, "one without dimensions becomes a vector")
_at_least_function(2, "those of size 1 come in front")
_at_least_function(3, "a vector becomes (1, n, 1), a matrix (n, m, 1)")


@public(out=takes_out(JOINED))
def hstack(tensors: Sequence[Tensor]) -> Tensor:
    """The tensors joined along the second dimension, vectors along their only one."""
    found = [_at_least(x, 1) for x in _tensors("hstack", tensors)]
    return cat(found, 0 if found and found[0].ndim == 1 else 1)


@public("row_stack", out=takes_out(JOINED))
def vstack(tensors: Sequence[Tensor]) -> Tensor:
    """The tensors joined along the first dimension, vectors as rows."""
    return cat([_at_least(x, 2) for x in _tensors("vstack", tensors)], 0)


@public(out=takes_out(JOINED))
def dstack(tensors: Sequence[Tensor]) -> Tensor:
    """The tensors joined along the third dimension."""
    return cat([_at_least(x, 3) for x in _tensors("dstack", tensors)], 2)


@public(out=takes_out(JOINED))
def column_stack(tensors: Sequence[Tensor]) -> Tensor:
    """The tensors joined along the second dimension, vectors as columns."""
    found = [x.reshape(-1, 1) if x.ndim < 2 else x for x in _tensors("column_stack", tensors)]
    return cat(found, 1)
