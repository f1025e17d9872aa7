"""Copies of host arrays, with or without a change of dtype: large ones in blocks, on all of the CPU's threads.

ml_dtypes converts bfloat16 at 0.1 ns an element to float32 and 0.4 ns back. NumPy takes 1.8 and 3.5 ns for float16; a
few integer and floating-point passes, which NumPy vectorises, give the same bits in 0.4 and 1.2 ns. Their temporary
arrays have the block's size, so callers pass blocks that fit the level-2 cache (64 K to 256 K elements).
"""

from __future__ import annotations

from typing import Any, Literal

import numpy as np

from ..types import dtypes
from .blocks import in_blocks, is_turned

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
            return array.astype(dtype) if FLOAT8.isdisjoint((array.dtype, dtype)) else _by_float32(array, dtype)
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


FLOAT8 = frozenset(kind.numpy for kind in dtypes.FLOAT8)


def _by_float32(array: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """A cast of which float8 is a side, as PyTorch's: float8_e4m3fn has no infinity and holds 448 in place of more.

    All NaNs of a sign become one, which is positive where a format has no other.
    """
    single: np.ndarray = array.astype(np.float32)
    if array.dtype in _UNSIGNED:
        single[np.isnan(single)] = np.nan
    if dtype == dtypes.float8_e4m3fn.numpy:
        np.clip(single, -448, 448, out=single)
    found: np.ndarray = single.astype(dtype)
    if dtype == dtypes.float8_e5m2.numpy:
        found.view(np.uint8)[np.isnan(single)] |= 0x7F
    return found


_UNSIGNED = (dtypes.float8_e4m3fnuz.numpy, dtypes.float8_e5m2fnuz.numpy)  # their NaN has the sign, which zero has not


def _convert(out: np.ndarray, block: np.ndarray) -> None:
    if not FLOAT8.isdisjoint((out.dtype, block.dtype)):
        np.copyto(out, _by_float32(block, out.dtype))
    elif out.dtype == np.float32:
        to_float32(block, out)
    else:
        from_float32(block, out.dtype, out)


# below this many elements NumPy's one pass over float16 takes less time than the calls of several passes
_FEW = 1 << 13

_HALF, _SINGLE = np.dtype(np.float16), np.dtype(np.float32)
_ABSOLUTE, _INFINITY = 0x7FFF, 0x7C00  # of float16: all bits but the sign; the bits of infinity, NaN's are above
_SIGN_AND_VALUE = -0x70002000  # of float32: the bits that a float16 shifted by 13 uses, as an int32
_EXPONENT = 0x7F800000  # of float32
_LEAST = 113 << 23  # 2**-14, the least normal number of float16, as float32
_SHIFT = 13 << 23  # 2**13 as a difference of two float32 exponents
_TO_HALF_EXPONENT = (126 << 10) % (1 << 16)


def to_float32(array: np.ndarray, out: np.ndarray | None = None) -> np.ndarray:
    """An array in float32, in `out` or in a new array of the same layout; bits as `astype` gives them.

    float16 and bfloat16 are what it is for; other dtypes are cast by NumPy. The caller ignores NumPy's warnings.
    """
    if out is None:
        out = np.empty_like(array, _SINGLE)
    if array.dtype != _HALF or array.size < _FEW:
        np.copyto(out, array, casting="unsafe")
        return out
    halves, bits = array.view(np.int16), out.view(np.int32)
    # the float32 whose bits are float16's exponent and fraction is the number times 2**-112, subnormal numbers included
    np.copyto(bits, halves)
    np.left_shift(bits, 13, out=bits)
    np.bitwise_and(bits, _SIGN_AND_VALUE, out=bits)
    np.multiply(out, np.float32(2.0**112), out=out)
    absolute = np.bitwise_and(halves, _ABSOLUTE)
    if absolute.max() >= _INFINITY:
        endless = np.negative((absolute >= _INFINITY).view(np.int8)).astype(np.int32)  # -1 has all bits
        endless &= _EXPONENT
        bits |= endless
    return out


def from_float32(array: np.ndarray, dtype: np.dtype, out: np.ndarray | None = None) -> np.ndarray:
    """A float32 array rounded to a dtype, in `out` or in a new array of the same layout; bits as `astype` gives them.

    float16 and bfloat16 are what it is for; other dtypes are cast by NumPy. The caller ignores NumPy's warnings.
    """
    if out is None:
        out = np.empty_like(array, dtype)
    if dtype != _HALF or array.dtype != _SINGLE or array.size < _FEW:
        np.copyto(out, array, casting="unsafe")
        return out
    rounded = np.abs(array)
    ordinary = rounded.max() < 65520  # False for NaN; 65520 and above round to infinity
    # Adding 2**13 times the number's power of two, or that of the least normal number, rounds to float16's last place,
    # to even, and leaves the rounded fraction in the sum's lowest bits.
    power = np.bitwise_and(rounded.view(np.int32), _EXPONENT)
    least = np.full_like(power, _LEAST)  # maximum of an array and a number is not vectorised
    np.maximum(power, least, out=power)
    power += _SHIFT
    rounded += power.view(np.float32)
    bits = rounded.view(np.int32)
    power >>= 13
    bits += power
    halves = out.view(np.uint16)
    np.copyto(halves, bits, casting="unsafe")
    np.right_shift(array.view(np.int32), 16, out=bits)
    np.copyto(sign := np.empty_like(halves), bits, casting="unsafe")
    sign &= 0x8000
    halves += sign
    halves -= _TO_HALF_EXPONENT
    if not ordinary:
        rest = ~(np.abs(array) < 65520)
        out[rest] = array[rest]
    return out


def converted(array: np.ndarray, dtype: np.dtype, new: Any = np.empty) -> np.ndarray:
    """A contiguous copy in another dtype, in the memory of `new(shape, dtype)`."""
    out: np.ndarray = new(array.shape, dtype)
    if dtype == _SINGLE:
        return to_float32(array, out)
    np.copyto(out, array, casting="unsafe")
    return out
