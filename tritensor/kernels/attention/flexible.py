"""Attention whose kernels call functions of scores and pass over lists of blocks, on a device."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from ...autograd.backward import grad as differentiated
from ...autograd.mode import recording
from ...errors import AutogradError
from ...operators.rules import FLOATING
from ...runtime.call import Call
from ...runtime.launch import DeviceFunction
from ...tensors import Tensor
from .family import Attention
from .launch import launch_attention, launch_backward


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


class Flexible(Attention):
    """Attention with a plan, or its gradients."""

    about = "Attention that calls functions of scores, and passes over lists of blocks."
    repeatable, native, batched, deferrable = False, None, None, False

    def launch(self, call: Call) -> None:
        """As attention's, with a plan."""
        found = {**self.operands(call.arrays), "mask": None}
        scale, plan = call.metadata["scale"], call.metadata["plan"]
        run = launch_attention if self is flexible else launch_backward
        run(call.outs, found, scale=scale, diagonal=None, p=0.0, seed=0, offset=0, plan=plan)


def _flexible(query: Tensor, key, value, *, scale, plan):
    """softmax(score(query @ key.T * scale)) @ value, and the logarithms of the sums of the softmax."""
    raise NotImplementedError  # on the CPU other operators compute it


def _flexible_backward(grad: Tensor, query, key, value, out, logsumexp, *, scale, plan):
    """The gradients of flexible attention by queries, keys and values."""
    raise NotImplementedError


flexible = Flexible("flex_attention", _flexible, FLOATING, outputs=("out", "logsumexp"), register=False)
_backward_names = ("query_grad", "key_grad", "value_grad")
flexible_backward = Flexible(
    "flex_attention_backward", _flexible_backward, FLOATING, outputs=_backward_names, register=False
)


def _gradient(grad: Tensor, query: Tensor, key, value, out, logsumexp, scale, plan, needs):
    """By the kernels; of other operators where it is recorded."""
    if tuple([x._version for x in plan.captured]) != plan.versions:
        words = "one of the variables needed for gradient computation has been modified by an inplace operation"
        raise AutogradError(words, "a function of scores or of a mask reads it", remedy="change a copy of it")
    if not recording.enabled:
        return flexible_backward(grad, query, key, value, out, logsumexp, scale=scale, plan=plan)
    again = plan.again(query.flatten(1, 2), key.squeeze(2), value.squeeze(2)).reshape(out.shape)
    found = iter(differentiated(again, [x for x, need in zip((query, key, value), needs) if need], grad, None, True))
    return tuple([next(found) if need else None for need in needs[:3]])


flexible.gradient(_gradient)
