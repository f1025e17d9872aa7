"""Types of PTX: how the bits of a register are read as numbers, and how results are rounded to bits again."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import ml_dtypes
import numpy as np

Array = np.ndarray
#: The type of the two halves of a register, by that of both.
PACKED = {"bf16x2": "bf16", "f16x2": "f16", "s16x2": "s16", "u16x2": "u16"}
#: Towards zero, minus and plus infinity; the others round to nearest.
ROUNDINGS = ("rz", "rm", "rp")


def to_bfloat16(value: Array) -> Array:
    """The bits of float32 values rounded to bfloat16, to nearest even."""
    bits = value.view(np.uint32)
    rounded = ((bits + (((bits >> 16) & 1) + np.uint32(0x7FFF))) >> 16).astype(np.uint16)
    return np.where(np.isnan(value), np.uint16(0x7FFF), rounded)


def _from_bfloat16(bits: Array) -> Array:
    return (bits.astype(np.uint32) << 16).view(np.float32)


class Type(NamedTuple):
    """A type of PTX.

    Attributes:
        bits: the unsigned type that a register of this width holds.
        number: the type to compute in; of halves float32, whose products and sums round to the same halves.
        read, write: from bits to numbers and back.
    """

    bits: Any
    number: Any
    read: Callable[[Array], Array]
    write: Callable[[Array], Array]

    @property
    def size(self) -> int:
        """Bytes of a number."""
        return int(np.dtype(self.bits).itemsize)


def _plain(bits: Any, number: Any) -> Type:
    # a view as a dtype takes 0.15 us, as a type 0.37
    held, wanted = np.dtype(bits), np.dtype(number)
    if held is wanted:
        return Type(bits, number, lambda value: value.view(wanted), lambda value: value.astype(wanted, copy=False))
    return Type(
        bits, number, lambda value: value.view(wanted), lambda value: value.astype(wanted, copy=False).view(held)
    )


def _small(dtype: type, bits: type) -> Type:
    return Type(
        bits,
        np.float32,
        lambda value: value.view(dtype).astype(np.float32),
        lambda value: value.astype(dtype).view(bits),
    )


_U = {8: np.uint8, 16: np.uint16, 32: np.uint32, 64: np.uint64}
_S = {8: np.int8, 16: np.int16, 32: np.int32, 64: np.int64}
TYPES: dict[str, Type] = {"pred": Type(np.bool_, np.bool_, lambda value: value, lambda value: value)}
for _width in _U:
    TYPES[f"b{_width}"] = TYPES[f"u{_width}"] = _plain(_U[_width], _U[_width])
    TYPES[f"s{_width}"] = _plain(_U[_width], _S[_width])
TYPES["f32"] = TYPES["tf32"] = _plain(np.uint32, np.float32)
TYPES["f64"] = _plain(np.uint64, np.float64)
TYPES["f16"] = _small(np.float16, np.uint16)
TYPES["bf16"] = Type(np.uint16, np.float32, _from_bfloat16, to_bfloat16)
TYPES["e4m3"] = _small(ml_dtypes.float8_e4m3fn, np.uint8)
TYPES["e5m2"] = _small(ml_dtypes.float8_e5m2, np.uint8)


def bits_of(value: int, kind: Type) -> Array:
    """An immediate as bits that broadcast to all lanes."""
    width = 8 * kind.size
    if kind.bits is np.bool_:
        return np.array([[bool(value)]])
    return np.array([[value & ((1 << width) - 1)]], kind.bits)


def holds_everywhere(value: Array) -> bool:
    """`value.all()` of booleans, which takes 1 us of few; this takes 0.4."""
    return np.count_nonzero(value) == value.size


def common_shape(first: Array, *others: Array) -> tuple[int, ...]:
    """The shape that arrays broadcast to. Mostly they have it, and NumPy takes 2 us to find it."""
    if all(each.shape == first.shape for each in others):
        return first.shape
    return np.broadcast_shapes(first.shape, *(each.shape for each in others))


def joined(parts: Sequence[Array], bits: type | np.dtype) -> Array:
    """Numbers side by side as one of a wider type; `np.stack` of `np.broadcast_arrays` takes three times as long."""
    found = np.empty((*common_shape(*parts), len(parts)), parts[0].dtype)
    for at, part in enumerate(parts):
        found[..., at] = part
    return found.view(bits)[..., 0]


def pairs(bits: Array) -> Array:
    """The halves of 32-bit registers, the lower one first, along a last axis of two."""
    return np.ascontiguousarray(bits)[..., None].view(np.uint16)


def flush(value: Array) -> Array:
    """Subnormal float32 numbers become zeros of their sign. A product takes 0.7 of the time of `where`."""
    return value * (np.abs(value) >= np.float32(2.0**-126))


def directed(value: Array, error: Callable[[Array], Array], mode: str) -> Array:
    """float64 values rounded to float32 towards zero, minus or plus infinity.

    Args:
        error: what the value itself has lost, of those that a mask picks: it decides where the value is a float32.
    """
    near = np.asarray(value.astype(np.float32))
    back = near.astype(np.float64)
    above, below = back > value, back < value
    same = ~(above | below) & np.isfinite(value)
    if same.any():
        lost = error(same)
        above[same], below[same] = lost < 0, lost > 0
    positive = value > 0
    down = above if mode == "rm" else above & positive if mode == "rz" else None
    up = below if mode == "rp" else below & ~positive if mode == "rz" else None
    for wrong, towards in ((down, np.float32(-np.inf)), (up, np.float32(np.inf))):
        if wrong is not None and wrong.any():  # nextafter takes 0.2 us an element
            near[wrong] = np.nextafter(near[wrong], towards)
    return near


def perturb(
    value: Array, operand: Array, seed: int, ulps: int = 0, absolute: float = 0.0, whole: bool = False
) -> Array:
    """float32 values off by as much as NVIDIA documents for an approximate instruction.

    The same operands always give the same error, as on a card: it is a hash of the bits of the result, of the last
    operand, and of the seed. Zeros, subnormal numbers, infinities and NaN stay, and with `whole` what is made of whole
    numbers: NVIDIA's library takes powers of two by `ex2.approx`.
    """
    bits = value.view(np.uint32)
    seeded = (operand.view(np.uint32) >> np.uint32(3)) ^ np.uint32(seed * 0x9E3779B1 & 0xFFFFFFFF)
    mixed = ((bits ^ seeded) * np.uint32(0x85EBCA6B)) >> np.uint32(16)
    # of normal numbers but for the least and the greatest, by one comparison of the exponent
    plain = ((bits & np.uint32(0x7FFFFFFF)) - np.uint32(0x01000000)) < np.uint32(0x7E000000)
    if whole:
        plain &= operand != np.rint(operand)
    if ulps:
        steps = ((mixed * np.uint32(2 * ulps + 1)) >> np.uint32(16)) - np.uint32(ulps)
        return np.asarray(bits + steps * plain).view(np.float32)
    near = value + np.float32(absolute) * (mixed.astype(np.float32) / np.float32(32768) - 1)
    return np.where(plain, near, value)
