"""Instructions of a basic block that do the same to other registers, executed as one.

A kernel repeats what it does for each number that a lane holds. Where a chunk has few lanes, calling NumPy costs more
than what it computes, so that arithmetic that does not depend on each other is gathered: the values of all are one
array with an axis before those of blocks and threads. Accesses to memory, exchanges and barriers keep their order.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from functools import lru_cache
from typing import Any

import numpy as np

from .arithmetic import flushed
from .parse import Address, Immediate, Instruction, Kernel, Name, Register, Vector, slots_in
from .state import Machine, Mask
from .table import Step, build

_ALIKE = "abs add and bfe bfi brev clz cnot copysign cos cvt div ex2 fma lg2 lop3 mad max min mul neg not or popc prmt"
_ALIKE += " rcp rem rsqrt sad selp setp shf shl shr sin sqrt sub tanh xor"
_NAMES = frozenset(_ALIKE.split())
_LEAST, _MOST = 3, 64  # members of a group


def _key(i: Instruction) -> Any:
    """What instructions of a group have in common; None of those that are executed alone."""
    if i.guard is not None or i.parts[0] not in _NAMES or "cc" in i.parts:
        return None
    shapes: list[str] = []
    for operand in i.operands:
        if isinstance(operand, Name) or not isinstance(operand, Register | Immediate):
            return None
        shapes.append(operand.kind if isinstance(operand, Register) else "")
    if i.parts[0] == "lop3":
        shapes.append(str(i.operands[-1]))
    return i.name, *shapes


@lru_cache(maxsize=256)
def _users(kernel: Kernel) -> Counter[int]:
    """How many operands read each register."""
    found: Counter[int] = Counter()
    for i in (each for block in kernel.blocks for each in block.instructions):
        found.update(reads(i))
    return found


def _written(i: Instruction) -> list[int]:
    return [] if i.operands and isinstance(i.operands[0], Address) else slots_in(i.operands[:1])


def reads(i: Instruction) -> list[int]:
    """The registers that an instruction reads, or may."""
    keeps = i.guard is not None or i.parts[0] == "wgmma" or not _written(i)
    return ([i.guard[0]] if i.guard else []) + slots_in(i.operands if keeps else i.operands[1:])


def _moves(i: Instruction) -> bool:
    return i.parts[0] == "mov" and not any(isinstance(each, Name) for each in i.operands)


def _schedule(instructions: list[Instruction]) -> list[list[Instruction]]:
    """An order in which groups are large and nothing else changes."""
    after: dict[int, set[int]] = defaultdict(set)
    waits = [0] * len(instructions)
    writer: dict[int, int] = {}
    readers: dict[int, list[int]] = defaultdict(list)
    fixed = -1
    keys = [_key(i) for i in instructions]

    def follows(at: int, before: int) -> None:
        if before != at and at not in after[before]:
            after[before].add(at)
            waits[at] += 1

    for at, i in enumerate(instructions):
        for slot in reads(i):
            if slot in writer:
                follows(at, writer[slot])
            readers[slot].append(at)
        for slot in _written(i):
            for before in (*readers.pop(slot, ()), *([writer[slot]] if slot in writer else ())):
                follows(at, before)
            writer[slot] = at
        if keys[at] is None and not _moves(i):
            if fixed >= 0:
                follows(at, fixed)
            fixed = at
    ready: dict[Any, list[int]] = defaultdict(list)
    order: list[list[Instruction]] = []

    def emit(members: list[int]) -> None:
        order.append([instructions[at] for at in members])
        for at in members:
            for each in after.get(at, ()):
                waits[each] -= 1
                if not waits[each]:
                    ready[keys[each]].append(each)

    for at, count in enumerate(waits):
        if not count:
            ready[keys[at]].append(at)
    while ready:
        if alone := ready.pop(None, None):
            for at in sorted(alone):
                emit([at])
            continue
        key = max(ready, key=lambda each: len(ready[each]))
        members = sorted(ready.pop(key))
        emit(members[:_MOST])
        if len(members) > _MOST:
            ready[key] = members[_MOST:] + ready.pop(key, [])
    return order


def grouped(kernel: Kernel, instructions: list[Instruction]) -> list[tuple[int, Step]]:
    """The steps of a basic block, those that are alike together."""
    holds: dict[int, tuple[int, int]] = {}  # by register, the array that holds it and its place there
    steps: list[tuple[int, Step]] = []
    groups: list[_Group] = []
    direct: Counter[int] = Counter()
    for members in _schedule(instructions):
        if len(members) >= _LEAST:
            groups.append(_Group(kernel, members, holds, direct))
            steps.append((groups[-1].where, groups[-1].run))
            continue
        for i in members:
            steps.append((i.where, build(i, kernel)))
            there = holds.get((slots_in(i.operands[1:]) or [-1])[0]) if _moves(i) and i.guard is None else None
            for slot in _written(i):
                holds.pop(slot, None)
                if there is not None and isinstance(i.operands[1], Register):
                    holds[slot] = there
    users = _users(kernel)
    for group in groups:
        group.wanted = [(at, slot) for at, slot in enumerate(group.results) if users[slot] > direct[slot]]
    return steps


class _Group:
    """Instructions that are executed as one, of registers that hold the values of all."""

    def __init__(
        self, kernel: Kernel, members: list[Instruction], holds: dict[int, tuple[int, int]], direct: Counter[int]
    ) -> None:
        self.kernel, self.where = kernel, members[0].where
        # in the order of what they read first: it may be the order of an array that is there
        members = sorted(members, key=lambda i: [holds.get(slot, (-1, 0)) for slot in slots_in(i.operands[1:])])
        self.members, self.wanted = members, [(0, 0)][:0]
        self.results = [slot for i in members for slot in slots_in(i.operands[:1])]
        self.gathers: list[tuple[int, list[int], int, Any]] = []
        known = flushed(kernel)
        operands: list[Any] = []
        for parts in zip(*(i.operands[1:] for i in members), strict=True):
            if all(part == parts[0] for part in parts):
                operands.append(parts[0])
            elif isinstance(parts[0], Immediate):
                operands.append(Vector(parts))
            else:
                slots = [part.slot for part in parts]
                there = {holds.get(slot, (-1, 0))[0] for slot in slots}
                places = [holds[slot][1] for slot in slots] if there != {-1} and len(there) == 1 else []
                slot = self._register(parts[0].kind)
                if all(each in known for each in slots):
                    known.add(slot)
                self.gathers.append((slot, slots, there.pop() if places else -1, _regular(places) if places else None))
                direct.update(slots if places else ())
                operands.append(Register(slot, parts[0].kind))
        to = members[0].operands[0]
        assert isinstance(to, Register)
        self.result = self._register(to.kind)
        if all(each in known for each in self.results):
            known.add(self.result)
        one = members[0]
        whole = Instruction(one.name, one.parts, (Register(self.result, to.kind), *operands), None, one.where)
        self.step = build(whole, kernel)
        holds.update({slot: (self.result, at) for at, slot in enumerate(self.results)})

    def _register(self, kind: str) -> int:
        self.kernel.kinds.append(kind)
        self.kernel.names.append("")
        return len(self.kernel.kinds) - 1

    def run(self, m: Machine, mask: Mask) -> None:
        """Execute all of them."""
        registers = m.registers
        for slot, slots, there, places in self.gathers:
            if there >= 0:
                registers[slot] = registers[there][places]
            elif (found := _together([registers[each] for each in slots])) is not None:
                registers[slot] = found
            else:
                self._apart(m, mask)
                return
        self.step(m, None)
        found = registers[self.result]
        if found.ndim == 2:
            found = registers[self.result] = np.broadcast_to(found, (len(self.results), *found.shape))
        for at, slot in self.wanted:
            if mask is None:
                registers[slot] = found[at]
            else:
                m.put(slot, found[at], mask)

    def _apart(self, m: Machine, mask: Mask) -> None:
        """Execute one after the other: a register was never written, and the first that reads it says so."""
        for _, slots, there, places in self.gathers:
            if there >= 0:
                for slot, bits in zip(slots, m.registers[there][places], strict=True):
                    m.registers[slot] = bits
        for i in self.members:
            m.where = i.where
            build(i, self.kernel)(m, mask)
        m.registers[self.result] = _together([m.registers[each] for each in self.results])


def _regular(places: list[int]) -> Any:
    """Places as a slice, if they are."""
    step = places[1] - places[0]
    if step > 0 and places == list(range(places[0], places[-1] + 1, step)):
        return slice(places[0], places[-1] + 1, step)
    return np.array(places)


def _together(arrays: list[Any]) -> Any:
    """Values of registers as one array, with an axis before the others; None if there is none of one."""
    shapes = {each.shape if each is not None else None for each in arrays}
    if None in shapes:
        return None
    if len(shapes) > 1:
        shape = np.broadcast_shapes(*shapes)
        arrays = [np.broadcast_to(each, shape) for each in arrays]
    return np.concatenate(arrays).reshape(len(arrays), *arrays[0].shape)
