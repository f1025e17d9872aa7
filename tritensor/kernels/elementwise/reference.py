"""Elementwise references on large arrays: in blocks that fit the level-2 cache, on all of the CPU's threads.

Half precision is computed in float32 block by block. A ufunc writes directly into the result; what another reference
returns for a block is copied there.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from math import prod
from typing import Any

import numpy as np

from ...host.blocks import in_blocks
from ...host.copying import cast, converted, from_float32, in_rows
from ...host.threads import in_pieces
from ...types.layout import broadcast_shapes

# From this many elements of the result on, references of several passes, and those with casts, are computed in blocks;
# and from this many on ufuncs of the arrays as they are, which read and write memory once: two threads take 0.5 ms for
# exp of 1 M elements where one takes 0.6, and 0.26 for half as many where one takes 0.29.
LARGE, LARGE_DIRECT = 1 << 18, 1 << 20

# Elements of a block of one pass, whose temporary arrays need no cache: exp of 4 M takes 1.6 ms on two threads,
# with half as many 2.0.
_ONE_PASS = 1 << 19

# An operand of at most this many elements is cast once, and not for each block that it is broadcast to.
_SMALL = 1 << 17


def is_large(operands: Sequence[Any]) -> bool:
    """True if the result of operands that broadcast, arrays and numbers, is to be computed in blocks."""
    most = 1
    for value in operands:
        if value.__class__ is np.ndarray:
            most *= value.size
    if most < LARGE:
        return False
    return prod(broadcast_shapes(*[value.shape for value in operands if value.__class__ is np.ndarray])) >= LARGE


def evaluate(
    reference: Callable[..., Any],
    operands: Sequence[Any],
    kinds: Sequence[np.dtype],
    results: Sequence[np.dtype],
    metadata: dict[str, Any],
) -> tuple[np.ndarray, ...]:
    """The arrays that a reference computes from arrays and numbers that broadcast, laid out as it lays them out.

    Args:
        kinds: the dtypes that it computes with: arrays of another one are cast.
        results: the dtypes of its results.
    """
    if len(results) == 1 and _is_plain(reference, operands, kinds, results[0]):
        out = np.empty(operands[0].shape, results[0])
        flat, whole = [value.reshape(-1) for value in operands], out.reshape(-1)

        def piece(start: int, stop: int) -> None:
            reference(*[value[start:stop] for value in flat], out=whole[start:stop])

        in_pieces(piece, out.size, _ONE_PASS)
        return (out,)
    call = _Call(reference, operands, kinds, metadata)
    models = call.model()
    outs = [_empty(call.shape, model, dtype) for model, dtype in zip(models, results, strict=True)]
    call.run(outs, models)
    return tuple(outs)


def evaluate_in_place(reference: np.ufunc, out: np.ndarray, rest: Sequence[Any]) -> bool:
    """`out = reference(out, *rest)` in blocks, for numbers and arrays of one dtype that broadcast to `out`'s shape.

    False where that is not possible: an element would be read that has been written before.
    """
    if not _is_apart(out):
        return False
    for value in rest:
        if value.__class__ is np.ndarray and np.may_share_memory(out, value):
            # an element that is read where it is written may be: the same memory in the same order
            if value.__array_interface__["data"] != out.__array_interface__["data"] or value.strides != out.strides:
                return False
            if value.shape != out.shape:
                return False
    call = _Call(reference, (out, *rest), [out.dtype] * (1 + len(rest)), {})
    models = call.model()
    if models[0].dtype != out.dtype:
        return False
    call.run([out], models)
    return True


def _is_plain(reference: Any, operands: Sequence[Any], kinds: Sequence[np.dtype], result: np.dtype) -> bool:
    """True if a ufunc computes contiguous arrays of one shape without any cast: it is called without further steps."""
    first = operands[0]
    for value, kind in zip(operands, kinds, strict=True):
        if value.__class__ is not np.ndarray or value.dtype != kind or value.shape != first.shape:
            return False
        if not value.flags.c_contiguous:
            return False
    return isinstance(reference, np.ufunc) and _returns(reference, tuple(kinds)) == result


@functools.lru_cache(maxsize=1024)
def _returns(reference: np.ufunc, kinds: tuple[np.dtype, ...]) -> np.dtype | None:
    """The dtype of a ufunc's result where it computes in these dtypes; None where it casts."""
    try:
        found = reference.resolve_dtypes((*kinds, None))
    except TypeError:
        return None
    return found[-1] if found[: len(kinds)] == kinds else None


class _Call:
    """A reference with its operands; those of one element and small ones are cast, and all others broadcast."""

    def __init__(
        self,
        reference: Callable[..., Any],
        operands: Sequence[Any],
        kinds: Sequence[np.dtype],
        metadata: dict[str, Any],
    ) -> None:
        self.reference, self.metadata = reference, metadata
        self.shape = broadcast_shapes(*[value.shape for value in operands if value.__class__ is np.ndarray])
        self.operands = list(operands)
        self.cut: list[tuple[int, np.dtype]] = []  # positions of the operands that are cut, and their dtypes
        self.corners = list(operands)  # the operands' first two elements along each dimension
        for position, (value, kind) in enumerate(zip(operands, kinds, strict=True)):
            if value.__class__ is not np.ndarray:
                continue
            if value.dtype != kind and value.size <= _SMALL:
                value = cast(value, kind)
            if value.size == 1:
                self.operands[position] = self.corners[position] = value.reshape(())
                continue
            self.cut.append((position, kind))
            self.corners[position] = value[(slice(0, 2),) * value.ndim].astype(kind, copy=False)
            self.operands[position] = value if value.shape == self.shape else np.broadcast_to(value, self.shape)

    def model(self) -> tuple[np.ndarray, ...]:
        """What the reference returns for the operands' corners: it shows dtypes and layouts of the results."""
        with np.errstate(all="ignore"):
            produced = self.reference(*self.corners, **self.metadata)
        return produced if produced.__class__ is tuple else (produced,)

    def run(self, outs: Sequence[np.ndarray], models: Sequence[np.ndarray]) -> None:
        """Compute all blocks of `outs`."""
        ufunc = isinstance(self.reference, np.ufunc)
        direct = ufunc and all(out.dtype == model.dtype for out, model in zip(outs, models, strict=True))
        count = len(outs)

        def block(*blocks: np.ndarray) -> None:
            operands = list(self.operands)
            scratch = None
            for (position, kind), value in zip(self.cut, blocks[count:], strict=True):
                value = in_rows(value)
                if value.dtype != kind:
                    value = scratch = converted(value, kind)
                operands[position] = value
            if direct:
                self.reference(*operands, out=blocks[:count], **self.metadata)
                return
            if ufunc and scratch is not None and count == 1 and scratch.dtype == models[0].dtype:
                produced = self.reference(*operands, out=scratch, **self.metadata)
            else:
                produced = self.reference(*operands, **self.metadata)
            if produced.__class__ is not tuple:
                produced = (produced,)
            for out, value in zip(blocks[:count], produced, strict=True):
                from_float32(value, out.dtype, out)

        cut = [self.operands[position] for position, _ in self.cut]
        if direct and all(value.dtype == kind for value, (_, kind) in zip(cut, self.cut, strict=True)):
            in_blocks(block, *outs, *cut, size=_ONE_PASS)
        else:
            in_blocks(block, *outs, *cut)


def _empty(shape: tuple[int, ...], model: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """A new array whose dimensions are in the order of `model`'s memory."""
    order = sorted(range(len(shape)), key=lambda dim: (-model.strides[dim], -model.shape[dim]))
    return np.empty([shape[dim] for dim in order], dtype).transpose(np.argsort(order))


def _is_apart(array: np.ndarray) -> bool:
    """True if each element has memory of its own, as far as sizes and strides in increasing order show it."""
    taken = array.itemsize
    for stride, size in sorted(zip(map(abs, array.strides), array.shape, strict=True)):
        if size > 1:
            if stride < taken:
                return False
            taken += stride * (size - 1)
    return True
