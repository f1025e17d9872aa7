"""The parts of one tensor by rank."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..autograd.mode import no_grad
from ..tensors import Tensor


class Rows(Sequence[Tensor]):
    """The entries of a contiguous tensor along its first dimension, one for each rank; a view is made when asked for.

    Of 1,024 ranks views take milliseconds to make, and what sends the whole needs none.
    """

    def __init__(self, whole: Tensor) -> None:
        with no_grad():
            self.whole = whole.detach()

    def __len__(self) -> int:
        return int(self.whole.shape[0])

    def __getitem__(self, rank: slice | int) -> Any:
        if isinstance(rank, slice):
            return [self[each] for each in range(*rank.indices(len(self)))]
        if not -len(self) <= rank < len(self):
            raise IndexError(rank)
        with no_grad():
            return self.whole[rank]
