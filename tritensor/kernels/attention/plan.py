"""What kernels of attention call and visit beside their operands, see `flexible.py`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from ...runtime.launch import DeviceFunction
from ...tensors import Tensor


class Lists(NamedTuple):
    """Blocks of some rows: how many of which some scores are kept, which, and the same of those that are kept whole.

    The first two dimensions are batch and heads, each of its own size or 1; numbers are int32 and contiguous.
    """

    counts: Tensor
    blocks: Tensor
    full_counts: Tensor
    full_blocks: Tensor

    def passed(self) -> tuple[Any, ...]:
        """What kernels take: the arrays, and the steps from sample to sample, head to head and row to row."""
        batch, heads, rows = self.counts.shape
        steps = (heads * rows * (batch > 1), rows * (heads > 1), self.blocks.shape[-1])
        return (*[x._data for x in self], steps)


class Plan(NamedTuple):
    """What is computed beside attention.

    Attributes:
        score, slope, kept: device functions, see `nn.attention.traced`; None for what is not changed.
        captured: the tensors that they read.
        heads: of queries, in each sample.
        size: the queries and keys of a block; zeros for no lists.
        by_rows, by_columns: the blocks that are visited, for each block of queries and of keys; None for all.
        again: computes the same of other operators, for gradients of gradients.
        versions: of `captured`, as they were read.
    """

    score: DeviceFunction | None
    slope: DeviceFunction | None
    kept: DeviceFunction | None
    captured: tuple[Tensor, ...]
    heads: int
    size: tuple[int, int]
    by_rows: Lists | None
    by_columns: Lists | None
    again: Callable[..., Any]
    versions: tuple[int, ...]

    def of_kernel(self, which: int, keys: int) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
        """The functions as constants of a kernel, and what it takes; 2 is the kernel of keys."""
        over = bool(self.size[1] and keys % self.size[1])
        flags = (self.score is not None, self.kept is not None, *self.size, over, self.score, self.slope, self.kept)
        lists = self.by_columns if which == 2 else self.by_rows
        given = tuple([(x._data, tuple(x.shape), tuple(x._data.strides)) for x in self.captured])
        return flags, (self.heads, given, () if lists is None else lists.passed())
