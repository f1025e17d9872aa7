"""Native code on lists of arrays: the step of an optimizer on all of its parameters in one call.

The launch on one row of arrays (parameter, gradient, state) is noted on stand-ins, once for all shapes. A plan repeats
it for each row, and before each run one C function looks at all arrays: whether they are still like those that it was
made for, and where they lie.
"""

from __future__ import annotations

import sys
from array import array
from collections.abc import Callable, Sequence
from itertools import chain
from typing import Any

import numpy as np

from .. import settings
from ..autograd.mode import no_grad
from ..drivers.current import use
from ..drivers.native.driver import engine
from ..drivers.native.running import room
from ..errors import DeviceError
from ..host import threads
from .native_entry import Forms, Launch, Value, alike, entry, plan
from .native_noting import Noting
from .native_replay import offer, worth

ndarray = np.ndarray

#: elements of a row that a program computes: of what lies behind a row's end, lanes are switched off one by one
BLOCK = 512
# Programs of a piece, which one thread runs, and the most pieces for each thread: with 32 for two, which take the
# interpreter's lock from each other between pieces, SGD of 4 M took 1.2 times as long. So few pieces are not shared,
# because 64 K elements take 5 to 30 us, and sharing as long.
_PROGRAMS, _PIECES, _FEW = 128, 4, 4
#: what stands for a row's number of elements, and for how many programs the rows before it have
_SIZE, _FIRST = 7, 11


class Template:
    """A launch on any row of arrays of some dtypes, which is made in the background after it was first asked for.

    Args:
        name: of what it computes.
        kinds: the dtypes of a row's arrays, then those of the arrays that all rows share.
        launch: called with the arrays, the number of elements and the number of programs before: launches.
        check: called with the launch when it is made; says what is wrong with its results, or raises.
    """

    def __init__(
        self,
        name: str,
        kinds: Sequence[np.dtype[Any]],
        launch: Callable[..., object],
        check: Callable[[Launch], str | None],
    ) -> None:
        self.name, self.kinds, self.launch, self.check = name, kinds, launch, check
        self.made: Launch | None = None
        self.asked, self.uses = False, 0

    def get(self, nbytes: int) -> Launch | None:
        """The launch; None where it is not made, or another result than NumPy's was found.

        Args:
            nbytes: of what it is wanted for.
        """
        if not self.asked:
            self.uses += 1
            if worth(self.uses, nbytes):
                self.asked = True
                offer(self)
        return self.made

    def make(self) -> None:
        """Note and check it."""
        driver = Noting()
        try:
            with use(driver), no_grad():
                given = [driver.give((_SIZE,), (kind.itemsize,), kind) for kind in self.kinds]
                self.launch(given, _SIZE, _FIRST)
            [made] = driver.launches
            problem = self.check(made)
        except Exception as error:
            problem = str(error) or repr(error)
        if not problem:
            self.made = made
        elif settings.debug.value:
            sys.stderr.write(f"tritensor: {self.name} is computed by NumPy: {problem}\n")


class Rows:
    """Launches on rows of arrays.

    Args:
        columns: the arrays, all that are in the same place of their rows in one sequence.
        shared: arrays that all rows' launches take.
        launches: of each row.
        reads: in which place of a row arrays are only read.
        sizes: the number of elements of each row, unless they are those of its first array.
    """

    def __init__(
        self,
        columns: Sequence[Sequence[ndarray]],
        shared: Sequence[ndarray],
        launches: Sequence[Launch],
        reads: int = -1,
        sizes: Sequence[int] = (),
    ) -> None:
        target = engine(settings.native_target.value).target
        self.entry, self.alike = entry(target), alike(target)
        count, arrays = len(launches), [*chain.from_iterable(columns), *shared]
        written = [place != reads for place in range(len(columns)) for _ in range(count)]
        self.forms = Forms(arrays, [*written, *[False] * len(shared)])
        self.written = np.flatnonzero(written)
        self.read = np.flatnonzero(~np.array(written, bool))
        self.nbytes = np.array([each.nbytes for each in arrays[: len(written)]], np.int64)
        self.apart = array("q")  # addresses of arrays that were found to be
        self.scratch = max(launch.code.scratch for launch in launches)
        sizes = sizes or [each.size for each in columns[0]]
        programs = [-(-size // BLOCK) for size in sizes]
        self.programs = sum(programs)
        step = max(_PROGRAMS, -(-self.programs // (_PIECES * threads.get_num_threads())))
        parts, left, first = [list[int]()], step, 0
        for row, (launch, number) in enumerate(zip(launches, programs, strict=True)):
            values = []
            for source, word, _ in launch.values:
                if source >= 0:
                    place = source * count + row if source < len(columns) else source + len(columns) * (count - 1)
                    values.append(Value(place, 0, arrays[place].nbytes))
                else:
                    values.append(Value(-1, {_SIZE: sizes[row], _FIRST: first}.get(word, word), 0))
            here, at = launch._replace(grid=(number, 1, 1), values=values), 0
            while at < number:
                taken = min(left, number - at)
                parts[-1] += here.words(at, at + taken)
                at, left = at + taken, left - taken
                if not left:
                    parts.append([])
                    left = step
            first += number
        self.plans = [plan(words) for words in parts if words]

    def fit(self, arrays: tuple[ndarray, ...]) -> bool:
        """Whether arrays, column by column, and those that are shared are like those of before, and lie apart."""
        places = array("q", bytes(8 * len(arrays)))
        if len(arrays) != len(self.forms.words) // 5 or self.alike(self.forms.address, arrays, places.buffer_info()[0]):
            return False
        if places == self.apart:
            return True
        starts = np.frombuffer(places, np.int64)[: len(self.nbytes)]
        order = self.written[np.argsort(starts[self.written], kind="stable")]
        low, high = starts[order], starts[order] + self.nbytes[order]
        if (low[1:] < high[:-1]).any():
            return False
        begin, end = starts[self.read], starts[self.read] + self.nbytes[self.read]
        behind = np.searchsorted(low, begin, "right")  # of what is written, that which begins behind it
        if (np.append(low, _FAR)[behind] < end).any() or (np.append(0, high)[behind] > begin).any():
            return False
        self.apart = places
        return True

    def run(self, arrays: tuple[ndarray, ...]) -> None:
        """Launch on arrays that fit."""
        run, nbytes, plans = self.entry, self.scratch, self.plans

        def part(start: int, stop: int) -> None:
            for each in plans[start:stop]:
                if run(each.buffer_info()[0], arrays, room.address(nbytes) if nbytes else 0):
                    raise DeviceError("native code of a step has stopped at a check of its memory")

        if len(plans) < _FEW or threads.get_num_threads() == 1:
            part(0, len(plans))
        else:
            threads.in_pieces(part, len(plans), 1)


_FAR = np.iinfo(np.int64).max
