"""What the memory of a counted device is used for at its peak: by kind, and by the line that made it."""

from __future__ import annotations

from typing import Any, NamedTuple

from ...autograd.mode import recording
from ...drivers import ledger
from ...drivers.allocator import Arena, Block, Heap

#: kinds of memory in the order of charts
KINDS = [
    *("parameters", "gradients", "optimizer state", "activations", "gathered parameters", "gradients that are sent"),
    *("gradients that are kept whole", "backward pass", "optimizer step", "other"),
]
_FINER = 1.01  # the growth of a peak from which on what is alive is looked at again


class Use(NamedTuple):
    """A block in use: its size, its kind and line, and its number among all that were ever taken."""

    nbytes: int
    kind: str
    site: str
    number: int


class CountedArena(Arena):
    """An arena that notes what it is asked for."""

    __slots__ = ()

    def take(self, use: object) -> Block:
        """A block, as `Arena.take`."""
        block = super().take(use)
        memory = self.driver.memory_in_use  # type: ignore[attr-defined]
        memory.taken(block, self.heap)
        return block


class Memory:
    """The memory of one step.

    Attributes:
        peak: bytes in use at most. at_peak: what was in use then, within a hundredth.
        over_time: pairs of the device's time and bytes in use.
        persistent: by the numbers of blocks, the kinds that are known when an optimizer has stepped.
    """

    def __init__(self) -> None:
        self._now: dict[int, Use] = {}
        self._number = 0
        self.persistent: dict[int, str] = {}
        self.in_optimizer = False
        self.clock: Any = lambda: 0.0
        self.begin()

    def begin(self, before: int = 0) -> None:
        """Begin a step, with so many bytes in use."""
        self.peak, self.reserved, self._seen = before, 0, 0
        self.at_peak: list[Use] = []
        self.over_time: list[tuple[float, int]] = []

    def taken(self, block: Block, heap: Heap) -> None:
        """Note a block."""
        self._number += 1
        if ledger.purpose.name:
            kind = ledger.purpose.name
        elif self.in_optimizer:
            kind = "optimizer step"
        else:
            kind = "activations" if recording.current is None else "backward pass"
        self._now[block.address] = Use(block.size, kind, ledger.call_site(), self._number)
        used = heap.allocated
        self.over_time.append((self.clock(), used))
        self.reserved = max(self.reserved, heap.reserved)
        if used > self.peak:
            self.peak = used
        if used > self._seen * _FINER:
            self.look(heap)

    def look(self, heap: Heap) -> None:
        """Take what is in use now for the peak."""
        self._seen = heap.allocated
        self.at_peak = [self._now[each.address] for each in heap.live() if each.address in self._now]

    def is_for(self, x: object, kind: str) -> None:
        """Say what a tensor's memory is for, as its kind is known now."""
        buffer = getattr(getattr(x, "_data", None), "buffer", None)
        use = self._now.get(getattr(buffer, "address", 0))
        if use is not None:
            self.persistent[use.number] = kind

    def by_kind(self) -> dict[str, int]:
        """Bytes at the peak by kind; what was taken between looks is "other"."""
        found = dict.fromkeys(KINDS, 0)
        for use in self.at_peak:
            kind = self.persistent.get(use.number, use.kind)
            found[kind if kind in found else "other"] += use.nbytes
        found["other"] += max(self.peak - sum(found.values()), 0)
        return {kind: nbytes for kind, nbytes in found.items() if nbytes}

    def by_line(self) -> list[tuple[str, str, int]]:
        """Kind, line and bytes at the peak, the largest first."""
        found: dict[tuple[str, str], int] = {}
        for use in self.at_peak:
            key = self.persistent.get(use.number, use.kind), use.site
            found[key] = found.get(key, 0) + use.nbytes
        return sorted(((kind, site, nbytes) for (kind, site), nbytes in found.items()), key=lambda row: -row[2])
