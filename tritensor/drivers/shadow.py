"""What is known of each byte of a simulated device's memory: whether it was written, and by which program of a launch.

Both executors tell it of every access that a kernel makes (`simulate(races=True)`). An access is an error if nothing
has written what it reads, or if its result depends on the order in which programs run. Programs that meet at an atomic
operation are ordered: what one did before it, the other sees (vector clocks, of which programs beyond 1024 share).
"""

from __future__ import annotations

import math
from bisect import bisect_right, insort
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import TYPE_CHECKING, Any, ClassVar, NoReturn

import numpy as np

from ..errors import warn

if TYPE_CHECKING:
    from .loading import LaunchRequest

_GRAIN = (
    16  # bytes, the largest access; what is known is known for so many bytes, or for fewer where accesses are finer
)
_CLOCKS = 1024
#: Times of the last write, read and atomic operation in a launch, and the numbers of the programs that made them.
_CELL = np.dtype(
    [(name, "i4") for name in ("wrote", "writer", "line", "turn", "seen", "reader", "met", "atomic")]
    + [(name, "?") for name in ("written", "several", "outside")],
    align=True,
)

_TIMES = {"writer": "wrote", "reader": "seen", "atomic": "met"}

#: Raises an error about the accesses of which an array is True.
Fail = Callable[[str, np.ndarray], NoReturn]
#: Address, shape, strides in bytes and size of an element: what a launch was passed.
View = tuple[int, tuple[int, ...], tuple[int, ...], int]


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
            return self.mark(target, nbytes)
        unit = target - to.base | source - by.base | to.grain | by.grain
        by.refine(unit)
        to.refine(unit)
        to.range(target, nbytes)["written"] = by.range(source, nbytes)["written"]
        return None

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

    def around(self, request: LaunchRequest, run: Callable[[], None]) -> Callable[[], None]:
        """The function that runs a launch, with this shadow watching."""
        self.views = views_of(request)
        launch = self.launching(math.prod(request.grid))

        def work() -> None:
            with launch():
                run()

        return work

    def launching(self, programs: int) -> Callable[[], AbstractContextManager[None]]:
        """Makes what watches a launch of so many programs that is passed `views`."""
        views, self.views = self.views, []
        return lambda: self._launch(programs, views)

    @contextmanager
    def _launch(self, programs: int, views: Sequence[View]) -> Iterator[None]:
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
            yield
        finally:
            Shadow.watching = before
            for allocation in partial.values():
                allocation.cells["outside"] = allocation.partial = False

    def _parts(self, addresses: np.ndarray, nbytes: int) -> Iterator[tuple[_Allocation, Any, np.ndarray]]:
        """Allocations, which of the accesses are in each, and their cells, (accesses, cells of one)."""
        if not len(addresses):
            return
        where = np.searchsorted(np.array(self._bases, np.int64), addresses, "right") - 1
        for at in [int(where[0])] if (where == where[0]).all() else np.unique(where).tolist():
            allocation = self._allocations[self._bases[at]] if at >= 0 else None
            chosen = np.flatnonzero(where == at)
            offsets = addresses[chosen] - (allocation.base if allocation else 0)
            if allocation is None or int(offsets.max()) >= allocation.nbytes:
                continue  # a constant of the kernel, which is in no allocation
            allocation.refine(int(np.bitwise_or.reduce(offsets)) | nbytes)
            grain = allocation.grain
            yield allocation, chosen, offsets[:, None] // grain + np.arange(nbytes // grain)

    def read(self, addresses: np.ndarray, nbytes: int, programs: np.ndarray, line: str, fail: Fail) -> None:
        """Check reads of so many bytes at addresses, by a program each, and note them."""
        self._now += 1
        for allocation, chosen, at in self._parts(addresses, nbytes):
            refuse, own = _of(fail, chosen, len(addresses)), programs[chosen][:, None]
            cells = allocation.cells[at]
            if not cells["written"].all():
                refuse("memory is read that nothing has written", ~cells["written"])
            self._look_outside(allocation, cells, "reads", line, refuse)
            self._conflict(
                cells, "writer", own, True, refuse, "a program reads what another one wrote in the same launch"
            )
            self._conflict(
                cells, "atomic", own, True, refuse, "a program reads what another one updates in the same launch"
            )
            fresh, others = cells["seen"] < self._start, cells["reader"] != own
            allocation.cells["several"][at] = ~fresh & (cells["several"] | others)
            allocation.cells["seen"][at], allocation.cells["reader"][at] = self._now, own
            if (lost := allocation.cells["reader"][at] != own).any():
                allocation.cells["several"][at[lost]] = True

    def write(
        self,
        addresses: np.ndarray,
        old: np.ndarray,
        words: np.ndarray,
        programs: np.ndarray,
        line: str,
        fail: Fail,
    ) -> None:
        """Check writes of words, each in the place of an old one, and note them. Writing what is there is no change."""
        self._now += 1
        number = self._lines.setdefault(line, len(self._lines))
        nbytes = words.dtype.itemsize
        for allocation, chosen, at in self._parts(addresses, nbytes):
            refuse, own = _of(fail, chosen, len(addresses)), programs[chosen][:, None]
            cells, known = allocation.cells[at], allocation.cells
            self._look_outside(allocation, cells, "writes", line, refuse)
            shape = *at.shape, allocation.grain
            fresh = np.ascontiguousarray(words[chosen]).view(np.uint8).reshape(shape)
            changed = (np.ascontiguousarray(old[chosen]).view(np.uint8).reshape(shape) != fresh).any(-1)
            text = "two programs write different values to one address"
            self._conflict(cells, "writer", own, changed, refuse, text)
            text = "a program writes what another one has read in the same launch"
            self._conflict(cells, "reader", own, changed, refuse, text)
            text = "a program writes what another one updates in the same launch"
            self._conflict(cells, "atomic", own, True, refuse, text)
            known["turn"][at] = np.arange(len(at))[:, None]
            last = known["turn"][at]
            if (last != np.arange(len(at))[:, None]).any():
                kept = fresh[last, np.arange(at.shape[1])]
                if (lost := (kept != fresh).any(-1)).any():
                    several = (own[last, 0] != own) & lost
                    what = "two programs write" if several.any() else "a program writes"
                    refuse(f"{what} different values to one address", several if several.any() else lost)
            known["written"][at] = True
            known["wrote"][at], known["writer"][at], known["line"][at] = self._now, own, number

    def update(
        self, addresses: np.ndarray, nbytes: int, programs: np.ndarray, line: str, fail: Fail, orders: bool = True
    ) -> None:
        """Check atomic operations and note them.

        Args:
            orders: they are not relaxed: programs that use one address are ordered by them.
        """
        self._now += 1
        number = self._lines.setdefault(line, len(self._lines))
        for allocation, chosen, at in self._parts(addresses, nbytes):
            refuse, own = _of(fail, chosen, len(addresses)), programs[chosen][:, None]
            cells, known = allocation.cells[at], allocation.cells
            if not cells["written"].all():
                refuse("memory is updated that nothing has written", ~cells["written"])
            self._look_outside(allocation, cells, "updates", line, refuse)
            text = "an atomic operation updates what another program {} without one"
            self._conflict(cells, "writer", own, True, refuse, text.format("wrote"))
            self._conflict(cells, "reader", own, True, refuse, text.format("has read"))
            known["met"][at], known["atomic"][at], known["line"][at] = self._now, own, number
        if orders:
            self.meet(addresses, programs)

    def meet(self, addresses: np.ndarray, programs: np.ndarray) -> None:
        """Order programs by what they do at addresses, one after the other."""
        size = min(self._programs, _CLOCKS)
        if self._known is None:
            self._known = np.zeros((size, size), np.int32)
        pairs = dict.fromkeys(zip((programs % size).tolist(), (addresses // 4 % 64).tolist()))
        for program, place in pairs:
            clocks = self._known[program]
            clocks[program] = self._now
            released = self._released.setdefault(place, clocks.copy())
            np.maximum(clocks, released, out=clocks)
            released[...] = clocks

    def _conflict(
        self, cells: np.ndarray, who: str, own: np.ndarray, matters: np.ndarray | bool, refuse: Fail, text: str
    ) -> None:
        """Refuse accesses to what another program accessed in this launch, unless the two are ordered."""
        times, others = cells[_TIMES[who]], cells[who]
        read = cells["seen"] >= self._start
        several = read & cells["several"]
        wrong = (times >= self._start) & matters & ((others != own) | several & (who == "reader"))
        if self._known is not None and wrong.any():
            size = len(self._known)
            clocks = self._known[own % size, others % size]
            if who == "reader":  # the last of several readers is known: a program that has met others is let pass
                clocks = np.where(several & (self._known[own % size].max(-1) > 0), times, clocks)
            wrong &= clocks < times
        if wrong.any():
            cell, first = cells[wrong][0], tuple(np.argwhere(wrong)[0])
            if who != "atomic" and (
                several[first] or (who == "writer" and read[first] and cell["reader"] == cell["writer"])
            ):
                text = "programs read and change one address without atomics"
            line = "" if who == "reader" else f", at {self.places[int(cell['line'])]}"
            refuse(f"{text} (program {cell[who]}{line})", wrong)

    def _look_outside(self, allocation: _Allocation, cells: np.ndarray, verb: str, line: str, refuse: Fail) -> None:
        if allocation.partial and (wrong := cells["outside"]).any():
            text = "memory is accessed outside of the view that was passed, within its storage"
            if self.strict:
                refuse(text, wrong)
            if (line, verb) not in self._told:
                self._told.add((line, verb))
                warn(f"a kernel {verb} memory outside of the view that was passed, within its storage, at {line}")


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


def _of(fail: Fail, chosen: np.ndarray, count: int) -> Fail:
    """What raises an error about cells of chosen accesses."""

    def refuse(text: str, wrong: np.ndarray) -> NoReturn:
        found = np.zeros(count, np.bool_)
        found[chosen] = wrong.any(1)
        fail(text, found)

    return refuse
