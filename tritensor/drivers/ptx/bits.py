"""Shifts and fields of bits, comparisons and choices, moves between registers."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from .parse import Immediate, Instruction, Kernel, Operand, Register, Vector
from .state import Machine, Mask
from .table import Step, instruction, source, target, unknown, writes, writes_halves
from .values import PACKED, TYPES, Type, flush, joined, pairs

__all__: list[str] = []

Array = np.ndarray


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
    """The number of the highest bits that are zero."""
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


# ---- bits -----------------------------------------------------------------------------------------------------------


@instruction("shl", "shr")
def _shift(i: Instruction, kernel: Kernel) -> Step:
    kind, left, count = TYPES[i.parts[-1]], i.parts[0] == "shl", i.operands[2]
    compute = _shifted(left)
    if isinstance(count, Immediate) and 0 <= count.bits < 8 * kind.size:
        fixed = np.dtype(kind.number).type(count.bits)
        compute = (lambda a, _: a << fixed) if left else (lambda a, _: a >> fixed)
    return writes(i, kind, [kind, TYPES["u32"]], kind, compute)


@instruction("bfe", "bfi")
def _fields(i: Instruction, kernel: Kernel) -> Step:
    kind, count = TYPES[i.parts[-1]], TYPES["u32"]
    if i.parts[0] == "bfe" and all(isinstance(operand, Immediate) for operand in i.operands[2:]):
        start, size = (operand.bits & 255 for operand in i.operands[2:])  # type: ignore[union-attr]
        number, width = np.dtype(kind.number), 8 * kind.size
        if size > 0 and start + size <= width:  # out of the way on the left, then on the right with the sign
            up, down = number.type(width - start - size), number.type(width - size)
            return writes(i, kind, [kind], kind, lambda a: a << up >> down)
    if i.parts[0] == "bfe":
        return writes(i, kind, [kind, count, count], kind, _field)
    return writes(i, kind, [kind, kind, count, count], kind, _inserted)


@instruction("popc", "clz", "bfind")
def _counts(i: Instruction, kernel: Kernel) -> Step:
    kind = TYPES["u" + i.parts[-1][1:]]
    if i.parts[0] == "bfind" and i.parts[-1][0] == "s":
        raise unknown(i, kernel)
    compute = {
        "popc": lambda a: np.bitwise_count(a),
        "clz": _leading,
        "bfind": lambda a: np.where(a == 0, -1, 8 * a.dtype.itemsize - 1 - _leading(a)),
    }[i.parts[0]]
    return writes(i, kind, [kind], TYPES["u32"], lambda a: compute(a).astype(np.int64).astype(np.uint32))


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

    return writes(i, kind, [kind] * 4, kind, compute)


@instruction("shf")
def _funnel(i: Instruction, kernel: Kernel) -> Step:
    left, wrap, kind = i.parts[1] == "l", i.parts[2] == "wrap", TYPES["b32"]

    def compute(low: Array, high: Array, count: Array) -> Array:
        count = (count & 31 if wrap else np.minimum(count, 32)).astype(np.uint64)
        both = (high.astype(np.uint64) << np.uint64(32)) | low.astype(np.uint64)
        moved = (both << count) >> np.uint64(32) if left else both >> count
        return moved.astype(np.uint32)

    return writes(i, kind, [kind] * 3, kind, compute)


@instruction("prmt.b32")
def _permute(i: Instruction, kernel: Kernel) -> Step:
    """Bytes of two registers, each picked by four bits of a third; the highest of them repeats the byte's sign."""
    kind = TYPES["b32"]
    if len(i.parts) > 2:
        raise unknown(i, kernel)

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

    return writes(i, kind, [kind] * 3, kind, compute)


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
    kind = TYPES[PACKED.get(suffix, suffix)]
    floating = np.dtype(kind.number).kind == "f"
    compare = _comparison(i.parts[1], floating)
    combine = next((part for part in i.parts[2:-1] if part in ("and", "or", "xor")), "")
    if i.parts[0] == "set":
        if i.parts[2:] != (suffix, suffix) or suffix not in PACKED:
            raise unknown(i, kernel)
        return writes_halves(i, kind, lambda a, b: compare(a, b).astype(kind.number))  # 1 or 0
    if combine:
        raise unknown(i, kernel)
    first = i.operands[0]
    results = first.parts if isinstance(first, Vector) else (first,)
    writes = [target(each, TYPES["pred"]) for each in results]
    if suffix in PACKED:
        reads = [source(operand, TYPES["b32"]) for operand in i.operands[1:3]]

        def halves(m: Machine, mask: Mask) -> None:
            found = compare(*[kind.read(pairs(read(m))) for read in reads])
            for at, write in enumerate(writes):
                write(m, found[..., at], mask)

        return halves
    a, b = (source(operand, kind) for operand in i.operands[1:3])
    ftz = "ftz" in i.parts
    if i.parts[1] == "num" and i.operands[1] == i.operands[2]:
        compare = np.equal

    def run(m: Machine, mask: Mask) -> None:
        x, y = a(m), b(m)
        found = compare(flush(x), flush(y)) if ftz else compare(x, y)
        writes[0](m, found, mask)
        if len(writes) > 1:
            writes[1](m, ~found, mask)

    return run


_TESTS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "finite": np.isfinite,
    "infinite": np.isinf,
    "number": lambda x: ~np.isnan(x),
    "notanumber": np.isnan,
    "normal": lambda x: np.isfinite(x) & (np.abs(x) >= np.finfo(x.dtype).tiny),
    "subnormal": lambda x: (x != 0) & (np.abs(x) < np.finfo(x.dtype).tiny),
}


@instruction("testp")
def _test(i: Instruction, kernel: Kernel) -> Step:
    test, kind = _TESTS[i.parts[1]], TYPES[i.parts[2]]
    write, read = target(i.operands[0], TYPES["pred"]), source(i.operands[1], kind)
    return lambda m, mask: write(m, test(read(m)), mask)


@instruction("selp")
def _select(i: Instruction, kernel: Kernel) -> Step:
    kind = TYPES["b" + i.parts[-1].lstrip("bfsu")]
    kinds = [kind, kind, TYPES["pred"]]

    def choose(a: Array, b: Array, chosen: Array) -> Array:
        # of guards against NaN all lanes choose alike: 2 us for 32,768 lanes, and `where` takes 38
        count = np.count_nonzero(chosen)
        return a if count == chosen.size else np.asarray(np.where(chosen, a, b)) if count else b

    return writes(i, kind, kinds, kind, choose)


# ---- moves and conversions ------------------------------------------------------------------------------------------


@instruction("cvta.param")
def _address_of_parameter(i: Instruction, kernel: Kernel) -> Step:
    put, place = target(i.operands[0], TYPES["u64"]), source(i.operands[1], TYPES["u64"])
    return lambda m, mask: put(m, m.constants.generic[place(m).astype(np.int64)], mask)


@instruction("mov", "cvta")
def _move(i: Instruction, kernel: Kernel) -> Step:
    to, by = i.operands
    suffix = i.parts[-1]
    if isinstance(to, Vector):
        return _unpack(to, by, TYPES[suffix])
    if isinstance(by, Vector):
        return _pack(to, by, TYPES[suffix])
    kind = TYPES["pred" if suffix == "pred" else "b" + suffix.lstrip("bfsu")]
    copies = writes(i, kind, [kind], kind, lambda a: a)
    if not isinstance(by, Register):
        return copies
    assert isinstance(to, Register)
    slot, result, alike = by.slot, to.slot, to.kind == by.kind

    def run(m: Machine, mask: Mask) -> None:
        # compilers move what is not defined where it does not matter: whoever computes with it has made a mistake
        if (bits := m.registers[slot]) is not None:
            if alike and mask is None:
                m.registers[result] = bits
            else:
                copies(m, mask)

    return run


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

    slots = [each.slot if isinstance(each, Register) else -1 for each in by.parts]
    zero = np.zeros((1, 1), kind.bits)

    def run(m: Machine, mask: Mask) -> None:
        # one half may be undefined, as where a reduction exchanges pairs of which the second is not there
        known = [slot < 0 or m.registers[slot] is not None for slot in slots]
        if any(known):
            found = [read(m) if is_known else zero for read, is_known in zip(reads, known)]
            write(m, joined(found, whole.bits), mask)

    return run
