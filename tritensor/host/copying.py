"""Copies of host arrays, with or without a change of dtype: large ones in blocks, on all of the CPU's threads."""

from __future__ import annotations

from typing import Literal

import numpy as np

from .. import casting
from .blocks import in_blocks, is_turned

__all__ = ["LARGE", "cast", "copied", "copy_into", "in_rows"]

# From this many elements on, copying in blocks takes less time than NumPy's one call.
LARGE = 1 << 18

# Elements between the rows of a temporary array, so that a column's elements are not all in one set of the cache.
_GAP = 16


def copied(array: np.ndarray, order: Literal["C", "K"] = "C") -> np.ndarray:
    """A copy in row-major order, or with `order` "K" in that of the array's memory."""
    if array.size < LARGE:
        return array.copy(order)
    out = np.empty_like(array, order=order)
    copy_into(out, array)
    return out


def cast(array: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """An array in another dtype, with the dimensions in the same order in memory; itself where it has that dtype.

    The imaginary part of complex numbers is dropped. No warnings are given.
    """
    if array.dtype == dtype:
        return array
    if array.dtype.kind == "c" and dtype.kind not in "cb":
        array = array.real
    if array.size < LARGE:
        with np.errstate(all="ignore"):
            return array.astype(dtype)
    out = np.empty_like(array, dtype)
    in_blocks(_convert, out, array)
    return out


def copy_into(out: np.ndarray, source: np.ndarray) -> None:
    """Write a broadcast array of the same dtype over `out`, as if all of it were read before anything is written."""
    if out.size < LARGE or np.may_share_memory(out, source):
        if out.ndim == 1 and out.strides != source.strides and np.may_share_memory(out, source):
            source = source.copy()  # NumPy overwrites what it has yet to read in `x[::2] = x[:5]`
        out[...] = source
        return
    in_blocks(_copy, out, np.broadcast_to(source, out.shape))


def in_rows(block: np.ndarray) -> np.ndarray:
    """A block itself, or a copy of it in rows if it is read across its rows: three times as fast as reading that."""
    if not is_turned(block):
        return block
    out = np.empty(block.shape, block.dtype)
    _copy(out, block)
    return out


def _copy(out: np.ndarray, block: np.ndarray) -> None:
    if is_turned(block):
        # Read in the order of memory first. Rows of 2**n bytes would leave the cache before their next element is read.
        order = sorted(range(block.ndim), key=lambda dim: -abs(block.strides[dim]))
        shape = [block.shape[dim] for dim in order]
        near = np.empty((*shape[:-1], shape[-1] + _GAP), block.dtype)[..., : shape[-1]]
        near = near.transpose(np.argsort(order))
        np.copyto(near, block)
        block = near
    np.copyto(out, block)


def _convert(out: np.ndarray, block: np.ndarray) -> None:
    if out.dtype == np.float32:
        casting.to_float32(block, out)
    else:
        casting.from_float32(block, out.dtype, out)
