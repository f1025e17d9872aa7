"""The price of launches on a card: of each kind one sample is run and counted, all others cost the same.

Two launches are alike if they have the same code, grid and numbers, and buffers of the same sizes. Of a matrix product
not even one block is run to its end: a tile of few steps and one of some more say what a tile of any depth asks for.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from ...drivers.counted import CountedDevice
from ...drivers.loading import Compiled
from ...drivers.ptx.counters import Counters
from ...drivers.streams import Stream
from ...runtime.launch import Request
from .cards import Card
from .launches import Launch
from .recorder import buffers_of, sampled

_TILED = {"rows", "cols", "depth", "BLOCK_M", "BLOCK_N", "BLOCK_K"}
# Steps along the depth of the two tiles: more than the stages of any pipeline here.
_STEPS = 6, 10
_ROUNDED = 4  # launches that differ in nothing but their numbers, from which on these are not looked at
_SUMS = ("waits", "wavefronts", "least", "branches", "divergent")
_TABLES = ("warps", "lanes", "requested", "needed", "sectors")


# The code, what it asked for, and of the buffers their sizes and whether they are arguments.
_Counts: TypeAlias = tuple[Compiled, Any, np.ndarray, np.ndarray]


class Price(NamedTuple):
    """The predicted time of a launch, the bound that it meets, and the operations of tensor cores."""

    name: str
    seconds: float
    bound: str
    operations: float


class Prices:
    """Prices of launches on a card; also the recorder that counts the samples."""

    def __init__(self, card: Card) -> None:
        self.card = card
        self.known: dict[Any, Price] = {}
        self._alike: Counter[Any] = Counter()
        self._blocks: np.ndarray | None = None
        self._counted: Any = None
        self._driver: Any = None

    def of(self, driver: CountedDevice, stream: Stream, request: Request) -> Price:
        """The price of a launch on a counted device (`drivers.counted`)."""
        program, values = request.compiled(driver, stream)
        sizes, numbers = [], []
        for value, points in zip(values, program.pointers, strict=False):
            base, size = driver.block_at(value) if points else (0, 0)
            sizes.append(size)
            numbers.append((value - base) % 128 if size else value)
        form = (driver.codes[id(program.kernel)], request.grid, tuple(sizes))
        key = (form, tuple(numbers)) if self._alike[form] < _ROUNDED else form
        price = self.known.get(key)
        if price is None:
            self._alike[form] += 1
            price = self.known[key] = self._price(driver, stream, request)
            self.known.setdefault(form, price)
        return price

    def _price(self, driver: CountedDevice, stream: Stream, request: Request) -> Price:
        tiles = _tiles(request)
        if tiles is None:
            self._blocks = sampled(request.grid, 1)
            counted = self._count(driver, stream, request)
            grid = request.grid
        else:
            grid = (tiles.tiles, 1, 1)
            self._blocks = np.zeros(1, np.int64)
            few, more = (self._count(driver, stream, tiles.cut(request, steps)) for steps in _STEPS)
            counted = _line(few, more, (tiles.steps - _STEPS[0]) / (_STEPS[1] - _STEPS[0]), tiles.together)
        compiled, counters, sizes, passed = counted
        launch = Launch(self.card, compiled, grid, 0, counters, sizes, passed)
        work = sum(number for units, number in launch.operations.items() if units in self.card.tensor)
        return Price(launch.name, launch.predicted.seconds, launch.predicted.bound, work)

    def _count(self, driver: CountedDevice, stream: Stream, request: Request) -> _Counts:
        before, driver.recorder, self._driver = driver.recorder, self, driver
        try:
            driver.run(stream, request)
        finally:
            driver.recorder, self._driver = before, None
        return self._counted

    def record(
        self,
        compiled: Compiled,
        grid: tuple[int, int, int],
        values: Sequence[int | bytes],
        queue: object,
        spans: Sequence[tuple[int, int, str]],
        run: Callable[..., None],
    ) -> None:
        """Run the blocks of a sample and keep their counts, as `profile.record` does."""
        bases, sizes, passed, _ = buffers_of(values, spans)
        counters = Counters(bases)
        run(counters, self._blocks)
        counters.finish()
        self._driver.touched.update(np.array(bases)[passed].tolist())
        self._counted = compiled, counters, sizes, passed


class _Tiles(NamedTuple):
    """The tiles of a matrix product, the steps of each along the depth, and where the sizes are among the arguments."""

    tiles: int
    steps: float
    at: dict[str, int]
    blocks: tuple[int, int, int]
    split: int
    together: int  # tiles that one program computes when it is cut: of batches, 1 and multiples of 16 are other code

    def cut(self, request: Request, steps: int) -> Request:
        """A launch of the same code for a tile of so many steps, or a few such tiles."""
        arguments, (height, width, depth) = list(request.arguments), self.blocks
        units = {"rows": height, "cols": width, "depth": depth * self.split}
        for name, unit in units.items():
            at = self.at[name]
            least, size = unit * (steps if name == "depth" else 1), arguments[at]
            # divisible by 16 if the size is and only then, since the code is compiled for that
            arguments[at] = least - unit + size % unit if size % 16 else least
        if "batches" in self.at:
            arguments[self.at["batches"]] = self.together
        facts = request.constants, request.warps, request.stages, request.name, request.reaches
        return Request(request.kernel, (self.split, 1, 1), tuple(arguments), *facts)


def _tiles(request: Request) -> _Tiles | None:
    """The tiles of a matrix product of some size; None for other kernels."""
    names, constants = [*request.kernel.arguments], request.constants
    if not {*names, *constants} >= _TILED:
        return None
    sizes = {"rows", "cols", "depth", "batches", "parts"}
    at = {name: place for place, name in enumerate(names) if name in sizes}
    rows, cols, depth = (request.arguments[at[name]] for name in ("rows", "cols", "depth"))
    height, width, step = (constants[name] for name in ("BLOCK_M", "BLOCK_N", "BLOCK_K"))
    split = request.arguments[at["parts"]] if "parts" in at else 1  # of the depth, among programs
    steps = depth / (step * split)
    if rows < height or cols < width or steps < _STEPS[1]:
        return None
    count, together = math.prod(request.grid), 1
    if "batches" in at:  # programs go from tile to tile
        batches = request.arguments[at["batches"]]
        count = -(-rows // height) * -(-cols // width) * batches
        together = 1 if batches == 1 else 2 if batches % 16 else 16
    return _Tiles(count, steps, at, (height, width, step), split, together)


def _line(few: _Counts, more: _Counts, far: float, blocks: int) -> _Counts:
    """Counts of some tiles on the line through two counts, `far` times their distance behind the first."""
    compiled, first, sizes, passed = few
    second = more[1]
    found = {name: getattr(first, name) + far * (getattr(second, name) - getattr(first, name)) for name in _SUMS}
    for table in _TABLES:
        one, two = getattr(first, table), getattr(second, table)
        found[table] = {key: one[key] + far * (two[key] - one[key]) for key in {**one, **two}}
    return compiled, SimpleNamespace(threads=first.threads, blocks=blocks, **found), sizes, passed
