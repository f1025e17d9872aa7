"""Vectors whose elements are chosen from others: pairs, and combinations."""

from __future__ import annotations

import itertools

import numpy as np

from ..autograd.gradients import called
from ..errors import ShapeError
from ..ground.arguments import check_tensors, whole
from ..ground.public import public
from ..tensors import Tensor
from .creation.creation import place
from .views.joining import stack
from .window.filling import meshgrid


def _check_vectors(*tensors: Tensor) -> None:
    for x in tensors:
        if x.ndim != 1:
            raise ShapeError(f"Expect a 1D vector, but got shape {list(x.shape)}")


@public()
def cartesian_prod(*tensors: Tensor) -> Tensor:
    """All ways to choose an element of each vector, a row each; of one vector that vector.

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
    return called("StackBackward0", input[place(places, input.device)])  # type: ignore[no-any-return]
