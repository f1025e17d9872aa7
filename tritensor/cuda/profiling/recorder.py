"""`with cuda.profile(card="h100") as p:` counts what launches on a compiled simulated device ask of a card."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np

from ... import drivers, settings
from ...autograd import watched
from ...drivers.ptx.counters import Counters
from ...errors import ArgumentError, DeviceError
from ...types import devices
from . import report
from .cards import card as card_of
from .launches import Launch

_SLOW = 0.05  # seconds that a launch takes, from which on one that is alike is not run again when sampling


class profile:
    """Profile kernels on a simulated device: count what the block's launches ask of a card, and predict their time.

    The current device has to be a compiled simulated one. Counts are in `launches`; `str(p)` is a table with a line a
    kernel. Nothing is measured: a time is predicted from published figures of the card, and says so.

    Args:
        card: "a100", "h100" or "h200".
        sample: of larger grids run only so many blocks, spread over the grid, and scale the counts. Results are then
            not all computed, so what depends on their values is not as it would be.

    >>> import tritensor as torch
    >>> with torch.cuda.simulate(compiled=True):
    ...     x = torch.ones(1 << 20, device="cuda")
    ...     with torch.cuda.profile(card="h100", sample=4) as p:
    ...         y = x + x
    >>> launch = p.launches[0]
    >>> launch.name, launch.blocks, launch.ran, launch.dram / (1 << 20), launch.predicted.bound
    ('elementwise_add', 1024, 4, 8.0, 'DRAM')

    Raises:
        ArgumentError: there is no such card, or `sample` is negative.
        DeviceError: the current device runs no compiled kernels in simulation.
    """

    def __init__(self, card: str = "h100", sample: int = 0) -> None:
        if sample < 0:
            raise ArgumentError(f"profile: sample must be at least 0, got {sample}")
        self.card = card_of(card)
        self.sample = sample
        self.launches: list[Launch] = []
        self._streams: dict[Any, int] = {}
        self._alike: dict[Any, tuple[tuple[Counters, np.ndarray, np.ndarray], float]] = {}
        self._driver: Any = None
        self._line = ""  # of a compiled function, that is computed
        self._plain = False  # of a user's kernels only, parts of the grid are left out

    def __enter__(self) -> profile:
        self._driver = drivers.require()
        if not hasattr(self._driver, "pose"):
            raise DeviceError(
                "profile: only a simulated device that runs compiled kernels counts what they do",
                f"the device is {self._driver.kind}",
                remedy="with tritensor.cuda.simulate(compiled=True): ..., or TRITENSOR_SIMULATE_COMPILED=1",
            )
        named, target = self.card, self._driver.target(0)
        if target != ("cuda", 10 * named.capability[0] + named.capability[1]):
            raise DeviceError(
                f"profile: kernels of the simulated device are compiled for {target[0]} {target[1]}",
                f"card={named.name!r} has compute capability {named.capability[0]}.{named.capability[1]}",
                remedy=f"with tritensor.cuda.simulate(compiled=True, capability={named.capability}): ...",
            )
        # grids are as on that card
        figures = {"multi_processor_count": named.multiprocessors, "L2_cache_size": named.l2_size}
        self._before = self._driver.recorder, self._driver.pose(**figures)
        self._driver.recorder = self
        watched.computing.append(self._computing)
        settings.changed()  # calls that are remembered have the grids of another card
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        watched.computing.remove(self._computing)
        if kind is None:
            self._driver.synchronize_all()
        self._driver.recorder, properties = self._before
        self._driver.pose(**properties)
        settings.changed()

    def _computing(self, name: str, line: str, run: Callable[[], Any]) -> Any:
        before, self._line = self._line, f" ({line})"
        try:
            return run()
        finally:
            self._line = before

    def record(
        self,
        compiled: Any,
        grid: tuple[int, int, int],
        values: Sequence[int | bytes],
        queue: Any,
        spans: Sequence[tuple[int, int, str]],
        run: Callable[..., None],
    ) -> None:
        """Run a launch and note its counts; the device calls this in place of `run`.

        Args:
            compiled: the kernel's code (`drivers.loading.Compiled`).
            queue: of the stream.
            spans: address, bytes and label of the buffers, by address.
            run: called with what counts, and the numbers of the blocks to run or None for all.
        """
        blocks = math.prod(grid)
        sample = 0 if self._plain and not compiled.plain else self.sample
        numbers = sampled(grid, sample) if 0 < sample < blocks else None
        bases, sizes, passed, alike = buffers_of(values, spans)
        key = compiled.binary, grid, alike
        counted, seconds = self._alike.get(key, (None, 0.0))
        if counted is None or not sample or (numbers is None and seconds < _SLOW):
            counters, start = Counters(bases), time.perf_counter()
            run(counters, numbers)
            counters.finish()
            counted = counters, sizes, passed
            self._alike[key] = counted, time.perf_counter() - start
        number = self._streams.setdefault(queue, len(self._streams))
        self.launches.append(Launch(self.card, compiled, grid, number, *counted))
        self.launches[-1].name += self._line

    def __str__(self) -> str:
        return report.table(self.card, self.launches)

    def trace(self, path: str | Path) -> None:
        """Write predicted times as a timeline that trace viewers open (Chrome's trace event format)."""
        report.trace(self.card, self.launches, Path(path))

    def roofline(self, path: str | Path) -> None:
        """Draw the kernels below the card's limits into a PNG; needs matplotlib."""
        report.roofline(self.card, self.launches, Path(path))


def buffers_of(
    values: Sequence[int | bytes], spans: Sequence[tuple[int, int, str]]
) -> tuple[list[int], np.ndarray, np.ndarray, tuple[tuple[int, int], ...]]:
    """Where buffers begin, their sizes, and which are arguments; of each argument what makes launches alike: the
    alignment and the size of a buffer, or a number."""
    bases = [address for address, _, _ in spans] or [0]
    sizes = np.array([nbytes for _, nbytes, _ in spans] or [0])
    alike, passed = [], np.zeros(len(bases), np.bool_)
    for value in values:
        value = int.from_bytes(value[:8], "little") if isinstance(value, bytes) else value  # a map's address
        at = int(np.searchsorted(bases, value, "right")) - 1
        if at >= 0 and value < bases[at] + int(sizes[at]):
            passed[at] = True
            alike.append(((value - bases[at]) % 128, int(sizes[at])))
        else:
            alike.append((value, 0))
    return bases, sizes, passed, tuple(alike)


def count(function: Callable[[], object], sample: int = 0) -> profile:
    """Call a function on simulated devices, which execute its kernels as compiled, if they interpret them otherwise.

    Of larger grids of a user's kernels only `sample` programs run, so that results are partial; 0: all of them.
    """
    driver: Any = drivers.require()
    major, _ = driver.capability(devices.current_index())
    counted = profile("a100" if major < 9 else "h100", sample)
    counted._plain = True
    before, driver.recorder = driver.recorder, counted
    try:
        function()
        driver.synchronize_all()
    finally:
        driver.recorder = before
    return counted


def sampled(grid: tuple[int, int, int], count: int) -> np.ndarray:
    """The numbers of about `count` blocks of a grid, evenly along x and among the remainders by 32, and of all y and z.

    Work differs along the grid, or by a remainder where kernels divide their number: before a diagonal, at edges.

    >>> sampled((1000, 1, 1), 4)
    array([100, 364, 628, 892])
    """
    at = np.arange(count)
    x, y, z = grid
    even = (at + 0.5) / count
    along = (even * x).astype(np.int64)
    if x >= 64:
        along = np.minimum(along // 32 * 32 + (even * 32).astype(np.int64), x - 1)
    # multiples of these, without their integer part, fill an interval evenly however many there are
    across, above = (((at * step + 0.5) % 1) for step in (0.6180339887, 0.7548776662))
    return np.unique(along + x * ((across * y).astype(np.int64) + y * (above * z).astype(np.int64)))
