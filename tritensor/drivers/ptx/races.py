"""What is checked of compiled kernels on request: accesses of global memory by a shadow, and Hopper's fences.

A warpgroup's product reads registers and shared memory behind the back of its threads. `wgmma.fence` orders it behind
their writes of registers, `fence.proxy.async` behind their writes of shared memory, and `wgmma.wait_group` comes before
they read its sums. A card gives wrong values without them, now and then.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NoReturn

import numpy as np

from ..shadow import Shadow
from .memory import WORDS, Memory, index_of, views
from .parse import Instruction, Kernel
from .state import Machine, Mask
from .table import Step, instruction

Array = np.ndarray


class Watched(Memory):
    """Global memory whose accesses are told to a shadow."""

    def __init__(self, spans: Sequence[tuple[int, int, str]], shadow: Shadow) -> None:
        super().__init__(spans)
        self.shadow = shadow

    def load(self, m: Machine, addresses: Array, nbytes: int, mask: Mask) -> Array:
        """As of any memory, and what is read has to be written, by no other program of the launch."""
        found = super().load(m, addresses, nbytes, mask)
        each = _Accesses(m, addresses, mask)
        if m.order:
            self.shadow.meet(each)
        else:
            self.shadow.read(each, nbytes)
        return found

    def store(self, m: Machine, addresses: Array, words: Array, mask: Mask) -> None:
        """As of any memory, and no other program of the launch may have read it or written something else."""
        each = _Accesses(m, addresses, mask, words.shape)
        nbytes = words.dtype.itemsize
        self.check(m, each.addresses.astype(np.uint64), nbytes, mask, True)
        old = views()[nbytes].take(index_of(each.addresses, nbytes))
        self.shadow.write(each, old, each.pick(words))
        super().store(m, addresses, words, mask)

    def cells(self, m: Machine, addresses: Array, nbytes: int, active: Array) -> tuple[Array, Array]:
        """As of any memory, and no other program of the launch may have accessed it without an atomic operation."""
        found = super().cells(m, addresses, nbytes, active)
        self.shadow.update(_Accesses(m, addresses, active), nbytes, m.order)
        return found

    def moved(self, m: Machine, block: int, rows: Array, taken: Array, part: int, tile: Array | None = None) -> None:
        """Tell of a copy, by a block, of the parts of a tile that are taken: a read, or a write of those of `tile`."""
        only = np.zeros((m.blocks, 1), np.bool_)
        only[block] = True
        each = _Accesses(m, rows[taken][None], only)
        if tile is None:
            self.shadow.read(each, part)
        else:
            words = tile.view(WORDS[part]).reshape(rows.shape)[taken]
            self.shadow.write(each, views()[part].take(index_of(each.addresses, part)), words)


class _Accesses:
    """The accesses of an instruction's lanes, as flat arrays: addresses, and the number of each one's program."""

    def __init__(self, m: Machine, addresses: Array, mask: Mask, *shapes: tuple[int, ...]) -> None:
        self.m = m
        self.shape = np.broadcast_shapes(addresses.shape, (m.blocks, 1), () if mask is None else mask.shape, *shapes)
        self.active = np.broadcast_to(True if mask is None else mask, self.shape)
        self.addresses = self.pick(addresses).astype(np.int64)
        self.programs = self.pick(m.numbers[:, None]).astype(np.int32)
        self.line = m.kernel.place(m.where)

    def pick(self, value: Array) -> Array:
        """A value of each lane that is active."""
        picked: Array = np.broadcast_to(value, self.shape)[self.active]
        return picked

    def fail(self, text: str, wrong: Array) -> NoReturn:
        """Raise an error for the lanes of wrong accesses."""
        lanes = np.zeros(self.shape, np.bool_)
        lanes[self.active] = wrong
        self.m.fail(text, lanes)


# ---- fences ---------------------------------------------------------------------------------------------------------


def watched(m: Machine) -> bool:
    """True if the launch is checked for races."""
    return isinstance(m.memory, Watched)


@instruction("wgmma.fence")
def _fence(i: Instruction, kernel: Kernel) -> Step:
    def run(m: Machine, mask: Mask) -> None:
        if watched(m):  # registers are never changed, but replaced
            m.async_state["fenced"] = list(m.registers)

    return run


def fenced(m: Machine, slots: Sequence[int], lanes: Array) -> None:
    """Refuse a product that uses registers which threads wrote since their last fence."""
    before = m.async_state.get("fenced")
    for slot in slots:
        now, then = m.registers[slot], before[slot] if before else m
        if now is then:
            continue
        same = isinstance(now, np.ndarray) and isinstance(then, np.ndarray)
        if not same or (np.broadcast_to(now != then, lanes.shape) & lanes).any():
            m.fail("a product uses registers that were written with no wgmma.fence since", lanes)


def fly(m: Machine, slots: Sequence[int], everywhere: bool) -> None:
    """Note that registers are of no value before their product is waited for: where all lanes' are, none is there."""
    for slot in slots:
        if everywhere:
            m.registers[slot] = None
    m.async_state.setdefault("flying", {}).update(dict.fromkeys(slots, m.kernel.place(m.where)))
    land(m, slots, False)


def land(m: Machine, slots: Sequence[int], done: bool = True) -> None:
    """Note that products wrote registers, which need no fence for that."""
    if done:
        for slot in slots:
            m.async_state["flying"].pop(slot, None)
    if (before := m.async_state.get("fenced")) is not None:
        for slot in slots:
            before[slot] = m.registers[slot]


@instruction("fence.proxy.async")
def _publish(i: Instruction, kernel: Kernel) -> Step:
    def run(m: Machine, mask: Mask) -> None:
        if watched(m):
            m.now += 1
            known = m.async_state.setdefault("published", np.zeros((m.blocks, m.threads), np.int32))
            known[m.full(mask)] = m.now

    return run


def published(m: Machine, blocks: Array, lanes: Array, where: Array) -> None:
    """Refuse an asynchronous read of shared memory, 16 bytes at addresses, that no fence orders behind its writer."""
    shared = m.shared
    number = 16 // shared.grain
    at = (blocks * (shared.size // shared.grain) + where // shared.grain)[:, None] + np.arange(number)
    wrote, writer = shared.wrote[at], shared.writer[at]
    known = m.async_state.get("published")
    wrong = (wrote > 0) & (writer >= 0)
    if known is not None:
        wrong &= np.maximum(known[blocks[:, None], np.maximum(writer, 0)], known[blocks, lanes][:, None]) < wrote
    if wrong.any():
        text = "shared memory is read asynchronously that a thread wrote, with no fence.proxy.async between"
        shared.conflict(text, blocks, lanes, wrong.any(1))
