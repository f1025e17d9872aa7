"""Conversions between types."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from .parse import Instruction, Kernel, Register
from .state import Machine, Mask
from .table import Step, instruction, source, target, writes
from .values import ROUNDINGS, TYPES, Type, directed, flush, holds_everywhere

__all__: list[str] = []

Array = np.ndarray

# of tf32; arrays are used in two thirds of the time of NumPy's scalars
_HALF, _KEPT = np.array(0x1000, np.uint32), np.array(0xFFFFE000, np.uint32)
_WHOLE = {"rni": np.rint, "rzi": np.trunc, "rmi": np.floor, "rpi": np.ceil}


@instruction("cvt")
def _convert(i: Instruction, kernel: Kernel) -> Step:
    to, by, modifiers = i.parts[-2], i.parts[-1], i.parts[1:-2]
    if to.endswith("x2") or by.endswith("x2"):
        return _convert_pairs(i, kernel, to, by)
    if to == "tf32":
        return writes(i, TYPES["f32"], [TYPES["f32"]], TYPES["f32"], lambda a: _to_tf32(a, "rna" in modifiers))
    kind, result = TYPES[by], TYPES[to]
    return writes(i, kind, [kind], result, _converter(kind, result, modifiers))


def _to_tf32(value: Array, away: bool) -> Array:
    """Rounded to 10 bits behind the point: ties away from zero, or to even."""
    bits = value.view(np.uint32)
    half = _HALF if away else np.uint32(0xFFF) + ((bits >> 13) & 1)
    rounded, finite = ((bits + half) & _KEPT).view(np.float32), np.isfinite(value)
    return rounded if holds_everywhere(finite) else np.where(finite, rounded, value)


def _converter(kind: Type, to: Type, modifiers: tuple[str, ...]) -> Callable[[Array], Array]:
    floating, whole = np.dtype(kind.number).kind == "f", next((m for m in modifiers if m in _WHOLE), "")
    number = np.dtype(to.number)
    mode = next((m for m in modifiers if m in ROUNDINGS), "")

    def convert(value: Array) -> Array:
        if "ftz" in modifiers and kind.number is np.float32:
            value = flush(value)
        if floating and number.kind == "f":
            if whole:
                value = _WHOLE[whole](value)
            if mode and kind.size == 8:
                value = directed(value, lambda picked: np.zeros(1), mode)
            elif mode and to.size == 2:  # a half towards zero: away from the nearest one where that is beyond
                near = to.read(to.write(value))
                bits = to.write(value) - (np.abs(near) > np.abs(value)).astype(np.uint16)
                value = to.read(bits) if mode == "rz" else value
            elif to.number is not kind.number:
                value = value.astype(number)
            if "sat" in modifiers:
                value = np.fmin(np.fmax(value, number.type(0)), number.type(1))
            return value
        if floating:
            return _to_integer(_WHOLE[whole or "rzi"](value), number)
        if number.kind == "f":
            if mode and to.size == 4:
                exact = value.astype(np.float64)
                lost = (value.astype(np.longdouble) - exact).astype(np.float64)
                return directed(exact, lambda picked: lost[picked], mode)
            return value.astype(np.float32 if to.size < 8 else np.float64)
        if "sat" in modifiers:
            limits = np.iinfo(number)
            low = max(limits.min, np.iinfo(value.dtype).min)
            return np.clip(value, low, min(limits.max, np.iinfo(value.dtype).max)).astype(number)
        return value.astype(number)

    return convert


def _to_integer(value: Array, number: np.dtype) -> Array:
    """Integers of whole floats: NaN is 0, and beyond the range the nearest of the range."""
    limits = np.iinfo(number)
    wide = value.astype(np.float64)
    inside = (wide >= float(limits.min)) & (wide < float(limits.max) + 1)
    found = np.where(inside, wide, 0).astype(number)
    beyond = np.where(wide > 0, number.type(limits.max), number.type(limits.min))
    return np.where(inside, found, np.where(np.isnan(wide), number.type(0), beyond))


def _convert_pairs(i: Instruction, kernel: Kernel, to: str, by: str) -> Step:
    """Two numbers to a register of two, the first operand into its upper half, or the two of one register."""
    result = TYPES[to.removesuffix("x2")]
    modifiers = i.parts[1:-2]
    whole = TYPES[f"b{16 * result.size}"]
    write = target(i.operands[0], whole)
    if by.endswith("x2"):
        origin = TYPES[by.removesuffix("x2")]
        read = source(i.operands[1], TYPES[f"b{16 * origin.size}"])

        def narrow(m: Machine, mask: Mask) -> None:
            parts = origin.read(np.ascontiguousarray(read(m))[..., None].view(origin.bits))
            write(m, np.ascontiguousarray(result.write(parts)).view(whole.bits)[..., 0], mask)

        return narrow
    kind = TYPES[by]
    convert = _converter(kind, result, modifiers)
    if "satfinite" in modifiers:
        most = {"e4m3": 448.0, "e5m2": 57344.0}.get(to.removesuffix("x2"))
        if most is not None:
            convert = lambda value: np.clip(value, np.float32(-most), np.float32(most))  # noqa: E731
    high, low = (source(operand, kind) for operand in i.operands[1:3])
    # the last pair of an odd number has one number only, and the other is what a register holds
    slot = i.operands[1].slot if isinstance(i.operands[1], Register) else -1

    def run(m: Machine, mask: Mask) -> None:
        first = low(m)
        parts = np.broadcast_arrays(first, first if slot >= 0 and m.registers[slot] is None else high(m))
        bits = np.stack([result.write(convert(part)) for part in parts], -1)
        write(m, np.ascontiguousarray(bits).view(whole.bits)[..., 0], mask)

    return run
