"""Joining tensors: one after another (`cat`) or along a new dimension (`stack`), and their short forms."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy import ndarray

from ...autograd.backward import joins_by
from ...autograd.gradients import called
from ...errors import ArgumentError, ShapeError
from ...ground.arguments import check_tensors, whole, wrong_type
from ...ground.public import public
from ...kernels.indexing.joining import cat as cat_operator
from ...operators.outputs import JOINED, takes_out
from ...tensors import Tensor
from ...types import layout
from ..creation.creation import place
from ..indexing.quick_indexing import join
from ..window.filling import meshgrid


def _tensors(name: str, tensors: Any) -> list[Any]:
    if not isinstance(tensors, (tuple, list)):
        raise wrong_type(name, "tensors", "tuple of Tensors", tensors, 1)
    for position, x in enumerate(tensors):
        if not isinstance(x, Tensor):
            raise ArgumentError(f"expected Tensor as element {position} in argument 0, but got {type(x).__name__}")
    if not tensors and name != "cat":
        raise ShapeError(f"{name} expects a non-empty TensorList")
    return list(tensors)


@public("concat", "concatenate", out=takes_out(JOINED))
def cat(tensors: Sequence[Tensor], dim: int = 0) -> Tensor:
    """Concatenates tensors along `dim`, in their common dtype; the other sizes must agree.

    >>> import tritensor as torch
    >>> torch.cat([torch.zeros(1, 2), torch.ones(2, 2)]).shape
    tritensor.Size([3, 2])

    Raises:
        ShapeError: sizes or ranks differ. ValueError: there are no tensors.
    """
    found = _tensors("cat", tensors)
    if not found:
        raise ValueError("torch.cat(): expected a non-empty list of Tensors")
    return joined(found, dim)


def joined(tensors: list[Any], dim: int, form: Callable[[Any], Any] | None = None) -> Tensor:
    """`cat` of views by `form`, of tensors and of arrays alike."""
    found = join("CatBackward0", tensors, dim, form)
    if found is None:
        return cat_operator(*(tensors if form is None else [form(x) for x in tensors]), dim=dim)
    return found


@public(out=takes_out(JOINED))
def stack(tensors: Sequence[Tensor], dim: int = 0) -> Tensor:
    """Stacks tensors, all of one shape, along a new dimension.

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
    sizes = (*first[:dim], 1, *first[dim:])
    whole = (len(found), *first) if first and not dim else None
    made = join("StackBackward0", found, dim, lambda array: array.reshape(sizes), whole)
    if made is None:
        made = called("StackBackward0", cat_operator(*[x.unsqueeze(dim) for x in found], dim=dim))
    return made


joins_by(stack)


def _at_least(x: Any, rank: int) -> Any:
    """A tensor with dimensions of size 1 added as by PyTorch's atleast_1d, atleast_2d and atleast_3d."""
    if x.__class__ is ndarray:
        ones = (1,) * (rank - x.ndim)
        return x.reshape(ones[:1] + x.shape + ones[1:] if x.ndim < 2 else x.shape + ones) if ones else x
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
    """Stacks tensors horizontally: joins them along the second dimension, vectors along their only one."""
    found = _tensors("hstack", tensors)
    return joined(found, 0 if found[0].ndim < 2 else 1, lambda x: _at_least(x, 1))


@public("row_stack", out=takes_out(JOINED))
def vstack(tensors: Sequence[Tensor]) -> Tensor:
    """Stacks tensors vertically: joins them along the first dimension, vectors as rows."""
    return joined(_tensors("vstack", tensors), 0, lambda x: _at_least(x, 2))


@public(out=takes_out(JOINED))
def dstack(tensors: Sequence[Tensor]) -> Tensor:
    """Stacks tensors in depth: joins them along the third dimension."""
    return joined(_tensors("dstack", tensors), 2, lambda x: _at_least(x, 3))


@public(out=takes_out(JOINED))
def column_stack(tensors: Sequence[Tensor]) -> Tensor:
    """Stacks tensors as columns: joins them along the second dimension, vectors as columns."""
    return joined(_tensors("column_stack", tensors), 1, lambda x: x.reshape(-1, 1) if x.ndim < 2 else x)


def _check_vectors(*tensors: Tensor) -> None:
    for x in tensors:
        if x.ndim != 1:
            raise ShapeError(f"Expect a 1D vector, but got shape {list(x.shape)}")


@public()
def cartesian_prod(*tensors: Tensor) -> Tensor:
    """The Cartesian product: all ways to choose an element of each vector, a row each; of one vector that vector.

    >>> import tritensor as torch
    >>> torch.cartesian_prod(torch.tensor([1, 2]), torch.tensor([3, 4]))
    tensor([[1, 3],
            [1, 4],
            [2, 3],
            [2, 4]])

    Raises:
        ShapeError: no tensor, or one that is no vector.
    """
    check_tensors(tensors)
    _check_vectors(*tensors)
    if len(tensors) == 1:
        return tensors[0]
    return stack([grid.flatten() for grid in meshgrid(*tensors, indexing="ij")], 1)


@public()
def combinations(input: Tensor, r: int = 2, with_replacement: bool = False) -> Tensor:
    """All combinations of `r` elements of a vector, a row each, in the order of `itertools`.

    >>> import tritensor as torch
    >>> torch.combinations(torch.tensor([1, 2, 3]))
    tensor([[1, 2],
            [1, 3],
            [2, 3]])

    Raises:
        ShapeError: no vector, or a negative `r`.
    """
    _check_vectors(input)
    r = whole("combinations", "r", r)
    if r < 0:
        raise ShapeError(f"Expect a non-negative number, but got {r}")
    if not r:
        return input.new_empty(0)
    choose = itertools.combinations_with_replacement if with_replacement else itertools.combinations
    rows = itertools.chain.from_iterable(choose(range(len(input)), r))
    places = np.fromiter(rows, np.int64).reshape(-1, r)
    return called("StackBackward0", input[place(places, input.device)])
