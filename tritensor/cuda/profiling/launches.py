"""A launch: what it asked of a card, and the time that is predicted from that. Nothing here was measured.

The parts of a launch's time are each a demand over a published rate. Those of memory and those of the multiprocessors
overlap as far as other blocks are there to run, or as copies are asynchronous; the multiprocessor with most blocks
decides; and no wave is shorter than the loads that one block waits for one after the other. Where all blocks wait for
one another (cooperative launches), what they wait for comes on top.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import cached_property, lru_cache
from typing import Any, NamedTuple

import numpy as np

from ...drivers.ptx.counters import Counters
from ...runtime.binary import usage
from .cards import Card, Generation
from .instructions import by_class, class_of, matrix_work, operations, slots

_WARP, _SECTOR = 32, 32
# NVIDIA, "Getting Started with CUDA Graphs": kernels of 2.9 us that are launched one after the other take 3.8 us each.
_LAUNCH = 0.9e-6
# Clocks of an access to shared memory, arXiv:2402.13499, which a barrier is taken to cost as well.
_BARRIER = 29
_NOTABLE = 0.2  # of the longer of memory and multiprocessors, from which on what does not overlap is the bound

_usage = lru_cache(maxsize=4096)(usage)


class Prediction(NamedTuple):
    """A predicted time in seconds, which bound it meets, and the seconds of each bound on its own."""

    seconds: float
    bound: str
    parts: Mapping[str, float]


class Launch:
    """One launch: its counts, scaled to the whole grid where a sample of the blocks was run.

    Attributes:
        name, grid, threads: of the kernel; `stream` is a number, in the order of the streams' first launches.
        blocks, ran: of the grid, and how many of these were run.
        registers, local, shared: a thread's registers and spilled bytes, a block's bytes of shared memory.
        resident, limit: blocks that a multiprocessor has at once, and what limits them.
        warps, lanes: by an instruction's name, how many warps and lanes executed it.
        needed, sectors: bytes of global memory that lanes needed, sectors of 32 bytes that their warps asked for.
        unique: sectors that blocks touched, each counted once a block.
        dram: bytes that pass device memory if the level-2 cache is empty at first: of a buffer no more than its size.
        l2: bytes that pass the level-2 cache.
        wavefronts, least: passes of shared memory, and as few as there could be.
        branches, divergent: warps that branched, and those that branched both ways.
        waits: loads that a block waits for one after the other.
        together: all blocks have to run at once, since they wait for one another.

    Args:
        sizes, passed: of each buffer, its bytes and whether its address is an argument.
    """

    def __init__(
        self,
        card: Card,
        compiled: Any,
        grid: tuple[int, int, int],
        stream: int,
        counters: Counters,
        sizes: np.ndarray,
        passed: np.ndarray,
    ) -> None:
        used, generation = _usage(compiled.binary), card.generation
        self.card, self.name, self.grid, self.stream = card, compiled.name, grid, stream
        self.threads, self.waits, self.ran = counters.threads, counters.waits, counters.blocks
        self.registers, self.local = used.registers, used.local
        # what the system reserves is declared by kernels for sm_90 that use shared memory
        self.shared = compiled.shared + max(used.shared - generation.reserved, 0)
        self.together = compiled.cooperative
        self.resident, self.limit = occupancy(generation, self.registers, self.shared, self.threads)
        self.blocks = math.prod(grid)
        scale = self.blocks / self.ran
        self.warps, self.lanes = ({k: n * scale for k, n in of.items()} for of in (counters.warps, counters.lanes))
        self.needed = sum(counters.needed.values()) * scale
        self.sectors = sum(counters.requested.values()) * scale
        touched = {kind: found * scale * _SECTOR for kind, found in counters.sectors.items()}
        self.unique = sum(float(found.sum()) for found in touched.values()) / _SECTOR
        # buffers that a table in memory names are many alike, of which a sample meets few
        self.dram = sum(
            float(np.minimum(found, sizes)[passed].sum())
            + min(float(found[~passed].sum()), float(sizes[~passed].sum()))
            for found in touched.values()
        )
        # what a block reads again comes out of the first-level cache, if that holds what the blocks there read
        asked = {kind: found * scale * _SECTOR for kind, found in counters.requested.items()}
        read, again = float(touched["load"].sum()), asked.pop("load", 0.0)
        held = read / self.blocks * self.resident <= generation.cache - self.resident * self.shared
        self.l2 = (read if held else again) + sum(asked.values())
        self.wavefronts, self.least = counters.wavefronts * scale, counters.least * scale
        self.branches, self.divergent = counters.branches * scale, counters.divergent * scale

    @cached_property
    def predicted(self) -> Prediction:
        """The predicted time, and the bound that it meets."""
        return predict(self.card, self)

    @cached_property
    def operations(self) -> dict[str, float]:
        """Floating-point operations by the units that compute them."""
        return operations(self.warps, self.lanes)

    @property
    def classes(self) -> dict[str, float]:
        """Instructions of warps by class."""
        return by_class(self.warps)

    @property
    def coalescing(self) -> float:
        """Bytes that lanes needed for each byte of the sectors that their warps asked for; 1 if none asked."""
        return self.needed / (_SECTOR * self.sectors) if self.sectors else 1.0

    @property
    def occupancy(self) -> float:
        """Resident warps of those that a multiprocessor can have."""
        return min(self.resident * -(-self.threads // _WARP) / self.card.generation.warps, 1.0)


def occupancy(generation: Generation, registers: int, shared: int, threads: int) -> tuple[int, str]:
    """Blocks that a multiprocessor has at once, and what limits them.

    >>> from tritensor.cuda.profiling.cards import card
    >>> occupancy(card("h100").generation, registers=168, shared=0, threads=256)
    (1, 'registers')
    """
    warps = -(-threads // _WARP)
    # registers are in four parts, and a warp takes them from one of these in units of 256
    held = 4 * (generation.registers // 4 // max(-(-registers * _WARP // 256) * 256, 256))
    limits = {
        "warps": generation.warps // warps,
        "blocks": generation.blocks,
        "registers": held // warps,
        "shared memory": generation.shared // (-(-(shared + generation.reserved) // 128) * 128),
    }
    limit = min(limits, key=lambda name: limits[name])
    return limits[limit], limit


def predict(card: Card, launch: Any) -> Prediction:
    """The predicted time of a launch on a card, from the attributes of `Launch` that say what it asks for."""
    generation, resident = card.generation, max(launch.resident, 1)
    # the multiprocessor with most blocks, beside what each would have of an even share
    busiest = -(-launch.blocks // card.multiprocessors) / launch.blocks
    clocks = busiest / card.clock
    pipes: dict[str, float] = {}
    issued = tensor = barriers = 0.0
    for name, count in launch.warps.items():
        kind, taken = class_of(name), count * slots(name)
        issued += taken
        units, work = matrix_work(name)
        if work:
            tensor += count * work / card.tensor.get(units, card.tensor["fp16"])
        elif kind in generation.lanes:
            if kind == "integer" and name.startswith(("mul", "mad")):  # which the units of float32 multiply
                kind = "float32"
            # of a quotient or a root only one instruction is special
            many = count if kind == "special" else taken
            pipes[kind] = pipes.get(kind, 0.0) + many * _WARP / generation.lanes[kind]
        if name.startswith("bar"):
            barriers += count
    memory = {"DRAM": launch.dram / card.dram, "L2": launch.l2 / card.l2}
    work_of = {
        "issue": issued / generation.issue * clocks,
        **{f"{kind} units": pipes[kind] * clocks for kind in sorted(pipes)},
        "tensor cores": tensor * busiest * card.multiprocessors,
        "shared memory": launch.wavefronts * clocks,
    }
    waves = -(-launch.blocks // (card.multiprocessors * resident))
    each = barriers / (launch.blocks * -(-launch.threads // _WARP))
    chain = waves * (launch.waits * generation.latency + each * _BARRIER) / card.clock
    parts = {**memory, **work_of, "latency": chain, "launch": _LAUNCH}
    shorter, longer = sorted((max(memory.values()), max(work_of.values())))
    asynchronous = any(name.startswith("cp.async") for name in launch.warps)
    alone = 0.0 if asynchronous else shorter / resident
    bound = max(parts, key=lambda name: parts[name])
    if alone > _NOTABLE * longer and longer + alone > max(chain, _LAUNCH):
        bound = f"{bound}, occupancy"
    exposed = chain if launch.together else 0.0  # no other block goes on meanwhile
    return Prediction(_LAUNCH + max(longer + alone + exposed, chain), bound, parts)
