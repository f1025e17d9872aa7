"""Conversions from and to float8 on a device, computed on bits: the copy's body where one side is float8.

They round to nearest even as PyTorch's do, on every card: Triton has two of the four formats on some cards, and ends
the range of float8_e5m2 without infinity.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...runtime.launch import DeviceFunction, device_function
from ...types import dtypes

if TYPE_CHECKING:
    import triton.language as tl


@device_function
def value_of(code, FINE: tl.constexpr, UNSIGNED: tl.constexpr):
    """The float32 of a code: one of three fraction bits where FINE, else of two. UNSIGNED: zero and NaN have no sign.

    A number's exponent and fraction are those of float32 in other places; one below the least normal number is a
    multiple of the least one.
    """
    SHIFT: tl.constexpr = 20 if FINE else 21
    BIAS: tl.constexpr = (7 if FINE else 15) + UNSIGNED
    code = code.to(tl.int32)
    size, sign = code & 0x7F, (code & 0x80) << 24
    least = tl.cast((105 - BIAS + SHIFT) << 23, tl.int32).to(tl.float32, bitcast=True)
    small = (size.to(tl.float32) * least).to(tl.int32, bitcast=True)
    bits = tl.where(size < (1 << (23 - SHIFT)), small, (size << SHIFT) + ((127 - BIAS) << 23))
    if UNSIGNED:
        bits = tl.where(code == 0x80, 0x7FC00000, bits | sign)
    elif FINE:
        bits = tl.where(size == 0x7F, 0x7FC00000, bits) | sign
    else:
        bits = tl.where(size >= 0x7C, 0x7F800000 | ((size & 3) << 21), bits) | sign
    return bits.to(tl.float32, bitcast=True)


@device_function
def code_of(x, FINE: tl.constexpr, UNSIGNED: tl.constexpr):
    """The code of a float32, see `value_of`. Adding half of the last place that is kept rounds a normal number; adding
    a number whose last place is the least one rounds one below."""
    SHIFT: tl.constexpr = 20 if FINE else 21
    BIAS: tl.constexpr = (7 if FINE else 15) + UNSIGNED
    bits = x.to(tl.int32, bitcast=True)
    size, sign = bits & 0x7FFFFFFF, (bits >> 24) & 0x80
    magic = tl.cast((128 - BIAS + SHIFT) << 23, tl.int32)
    small = (size.to(tl.float32, bitcast=True) + magic.to(tl.float32, bitcast=True)).to(tl.int32, bitcast=True) - magic
    large = (size - ((127 - BIAS) << 23) + ((1 << (SHIFT - 1)) - 1) + ((size >> SHIFT) & 1)) >> SHIFT
    code = tl.where(size < ((128 - BIAS) << 23), small, large)
    if UNSIGNED:
        return tl.where(code > 0x7F, 0x80, tl.where(code == 0, 0, code | sign))
    else:
        return tl.where(size > 0x7F800000, 0x7F, tl.minimum(code, 0x7E if FINE else 0x7C)) | sign


@device_function
def convert(x, SOURCE: tl.constexpr, TARGET: tl.constexpr):
    """A number in another format, by its name; a name of none is float32."""
    if SOURCE != "":
        FINE: tl.constexpr = SOURCE == "float8_e4m3fn" or SOURCE == "float8_e4m3fnuz"
        x = value_of(x, FINE, SOURCE == "float8_e4m3fnuz" or SOURCE == "float8_e5m2fnuz")
    if TARGET != "":
        SHORT: tl.constexpr = TARGET == "float8_e5m2" or TARGET == "float8_e5m2fnuz"
        x = code_of(x, not SHORT, TARGET == "float8_e4m3fnuz" or TARGET == "float8_e5m2fnuz")
    return x


def conversion(
    source: dtypes.dtype | None, target: dtypes.dtype | None
) -> tuple[DeviceFunction, tuple[str, str], tuple[dtypes.dtype]]:
    """The body of a copy between dtypes one of which is float8 (None for a number), its constants and its operand's."""
    first, second = (kind.name if kind is not None and kind in dtypes.FLOAT8 else "" for kind in (source, target))
    return convert, (first, second), (dtypes.uint8 if first else dtypes.float32,)
