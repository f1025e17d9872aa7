"""Joining tensors: `cat`, for any number of them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from ...errors import ShapeError
from ...operators import Dtypes, Operator, Shapes, copy_into
from ...operators.lifting.batching import Batch
from ...operators.rules import ANY
from ...runtime.call import Call
from ...types import layout


class Joining(Operator):
    """Tensors one after another along a dimension; on a device, one copy each into its part of the result."""

    family = "joining"
    about = "One launch for each part."
    on_pairs = True
    repeatable = True

    def prepare(self, call: Call) -> None:
        """Check that the shapes agree but for `dim`; empty vectors are skipped, as in PyTorch."""
        for position, x in enumerate(call.inputs):
            if x.ndim == 0:
                raise ShapeError(f"zero-dimensional tensor (at position {position}) cannot be concatenated")
        kept = [(position, x._data.shape) for position, x in enumerate(call.inputs) if x._data.shape != (0,)]
        if kept:
            first = kept[0][1]
            dim = layout.normalize_dim(call.metadata["dim"], len(first))
        else:
            first, dim = (0,), 0  # PyTorch takes any dimension then
        for position, shape in kept:
            if len(shape) != len(first):
                raise ShapeError(f"Tensors must have same number of dimensions: got {len(first)} and {len(shape)}")
            for axis, (expected, got) in enumerate(zip(first, shape, strict=True)):
                if expected != got and axis != dim:
                    raise ShapeError(
                        f"Sizes of tensors must match except in dimension {dim}. Expected size {expected} "
                        f"but got size {got} for tensor number {position} in the list."
                    )
        # None marks a vector that is skipped
        sizes = tuple(x._data.shape[dim] if x.ndim == len(first) else None for x in call.inputs)
        call.metadata = {"dim": dim, "sizes": sizes}

    def resolve_dtypes(self, call: Call) -> Dtypes:
        """The common dtype; nothing is computed, so half precision stays as it is."""
        result = self.rule(self.name, call.inputs)[1]
        return result, (result,)

    def allocate(self, call: Call) -> Shapes:
        """The sum of the sizes along `dim`."""
        dim = call.metadata["dim"]
        shape = next((array.shape for array in call.arrays if array.shape != (0,)), (0,))
        return [((*shape[:dim], sum(filter(None, call.metadata["sizes"])), *shape[dim + 1 :]), call.results[0].numpy)]

    def launch(self, call: Call) -> None:
        """Copy each tensor to its place."""
        dim, start = call.metadata["dim"], 0
        for array, size in zip(call.arrays, call.metadata["sizes"], strict=True):
            if size:
                copy_into(call.outs[0][(*(slice(None),) * dim, slice(start, start + size))], array)
                start += size

    @staticmethod
    def batched(batch: Batch) -> tuple[Any, ...]:
        """Results for all samples, see `Operator.batched`."""
        dim, sizes = batch.metadata["dim"], batch.metadata["sizes"]
        kept = [batch.all_of(position) for position, size in enumerate(sizes) if size is not None]
        if not kept:
            kept = [batch.all_of(0)]
        return (batch.operator(*kept, dim=dim + 1),)


def _cat(*tensors, dim: int = 0, sizes=None):
    """The tensors one after another along `dim`."""
    kept = [x for x in tensors if x.shape != (0,)]
    return np.concatenate(kept, axis=dim) if kept else tensors[0].copy()


cat = Joining("cat", _cat, ANY)
cat.float8 = "moved"
cat.autocasts(cpu="widest")


@cat.samples
def _(draw: Any) -> Iterator[tuple[Any, ...]]:
    yield [draw((2, 3)), draw((1, 3))], {"dim": 0}
    yield [draw((2, 3)), draw((2, 1)), draw((2, 2))], {"dim": 1}
    yield [draw((4,)), draw((0,)), draw((2,))], {"dim": -1}
    yield [draw((0,)), draw((2, 3))], {"dim": 0}


@cat.gradient
def _(grad: Any, dim: int, sizes: tuple[Any, ...], needs: tuple[bool, ...]) -> tuple[Any, ...]:
    parts, start = [], 0
    for size, need in zip(sizes, needs, strict=True):
        part = grad.narrow(dim, start, size) if size is not None else grad.new_zeros(0)
        parts.append(part if need else None)
        start += size or 0
    return tuple(parts)
