"""What each row of the GPU table asks of a card stays within the stored budgets."""

from __future__ import annotations

from importlib.metadata import version

import pytest

from benchmarks import budgets
from benchmarks.gpu_rows import ROWS, START

from ..needs import HAS_TRITON, needs_triton

STORED = budgets.stored()
COUNTED = [row for row in ROWS if row.kind != START]
# a second or two each: a stream, a row kernel, two stages, launches of the host's rows
QUICK = ("exp_bf16", "softmax_8192_fp32", "sum_fp32", "enqueue_add_grad")

same_compiler = pytest.mark.skipif(
    not HAS_TRITON or version("triton") != STORED.get("triton"), reason="the budgets are of another Triton"
)


def within_budget(name: str) -> None:
    found = budgets.count(next(row for row in ROWS if row.name == name))
    grown, changed = budgets.differences(STORED["rows"][name], found)
    assert not grown, (
        f"{name}: {'; '.join(grown)}\n(all that changed: {'; '.join(changed)}; python -m benchmarks.budgets)"
    )


@needs_triton
@same_compiler
@pytest.mark.parametrize("name", QUICK)
def test_some_rows_are_within_their_budgets(name: str) -> None:
    within_budget(name)


@pytest.mark.slow
@needs_triton
@same_compiler
@pytest.mark.parametrize("name", [row.name for row in COUNTED if row.name not in QUICK])
def test_rows_are_within_their_budgets(name: str) -> None:
    within_budget(name)


def test_every_row_has_a_budget_and_its_targets() -> None:
    assert list(STORED["rows"]) == [row.name for row in COUNTED]
    for row in COUNTED:
        entry = STORED["rows"][row.name]
        assert "error" not in entry
        assert {peer: entry[peer] for peer in row.targets} == {
            peer: [target.gate, target.goal] for peer, target in row.targets.items()
        }


def test_what_grows_beyond_its_slack_is_told() -> None:
    before = {"launches": 2, "bytes": 1000, "registers": 40, "blocks": 4, "bound": "DRAM"}
    assert budgets.differences(before, before) == ([], [])
    assert budgets.differences(before, {**before, "bytes": 1015}) == ([], ["bytes 1000 -> 1015"])
    assert budgets.differences(before, {**before, "bytes": 1030})[0] == ["bytes 1000 -> 1030"]
    assert budgets.differences(before, {**before, "launches": 3})[0] == ["launches 2 -> 3"]
    assert budgets.differences(before, {**before, "blocks": 3})[0] == ["blocks 4 -> 3"]
    assert budgets.differences(before, {**before, "blocks": 5, "registers": 39})[0] == []
    assert budgets.differences(before, {**before, "copied": 4})[0] == ["copied None -> 4"]


def test_rows_that_fall_short() -> None:
    copy = {"least_us": 100.0, "predicted_us": 102.0, "ceiling": [0.95, 0.98]}
    rows = {
        "copy_fp32": copy,
        "enough": {**copy, "predicted_us": 107.0},
        "slow": {**copy, "predicted_us": 110.0},
        "far": {"least_us": 10.0, "predicted_us": 20.0, "torch": [0.9, 1.0]},
        "host": {"launches": 1, "torch": [1.0, 1.0]},
    }
    assert [name for name, _, _ in budgets.shortfalls(rows)] == ["slow", "far"]


def test_the_page_has_the_rows_that_fall_short() -> None:
    assert budgets.documented(STORED["rows"]) == budgets.PAGE.read_text(encoding="utf-8")
