"""Instructions of a basic block that do the same to other registers, executed as one.

A kernel repeats what it does for each number that a lane holds. Where a chunk has few lanes, calling NumPy costs more
than what it computes, so that arithmetic that does not depend on each other is gathered: the values of all are one
array with an axis before those of blocks and threads. Accesses to memory, exchanges and barriers keep their order.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from functools import lru_cache
from itertools import chain, pairwise, takewhile
from typing import Any

import numpy as np

from ...errors import TritensorError
from .arithmetic import flushed
from .parse import Address, Immediate, Instruction, Kernel, Name, Operand, Register, Vector, slots_in
from .shared import Apart
from .state import Machine, Mask
from .table import Step, build

_ALIKE = "abs add and bfe bfi brev clz cnot copysign cos cvt div ex2 fma lg2 lop3 mad max min mul neg not or popc prmt"
_ALIKE += " rcp rem rsqrt sad selp setp shf shl shr sin sqrt sub tanh xor"
_NAMES = frozenset(_ALIKE.split())
_MOST = 64  # members of a group


def _key(i: Instruction) -> Any:
    """What instructions of a group have in common; None of those that are executed alone."""
    if not (_pure(i) or _accesses(i)):
        return None
    constants = [each.text for each in i.operands if isinstance(each, Immediate) and i.parts[0] in ("lop3", "cp")]
    return i.name, *map(_shape, i.operands), i.guard and i.guard[1], *constants


def _shape(operand: Operand) -> Any:
    if isinstance(operand, Register):
        return operand.kind
    if isinstance(operand, Address):
        return "at", _shape(operand.base), *map(_shape, operand.rest)
    return tuple(map(_shape, operand.parts)) if isinstance(operand, Vector) else type(operand)


def _pure(i: Instruction) -> bool:
    """True of arithmetic, which nothing but its operands' values decides."""
    known = i.guard is None and i.parts[0] in _NAMES and "cc" not in i.parts
    return known and all(isinstance(operand, Register | Immediate) for operand in i.operands)


def _accesses(i: Instruction) -> bool:
    """True of what accesses memory or exchanges values, whose order stays: neighbours may be one."""
    if i.parts[0] in ("ld", "st"):
        return i.parts[1].split("::")[0] in ("global", "shared")
    return i.name.startswith(("cp.async.ca", "cp.async.cg", "shfl.sync"))


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
    """True of what may be executed anywhere but is not grouped."""
    return i.name.startswith("ld.param") or (
        i.parts[0] == "mov" and not any(isinstance(each, Name) for each in i.operands)
    )


def _copies(i: Instruction) -> bool:
    kinds = {each.kind if isinstance(each, Register) else None for each in i.operands}
    return i.parts[0] == "mov" and i.guard is None and len(kinds) == 1 and None not in kinds


def _before(instructions: list[Instruction]) -> list[set[int]]:
    """Which instructions an instruction has to follow because of its registers."""
    found: list[set[int]] = []
    writer: dict[int, int] = {}
    readers: dict[int, list[int]] = defaultdict(list)
    for at, i in enumerate(instructions):
        before = {writer[slot] for slot in reads(i) if slot in writer}
        for slot in _written(i):
            before.update(readers.pop(slot, ()), [writer[slot]] if slot in writer else ())
            writer[slot] = at
        for slot in reads(i):
            readers[slot].append(at)
        found.append(before - {at})
    return found


def _schedule(instructions: list[Instruction]) -> list[list[Instruction]]:
    """An order in which groups are large and nothing else changes."""
    waits, keys = _before(instructions), [_key(i) for i in instructions]
    after: dict[int, list[int]] = defaultdict(list)
    fixed = [at for at, i in enumerate(instructions) if not (_pure(i) or _moves(i))]  # what stays in this order
    free: dict[Any, list[int]] = defaultdict(list)  # what may be executed now, by what it has in common
    loose = {*range(len(instructions))}.difference(fixed)
    for at, before in enumerate(waits):
        for each in before:
            after[each].append(at)
        if not before and at in loose:
            free[keys[at]].append(at)
    order: list[list[int]] = []
    while free or fixed:
        run = fixed[:1]
        while len(run) < min(len(fixed), _MOST) and keys[run[0]] == keys[fixed[len(run)]] is not None:
            run.append(fixed[len(run)])
        ready = list(takewhile(lambda at: not waits[at], run))
        if ready and (len(ready) == len(run) or not free):
            chosen, fixed = ready, fixed[len(ready) :]
            order.append(ready)
        else:
            key = max(free, key=lambda each: (each is None, len(free[each])))
            chosen, size = sorted(free.pop(key)), 1 if key is None else _MOST
            order += [chosen[n : n + size] for n in range(0, len(chosen), size)]
        for at in chosen:
            for each in after[at]:
                waits[each].discard(at)
                if not waits[each] and each in loose:
                    free[keys[each]].append(each)
    return [[instructions[at] for at in members] for members in order]


def grouped(kernel: Kernel, instructions: list[Instruction]) -> tuple[list[tuple[int, Step]], set[int]]:
    """The steps of a basic block, those that are alike together, and registers whose values no step leaves there."""
    holds: dict[int, tuple[int, int]] = {}  # by register, the array that holds it and its place there
    steps: list[tuple[int, Step]] = []
    groups: list[_Group] = []
    direct: Counter[int] = Counter()
    # waiting for products writes their sums
    ends = [at + 1 for at, i in enumerate(instructions) if i.name.startswith("wgmma.wait")]
    parts = [_schedule(instructions[first:last]) for first, last in pairwise([0, *ends, len(instructions)])]
    for members in chain.from_iterable(parts):
        if len(members) > 2 or (len(members) == 2 and not _pure(members[0])):
            groups.append(_Group(kernel, members, holds, direct))
            steps.append((members[0].where, groups[-1].run))
            continue
        for i in members:
            steps.append((i.where, build(i, kernel)))
            there = holds.get(slots_in(i.operands[1:])[0]) if _copies(i) else None
            for slot in _written(i):
                holds.pop(slot, None)
                if there is not None:
                    holds[slot] = there
    hidden = {slot for slot, count in _users(kernel).items() if count == direct[slot]}
    for group in groups:
        group.wanted = [
            (whole, [(at, slot) for at, slot in enumerate(slots) if group.guard or slot not in hidden])
            for whole, slots in group.results
        ]
    return steps, hidden


class _Group:
    """Instructions that are executed as one, of registers that hold the values of all."""

    def __init__(
        self, kernel: Kernel, members: list[Instruction], holds: dict[int, tuple[int, int]], direct: Counter[int]
    ) -> None:
        self.kernel, self.pure, one = kernel, _pure(members[0]), members[0]
        if self.pure:  # in the order of what they read first: it may be the order of an array that is there
            members = sorted(members, key=lambda i: [holds.get(slot, (-1, 0)) for slot in reads(i)])
        self.members, self.holds, self.direct = members, holds, direct
        self.gathers: list[tuple[int, list[int], int, Any]] = []
        self.results: list[tuple[int, list[int]]] = []
        self.wanted: list[tuple[int, list[tuple[int, int]]]] = []
        self.guard: tuple[int, bool] | None = None
        if one.guard is not None:
            slots = [i.guard[0] for i in members if i.guard is not None]
            guard = self._of([Register(slot, "pred") for slot in slots])
            self.guard = guard.slot, one.guard[1]
        has = bool(_written(one))
        operands = [self._of(parts) for parts in zip(*(i.operands[has:] for i in members), strict=True)]
        if has:
            operands.insert(0, self._to([i.operands[0] for i in members]))
        self.step = build(Instruction(one.name, one.parts, tuple(operands), None, one.where), kernel)
        for whole, slots in self.results:
            for at, slot in enumerate(slots):
                holds.pop(slot, None)
                if self.guard is None:
                    holds[slot] = whole, at

    def _of(self, parts: Sequence[Any]) -> Any:
        """One operand for those of all members."""
        first = parts[0]
        if isinstance(first, Address):
            steps = [part.offset for part in parts]
            base = self._of([part.base for part in parts])
            return Address(base, steps[0] if len(set(steps)) == 1 and base != first.base else tuple(steps))
        if all(part == first for part in parts):
            return first
        if isinstance(first, Vector):
            return Vector(tuple(self._of(each) for each in zip(*(part.parts for part in parts), strict=True)))
        if not isinstance(first, Register):
            return Vector(tuple(parts))
        slots = [part.slot for part in parts]
        for known, others, there, _ in self.gathers:
            if others == slots:
                self.direct.update(slots if there >= 0 else ())
                return Register(known, first.kind)
        holders = {self.holds.get(slot, (-1, 0))[0] for slot in slots}
        places = [self.holds[slot][1] for slot in slots] if holders != {-1} and len(holders) == 1 else []
        one = self._register(first.kind, slots)
        self.gathers.append((one.slot, slots, holders.pop() if places else -1, _regular(places) if places else None))
        self.direct.update(slots if places else ())
        return one

    def _to(self, parts: Sequence[Any]) -> Any:
        if isinstance(parts[0], Vector):
            return Vector(tuple(self._to(each) for each in zip(*(part.parts for part in parts), strict=True)))
        if isinstance(parts[0], Name):
            return parts[0]
        slots = [part.slot for part in parts]
        one = self._register(parts[0].kind, slots)
        self.results.append((one.slot, slots))
        return one

    def _register(self, kind: str, slots: list[int]) -> Register:
        known, one = flushed(self.kernel), Register(len(self.kernel.kinds), kind)
        self.kernel.kinds.append(kind)
        self.kernel.names.append("")
        if known.issuperset(slots):
            known.add(one.slot)
        return one

    def run(self, m: Machine, mask: Mask) -> None:
        """Execute all of them."""
        registers, every = m.registers, mask
        for whole, slots, there, places in self.gathers:
            found = registers[there][places] if there >= 0 else _together([registers[each] for each in slots])
            if found is None:
                return self._apart(m, mask)
            registers[whole] = found
        if self.guard is not None:
            mask = m.predicate(*self.guard, mask)
            if mask is not None and not mask.any():
                return None
        for whole, _ in self.results:
            registers[whole] = None
        try:
            self.step(m, None if self.pure else mask)
        except (Apart, AttributeError, TypeError):
            return self._apart(m, every)
        except TritensorError:  # whose it is
            self._apart(m, every)
            raise
        for whole, *_ in self.gathers:
            registers[whole] = None
        for whole, wanted in self.wanted:
            found = registers[whole]
            if found.ndim == 2:
                found = registers[whole] = np.broadcast_to(found, (len(self.members), *found.shape))
            for at, slot in wanted:
                if mask is None:
                    registers[slot] = found[at]
                else:
                    m.put(slot, found[at], mask if mask.ndim == 2 else mask[at])
        return None

    def _apart(self, m: Machine, mask: Mask) -> None:
        """Execute one after the other what cannot be one: the first that is wrong says so."""
        for _, slots, there, places in self.gathers:
            if there >= 0:
                for slot, bits in zip(slots, m.registers[there][places], strict=True):
                    m.registers[slot] = bits
        for i in self.members:
            m.where = i.where
            try:
                build(i, self.kernel)(m, mask)
            except (AttributeError, TypeError):
                for slot in reads(i):
                    if m.registers[slot] is None:
                        m.unwritten(i, slot)
                raise
        for whole, slots in self.results:
            m.registers[whole] = _together([m.registers[each] for each in slots])


def _regular(places: list[int]) -> Any:
    """Places as a slice, if they are."""
    step = places[1] - places[0]
    if step > 0 and places == list(range(places[0], places[-1] + 1, step)):
        return slice(places[0], places[-1] + 1, step)
    return np.array(places)


def _together(arrays: list[Any]) -> Any:
    """Values of registers as one array, with an axis before the others; None if there is none of one."""
    try:
        shapes = {each.shape for each in arrays}
    except AttributeError:
        return None
    if len(shapes) == 1:
        return np.concatenate(arrays).reshape(len(arrays), *arrays[0].shape)
    found = np.empty((len(arrays), *np.broadcast_shapes(*shapes)), arrays[0].dtype)
    for at, each in enumerate(arrays):
        found[at] = each
    return found
