"""Products of small matrices held by a warp (`mma.sync`), and copies of such matrices from and to shared memory.

A fragment is a matrix whose elements lie in registers of a warp's lanes. NVIDIA's "Parallel Thread Execution ISA" draws
a picture for each shape and type; all follow one rule. A lane is a pair (group, member) = (lane // 4, lane % 4), a
register holds `packed` neighbours of a row (1, 2 or 4, as many as fit into 32 bits), and blocks of 8 rows and of
4 * packed columns follow one another from register to register. So one transposition makes a matrix of a fragment.
"""

from __future__ import annotations

import re
from collections.abc import Callable

import numpy as np

from .parse import Instruction, Kernel, Operand, Register, Vector
from .state import Machine, Mask, wide_as
from .table import Step, instruction, place, source, unknown
from .values import TYPES, Type

Array = np.ndarray


def _whole(bits: type, number: type) -> Type:
    # BLAS multiplies no integers, but float64 exactly; a sum of int32 wraps around when it is written
    read, write = lambda x: x.view(number).astype(np.float64), lambda x: x.astype(np.int64).astype(bits)
    return Type(bits, np.float64, read, write)


#: The types of elements, and what they are multiplied in.
FORMATS = {name: TYPES[name] for name in ("f64", "f32", "f16", "bf16", "e4m3", "e5m2")}
FORMATS |= {"s8": _whole(np.uint8, np.int8), "u8": _whole(np.uint8, np.uint8), "s32": _whole(np.uint32, np.int32)}
# of a float32 the low 13 bits are not read
FORMATS["tf32"] = TYPES["f32"]._replace(read=lambda bits: (bits & np.uint32(0xFFFFE000)).view(np.float32))


def _parts(operand: Operand) -> tuple[Operand, ...]:
    return operand.parts if isinstance(operand, Vector) else (operand,)


def slots_of(operand: Operand) -> list[int]:
    """The numbers of the registers in braces."""
    return [part.slot for part in _parts(operand) if isinstance(part, Register)]


def fragment(operand: Operand, kind: Type) -> Callable[[Machine], Array]:
    """Makes the reader of a fragment's bits, (registers, blocks, threads)."""
    width = max(kind.size, 4)
    registers = [source(part, TYPES[f"b{8 * width}"]) for part in _parts(operand)]

    def read(m: Machine) -> Array:
        shape = m.blocks, m.threads
        bits = np.concatenate([wide_as(register(m), shape) for register in registers])
        return bits.reshape(len(registers), *shape)

    return read


def rows_of(bits: Array, halves: int, kind: Type, pair: int = 1) -> Array:
    """The matrices of the warps, (blocks, warps, rows, columns), of a left operand with 8 or 16 rows.

    The columns of a right operand lie as a left operand's 8 rows do. Whole registers are moved, and read as elements
    only then.
    """
    registers, blocks, threads = bits.shape
    shaped = bits.reshape(registers // halves // pair, halves, pair, blocks, threads // 32, 8, 4)
    rows = shaped.transpose(3, 4, 1, 5, 0, 6, 2).reshape(blocks, threads // 32, 8 * halves, -1)
    return kind.read(rows.view(kind.bits))


def sums_of(bits: Array, halves: int, kind: Type) -> Array:
    """The same of sums: a lane holds two neighbours, in two registers if they do not fit into one."""
    return rows_of(bits, halves, kind, 2 if kind.size >= 4 else 1)


def spread(matrices: Array, halves: int, kind: Type) -> Array:
    """The bits of the registers, (registers, blocks, threads), of sums: the opposite of `sums_of`."""
    blocks, warps, _, columns = matrices.shape
    bits = np.ascontiguousarray(kind.write(matrices)).view(f"u{max(kind.size, 4)}")
    shaped = bits.reshape(blocks, warps, halves, 8, columns // 8, 4, -1)
    return shaped.transpose(4, 2, 6, 0, 1, 3, 5).reshape(-1, blocks, 32 * warps)


def sized(i: Instruction, kernel: Kernel, first: int) -> tuple[int, int, int, list[Type]]:
    """Rows, columns and depth of a product by `m16n8k16` in its name, and its types by the last parts of it."""
    found = re.search(r"\.m(\d+)n(\d+)k(\d+)\.", i.name)
    if found is None or "sp" in i.parts or not all(part in FORMATS for part in i.parts[first:]):
        raise unknown(i, kernel)
    return int(found[1]), int(found[2]), int(found[3]), [FORMATS[part] for part in i.parts[first:]]


@instruction("mma.sync")
def _product(i: Instruction, kernel: Kernel) -> Step:
    """`d = a @ b + c`. A card adds in another order, so the last bits of sums differ from one card to the next."""
    rows, _, depth, (to, *kinds) = sized(i, kernel, -4)
    halves, (left, right, total) = rows // 8, kinds
    a, b, c = (fragment(operand, kind) for operand, kind in zip(i.operands[1:], kinds, strict=True))
    if len(_parts(i.operands[1])) * 32 * max(4 // left.size, 1) != rows * depth:
        raise unknown(i, kernel)  # m8n8k4 in halves, of Volta, has another layout
    slots, limited = slots_of(i.operands[0]), "satfinite" in i.parts

    def run(m: Machine, mask: Mask) -> None:
        m.whole_warps(mask)
        products = rows_of(a(m), halves, left) @ rows_of(b(m), 1, right).swapaxes(2, 3)
        sums = sums_of(c(m), halves, total) + products
        if limited:
            sums = sums.clip(-(2.0**31), 2.0**31 - 1)
        for slot, bits in zip(slots, spread(sums, halves, to), strict=True):
            m.put(slot, bits, mask)

    return run


# ---- 8x8 matrices of 16-bit elements, whose rows lie anywhere in shared memory --------------------------------------


def _count(i: Instruction, kernel: Kernel) -> int:
    """The number of matrices; 8 lanes hold the addresses of the rows of each."""
    if "m8n8" not in i.parts or i.parts[-1] != "b16":
        raise unknown(i, kernel)
    return next(int(part[1]) for part in i.parts if part in ("x1", "x2", "x4"))


def _naming(m: Machine, mask: Mask, count: int) -> Mask:
    """The lanes whose addresses are read."""
    m.whole_warps(mask)
    named = m.tid[0] % 32 < 8 * count
    return mask if count == 4 else named if mask is None else mask & named


def _turned(rows: Array) -> Array:
    """Matrices (…, 8 rows of 4 times 32 bits), transposed as 16-bit elements."""
    return np.ascontiguousarray(rows.view(np.uint16).swapaxes(-1, -2)).view(np.uint32)


@instruction("ldmatrix.sync")
def _load(i: Instruction, kernel: Kernel) -> Step:
    count, turned = _count(i, kernel), "trans" in i.parts
    address, slots = place(i.operands[1], 32), slots_of(i.operands[0])

    def run(m: Machine, mask: Mask) -> None:
        rows = m.shared.load(m, address(m), 16, _naming(m, mask, count)).view(np.uint32)
        matrices = rows.reshape(m.blocks, -1, 4, 8, 4)
        matrices = _turned(matrices) if turned else matrices
        for at, slot in enumerate(slots):
            m.put(slot, matrices[:, :, at].reshape(m.blocks, m.threads), mask)

    return run


@instruction("stmatrix.sync")
def _store(i: Instruction, kernel: Kernel) -> Step:
    count, turned = _count(i, kernel), "trans" in i.parts
    address, values = place(i.operands[0], 32), fragment(i.operands[1], TYPES["b32"])

    def run(m: Machine, mask: Mask) -> None:
        matrices = np.zeros((m.blocks, m.threads // 32, 4, 8, 4), np.uint32)
        matrices[:, :, :count] = values(m).reshape(count, m.blocks, -1, 8, 4).transpose(1, 2, 0, 3, 4)
        matrices = _turned(matrices) if turned else matrices
        rows = matrices.view(np.complex128).reshape(m.blocks, m.threads)
        m.shared.store(m, address(m), rows, _naming(m, mask, count))

    return run
