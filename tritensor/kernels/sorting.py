"""Sorting along a dimension: the elements in order, and where each came from. Always stable."""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import dtypes, layout
from ..buffer import DeviceArray
from ..operator import REAL, Operator, compute_dtype

__all__ = ["sort"]


class Sorting(Operator):
    """The sorted elements and their indices; NaN is larger than every number, as in PyTorch."""

    family = "sorting"
    repeatable = True
    outputs = ("values", "indices")

    def prepare(self, inputs: tuple[Any, ...], metadata: dict[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Count the dimension from the front."""
        return inputs, {**metadata, "dim": layout.normalize_dim(metadata["dim"], inputs[0].ndim)}

    def resolve_dtypes(
        self, inputs: tuple[Any, ...], metadata: dict[str, Any]
    ) -> tuple[dtypes.dtype, tuple[dtypes.dtype, ...]]:
        """Values keep their dtype; indices are int64."""
        self.rule(self.name, inputs)
        kind = inputs[0].dtype
        return compute_dtype(kind), (kind, dtypes.int64)

    def allocate(self, arrays: Any, results: Any, metadata: dict[str, Any]) -> list[tuple[tuple[int, ...], np.dtype]]:
        """Both of the input's shape."""
        return [(arrays[0].shape, result.numpy) for result in results]

    def launch(self, outs: list[DeviceArray], arrays: Any, compute: dtypes.dtype, metadata: dict[str, Any]) -> None:
        """Radix sort by the elements' bits, then by row."""
        from .sorting_kernels import sort_along

        sort_along(outs[0], outs[1], arrays[0], metadata["dim"], metadata["descending"])


def _sort(x, *, dim=-1, descending=False):
    """The elements along `dim` in rising (or falling) order, and their indices; equal ones stay in their order."""
    if x.ndim == 0:
        return x.copy(), np.zeros((), np.int64)
    if descending:
        # from behind, so that turning the result around puts equal elements into their first order
        order = x.shape[dim] - 1 - np.flip(np.argsort(np.flip(x, dim), dim, kind="stable"), dim)
    else:
        order = np.argsort(x, dim, kind="stable")
    return np.take_along_axis(x, order, dim), order


sort = Sorting("sort", _sort, REAL, outputs=("values", "indices"))


@sort.gradient
def _(grad: Any, indices: Any, x_shape: tuple[int, ...], dim: int) -> Any:
    return grad.new_zeros(x_shape).scatter(dim, indices, grad)
