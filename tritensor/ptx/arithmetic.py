"""Arithmetic, comparisons, conversions and moves."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..errors import KernelError, explain
from .machine import Machine, Mask, Step, instruction, source, target, typed
from .parse import Immediate, Instruction, Kernel, Operand, Vector
from .values import TYPES, Type, directed, flush, pairs, perturb

__all__: list[str] = []

Array = np.ndarray
_ROUNDINGS = ("rz", "rm", "rp")
_PACKED = {"bf16x2": "bf16", "f16x2": "f16", "s16x2": "s16", "u16x2": "u16"}


def _unknown(i: Instruction, kernel: Kernel) -> KernelError:
    return KernelError(
        explain(
            f"{kernel.name}: the simulated device does not know the instruction {i.name}", f"at {kernel.place(i.where)}"
        )
    )


# ---- one result of numbers of one type --------------------------------------------------------------------------------


def _divided(a: Array, b: Array) -> Array:
    """Integer division towards zero; by zero all ones, as on a card."""
    safe = np.where(b == 0, b.dtype.type(1), b)
    quotient = a // safe
    if a.dtype.kind == "i":
        quotient = quotient + ((quotient < 0) & (quotient * safe != a))
    return np.where(b == 0, b.dtype.type(0) - b.dtype.type(1), quotient).astype(a.dtype)


def _remainder(a: Array, b: Array) -> Array:
    return np.where(b == 0, a, a - _divided(a, b) * b).astype(a.dtype)


def _shifted(left: bool) -> Callable[[Array, Array], Array]:
    """A shift; by the width and more it shifts everything out."""

    def shift(a: Array, count: Array) -> Array:
        width = 8 * a.dtype.itemsize
        small = np.minimum(count, width - 1).astype(a.dtype)
        if left:
            return np.where(count < width, a << small, a.dtype.type(0))
        beyond = a >> a.dtype.type(width - 1) if a.dtype.kind == "i" else a.dtype.type(0)
        return np.where(count < width, a >> small, beyond)

    return shift


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


def _least(pick: Any, other: Any) -> Callable[[Array, Array], Array]:
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


def _field(a: Array, start: Array, count: Array) -> Array:
    """Bits of a number, with their sign if the type has one (bfe)."""
    width = 8 * a.dtype.itemsize
    start, count = start.astype(np.int64) & 255, count.astype(np.int64) & 255
    unsigned = a.view(f"u{a.dtype.itemsize}").astype(np.uint64)
    low = np.where(start < 64, unsigned >> np.minimum(start, 63).astype(np.uint64), np.uint64(0))
    keep = np.minimum(count, width)
    mask = np.where(keep >= 64, ~np.uint64(0), (np.uint64(1) << np.minimum(keep, 63).astype(np.uint64)) - np.uint64(1))
    found = low & mask
    if a.dtype.kind == "i":
        top = np.minimum(start + keep - 1, width - 1)
        sign = (unsigned >> np.maximum(top, 0).astype(np.uint64)) & np.uint64(1)
        found = np.where((sign != 0) & (keep > 0), found | ~mask, found)
    return found.astype(f"u{a.dtype.itemsize}").view(a.dtype)


def _inserted(a: Array, b: Array, start: Array, count: Array) -> Array:
    width = 8 * b.dtype.itemsize
    start, count = start.astype(np.int64) & 255, np.minimum(count.astype(np.int64) & 255, width)
    ones = np.where(
        count >= 64, ~np.uint64(0), (np.uint64(1) << np.minimum(count, 63).astype(np.uint64)) - np.uint64(1)
    )
    mask = np.where(start < width, ones << np.minimum(start, 63).astype(np.uint64), np.uint64(0))
    moved = a.astype(np.uint64) << np.minimum(start, 63).astype(np.uint64)
    return ((b.astype(np.uint64) & ~mask) | (moved & mask)).astype(b.dtype)


def _leading(a: Array) -> Array:
    """How many of the highest bits are zero."""
    width = 8 * a.dtype.itemsize
    value, count = a.copy(), np.zeros(a.shape, np.int64)
    step = width // 2
    while step:
        high = value >> value.dtype.type(step)
        empty = high == 0
        count += np.where(empty, step, 0)
        value = np.where(empty, value, high)
        step //= 2
    return count + (value == 0)


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
#: What NVIDIA documents as the largest error: ulps, or an absolute error of results near 1. PTX ISA, "Floating Point
#: Instructions"; relative errors of 2**-22.9 and less are one ulp.
_ERRORS: dict[str, dict[str, Any]] = {
    "div": {"ulps": 2},
    "rcp": {"ulps": 1},
    "sqrt": {"ulps": 1},
    "rsqrt": {"ulps": 1},
    "ex2": {"ulps": 2},
    "lg2": {"absolute": 2.0**-22},
    "sin": {"absolute": 2.0**-20.5},
    "cos": {"absolute": 2.0**-20.5},
    "tanh": {"ulps": 1 << 12},
}


def _plain(i: Instruction, kernel: Kernel) -> Step:
    op, suffix = i.parts[0], i.parts[-1]
    if suffix in _PACKED:
        return _by_halves(i, kernel)
    kind = typed(suffix)
    floating = np.dtype(kind.number).kind == "f"
    high = next((part for part in i.parts if part in ("lo", "hi")), "")
    compute = (_FLOAT if floating else _INTEGER).get(f"{op}.{high}" if high else op)
    if compute is None:
        raise _unknown(i, kernel)
    if floating:
        compute = _rounded(i, compute, kind)
        if op in ("neg", "abs") and kind.size == 2:  # of a NaN too only the sign changes
            kind, flip = TYPES["b16"], op == "neg"
            compute = (lambda a: a ^ np.uint16(0x8000)) if flip else (lambda a: a & np.uint16(0x7FFF))
    return _writes(i, kind, [kind] * (len(i.operands) - 1), kind, compute)


instruction(*{name.split(".")[0] for name in (*_FLOAT, *_INTEGER)} - {"mul", "mad"})(_plain)


def _writes(i: Instruction, kind: Type, kinds: list[Type], to: Type, compute: Callable[..., Array]) -> Step:
    """The step that writes what a function makes of the other operands."""
    write = target(i.operands[0], to)
    reads = [source(operand, each) for operand, each in zip(i.operands[1:], kinds)]
    approximate = i.parts[0] in _ERRORS and ("approx" in i.parts or "full" in i.parts)
    errors = _ERRORS.get(i.parts[0], {}) if kind.size == 4 else {}
    if approximate and errors:

        def inexact(m: Machine, mask: Mask) -> None:
            write(m, perturb(compute(*[read(m) for read in reads]), m.seed, **errors), mask)

        return inexact
    if len(reads) == 2:
        first, second = reads
        return lambda m, mask: write(m, compute(first(m), second(m)), mask)
    return lambda m, mask: write(m, compute(*[read(m) for read in reads]), mask)


def _rounded(i: Instruction, compute: Callable[..., Array], kind: Type) -> Callable[..., Array]:
    """A function of floats with the modifiers of an instruction: rounding, flush to zero, saturation."""
    parts = i.parts
    mode = next((part for part in parts if part in _ROUNDINGS), "")
    if "NaN" in parts:
        choose = compute
        compute = lambda a, b: choose(a, b, True)  # noqa: E731
    if mode:
        compute = _directed(parts[0], mode)
    if kind.number is np.float32 and "ftz" in parts:
        exact = compute
        compute = lambda *values: flush(exact(*map(flush, values)))  # noqa: E731
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
        x, y = a.astype(np.float64), b.astype(np.float64)
        if op in ("mul", "fma", "mad"):
            total, error = x * y, np.float64(0)
            if c is not None:
                total, error = _two_sum(total, c.astype(np.float64))
        elif op in ("add", "sub"):
            total, error = _two_sum(x, -y if op == "sub" else y)
        else:
            total = x / y
            error = -np.sign(total * y - x) * np.sign(y)
        return directed(total, np.nan_to_num(np.broadcast_to(error, total.shape)), mode)

    return compute


def _by_halves(i: Instruction, kernel: Kernel) -> Step:
    """An instruction on the two halves of 32-bit registers."""
    single = Instruction("", (*i.parts[:-1], _PACKED[i.parts[-1]]), i.operands, None, i.where)
    kind = typed(single.parts[-1])
    if i.parts[0] == "fma":
        compute = _rounded(single, _fused(kind), kind)
    elif i.parts[0] in ("neg", "abs") and kind.number is np.float32:
        flip = i.parts[0] == "neg"
        write = target(i.operands[0], TYPES["b32"])
        value = source(i.operands[1], TYPES["b32"])
        return lambda m, mask: write(
            m, value(m) ^ np.uint32(0x80008000) if flip else value(m) & np.uint32(0x7FFF7FFF), mask
        )
    else:
        compute = (_FLOAT if kind.number is np.float32 else _INTEGER)[i.parts[0]]
        compute = _rounded(single, compute, kind) if kind.number is np.float32 else compute
    write = target(i.operands[0], TYPES["b32"])
    reads = [source(operand, TYPES["b32"]) for operand in i.operands[1:]]

    def run(m: Machine, mask: Mask) -> None:
        found = kind.write(compute(*[kind.read(pairs(read(m))) for read in reads]))
        write(m, np.ascontiguousarray(found).view(np.uint32)[..., 0], mask)

    return run


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
    if i.parts[-1] in _PACKED:
        return _by_halves(i, kernel)
    kind = typed(i.parts[-1])
    return _writes(i, kind, [kind] * 3, kind, _rounded(i, _fused(kind), kind))


@instruction("mul", "mad")
def _multiply(i: Instruction, kernel: Kernel) -> Step:
    if i.parts[0] == "mad" and i.parts[-1] in ("f32", "f64"):
        return _fma(i, kernel)
    if "cc" in i.parts:
        return _with_carry(i, kernel)
    if "wide" not in i.parts:
        return _plain(i, kernel)
    kind = typed(i.parts[-1])
    wide = typed(f"{i.parts[-1][0]}{16 * kind.size}")
    number = wide.number
    if i.parts[0] == "mul":
        return _writes(i, kind, [kind, kind], wide, lambda a, b: a.astype(number) * b.astype(number))
    return _writes(i, kind, [kind, kind, wide], wide, lambda a, b, c: a.astype(number) * b.astype(number) + c)


@instruction("addc", "madc", "subc", "add.cc", "sub.cc")
def _with_carry(i: Instruction, kernel: Kernel) -> Step:
    """Sums of numbers of several words. The carry is kept by the machine, as by the card's condition code."""
    op, kind = i.parts[0].rstrip("c"), typed("u" + i.parts[-1][1:])
    high, carries = "hi" in i.parts, i.parts[0].endswith("c")
    if op == "sub":
        raise _unknown(i, kernel)
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


# ---- bits -----------------------------------------------------------------------------------------------------------


@instruction("shl", "shr")
def _shift(i: Instruction, kernel: Kernel) -> Step:
    kind = typed(i.parts[-1])
    return _writes(i, kind, [kind, TYPES["u32"]], kind, _shifted(i.parts[0] == "shl"))


@instruction("bfe", "bfi")
def _fields(i: Instruction, kernel: Kernel) -> Step:
    kind, count = typed(i.parts[-1]), TYPES["u32"]
    if i.parts[0] == "bfe":
        return _writes(i, kind, [kind, count, count], kind, _field)
    return _writes(i, kind, [kind, kind, count, count], kind, _inserted)


@instruction("popc", "clz", "bfind")
def _counts(i: Instruction, kernel: Kernel) -> Step:
    kind = typed("u" + i.parts[-1][1:])
    if i.parts[0] == "bfind" and i.parts[-1][0] == "s":
        raise _unknown(i, kernel)
    compute = {
        "popc": lambda a: np.bitwise_count(a),
        "clz": _leading,
        "bfind": lambda a: np.where(a == 0, -1, 8 * a.dtype.itemsize - 1 - _leading(a)),
    }[i.parts[0]]
    return _writes(i, kind, [kind], TYPES["u32"], lambda a: compute(a).astype(np.int64).astype(np.uint32))


@instruction("lop3")
def _lookup(i: Instruction, kernel: Kernel) -> Step:
    kind, table = TYPES["b32"], i.operands[4]
    assert isinstance(table, Immediate)

    def compute(a: Array, b: Array, c: Array, _: Array) -> Array:
        found = np.zeros((1, 1), np.uint32)
        for row in range(8):
            if table.bits >> row & 1:
                terms = (a if row & 4 else ~a) & (b if row & 2 else ~b) & (c if row & 1 else ~c)
                found = found | terms
        return found

    return _writes(i, kind, [kind] * 4, kind, compute)


@instruction("shf")
def _funnel(i: Instruction, kernel: Kernel) -> Step:
    left, wrap, kind = i.parts[1] == "l", i.parts[2] == "wrap", TYPES["b32"]

    def compute(low: Array, high: Array, count: Array) -> Array:
        count = (count & 31 if wrap else np.minimum(count, 32)).astype(np.uint64)
        both = (high.astype(np.uint64) << np.uint64(32)) | low.astype(np.uint64)
        moved = (both << count) >> np.uint64(32) if left else both >> count
        return moved.astype(np.uint32)

    return _writes(i, kind, [kind] * 3, kind, compute)


@instruction("prmt.b32")
def _permute(i: Instruction, kernel: Kernel) -> Step:
    """Bytes of two registers, each picked by four bits of a third; the highest of them repeats the byte's sign."""
    kind = TYPES["b32"]
    if len(i.parts) > 2:
        raise _unknown(i, kernel)

    def compute(a: Array, b: Array, selector: Array) -> Array:
        both = (b.astype(np.uint64) << np.uint64(32)) | a.astype(np.uint64)
        found = np.zeros((1, 1), np.uint32)
        for place in range(4):
            pick = (selector >> np.uint32(4 * place)).astype(np.uint64)
            byte = (both >> (np.uint64(8) * (pick & np.uint64(7)))).astype(np.uint32) & np.uint32(0xFF)
            signed = (pick & np.uint64(8)) != 0
            if signed.any():
                byte = np.where(signed, np.where(byte & np.uint32(0x80), np.uint32(0xFF), np.uint32(0)), byte)
            found = found | (byte << np.uint32(8 * place))
        return found

    return _writes(i, kind, [kind] * 3, kind, compute)


# ---- comparisons and choices ----------------------------------------------------------------------------------------

_COMPARE: dict[str, Callable[[Array, Array], Array]] = {
    "eq": np.equal,
    "ne": np.not_equal,
    "lt": np.less,
    "le": np.less_equal,
    "gt": np.greater,
    "ge": np.greater_equal,
    "lo": np.less,
    "ls": np.less_equal,
    "hi": np.greater,
    "hs": np.greater_equal,
}


def _comparison(name: str, floating: bool) -> Callable[[Array, Array], Array]:
    """A comparison; of floats `ne` is false for NaN, and those that end with u are true."""
    if name in ("num", "nan"):
        wanted = name == "nan"
        return lambda a, b: (np.isnan(a) | np.isnan(b)) == wanted
    if not floating:
        return _COMPARE[name]
    if name == "ne":
        return lambda a, b: (a != b) & ~np.isnan(a) & ~np.isnan(b)
    if name.endswith("u"):
        compare = _COMPARE[name[:-1]]
        return lambda a, b: compare(a, b) | np.isnan(a) | np.isnan(b)
    return _COMPARE[name]


@instruction("setp", "set")
def _set(i: Instruction, kernel: Kernel) -> Step:
    suffix = i.parts[-1]
    kind = typed(_PACKED.get(suffix, suffix))
    floating = np.dtype(kind.number).kind == "f"
    compare = _comparison(i.parts[1], floating)
    combine = next((part for part in i.parts[2:-1] if part in ("and", "or", "xor")), "")
    if i.parts[0] == "set" or combine:
        raise _unknown(i, kernel)
    first = i.operands[0]
    results = first.parts if isinstance(first, Vector) else (first,)
    writes = [target(each, TYPES["pred"]) for each in results]
    if suffix in _PACKED:
        reads = [source(operand, TYPES["b32"]) for operand in i.operands[1:3]]

        def halves(m: Machine, mask: Mask) -> None:
            found = compare(*[kind.read(pairs(read(m))) for read in reads])
            for at, write in enumerate(writes):
                write(m, found[..., at], mask)

        return halves
    a, b = (source(operand, kind) for operand in i.operands[1:3])
    ftz = "ftz" in i.parts

    def run(m: Machine, mask: Mask) -> None:
        x, y = a(m), b(m)
        found = compare(flush(x), flush(y)) if ftz else compare(x, y)
        writes[0](m, found, mask)
        if len(writes) > 1:
            writes[1](m, ~found, mask)

    return run


@instruction("selp")
def _select(i: Instruction, kernel: Kernel) -> Step:
    kind = typed("b" + i.parts[-1].lstrip("bfsu"))
    kinds = [kind, kind, TYPES["pred"]]
    return _writes(i, kind, kinds, kind, lambda a, b, chosen: np.where(chosen, a, b))


# ---- moves and conversions ------------------------------------------------------------------------------------------


@instruction("mov", "cvta")
def _move(i: Instruction, kernel: Kernel) -> Step:
    to, by = i.operands
    suffix = i.parts[-1]
    if isinstance(to, Vector):
        return _unpack(to, by, typed(suffix))
    if isinstance(by, Vector):
        return _pack(to, by, typed(suffix))
    kind = typed("pred" if suffix == "pred" else "b" + suffix.lstrip("bfsu"))
    return _writes(i, kind, [kind], kind, lambda a: a)


def _part(whole: Type, count: int) -> Type:
    return TYPES[f"b{8 * whole.size // count}"]


def _unpack(to: Vector, by: Operand, whole: Type) -> Step:
    kind = _part(whole, len(to.parts))
    read, writes = source(by, whole), [target(each, kind) for each in to.parts]

    def run(m: Machine, mask: Mask) -> None:
        parts = np.ascontiguousarray(read(m))[..., None].view(kind.bits)
        for at, write in enumerate(writes):
            write(m, parts[..., at], mask)

    return run


def _pack(to: Operand, by: Vector, whole: Type) -> Step:
    kind = _part(whole, len(by.parts))
    reads, write = [source(each, kind) for each in by.parts], target(to, whole)

    def run(m: Machine, mask: Mask) -> None:
        parts = np.stack(np.broadcast_arrays(*[read(m) for read in reads]), -1)
        write(m, parts.view(whole.bits)[..., 0], mask)

    return run


_WHOLE = {"rni": np.rint, "rzi": np.trunc, "rmi": np.floor, "rpi": np.ceil}


@instruction("cvt")
def _convert(i: Instruction, kernel: Kernel) -> Step:
    to, by, modifiers = i.parts[-2], i.parts[-1], i.parts[1:-2]
    if to.endswith("x2") or by.endswith("x2"):
        return _convert_pairs(i, kernel, to, by)
    if to == "tf32":
        return _writes(i, TYPES["f32"], [TYPES["f32"]], TYPES["f32"], lambda a: _to_tf32(a, "rna" in modifiers))
    kind, result = typed(by), typed(to)
    return _writes(i, kind, [kind], result, _converter(kind, result, modifiers))


def _to_tf32(value: Array, away: bool) -> Array:
    """Rounded to 10 bits behind the point: ties away from zero, or to even."""
    bits = value.view(np.uint32)
    half = np.uint32(0x1000) if away else np.uint32(0xFFF) + ((bits >> 13) & 1)
    return np.where(np.isfinite(value), ((bits + half) & np.uint32(0xFFFFE000)).view(np.float32), value)


def _converter(kind: Type, to: Type, modifiers: tuple[str, ...]) -> Callable[[Array], Array]:
    floating, whole = np.dtype(kind.number).kind == "f", next((m for m in modifiers if m in _WHOLE), "")
    number = np.dtype(to.number)
    mode = next((m for m in modifiers if m in _ROUNDINGS), "")

    def convert(value: Array) -> Array:
        if "ftz" in modifiers and kind.number is np.float32:
            value = flush(value)
        if floating and number.kind == "f":
            if whole:
                value = _WHOLE[whole](value)
            if mode and kind.size == 8:
                value = directed(value, np.zeros_like(value), mode)
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
                return directed(exact, lost, mode)
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
    result = typed(to.removesuffix("x2"))
    modifiers = i.parts[1:-2]
    whole = TYPES[f"b{16 * result.size}"]
    write = target(i.operands[0], whole)
    if by.endswith("x2"):
        origin = typed(by.removesuffix("x2"))
        read = source(i.operands[1], TYPES[f"b{16 * origin.size}"])

        def narrow(m: Machine, mask: Mask) -> None:
            parts = origin.read(np.ascontiguousarray(read(m))[..., None].view(origin.bits))
            write(m, np.ascontiguousarray(result.write(parts)).view(whole.bits)[..., 0], mask)

        return narrow
    kind = typed(by)
    convert = _converter(kind, result, modifiers)
    if "satfinite" in modifiers:
        most = {"e4m3": 448.0, "e5m2": 57344.0}.get(to.removesuffix("x2"))
        if most is not None:
            convert = lambda value: np.clip(value, np.float32(-most), np.float32(most))  # noqa: E731
    high, low = (source(operand, kind) for operand in i.operands[1:3])

    def run(m: Machine, mask: Mask) -> None:
        parts = np.broadcast_arrays(low(m), high(m))
        bits = np.stack([result.write(convert(part)) for part in parts], -1)
        write(m, np.ascontiguousarray(bits).view(whole.bits)[..., 0], mask)

    return run
