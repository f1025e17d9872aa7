"""The table of instructions, and how their operands are read and written."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ...errors import KernelError
from .parse import Address, Decimal, Immediate, Instruction, Kernel, Name, Operand, Register
from .state import WARP, Machine, Mask
from .values import TYPES, Type, bits_of, pairs, perturb

Step = Callable[[Machine, Mask], None]
Builder = Callable[[Instruction, Kernel], Step]
Array = np.ndarray
_ORDERED, _ORDERS = ("ld", "atom", "red"), ("volatile", "acquire", "relaxed", "cas")
_builders: dict[str, Builder] = {}


def instruction(*names: str) -> Callable[[Builder], Builder]:
    """Register what builds instructions whose names begin with these, up to a dot; the longest beginning decides."""

    def register(build: Builder) -> Builder:
        for name in names:
            _builders[name] = build
        return build

    return register


def build(i: Instruction, kernel: Kernel) -> Step:
    """The function that executes an instruction.

    Raises:
        KernelError: there is none.
    """
    for count in range(len(i.parts), 0, -1):
        builder = _builders.get(".".join(i.parts[:count]))
        if builder is not None:
            step = builder(i, kernel)
            step = step if i.guard is None else _guarded(step, *i.guard)
            order = next((part for part in i.parts if part in _ORDERS), "") if i.parts[0] in _ORDERED else ""
            return _ordered(step, order) if order else step
    raise unknown(i, kernel)


def _ordered(step: Step, order: str) -> Step:
    """An access that orders programs otherwise than its kind does. One that waits for others lets them run first."""

    def run(m: Machine, mask: Mask) -> None:
        m.order = order
        step(m, mask)
        m.order = ""
        if order in ("volatile", "acquire"):
            m.now += 1
            m.stall(m.full(mask))

    return run


def unknown(i: Instruction, kernel: Kernel) -> KernelError:
    """The error for an instruction that is not in the table."""
    return KernelError(
        f"{kernel.name}: the simulated device does not know the instruction {i.name}",
        f"at {kernel.place(i.where)}",
        remedy="interpret the kernel: simulate(compiled=False)",
    )


def _guarded(step: Step, slot: int, negated: bool) -> Step:
    def run(m: Machine, mask: Mask) -> None:
        active = m.predicate(slot, negated, mask)
        if active is None or active.any():
            step(m, active)

    return run


# ---- operands -------------------------------------------------------------------------------------------------------

_SPECIAL: dict[str, Callable[[Machine], np.ndarray]] = {
    **{f"%tid.{axis}": lambda m, at=at: m.tid[at] for at, axis in enumerate("xyz")},  # type: ignore[misc]
    **{f"%ntid.{axis}": lambda m, at=at: m.uniform((m.threads, 1, 1)[at]) for at, axis in enumerate("xyz")},  # type: ignore[misc]
    **{f"%ctaid.{axis}": lambda m, at=at: m.ctaid[at] for at, axis in enumerate("xyz")},  # type: ignore[misc]
    **{f"%nctaid.{axis}": lambda m, at=at: m.uniform(m.grid[at]) for at, axis in enumerate("xyz")},  # type: ignore[misc]
    "%laneid": lambda m: m.tid[0] % np.uint32(WARP),
    "%warpid": lambda m: m.tid[0] // np.uint32(WARP),
    "%clock": lambda m: m.uniform(m.now),
    "%clock64": lambda m: m.uniform(m.now).astype(np.uint64),
    "%globaltimer": lambda m: m.uniform(m.now).astype(np.uint64),
    "WARP_SZ": lambda m: m.uniform(WARP),
}


def source(operand: Operand, kind: Type) -> Callable[[Machine], np.ndarray]:
    """Makes the function that reads an operand as numbers of a type."""
    read = kind.read
    if isinstance(operand, Register):
        slot = operand.slot
        if TYPES[operand.kind].size == kind.size or operand.kind == "pred":
            if kind.number is kind.bits:
                return lambda m: m.registers[slot]
            return lambda m: read(m.registers[slot])
        bits = kind.bits  # a wider register, of which the low bits are read; or a narrower one
        return lambda m: read(m.registers[slot].astype(bits))
    if isinstance(operand, Immediate):
        value = read(bits_of(operand.bits, kind))
        return lambda m: value
    if isinstance(operand, Decimal):
        number = np.array([[operand.value]], kind.number if np.dtype(kind.number).kind == "f" else np.float64)
        value = read(number.view(kind.bits))
        return lambda m: value
    if isinstance(operand, Name):
        text, bits = operand.text, kind.bits
        special = _SPECIAL.get(text)
        if special is not None:
            return lambda m: read(special(m).astype(bits, copy=False))
        return lambda m: read(m.variable(text).astype(bits, copy=False))
    raise KernelError(f"an operand that is no number: {operand!r}")


def target(operand: Operand, kind: Type) -> Callable[[Machine, np.ndarray, Mask], None]:
    """Makes the function that writes numbers of a type to a register, for the lanes of a mask."""
    if isinstance(operand, Name):  # `_`
        return lambda m, value, mask: None
    assert isinstance(operand, Register)
    slot, write, wide = operand.slot, kind.write, TYPES[operand.kind]
    if wide.size == kind.size or operand.kind == "pred":

        def put(m: Machine, value: np.ndarray, mask: Mask) -> None:
            if mask is None:
                m.registers[slot] = write(value)
            else:
                m.put(slot, write(value), mask)

    else:  # a wider register takes the value with its sign, if it has one
        number = np.dtype(f"i{wide.size}") if np.dtype(kind.number).kind == "i" else np.dtype(wide.bits)

        def put(m: Machine, value: np.ndarray, mask: Mask) -> None:
            narrow = value if number.kind == "i" else write(value)
            m.put(slot, narrow.astype(number).view(wide.bits), mask)

    return put


def place(operand: Operand, width: int = 64) -> Callable[[Machine], np.ndarray]:
    """Makes the function that computes the address that an operand names."""
    assert isinstance(operand, Address)
    kind = TYPES[f"u{width}"]
    if isinstance(operand.base, Register) and operand.base.kind == "b32":
        kind = TYPES["u32"]
    base = source(operand.base, kind)
    if not operand.offset:
        return base
    step = bits_of(operand.offset, kind)
    return lambda m: base(m) + step


#: What NVIDIA documents as the largest error: ulps, or an absolute error of results near 1. PTX ISA, "Floating Point
#: Instructions"; relative errors of 2**-22.9 and less are one ulp.
_ERRORS: dict[str, dict[str, Any]] = {
    "div": {"ulps": 2},
    "rcp": {"ulps": 1},
    "sqrt": {"ulps": 1},
    "rsqrt": {"ulps": 1},
    "ex2": {"ulps": 2, "whole": True},
    "lg2": {"absolute": 2.0**-22},
    "sin": {"absolute": 2.0**-20.5},
    "cos": {"absolute": 2.0**-20.5},
    "tanh": {"ulps": 1 << 12},
}


def writes(i: Instruction, kind: Type, kinds: list[Type], to: Type, compute: Callable[..., Array]) -> Step:
    """The step that writes what a function makes of the other operands."""
    write = target(i.operands[0], to)
    reads = [source(operand, each) for operand, each in zip(i.operands[1:], kinds)]
    approximate = i.parts[0] in _ERRORS and ("approx" in i.parts or "full" in i.parts)
    errors = _ERRORS.get(i.parts[0], {}) if kind.size == 4 else {}
    if approximate and errors:

        def inexact(m: Machine, mask: Mask) -> None:
            values = [read(m) for read in reads]
            write(m, perturb(compute(*values), values[-1], m.seed, **errors), mask)

        return inexact
    if approximate and kind.size == 8 and "ftz" in i.parts:
        compute = _upper_half(compute)
    if len(reads) == 2:
        first, second = reads
        return lambda m, mask: write(m, compute(first(m), second(m)), mask)
    return lambda m, mask: write(m, compute(*[read(m) for read in reads]), mask)


def writes_halves(i: Instruction, kind: Type, compute: Callable[..., Array]) -> Step:
    """The same of both halves of 32-bit registers."""
    write = target(i.operands[0], TYPES["b32"])
    reads = [source(operand, TYPES["b32"]) for operand in i.operands[1:]]

    def run(m: Machine, mask: Mask) -> None:
        found = kind.write(compute(*[kind.read(pairs(read(m))) for read in reads]))
        write(m, np.ascontiguousarray(found).view(np.uint32)[..., 0], mask)

    return run


def _upper_half(compute: Callable[..., Array]) -> Callable[..., Array]:
    """`rcp` and `rsqrt` of float64 with `.ftz`, of which a card computes the upper 32 bits and clears the others."""
    return lambda *values: (compute(*values).view(np.uint64) >> np.uint64(32) << np.uint64(32)).view(np.float64)
