"""Arithmetic of numbers of one type: sums, products, quotients, and what a card approximates."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np

from .parse import Instruction, Kernel, Register
from .state import Machine, Mask
from .table import Step, instruction, source, target, unknown, writes, writes_halves
from .values import PACKED, ROUNDINGS, TYPES, Type, directed, flush

__all__: list[str] = []

Array = np.ndarray


def _divided(a: Array, b: Array) -> Array:
    """Integer division towards zero; by zero all ones, as on a card."""
    if b.size == 1 and b.flat[0] > 0:
        divisor = b.flat[0]
        return a // divisor if a.dtype.kind == "u" else (a + ((a < 0) * (divisor - 1))) // divisor
    safe = np.where(b == 0, b.dtype.type(1), b)
    quotient = a // safe
    if a.dtype.kind == "i":
        quotient = quotient + ((quotient < 0) & (quotient * safe != a))
    return np.where(b == 0, b.dtype.type(0) - b.dtype.type(1), quotient).astype(a.dtype)


def _remainder(a: Array, b: Array) -> Array:
    if b.size == 1 and b.flat[0] > 0:
        return np.fmod(a, b.flat[0])
    return np.where(b == 0, a, a - _divided(a, b) * b).astype(a.dtype)


def _high(a: Array, b: Array) -> Array:
    """The upper half of a product."""
    if a.dtype.itemsize < 8:
        wide = np.dtype(f"{a.dtype.kind}{2 * a.dtype.itemsize}").type
        return ((a.astype(wide) * b.astype(wide)) >> wide(8 * a.dtype.itemsize)).astype(a.dtype)
    x, y, low = a.view(np.uint64), b.view(np.uint64), np.uint64(0xFFFFFFFF)
    half = np.uint64(32)
    middle = (x & low) * (y & low) >> half
    first = (x >> half) * (y & low) + middle
    second = (x & low) * (y >> half) + (first & low)
    top = (x >> half) * (y >> half) + (first >> half) + (second >> half)
    if a.dtype.kind == "i":
        top = top - np.where(a < 0, y, np.uint64(0)) - np.where(b < 0, x, np.uint64(0))
    return top.view(a.dtype)


def _least(pick: Callable[..., Any], other: Callable[..., Any]) -> Callable[[Array, Array], Array]:
    """fmin and fmax, of which the first is used for numbers and the second with `.NaN`."""

    def choose(a: Array, b: Array, nan: bool = False) -> Array:
        found = (other if nan else pick)(a, b)
        # of zeros of both signs NumPy gives the first, a card -0 as the smaller
        if found.dtype.kind == "f":
            zeros = (a == 0) & (b == 0)
            if zeros.any():
                negative = np.signbit(a) | np.signbit(b) if pick is np.fmin else np.signbit(a) & np.signbit(b)
                found = np.where(zeros, np.where(negative, found.dtype.type(-0.0), found.dtype.type(0)), found)
        return found

    return choose


def _reversed(a: Array) -> Array:
    rows = np.ascontiguousarray(a)[..., None].view(np.uint8)
    return np.packbits(np.unpackbits(rows, axis=-1)[..., ::-1], axis=-1).view(a.dtype)[..., 0]


_FLOAT: dict[str, Callable[..., Array]] = {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul": lambda a, b: a * b,
    "div": lambda a, b: a / b,
    "abs": np.abs,
    "neg": np.negative,
    "sqrt": np.sqrt,
    "rcp": lambda a: a.dtype.type(1) / a,
    "rsqrt": lambda a: (1 / np.sqrt(a.astype(np.float64))).astype(a.dtype),
    "copysign": lambda a, b: np.copysign(b, a),
    "ex2": lambda a: np.exp2(a.astype(np.float64)).astype(a.dtype),
    "lg2": lambda a: np.log2(a.astype(np.float64)).astype(a.dtype),
    "sin": lambda a: np.sin(a.astype(np.float64)).astype(a.dtype),
    "cos": lambda a: np.cos(a.astype(np.float64)).astype(a.dtype),
    "tanh": np.tanh,
    "min": _least(np.fmin, np.minimum),
    "max": _least(np.fmax, np.maximum),
}
_INTEGER: dict[str, Callable[..., Array]] = {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul.lo": lambda a, b: a * b,
    "mul.hi": _high,
    "mad.lo": lambda a, b, c: a * b + c,
    "mad.hi": lambda a, b, c: _high(a, b) + c,
    "div": _divided,
    "rem": _remainder,
    "abs": np.abs,
    "neg": np.negative,
    "min": np.minimum,
    "max": np.maximum,
    "and": np.bitwise_and,
    "or": np.bitwise_or,
    "xor": np.bitwise_xor,
    "not": np.invert,
    "cnot": lambda a: (a == 0).astype(a.dtype),
    "brev": _reversed,
    "sad": lambda a, b, c: c + np.where(a > b, a - b, b - a),
}


def _saturated(compute: Callable[..., Array], kind: Type) -> Callable[..., Array]:
    """A sum or difference of 32-bit integers that stays at the ends of their range."""
    low, high = np.iinfo(kind.number).min, np.iinfo(kind.number).max
    return lambda a, b: np.clip(compute(a.astype(np.int64), b.astype(np.int64)), low, high).astype(kind.number)


def _plain(i: Instruction, kernel: Kernel) -> Step:
    op, suffix = i.parts[0], i.parts[-1]
    if suffix in PACKED:
        return _by_halves(i, kernel)
    kind = TYPES[suffix]
    floating = np.dtype(kind.number).kind == "f"
    high = next((part for part in i.parts if part in ("lo", "hi")), "")
    compute = (_FLOAT if floating else _INTEGER).get(f"{op}.{high}" if high else op)
    if compute is None:
        raise unknown(i, kernel)
    if floating:
        compute = _rounded(i, kernel, compute, kind)
        if op in ("neg", "abs") and kind.size == 2:  # of a NaN too only the sign changes
            kind, flip = TYPES["b16"], op == "neg"
            compute = (lambda a: a ^ np.uint16(0x8000)) if flip else (lambda a: a & np.uint16(0x7FFF))
    elif more := {*i.parts[1:-1]} - {"lo", "hi"}:
        if more == {"relu"}:
            signed = compute
            compute = lambda *values: np.maximum(signed(*values), kind.number(0))  # noqa: E731
        elif more == {"sat"} and op in ("add", "sub"):
            compute = _saturated(compute, kind)
        else:
            raise unknown(i, kernel)
    return writes(i, kind, [kind] * (len(i.operands) - 1), kind, compute)


instruction(*{name.split(".")[0] for name in (*_FLOAT, *_INTEGER)} - {"mul", "mad"})(_plain)


@lru_cache(maxsize=256)
def _flushed(kernel: Kernel) -> frozenset[int]:
    """The registers that only instructions that flush to zero write: flushing them again would change nothing."""
    by: dict[int, bool] = {}
    for i in (each for block in kernel.blocks for each in block.instructions):
        for register in i.operands[:1]:
            if isinstance(register, Register):
                by[register.slot] = by.get(register.slot, True) and "ftz" in i.parts and i.parts[-1] == "f32"
    return frozenset(slot for slot, only in by.items() if only)


def _rounded(i: Instruction, kernel: Kernel, compute: Callable[..., Array], kind: Type) -> Callable[..., Array]:
    """A function of floats with the modifiers of an instruction: rounding, flush to zero, saturation."""
    parts = i.parts
    mode = next((part for part in parts if part in ROUNDINGS), "")
    if "NaN" in parts:
        choose = compute
        compute = lambda a, b: choose(a, b, True)  # noqa: E731
    if mode:
        compute = _directed(parts[0], mode)
    if kind.number is np.float32 and "ftz" in parts:
        exact, known = compute, _flushed(kernel)
        needs = [not (isinstance(each, Register) and each.slot in known) for each in i.operands[1:]]
        compute = lambda *values: flush(exact(*[flush(v) if need else v for v, need in zip(values, needs)]))  # noqa: E731
    if "sat" in parts:
        whole = compute
        compute = lambda *values: np.fmin(np.fmax(whole(*values), np.float32(0)), np.float32(1))  # noqa: E731
    if "relu" in parts:
        signed = compute
        compute = lambda *values: np.maximum(signed(*values), 0)  # noqa: E731
    return compute


def _two_sum(a: Array, b: Array) -> tuple[Array, Array]:
    """The rounded sum of float64 numbers and its rounding error."""
    total = a + b
    part = total - a
    return total, (a - (total - part)) + (b - part)


def _directed(op: str, mode: str) -> Callable[..., Array]:
    """float32 arithmetic that rounds towards zero or an infinity: exact in float64 but for an error that is known."""

    def compute(a: Array, b: Array, c: Array | None = None) -> Array:
        x, y, z = (np.float64(0) if each is None else each.astype(np.float64) for each in (a, b, c))
        if op == "div":
            total = np.asarray(x / y)
            return directed(total, lambda picked: (-np.sign(total * y - x) * np.sign(y))[picked], mode)
        first, second = (x * y, z) if op in ("mul", "fma", "mad") else (x, -y if op == "sub" else y)
        total = np.asarray(first + second)

        def error(picked: Array) -> Array:
            first_there, second_there = (np.broadcast_to(each, total.shape)[picked] for each in (first, second))
            return _two_sum(first_there, second_there)[1]

        return directed(total, error, mode)

    return compute


def _by_halves(i: Instruction, kernel: Kernel) -> Step:
    """An instruction on the two halves of 32-bit registers."""
    single = Instruction("", (*i.parts[:-1], PACKED[i.parts[-1]]), i.operands, None, i.where)
    kind = TYPES[single.parts[-1]]
    if i.parts[0] == "fma":
        compute = _rounded(single, kernel, _fused(kind), kind)
    elif i.parts[0] in ("neg", "abs") and kind.number is np.float32:
        flip = i.parts[0] == "neg"
        write = target(i.operands[0], TYPES["b32"])
        value = source(i.operands[1], TYPES["b32"])
        return lambda m, mask: write(
            m, value(m) ^ np.uint32(0x80008000) if flip else value(m) & np.uint32(0x7FFF7FFF), mask
        )
    else:
        compute = (_FLOAT if kind.number is np.float32 else _INTEGER)[i.parts[0]]
        if kind.number is np.float32:
            compute = _rounded(single, kernel, compute, kind)
        elif "relu" in i.parts:
            signed = compute
            compute = lambda *values: np.maximum(signed(*values), kind.number(0))  # noqa: E731
    return writes_halves(i, kind, compute)


# ---- products -------------------------------------------------------------------------------------------------------


def _fused(kind: Type) -> Callable[[Array, Array, Array], Array]:
    """a*b + c with one rounding.

    Of float32 in float64, where the product is exact. The sum is rounded twice, which is off by an ulp for one in 2**29
    of operands; rounding to odd would mend that and takes 1.6 to 2.1 times as long.
    """
    if kind.number is np.float32:
        return lambda a, b, c: (a.astype(np.float64) * b + c).astype(np.float32)

    def fma(a: Array, b: Array, c: Array) -> Array:
        total = a * b
        # Dekker: the error of the product by halves of 26 bits, then that of the sum
        split = np.float64(134217729.0)
        ah, bh = split * a - (split * a - a), split * b - (split * b - b)
        al, bl = a - ah, b - bh
        lost = ((ah * bh - total) + ah * bl + al * bh) + al * bl
        result, rest = _two_sum(total, c)
        exact = result + (rest + lost)
        return np.where(np.isfinite(exact), exact, total + c)

    return fma


@instruction("fma")
def _fma(i: Instruction, kernel: Kernel) -> Step:
    if i.parts[-1] in PACKED:
        return _by_halves(i, kernel)
    kind = TYPES[i.parts[-1]]
    return writes(i, kind, [kind] * 3, kind, _rounded(i, kernel, _fused(kind), kind))


@instruction("mul", "mad")
def _multiply(i: Instruction, kernel: Kernel) -> Step:
    if i.parts[0] == "mad" and i.parts[-1] in ("f32", "f64"):
        return _fma(i, kernel)
    if "cc" in i.parts:
        return _with_carry(i, kernel)
    if "wide" not in i.parts:
        return _plain(i, kernel)
    kind = TYPES[i.parts[-1]]
    wide = TYPES[f"{i.parts[-1][0]}{16 * kind.size}"]
    number = wide.number
    if i.parts[0] == "mul":
        return writes(i, kind, [kind, kind], wide, lambda a, b: a.astype(number) * b.astype(number))
    return writes(i, kind, [kind, kind, wide], wide, lambda a, b, c: a.astype(number) * b.astype(number) + c)


@instruction("addc", "madc", "subc", "add.cc", "sub.cc")
def _with_carry(i: Instruction, kernel: Kernel) -> Step:
    """Sums of numbers of several words. The carry is kept by the machine, as by the card's condition code."""
    op, kind = i.parts[0].rstrip("c"), TYPES["u" + i.parts[-1][1:]]
    high, carries = "hi" in i.parts, i.parts[0].endswith("c")
    if op == "sub":
        raise unknown(i, kernel)
    reads = [source(operand, kind) for operand in i.operands[1:]]
    write, sets = target(i.operands[0], kind), "cc" in i.parts

    def run(m: Machine, mask: Mask) -> None:
        values = [read(m) for read in reads]
        first = values[0]
        if op == "mad":
            first = _high(*values[:2]) if high else values[0] * values[1]
        second = values[-1]
        total = first + second
        carry = total < first
        if carries:
            before = m.async_state["carry"].astype(kind.bits)
            with_carry = total + before
            carry, total = carry | (with_carry < total), with_carry
        if sets:
            old = m.async_state.get("carry", False)
            m.async_state["carry"] = carry if mask is None else np.where(mask, carry, old)
        write(m, total, mask)

    return run
