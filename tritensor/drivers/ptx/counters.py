"""Counts the work of a launch: instructions, sectors of memory, conflicts of shared memory, divergence.

A machine calls it with masks and addresses that broadcast to (blocks, threads). Nothing here depends on a card.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np

from .parse import slots_in

Mask = np.ndarray | None

_WARP, _SECTOR, _BANKS = 32, 32, 32
_NOBODY = np.uint64(2**64 - 1)  # the address of a lane that takes no part: sorted behind all others
_AT_MOST = 1 << 22  # sectors that are noted before those noted twice are dropped
# Unpacking follows each load, and the assembler moves it behind the loads that are next: what it makes is waited for.
_PASSES = ("mov", "cvt", "shl", "shr", "and", "prmt", "bfe")
_BITS = np.uint64(48)  # of a sector's number; the block of the chunk is above


class Counters:
    """Counts of one launch, over all chunks that were run of it.

    Attributes:
        bases: the addresses at which buffers begin, in order. `blocks`: how many were run.
        warps, lanes: by an instruction's name, how many active warps and active lanes executed it, guards left out.
        requested: by "load", "store" and "atomic", the sectors that warps asked for; `needed`: the bytes they needed.
        sectors: by "load" and "store", the sectors that blocks touched, each counted once a block, by buffer.
        wavefronts: passes of shared memory; `least`: as few as there could have been.
        branches, divergent: warps that branched, and that branched both ways.
        waits: reads of a register that a load of global memory had still to fill, and operations that release what was
            written before, at the most in a block.
    """

    def __init__(self, bases: Sequence[int] = (0,)) -> None:
        self.bases = np.asarray(bases, np.uint64)
        self.blocks = self.threads = self.waits = 0
        self.warps, self.lanes, self.requested, self.needed = (Counter[str]() for _ in range(4))
        self.sectors = {kind: np.zeros(len(bases), np.int64) for kind in ("load", "store")}
        self.wavefronts = self.least = self.branches = self.divergent = 0
        self._machine: Any = None
        self._size = self._waited = self._count = 0
        self._noted: dict[str, list[np.ndarray]] = {}
        self._ran: dict[int, tuple[Any, int, int]] = {}  # by the id of a basic block: the block, warps, lanes
        self._pending: frozenset[int] = frozenset()
        self._passes: dict[Any, tuple[int, int]] = {}
        self._waits: dict[tuple[int, frozenset[int]], tuple[int, frozenset[int]]] = {}

    def finish(self) -> None:
        """The chunk is done, after which the counts are complete."""
        for kind, noted in self._noted.items():
            sectors = np.unique(np.concatenate(noted)) & ((np.uint64(1) << _BITS) - np.uint64(1))
            # a buffer may begin within a sector
            at = np.searchsorted(self.bases, (sectors + np.uint64(1)) * np.uint64(_SECTOR) - np.uint64(1), "right") - 1
            self.sectors[kind] += np.bincount(np.maximum(at, 0), minlength=len(self.bases))
        self._noted.clear()
        for block, warps, lanes in self._ran.values():
            for instruction in block.instructions:
                self.warps[instruction.name] += warps
                self.lanes[instruction.name] += lanes
        self._ran.clear()
        self._machine = None

    def executed(self, machine: Any, block: Any, mask: Mask) -> None:
        """The lanes of a mask executed a basic block."""
        self._on(machine)
        warps, lanes = self._active(mask)
        _, *before = self._ran.get(id(block), (block, 0, 0))
        self._ran[id(block)] = block, before[0] + warps, before[1] + lanes
        if (key := (id(block), self._pending)) not in self._waits:
            self._waits[key] = _waits(block, self._pending)
        waited, self._pending = self._waits[key]
        self._waited += waited
        self.waits = max(self.waits, self._waited)

    def global_access(self, machine: Any, kind: str, addresses: np.ndarray, nbytes: int, mask: Mask) -> None:
        """Lanes access `nbytes` at an address each, aligned to them; `kind` is load, store or atomic."""
        self._on(machine)
        rows, times = self._by_warp(addresses, mask)
        rows = _sorted(rows)
        taken = rows != _NOBODY
        sectors = rows // np.uint64(_SECTOR)
        fresh = _distinct(sectors, taken)
        self.needed[kind] += times * nbytes * int(_distinct(rows, taken).sum())
        self.requested[kind] += times * int(fresh.sum())
        if times > 1:  # the same addresses in all blocks
            sectors, fresh = np.tile(sectors, (times, 1)), np.tile(fresh, (times, 1))
        blocks = np.repeat(np.arange(self._size, dtype=np.uint64), len(sectors) // self._size)
        self._note("load" if kind == "load" else "store", sectors, blocks[:, None], fresh)

    def bulk_access(
        self, machine: Any, kind: str, block: int, rows: np.ndarray, taken: np.ndarray, nbytes: int
    ) -> None:
        """The copy engine accesses `nbytes` at each address of rows that is taken, for one block."""
        self._on(machine)
        sectors = np.where(taken, rows.astype(np.uint64) // np.uint64(_SECTOR), _NOBODY)
        fresh = _distinct(sectors, taken)
        self.needed[kind] += nbytes * int(taken.sum())
        self.requested[kind] += int(fresh.sum())
        self._note(kind, sectors, np.array([[block]], np.uint64), fresh)

    def shared_access(self, machine: Any, kind: str, addresses: np.ndarray, nbytes: int, mask: Mask) -> None:
        """Lanes access `nbytes` of shared memory each; vectors of 8 and 16 bytes go in half and quarter warps."""
        self._on(machine)
        key = self._size, nbytes, addresses.tobytes(), None if mask is None else mask.tobytes()
        if key not in self._passes:  # loops use the same few places again and again
            self._passes = {} if len(self._passes) > 4096 else self._passes
            self._passes[key] = self._wavefronts(addresses, nbytes, mask)
        passes, least = self._passes[key]
        self.wavefronts, self.least = self.wavefronts + passes, self.least + least

    def _wavefronts(self, addresses: np.ndarray, nbytes: int, mask: Mask) -> tuple[int, int]:
        rows, times = self._by_warp(addresses, mask)
        width = max(nbytes // 4, 1)
        starts = rows.reshape(-1, _WARP // width, 1)
        words = starts // np.uint64(4) + np.arange(width, dtype=np.uint64)
        words = _sorted(np.where(starts == _NOBODY, _NOBODY, words).reshape(len(starts), -1))
        fresh = _distinct(words, words != _NOBODY)
        places = np.arange(len(words))[:, None] * _BANKS + (words % np.uint64(_BANKS)).astype(np.int64)
        banks = np.bincount(places[fresh], minlength=len(words) * _BANKS).reshape(-1, _BANKS)
        return times * int(banks.max(1).sum()), times * int((-(-fresh.sum(1) // _BANKS)).sum())

    def branch(self, machine: Any, taken: Mask, mask: Mask) -> None:
        """Counts a branch that some lanes of a mask take; with None all do."""
        self._on(machine)
        taken = np.array([[True]]) if taken is None else taken
        jumped, stayed = self._warps(taken), self._warps(~taken if mask is None else mask & ~taken)
        self.branches += int((jumped | stayed).sum())
        self.divergent += int((jumped & stayed).sum())

    def _on(self, machine: Any) -> None:
        """Begin a chunk with its first call."""
        if machine is not self._machine:
            self.finish()
            self._machine, self._size, self.threads = machine, machine.blocks, machine.threads
            self.blocks += machine.blocks
            self._waited, self._pending = 0, frozenset()

    def _warps(self, mask: np.ndarray) -> np.ndarray:
        """The warps that have an active lane."""
        full = np.broadcast_to(mask, (self._size, self.threads))
        return np.asarray(full.reshape(self._size, -1, min(_WARP, self.threads)).any(2))

    def _active(self, mask: Mask) -> tuple[int, int]:
        """The numbers of active warps and of active lanes."""
        if mask is None:
            return self._size * -(-self.threads // _WARP), self._size * self.threads
        return int(self._warps(mask).sum()), int(mask.sum()) * (self._size * self.threads // mask.size)

    def _by_warp(self, addresses: np.ndarray, mask: Mask) -> tuple[np.ndarray, int]:
        """Addresses as rows of 32 lanes, and how many times the rows count: all blocks may have the same."""
        same = addresses.shape[0] == 1 and (mask is None or mask.shape[0] == 1)
        full = np.broadcast_to(addresses, (1 if same else self._size, self.threads)).astype(np.uint64)
        if mask is not None:
            full = np.where(mask, full, _NOBODY)
        return full.reshape(-1, _WARP), self._size if same else 1

    def _note(self, kind: str, sectors: np.ndarray, block: np.ndarray, fresh: np.ndarray) -> None:
        self._noted.setdefault(kind, []).append((sectors | (block << _BITS))[fresh])
        self._count += int(fresh.sum())
        if self._count > _AT_MOST:
            self._count = 0
            self._noted = {each: [np.unique(np.concatenate(found))] for each, found in self._noted.items() if found}


def _sorted(rows: np.ndarray) -> np.ndarray:
    """Sorts rows; checks first, since most are sorted and a check costs a tenth."""
    return rows if (rows[:, 1:] >= rows[:, :-1]).all() else np.sort(rows, axis=1)


def _distinct(rows: np.ndarray, taken: np.ndarray) -> np.ndarray:
    """Keeps the first of equal neighbours among sorted rows."""
    fresh = taken.copy()
    fresh[:, 1:] &= rows[:, 1:] != rows[:, :-1]
    return fresh


def _waits(block: Any, pending: frozenset[int]) -> tuple[int, frozenset[int]]:
    """Counts how often a basic block waits for loads, all of those that are under way at once, and which then still
    are."""
    waits, filled = 0, set(pending)
    for instruction in block.instructions:
        # what is released has to be where others find it, behind the level-1 cache
        waits += "release" in instruction.parts
        loads, passes = instruction.name.startswith("ld.global"), instruction.parts[0] in _PASSES
        if not (loads or filled) or not instruction.operands:
            continue
        first, *rest = instruction.operands
        reads = not filled.isdisjoint(slots_in(rest if loads or passes else instruction.operands))
        if reads and not passes:
            waits += 1
            filled.clear()
        if loads or (reads and passes):
            filled.update(slots_in((first,)))
    return waits, frozenset(filled)
