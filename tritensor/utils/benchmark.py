"""Time statements, with their spread, and compare them in tables."""

from __future__ import annotations

import dataclasses
import math
import operator
import textwrap
import timeit
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from .. import cuda
from ..errors import require
from ..host.threads import get_num_threads, set_num_threads

__all__ = ["Compare", "Measurement", "TaskSpec", "Timer", "select_unit", "timer", "trim_sigfig"]

Callback = Callable[[int, float], object] | None
_UNITS = {-3: "ns", -2: "us", -1: "ms"}
_WORDS = {"ns": "nanoseconds", "us": "microseconds", "ms": "milliseconds", "s": "seconds"}


def timer() -> float:
    """The time in seconds, when devices have done what they were given."""
    if cuda.is_available():
        cuda.synchronize()
    return timeit.default_timer()


def select_unit(t: float) -> tuple[str, float]:
    """The unit in which a time is a number from 1 to 1000, and the unit's seconds."""
    power = int(math.log10(t) // 3)
    return (_UNITS[power], 1000.0**power) if power in _UNITS else ("s", 1.0)


def trim_sigfig(x: float, n: int) -> float:
    """A number rounded to so many digits."""
    scale = 10.0 ** (math.ceil(math.log10(abs(x))) - n)
    return round(round(x / scale) * scale, 12)


@dataclasses.dataclass(repr=False, frozen=True)
class TaskSpec:
    """The statement that a `Timer` runs, with its setup, number of threads and labels."""

    stmt: str
    setup: str
    global_setup: str = ""
    label: str | None = None
    sub_label: str | None = None
    description: str | None = None
    env: str | None = None
    num_threads: int = 1

    @property
    def title(self) -> str:
        """The label, or the statement."""
        more = f": {self.sub_label}" if self.sub_label else ""
        if self.label is not None or "\n" not in self.stmt:
            return f"{self.stmt if self.label is None else self.label}{more}"
        return f"stmt:{f' ({self.sub_label})' if self.sub_label else ''}\n{textwrap.indent(self.stmt, '  ')}"

    def summarize(self) -> str:
        """Title, description and setup."""
        setup = "" if self.setup in ("pass", "") else f"setup: {self.setup}"
        setup = f"setup:\n{textwrap.indent(self.setup, '  ')}" if setup and "\n" in self.setup else setup
        parts = [self.title, self.description or "", setup]
        return "\n".join(f"{each}\n" if "\n" in each else each for each in parts if each)


@dataclasses.dataclass(repr=False)
class Measurement:
    """The times of a statement: `raw_times` of `number_per_run` runs each."""

    number_per_run: int
    raw_times: list[float]
    task_spec: TaskSpec
    metadata: dict[Any, Any] | None = None

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or name not in TaskSpec.__dataclass_fields__:
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        return getattr(self.task_spec, name)

    @property
    def times(self) -> list[float]:
        """Seconds of one run, by measurement."""
        return [each / self.number_per_run for each in self.raw_times]

    def _quantile(self, q: float) -> float:
        return float(np.quantile(np.array(self.times), q))

    median = property(lambda self: self._quantile(0.5), doc="Seconds of one run.")
    mean = property(lambda self: float(np.mean(self.times)), doc="Seconds of one run.")
    iqr = property(lambda self: self._quantile(0.75) - self._quantile(0.25), doc="The range of the middle half.")
    has_warnings = property(lambda self: not self.meets_confidence(), doc="True if they differ much.")
    title = property(lambda self: self.task_spec.title, doc="The label, or the statement.")
    as_row_name = property(lambda self: self.sub_label or self.stmt or "[Unknown]", doc="Its name in tables.")

    @property
    def significant_figures(self) -> int:
        """How many digits of the median mean something, about."""
        times = sorted(self.times)
        middle = times[len(times) // 4 : math.ceil(3 * len(times) / 4)]
        confidence = max(1.645 * float(np.std(middle)) / math.sqrt(len(middle)), 25e-9)
        return min(max(math.floor(math.log10(self.median / confidence)), 1), 4)

    def meets_confidence(self, threshold: float = 0.1) -> bool:
        """True if the interquartile range is under this part of the median."""
        return self.iqr / self.median < threshold

    def __repr__(self) -> str:
        count, threads = len(self.raw_times), self.task_spec.num_threads
        unit, scale = select_unit(self.median)
        low, middle, high = (self._quantile(q) / scale for q in (0.25, 0.5, 0.75))
        lines = [object.__repr__(self), self.task_spec.summarize()]
        lines.append(f"  {'Median: ' if count > 1 else ''}{middle:.2f} {unit}")
        if count >= 4:
            lines.append(f"  IQR:    {high - low:.2f} {unit} ({low:.2f} to {high:.2f})")
        runs = f"{self.number_per_run} runs {'per measurement,' if count > 1 else ','}"
        lines.append(f"  {count} measurement{'s'[: count > 1]}, {runs} {threads} thread{'s'[: threads > 1]}")
        if self.has_warnings:
            gross, why = not self.meets_confidence(0.25), "This could indicate system fluctuation."
            why = "This suggests significant environmental influence." if gross else why
            share = f"{self.iqr / self.median * 100:.1f}% of the median measurement."
            lines.append(f"  WARNING: Interquartile range is {share}\n           {why}")
        return "\n".join(lines)

    @staticmethod
    def merge(measurements: Iterable[Measurement]) -> list[Measurement]:
        """One measurement for all of each task."""
        found: dict[TaskSpec, list[float]] = {}
        for each in measurements:
            found.setdefault(each.task_spec, []).extend(each.times)
        return [Measurement(1, times, task) for task, times in found.items()]


class Timer:
    """Measures a statement's time: with warm-up, on so many threads, waiting for devices.

    >>> from tritensor.utils.benchmark import Timer
    >>> found = Timer("x + x", globals={"x": 1.0}, label="sum").timeit(100)
    >>> found.number_per_run, found.title
    (100, 'sum')

    Args:
        stmt, setup, globals: the statement, what runs once before it, and its names; `torch` is this package.
        timer: the function that tells the time.
        label, sub_label, description, env: names of rows, columns and tables, for `Compare`.
        num_threads: of operators on the CPU.

    Raises:
        ValueError: the statement is no text, or in another language.
    """

    def __init__(
        self,
        stmt: str = "pass",
        setup: str = "pass",
        global_setup: str = "",
        timer: Callable[[], float] = timer,
        globals: dict[str, Any] | None = None,
        label: str | None = None,
        sub_label: str | None = None,
        description: str | None = None,
        env: str | None = None,
        num_threads: int = 1,
        language: str = "py",
    ) -> None:
        require(isinstance(stmt, str), ValueError, "Currently only a `str` stmt is supported.")
        require(language in ("py", "python"), ValueError, "Invalid language `{}`.", language)
        words = "global_setup is C++ only, got `{}`. Most likely this code can simply be moved to `setup`."
        require(not global_setup, ValueError, words, global_setup)
        stmt, setup = (textwrap.dedent(text).removeprefix("\n").rstrip() for text in (stmt, setup))
        names = {"torch": __import__(__name__.partition(".")[0]), **(globals or {})}
        self._timer = timeit.Timer(stmt, setup, timer, names)
        self._task_spec = TaskSpec(stmt, setup, "", label, sub_label, description, env, num_threads)

    def _timeit(self, number: int) -> float:
        return max(self._timer.timeit(number), 1e-9)

    @contextmanager
    def _threads(self) -> Iterator[None]:
        before = get_num_threads()
        set_num_threads(self._task_spec.num_threads)
        try:
            yield
        finally:
            set_num_threads(before)

    def timeit(self, number: int = 1000000) -> Measurement:
        """Measure so many runs once."""
        with self._threads():
            self._timeit(max(number // 100, 2))
            return Measurement(number, [self._timeit(number)], self._task_spec)

    def _repeated(
        self, block: float, least: float, most: float, threshold: float | None, callback: Callback
    ) -> Measurement:
        """Measure blocks of runs until they took a time and are alike, in blocks to which the timer is nothing."""
        with self._threads():
            overhead, number = float(np.median([self._timeit(0) for _ in range(5)])), 1
            while (taken := self._timeit(number)) <= block and (overhead / taken > 1e-4 or taken < block / 1000):
                number *= 10
            found, enough = Measurement(number, [], self._task_spec), False
            while sum(found.raw_times) < least or not enough:
                found.raw_times.append(self._timeit(number))
                if callback is not None:
                    callback(number, found.raw_times[-1])
                enough = threshold is None or (len(found.raw_times) > 3 and found.meets_confidence(threshold))
                if sum(found.raw_times) > most:
                    break
            return found

    def blocked_autorange(self, callback: Callback = None, min_run_time: float = 0.2) -> Measurement:
        """Measure blocks of runs until they took so many seconds."""
        return self._repeated(min_run_time, min_run_time, math.inf, None, callback)

    def adaptive_autorange(
        self,
        threshold: float = 0.1,
        *,
        min_run_time: float = 0.01,
        max_run_time: float = 10.0,
        callback: Callback = None,
    ) -> Measurement:
        """Measure blocks of runs until their interquartile range is under this part of the median."""
        return self._repeated(0.05, min_run_time, max_run_time, threshold, callback)


class Compare:
    """Tables of measurements: one for each label, with a row for each `sub_label`, and a column a `description`."""

    def __init__(self, results: Sequence[Measurement]) -> None:
        self._results: list[Measurement] = []
        self.extend_results(results)
        self._trim = self._warn = False

    def extend_results(self, results: Iterable[Measurement]) -> None:
        """Add measurements."""
        for each in results:
            words = "Expected an instance of `Measurement`, got {} instead."
            require(isinstance(each, Measurement), ValueError, words, type(each))
            self._results.append(each)

    def trim_significant_figures(self) -> None:
        """Show no more digits than mean something."""
        self._trim = True

    def colorize(self, rowwise: bool = False) -> None:
        """Accepted: tables have no colours."""

    def highlight_warnings(self) -> None:
        """Show by how much measurements differ."""
        self._warn = True

    def print(self) -> None:
        """Print the tables."""
        print(self)

    def __str__(self) -> str:
        labels: dict[str | None, list[Measurement]] = {}
        for each in Measurement.merge(self._results):
            labels.setdefault(each.task_spec.label, []).append(each)
        return "\n".join(self._table(label or "", found) for label, found in labels.items())

    def _table(self, label: str, results: list[Measurement]) -> str:
        unit, scale = select_unit(min(each.median for each in results))
        cells = {((m.num_threads, m.env, m.as_row_name), m.description or ""): m for m in results}
        rows = sorted(dict.fromkeys(row for row, _ in cells), key=lambda row: (row[0], row[1] or ""))
        columns = dict.fromkeys(column for _, column in cells)
        several = len({row[1] for row in rows}) > 1
        pairs = list(zip([(), *rows], rows, strict=False))  # of a row and the one above
        shown = [f"({row[1]})" if several and row[:2] != above[:2] else "" for above, row in pairs]
        room = max(map(len, shown)) + 2 if several else 4
        texts = [["", *(f"  {env.ljust(room)}{row[2]}" for env, row in zip(shown, rows, strict=True))]]
        texts += [[each, *self._numbers([cells.get((row, each)) for row in rows], scale)] for each in columns]
        widths = [max(map(len, column)) for column in texts]
        head, *body = zip(*texts, strict=True)
        lines = ["  |  ".join(map(str.center, head, widths))]
        whole = len(lines[0])
        for (above, row), (name, *numbers) in zip(pairs, body, strict=True):
            if above[:1] != row[:1]:
                lines.append(f"{row[0]} threads: ".ljust(whole, "-"))
            lines.append("  |  ".join([name.ljust(widths[0]), *map(str.center, numbers, widths[1:])]))
        spread = "(! XX%) Measurement has high variance, where XX is the IQR / median * 100.\n"
        noted = spread if self._warn and any(each.has_warnings for each in results) else ""
        title = f"[{f' {label} '.center(whole - 2, '-')}]"
        return "\n".join([title, *lines, "", f"Times are in {_WORDS[unit]} ({unit}).", noted])

    def _numbers(self, found: list[Measurement | None], scale: float) -> list[str]:
        """The medians of a column, aligned."""
        there = [each for each in found if each is not None]
        digits = [math.ceil(math.log10(each.median / scale)) for each in there]
        figures = [each.significant_figures for each in there]
        decimals = max(min(map(operator.sub, figures, digits)), 0) if self._trim else 1
        length = max(digits) + decimals + (decimals > 0)
        room = 7 if self._warn and any(each.has_warnings for each in there) else 0

        def text(each: Measurement) -> str:
            value = each.median / scale
            value = trim_sigfig(value, each.significant_figures) if self._trim else value
            spread = f" (! {each.iqr / each.median * 100:.0f}%)" if room and each.has_warnings else ""
            return f"{value:>{length}.{decimals}f}{spread:>{room}}"

        return ["" if each is None else text(each) for each in found]
