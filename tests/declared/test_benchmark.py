"""Times of statements and their tables, beside PyTorch's."""

from __future__ import annotations

import importlib
from typing import Any

import pytest

from tritensor import cuda
from tritensor.utils import benchmark as ours


def tables(lib: Any) -> list[str]:
    found = []
    for threads in (1, 2):
        for position, name in enumerate(("short", "a longer row")):
            for column, description in enumerate(("first", "second")):
                if threads == 2 and position == column == 1:
                    continue
                task = lib.TaskSpec(f"s{position}", "pass", "", "label", name, description, None, threads)
                times = [
                    1.234e-5 * (1 + position * 8) * (1 + column / 3) * (1 + k / (50 if column else 3)) for k in range(5)
                ]
                found.append(lib.Measurement(10, times, task))
    texts = [str(lib.Compare(found))]
    for option in ("trim_significant_figures", "highlight_warnings"):
        table = lib.Compare(found)
        getattr(table, option)()
        texts.append(str(table))
    tasks = [lib.TaskSpec("x + 1", "y = 1"), lib.TaskSpec("x\ny", "a\nb", sub_label="two", num_threads=2)]
    tasks += [
        lib.TaskSpec("x", "pass", label="l", description="d", env="other"),
        lib.TaskSpec("x", "pass", label="l", description="d", env="this"),
    ]
    measured = [lib.Measurement(3, [2e-3 * (k + 1)] * (1 + 4 * k), task) for k, task in enumerate(tasks)]
    texts += [str(lib.Compare(measured[2:]))]
    for each in (*found[:2], *measured, lib.Measurement(1, [1.0, 1.1, 1.2, 1.3], tasks[0])):
        texts += [*repr(each).splitlines()[1:], str(each.significant_figures), str(each.has_warnings)]
    merged = lib.Measurement.merge([measured[0], measured[0]])
    return [*texts, str(merged[0].number_per_run), str(len(merged[0].times)), merged[0].stmt]


@pytest.mark.peer
def test_tables_are_pytorchs() -> None:
    pytest.importorskip("torch")
    theirs = importlib.import_module("torch.utils.benchmark")
    names = importlib.import_module("torch.utils.benchmark.utils.common")
    theirs.TaskSpec = names.TaskSpec  # type: ignore[attr-defined]
    assert tables(ours) == tables(theirs)
    for value in (3.2e-8, 4.5e-6, 0.0123, 0.5, 7.0, 123.4):
        assert ours.select_unit(value) == names.select_unit(value)
        assert ours.trim_sigfig(value, 2) == pytest.approx(names.trim_sigfig(value, 2), rel=1e-6)


def test_timers() -> None:
    now = [0.0]

    def clock() -> float:
        now[0] += 1e-3
        return now[0]

    seen: list[int] = []
    timer = ours.Timer("x = torch.ones(1)\n", globals={"seen": seen}, timer=clock, label="l", sub_label="s")
    assert timer.timeit(3).raw_times == [pytest.approx(1e-3)]
    found = timer.blocked_autorange(min_run_time=1e-4, callback=lambda number, time: seen.append(number))
    assert found.number_per_run == 1 == len(found.raw_times) and seen == [1] and found.title == "l: s"
    adaptive = ours.Timer("seen", globals={"seen": seen}, num_threads=2).adaptive_autorange(1.0, max_run_time=0.2)
    assert len(adaptive.times) >= 1 and adaptive.num_threads == 2 and adaptive.mean > 0
    with cuda.simulate():
        assert ours.Timer("1").adaptive_autorange(1.0, min_run_time=1e-6).number_per_run >= 1
    with pytest.raises(AttributeError, match="nothing"):
        _ = adaptive.nothing
    assert "label" in tables(ours)[0] and ours.timer() > 0
    table = ours.Compare([found])
    table.colorize()
    table.print()


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: ours.Timer(3), "Currently only a `str` stmt is supported"),  # type: ignore[arg-type]
        (lambda: ours.Timer("x", language="cpp"), "Invalid language `cpp`"),
        (lambda: ours.Timer("x", global_setup="y"), "global_setup is C\\+\\+ only"),
        (lambda: ours.Compare([3]), "Expected an instance of `Measurement`"),  # type: ignore[list-item]
    ],
)
def test_refused(make: Any, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        make()
