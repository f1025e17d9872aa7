"""Blocks that keep the results of some operators for the backward pass, and compute the others again, as torchtitan's.

PyTorch's programs say so by `create_selective_checkpoint_contexts` and a list of operators of `torch.ops.aten`.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import Any

from tritensor.autograd.precision import watching

PRODUCTS = ("linear", "matmul")
KEPT = (*PRODUCTS, "scaled_dot_product_attention")


class _Selection:
    """Counts the calls of operators that may be kept: of the products every second one is, beginning with the first."""

    def __init__(self, kept: dict[int, Sequence[Any]]) -> None:
        self.kept, self.calls, self.products = kept, 0, 0

    def keeps(self, call: Any) -> bool:
        """Whether results of this call are kept; to be asked once for each."""
        name = call.operator.name
        if name not in KEPT:
            return False
        self.products += name in PRODUCTS
        return name not in PRODUCTS or self.products % 2 == 1


class _First(_Selection):
    """The first run of a block, whose results are kept."""

    def __call__(self, call: Any, arrays: Sequence[Any]) -> None:
        """Keep the results of a call."""
        if self.keeps(call):
            self.kept[self.calls] = arrays
            self.calls += 1


class _Second(_Selection):
    """The run in the backward pass, which has them."""

    def __call__(self, call: Any, arrays: Sequence[Any]) -> None:
        """Nothing is to be done with results."""

    def instead(self, call: Any) -> Sequence[Any] | None:
        """The results that were kept; None for others."""
        if not self.keeps(call):
            return None
        self.calls += 1
        return self.kept.pop(self.calls - 1)


def contexts() -> tuple[AbstractContextManager[None], AbstractContextManager[None]]:
    """For `checkpoint(context_fn=)`: every second product and attention are kept."""
    kept: dict[int, Sequence[Any]] = {}
    return watching(_First(kept)), watching(_Second(kept))
