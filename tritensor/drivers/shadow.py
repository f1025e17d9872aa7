"""What is known of each byte of a simulated device's memory: whether it was written, and by which program of a launch.

Both executors tell it of every access that a kernel makes (`simulate(races=True)`). An access is an error if nothing
has written what it reads, or if its result depends on the order in which programs run. Programs that meet at an atomic
operation are ordered: what one did before it, the other sees (vector clocks, of which programs beyond 1024 share).
"""

from __future__ import annotations

from bisect import bisect_right, insort
from collections.abc import Callable, Iterator, Sequence
from typing import Any, ClassVar, NoReturn, Protocol

import numpy as np

from ..errors import warn

_GRAIN = 16  # bytes that a cell stands for, the largest access; where accesses are finer, cells become so
_CLOCKS = 1024
#: Times of the last write, read and atomic operation in a launch, and the numbers of the programs that made them.
_CELL = np.dtype(
    [(name, "i4") for name in ("wrote", "writer", "line", "turn", "seen", "reader", "met", "atomic")]
    + [(name, "?") for name in ("written", "several", "outside", "compared")],
    align=True,
)

_TIMES = {"writer": "wrote", "reader": "seen", "atomic": "met"}

#: Address, shape, strides in bytes and size of an element: what a launch was passed.
View = tuple[int, tuple[int, ...], tuple[int, ...], int]


class Accesses(Protocol):
    """Accesses of one instruction: an address and a program's number of each, and the name of its line."""

    addresses: np.ndarray
    programs: np.ndarray
    line: str

    def fail(self, text: str, wrong: np.ndarray) -> NoReturn:
        """Raise an error about those of which an array is True."""


class _Allocation:
    """The cells of an allocation, each of `grain` bytes."""

    def __init__(self, base: int, nbytes: int) -> None:
        self.base, self.nbytes, self.grain = base, nbytes, _GRAIN
        self.cells = np.zeros(-(-nbytes // _GRAIN), _CELL)
        self.partial = False  # a launch was passed views of a part of it

    def refine(self, unit: int) -> None:
        """Let cells be as small as accesses: `unit` is the size and all offsets of them, joined by or."""
        grain = min(self.grain, unit & -unit)
        if grain < self.grain:
            self.cells = np.repeat(self.cells, self.grain // grain)
            self.grain = grain

    def range(self, address: int, nbytes: int) -> np.ndarray:
        """The cells of a range."""
        start = address - self.base
        self.refine(start | nbytes)
        return self.cells[start // self.grain : (start + nbytes) // self.grain]


class Shadow:
    """The shadow of a simulator's memory.

    Attributes:
        watching: the shadow of the launch that runs, or None.
        views: what the launch that is being added is passed.
        strict: an access outside of the views that a launch was passed is an error and not a warning.
    """

    watching: ClassVar[Shadow | None] = None

    def __init__(self) -> None:
        self.strict = False
        self.views: list[View] = []
        self._allocations: dict[int, _Allocation] = {}
        self._bases: list[int] = []
        self._now = self._start = 1
        self._lines: dict[str, int] = {"": 0}
        self._told: set[tuple[str, str]] = set()
        self._known: Any = None
        self._released: dict[int, np.ndarray] = {}
        self._programs = 1

    # -- what the host does

    def allocated(self, address: int, nbytes: int) -> None:
        """Note new memory, in which nothing is written."""
        self._allocations[address] = _Allocation(address, nbytes)
        insort(self._bases, address)

    def freed(self, address: int) -> None:
        """Forget memory that was given back."""
        if self._allocations.pop(address, None) is not None:
            self._bases.remove(address)

    def mark(self, address: int, nbytes: int, written: bool = True) -> None:
        """Note that the host wrote to memory, or that it holds nothing of value any more."""
        allocation = self._at(address)
        if allocation is not None and nbytes:
            allocation.range(address, nbytes)["written"] = written

    def copied(self, target: int, source: int, nbytes: int) -> None:
        """Note a copy: what was not written in its source is not in its target."""
        to, by = self._at(target), self._at(source)
        if to is None or by is None:
            self.mark(target, nbytes)
        else:
            unit = target - to.base | source - by.base | to.grain | by.grain
            by.refine(unit)
            to.refine(unit)
            to.range(target, nbytes)["written"] = by.range(source, nbytes)["written"]

    def _at(self, address: int) -> _Allocation | None:
        at = bisect_right(self._bases, address) - 1
        found = self._allocations[self._bases[at]] if at >= 0 else None
        return found if found is not None and address < found.base + found.nbytes else None

    def lines(self, view: View) -> np.ndarray:
        """The number in `places` of the line by which the last launch wrote each element of an array; 0: by none."""
        times = np.maximum(self._elements(view, "wrote"), self._elements(view, "met"))
        lines: np.ndarray = np.where(times >= self._start, self._elements(view, "line"), 0).max(-1)
        return lines

    @property
    def places(self) -> list[str]:
        """The names of lines: `kernel.py:91`."""
        return list(self._lines)

    def _elements(self, view: View, field: str) -> np.ndarray:
        address, shape, strides, itemsize = view
        allocation = self._at(address)
        assert allocation is not None
        unit = address - allocation.base | itemsize
        for stride in strides:
            unit |= abs(stride)
        allocation.refine(unit)
        cells, grain = allocation.cells, allocation.grain
        steps = (*(stride // grain * cells.itemsize for stride in strides), cells.itemsize)
        first = cells[field][(address - allocation.base) // grain :]
        return np.lib.stride_tricks.as_strided(first, (*shape, itemsize // grain), steps)

    # -- launches

    def launching(self, programs: int) -> Callable[[Callable[[], None]], Callable[[], None]]:
        """Makes what watches a launch, a function that runs it, of so many programs that is passed `views`."""
        views, self.views = self.views, []
        return lambda run: lambda: self._watch(run, programs, views)

    def _watch(self, run: Callable[[], None], programs: int, views: Sequence[View]) -> None:
        self._now += 1
        self._start, self._programs = self._now, programs
        self._known, self._released = None, {}
        views = [view for view in views if 0 not in view[1] and self._at(view[0]) is not None]
        partial = {id(found): found for view in views if (found := self._at(view[0])) is not None}
        for allocation in partial.values():
            allocation.cells["outside"] = allocation.partial = True
        for view in views:
            self._elements(view, "outside")[...] = False
        before, Shadow.watching = Shadow.watching, self
        try:
            run()
        finally:
            Shadow.watching = before
            for allocation in partial.values():
                allocation.cells["outside"] = allocation.partial = False

    def _parts(self, each: Accesses, nbytes: int, verb: str) -> Iterator[_Part]:
        """The accesses to each allocation. Those to constants of the kernel, which are in none, are left out."""
        self._now += 1
        where = np.searchsorted(np.array(self._bases, np.int64), each.addresses, "right")
        for base in [self._bases[at - 1] for at in np.flatnonzero(np.bincount(where)).tolist() if at]:
            allocation = self._allocations[base]
            chosen = np.flatnonzero((each.addresses >= base) & (each.addresses < base + allocation.nbytes))
            if chosen.size:
                offsets = each.addresses[chosen] - base
                allocation.refine(int(np.bitwise_or.reduce(offsets)) | nbytes)
                at = offsets[:, None] // allocation.grain + np.arange(nbytes // allocation.grain)
                part = _Part(self, each, allocation, chosen, at)
                if allocation.partial and part.cells["outside"].any():
                    self._look_outside(part, verb)
                yield part

    def _look_outside(self, part: _Part, verb: str) -> None:
        text = "memory is accessed outside of the view that was passed, within its storage"
        if self.strict:
            part.refuse(text, part.cells["outside"])
        if (part.each.line, verb) not in self._told:
            self._told.add((part.each.line, verb))
            warn(text.replace("memory is accessed", f"a kernel {verb} memory") + f", at {part.each.line}")

    def read(self, each: Accesses, nbytes: int) -> None:
        """Check reads of so many bytes, and note them."""
        for part in self._parts(each, nbytes, "reads"):
            cells, known, at, own = part.cells, part.allocation.cells, part.at, part.own
            if not cells["written"].all():
                part.refuse("memory is read that nothing has written", ~cells["written"])
            part.conflict("writer", "a program reads what another one wrote in the same launch")
            # a value that is compared before it is used may be an old one
            text = "a program reads what another one updates in the same launch"
            part.conflict("atomic", text, ~cells["compared"])
            others = (cells["seen"] >= self._start) & (cells["several"] | (cells["reader"] != own))
            known["several"][at], known["seen"][at], known["reader"][at] = others, self._now, own
            if (lost := known["reader"][at] != own).any():
                known["several"][at[lost]] = True

    def write(self, each: Accesses, old: np.ndarray, words: np.ndarray) -> None:
        """Check writes of words, each in the place of an old one, and note them. Writing what is there is no change."""
        for part in self._parts(each, words.dtype.itemsize, "writes"):
            known, at, own = part.allocation.cells, part.at, part.own
            before, fresh = (
                np.ascontiguousarray(each[part.chosen]).view(np.uint8).reshape(*at.shape, -1) for each in (old, words)
            )
            changed = (before != fresh).any(-1)
            part.conflict("writer", "two programs write different values to one address", changed)
            part.conflict("reader", "a program writes what another one has read in the same launch", changed)
            part.conflict("atomic", "a program writes what another one updates in the same launch")
            turns = np.arange(len(at))[:, None]
            known["turn"][at] = turns
            if ((last := known["turn"][at]) != turns).any():  # the last one's stays
                lost = (fresh[last, np.arange(at.shape[1])] != fresh).any(-1)
                several = lost & (own[last, 0] != own)
                if several.any():
                    part.refuse("two programs write different values to one address", several)
                if lost.any():
                    part.refuse("a program writes different values to one address", lost)
            known["written"][at] = True
            known["wrote"][at], known["writer"][at], known["line"][at] = self._now, own, self._line(each)

    def update(self, each: Accesses, nbytes: int, order: str = "") -> None:
        """Check atomic operations and note them.

        Args:
            order: "relaxed", unless programs that use one address are ordered by them; "cas", if what was read before
                is compared with what is there.
        """
        for part in self._parts(each, nbytes, "updates"):
            known, at = part.allocation.cells, part.at
            if not part.cells["written"].all():
                part.refuse("memory is updated that nothing has written", ~part.cells["written"])
            part.conflict("writer", "an atomic operation updates what another program wrote without one")
            if order != "cas":
                part.conflict("reader", "an atomic operation updates what another program has read without one")
            known["met"][at], known["atomic"][at], known["line"][at] = self._now, part.own, self._line(each)
            known["compared"][at] = order == "cas"
        if order != "relaxed":
            self.meet(each)

    def _line(self, each: Accesses) -> int:
        return self._lines.setdefault(each.line, len(self._lines))

    def meet(self, each: Accesses) -> None:
        """Order programs by what they do at addresses, one after the other."""
        size = min(self._programs, _CLOCKS)
        if self._known is None:
            self._known = np.zeros((size, size), np.int32)
        pairs = zip((each.programs % size).tolist(), (each.addresses // 4 % 64).tolist(), strict=True)
        for program, place in dict.fromkeys(pairs):
            clocks = self._known[program]
            clocks[program] = self._now
            released = self._released.setdefault(place, clocks.copy())
            np.maximum(clocks, released, out=clocks)
            released[...] = clocks

    def ordered(self, times: np.ndarray, others: np.ndarray, own: np.ndarray, several: np.ndarray) -> np.ndarray:
        """Tells whether programs have met since another one's access, or of several any other one."""
        if self._known is None:
            return np.zeros(times.shape, np.bool_)
        size = len(self._known)
        met: np.ndarray = self._known[own % size].max(-1) > 0
        return np.where(several, met, self._known[own % size, others % size] >= times)


class _Part:
    """Accesses to one allocation: which of all they are, their cells (accesses, cells of one), and their programs."""

    def __init__(
        self, shadow: Shadow, each: Accesses, allocation: _Allocation, chosen: np.ndarray, at: np.ndarray
    ) -> None:
        self.shadow, self.each, self.allocation, self.chosen, self.at = shadow, each, allocation, chosen, at
        self.own, self.cells = each.programs[chosen][:, None], allocation.cells.take(at)  # 20 times as fast as an index

    def refuse(self, text: str, wrong: np.ndarray) -> NoReturn:
        """Raise an error about the accesses of which cells are wrong."""
        found = np.zeros(len(self.each.addresses), np.bool_)
        found[self.chosen] = wrong.any(1)
        self.each.fail(text, found)

    def conflict(self, who: str, text: str, matters: np.ndarray | bool = True) -> None:
        """Refuse accesses to what another program accessed in this launch, unless the two are ordered."""
        cells, own, start = self.cells, self.own, self.shadow._start
        times, others = cells[_TIMES[who]], cells[who]
        if times.max() < start:
            return
        several = (cells["seen"] >= start) & cells["several"]
        wrong = (times >= start) & matters & ((others != own) | several & (who == "reader"))
        if not wrong.any():
            return
        wrong &= ~self.shadow.ordered(times, others, own, several & (who == "reader"))
        if wrong.any():
            cell = cells[wrong][0]
            again = cell["seen"] >= start and (cell["several"] or (who, cell["reader"]) == ("writer", cell["writer"]))
            line = "" if who == "reader" else f", at {self.shadow.places[int(cell['line'])]}"
            text = "programs read and change one address without atomics" if again and who != "atomic" else text
            self.refuse(f"{text} (program {cell[who]}{line})", wrong)


def views_of(launch: object) -> list[View]:
    """The arrays that a launch is passed: its arguments, or a `loading.LaunchRequest` with what it reaches."""
    rows = (getattr(launch, "reaches", None) or ((), ()))[1]
    passed: Any = getattr(launch, "arguments", launch)
    waiting: list[Any] = [*passed, *(array for row in rows for array in row)]
    found: list[View] = []
    while waiting:
        value = waiting.pop()
        value = getattr(value, "_data", value)  # of a tensor
        if isinstance(value, tuple):
            waiting.extend(value)
        elif hasattr(value, "block_shape"):  # a descriptor
            waiting.append(value.base)
        elif hasattr(value, "data_ptr") and hasattr(value, "strides"):
            strides = tuple(stride * value.itemsize for stride in value.strides)
            found.append((value.data_ptr(), tuple(value.shape), strides, value.itemsize))
    return found
