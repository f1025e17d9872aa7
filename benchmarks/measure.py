"""Two pieces of work timed side by side, so that disturbances of the machine affect both."""

from __future__ import annotations

import gc
import statistics
import time
import timeit
from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class Comparison:
    """Seconds for one execution of ours and of theirs, and ours divided by theirs over blocks of A B B A."""

    ours: float
    theirs: float
    ratios: tuple[float, ...]
    samples: tuple[tuple[float, float], ...] = ()  # (ours, theirs) by block
    again: tuple[float, ...] = ()  # the first run of ours in a block divided by the second, which is the same work

    @property
    def ratio(self) -> float:
        return statistics.median(self.ratios)

    @property
    def spread(self) -> tuple[float, float]:
        return min(self.ratios), max(self.ratios)

    @property
    def noise(self) -> float:
        """By what factor the same work differed within a block, in all blocks but the worst."""
        return sorted(max(each, 1 / each) for each in self.again)[-2]


def timer(
    statement: str, names: dict[str, object], clock: Callable[[], float] = time.perf_counter
) -> Callable[[int], float]:
    """A function from a number of executions to their seconds.

    The statement is inside timeit's loop, since a call around a 0.5 us operator would be a tenth of what is measured.
    timeit switches the garbage collector off; it is switched on again, as users have it.
    """
    return timeit.Timer(statement, "gc.enable()", clock, {**names, "gc": gc}).timeit


def executions(run: Callable[[int], float], seconds: float) -> int:
    """How many executions take about `seconds`; warms up on the way."""
    run(1)  # the first one may compile a kernel, and says nothing of the others
    number, elapsed = 1, run(1)
    while elapsed < seconds / 4:
        number *= 2 if elapsed <= 0 else max(2, min(10, int(seconds / 2 / elapsed)))
        elapsed = run(number)
    return max(1, round(number * seconds / elapsed))


def side_by_side(
    ours: Callable[[int], float],
    theirs: Callable[[int], float],
    blocks: int = 7,
    seconds: float = 0.04,
    number: int | None = None,
    pause: float = 0.0,
) -> Comparison:
    """Time both in `blocks` of ours, theirs, theirs, ours, each of about `seconds`, or of `number` executions.

    The order within a block cancels a drift of the machine's speed; the median over blocks ignores a disturbed one.
    `pause` is slept before each side's turn: the threads of OpenMP keep a processor busy for some milliseconds after
    their work, which the other side would be charged for.
    """
    if number is None:
        our_number, their_number = executions(ours, seconds), executions(theirs, seconds)
    else:
        our_number = their_number = number
        for run in (ours, theirs, ours, theirs):
            run(1)
    a, b, ratios, again = [], [], [], []
    gc.collect()
    for _ in range(blocks):
        time.sleep(pause)
        first = ours(our_number)
        time.sleep(pause)
        middle = theirs(their_number) + theirs(their_number)
        time.sleep(pause)
        last = ours(our_number)
        a.append((first + last) / 2 / our_number)
        again.append(first / last)
        b.append(middle / 2 / their_number)
        ratios.append(a[-1] / b[-1])
    samples = tuple(zip(a, b, strict=True))
    return Comparison(statistics.median(a), statistics.median(b), tuple(ratios), samples, tuple(again))
