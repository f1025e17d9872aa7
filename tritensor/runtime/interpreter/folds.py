"""`tl.reduce` and `tl.associative_scan` in simulation. Imports Triton.

Triton's interpreter calls a combine function once per element. Here it is called on halves of the array, log2(n) times
for n elements. Elements are combined in their order, which is all that the language guarantees.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import triton.language as tl

from .builder import block, numpy_dtype

_REDUCERS: dict[str, Any] = {"_sum_combine": np.add, "_elementwise_max": np.fmax, "_elementwise_min": np.fmin}
_SCANNERS: dict[str, Any] = {"_sum_combine": np.add, "_prod_combine": np.multiply}


def _ufunc(table: dict[str, Any], combine: Any) -> Any:
    """The NumPy ufunc that is equivalent to one of Triton's own combine functions, or None."""
    function = getattr(getattr(combine, "original", None), "fn", None)
    return table.get(function.__name__) if function is not None else None


def _combined(
    combine: Callable[..., Any], first: list[np.ndarray], second: list[np.ndarray], types: list[Any]
) -> list[np.ndarray]:
    """`combine` on whole arrays: flattened and padded to a power of two, as blocks require."""
    shape, count = first[0].shape, first[0].size
    padding = (0, (1 << max(0, count - 1).bit_length()) - count)
    operands = [
        block(np.pad(data.reshape(-1), padding), type) for side in (first, second) for data, type in zip(side, types)
    ]
    result = combine(*operands)
    results = result if isinstance(result, (tuple, list)) else (result,)
    return [
        entry.handle.data[:count].reshape(shape).astype(numpy_dtype(type), copy=False)
        for entry, type in zip(results, types)
    ]


def reduce(input: object, axis: int, combine_fn: Callable[..., Any], keep_dims: bool = False, **compiler: Any) -> Any:
    """Fold blocks of any number of values along one axis, or along all when `axis` is None."""
    inputs = input if isinstance(input, (tuple, list)) else (input,)
    axis, keep_dims = tl.core._unwrap_if_constexpr(axis), tl.core._unwrap_if_constexpr(keep_dims)
    types = [entry.dtype for entry in inputs]
    arrays = [entry.handle.data for entry in inputs]
    rank = arrays[0].ndim
    if axis is None:
        arrays, axis, kept = [data.reshape(-1) for data in arrays], 0, (1,) * rank
    else:
        axis %= rank
        kept = (*arrays[0].shape[:axis], 1, *arrays[0].shape[axis + 1 :])
    ufunc = _ufunc(_REDUCERS, combine_fn) if len(arrays) == 1 else None
    if ufunc is not None:
        arrays = [ufunc.reduce(arrays[0], axis=axis, dtype=arrays[0].dtype)]
    else:
        arrays = [np.moveaxis(data, axis, 0) for data in arrays]
        while len(arrays[0]) > 1:
            arrays = _combined(combine_fn, [data[0::2] for data in arrays], [data[1::2] for data in arrays], types)
        arrays = [data[0] for data in arrays]
    if keep_dims:
        arrays = [np.reshape(data, kept) for data in arrays]
    blocks = tuple(block(np.asarray(data), type) for data, type in zip(arrays, types))
    return blocks if isinstance(input, (tuple, list)) else blocks[0]


def associative_scan(input: Any, axis: int, combine_fn: Any, reverse: bool = False, **compiler: Any) -> Any:
    """Running folds along one axis, from the end when `reverse`."""
    inputs = input if isinstance(input, (tuple, list)) else (input,)
    axis, reverse = tl.core._unwrap_if_constexpr(axis), tl.core._unwrap_if_constexpr(reverse)
    types = [entry.dtype for entry in inputs]
    arrays = [np.moveaxis(entry.handle.data, axis, 0) for entry in inputs]
    if reverse:
        arrays = [data[::-1] for data in arrays]
    ufunc = _ufunc(_SCANNERS, combine_fn) if len(arrays) == 1 else None
    if ufunc is not None:
        arrays = [ufunc.accumulate(arrays[0], axis=0, dtype=arrays[0].dtype)]
    else:
        step = 1
        while step < len(arrays[0]):
            tails = _combined(combine_fn, [data[:-step] for data in arrays], [data[step:] for data in arrays], types)
            arrays = [np.concatenate([data[:step], tail]) for data, tail in zip(arrays, tails)]
            step *= 2
    if reverse:
        arrays = [data[::-1] for data in arrays]
    blocks = tuple(block(np.ascontiguousarray(np.moveaxis(data, 0, axis)), type) for data, type in zip(arrays, types))
    return blocks if isinstance(input, (tuple, list)) else blocks[0]
