"""`python -m benchmarks.compare` and `... memory`: their rows, columns and verdicts."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import tritensor
from benchmarks import compare, measure, memory, sizes
from benchmarks.cases import CASES, Case
from benchmarks.native_cases import ALL_CASES
from tritensor.operators import registry
from tritensor.types import dtypes

from ..sampling import some

SMALL = [case for case in ALL_CASES if case.name != "add_10m"]


@pytest.mark.sampled(2)
@pytest.mark.parametrize("case", some(SMALL, 3), ids=lambda case: case.name)
def test_results_are_accurate_and_carry_nan_and_infinity(case: Case) -> None:
    report = compare.accuracy(case, tritensor, {"numpy": np}, "cpu")
    assert report["accurate"], report


def test_a_wrong_result_is_called_wrong() -> None:
    case = next(case for case in CASES if case.name == "exp_1m")
    wrong = SimpleNamespace(from_numpy=tritensor.from_numpy, nn=tritensor.nn, exp=lambda x: tritensor.exp(x) * 1.00001)
    assert not compare.accuracy(case, wrong, {"numpy": np}, "cpu")["accurate"]
    silent = SimpleNamespace(
        from_numpy=tritensor.from_numpy, nn=tritensor.nn, exp=lambda x: tritensor.exp(x).clamp(max=1e30)
    )
    report = compare.accuracy(case, silent, {"numpy": np}, "cpu")
    assert not report["nonfinite"]
    assert not report["accurate"]


@pytest.mark.thorough
def test_compare_prints_the_row_and_writes_the_figures(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "results" / "cpu.json"
    assert compare.main(["--device", "cpu", "--only", "add_10", "--json", str(path)]) == 0
    printed = capsys.readouterr().out
    assert "a + b, 10 elements" in printed
    assert "targets met" in printed
    written = json.loads(path.read_text())
    assert set(written) == {"date", "commit", "machine", "versions", "threads", "cases"}
    entry = written["cases"]["add_10"]["speed"]["numpy"]
    assert entry["target"] == 2.2
    assert entry["met"] == (entry["ratio"] <= 2.2)
    assert len(entry["spread"]) == 2


@pytest.mark.thorough
def test_each_column_is_measured_with_its_threads() -> None:
    """Both libraries with one thread, or both with all of them."""
    seen: list[tuple[str, int]] = []

    def library(name: str) -> Any:
        def draw() -> None:
            seen.append((name, numbers[name]))

        return SimpleNamespace(draw=draw, nn=None, set_num_threads=lambda number: numbers.update({name: number}))

    numbers = {"ours": 5, "theirs": 5}
    ours, theirs = library("ours"), library("theirs")
    case = Case("", "", "lib.draw()", {}, {"torch_all": 2.0}, numpy=None)
    rows = compare.speed(case, ours, {"numpy": np, "torch": theirs, "torch_all": theirs}, 3)
    assert list(rows) == ["torch", "torch_all"]
    assert (rows["torch"]["target"], rows["torch_all"]["target"]) == (None, 2.0)
    alone = [number for _, number in seen[: len(seen) - seen[::-1].index(("ours", 1))]]
    assert set(alone) == {1} and {number for _, number in seen[-100:]} == {3}


def test_all_threads_are_those_of_a_user() -> None:
    """The benchmarks' own import sets no limit."""
    environment = {key: value for key, value in os.environ.items() if not key.endswith("_NUM_THREADS")}
    found = [
        subprocess.run(
            [sys.executable, "-c", f"import {package}; import tritensor; print(tritensor.get_num_threads())"],
            capture_output=True,
            check=True,
            env=environment,
        ).stdout
        for package in ("tritensor", "benchmarks.compare, benchmarks.memory")
    ]
    assert found[0] == found[1]


def test_every_target_has_its_column() -> None:
    assert len({case.name for case in CASES}) == len(CASES)
    for case in CASES:
        assert set(case.targets) <= {"numpy", "torch", "torch_all"} - ({"numpy"} if case.numpy is None else set())


def test_what_falls_short_or_is_wrong_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    def entry(ratio: float, target: float | None) -> dict[str, Any]:
        return compare.row(measure.Comparison(ratio, 1.0, (ratio,)), target)

    accurate = {"accurate": True, "errors": {"tritensor": 0.0}, "allowed": 1.0}
    results = {
        "slow": {"speed": {"numpy": entry(2.0, 1.0), "torch": entry(9.0, None)}, "accuracy": accurate},
        "off": {"speed": {"numpy": entry(1.0, 1.0)}, "accuracy": {**accurate, "accurate": False}},
    }
    for name, result in results.items():
        compare.print_row(name, result["speed"], ["numpy", "torch"], result["accuracy"])
    assert compare.summary(results) == 1
    printed = capsys.readouterr().out
    assert printed.count("SHORT") == 2  # in the row, and in the summary
    assert "SHORT: slow against numpy" in printed
    assert printed.count("WRONG") == 2
    assert "1 of 2 targets met" in printed


def test_a_pattern_that_names_no_case_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        compare.main(["--only", "nothing_*"])
    assert "add_10" in capsys.readouterr().err


@pytest.mark.parametrize("name", sizes.OPERATORS)
def test_operators_are_accurate_at_each_end_of_their_sizes(name: str) -> None:
    for side in (sizes.SIDES[0], 64):
        assert compare.accuracy(sizes.case(name, side), tritensor, {"numpy": np}, "cpu")["accurate"]


def test_the_stored_sizes_are_those_of_the_operators() -> None:
    stored = json.loads((compare.RESULTS / "sizes.json").read_text(encoding="utf-8"))
    assert {name: case["title"] for name, case in stored["cases"].items()} == {
        name: title for name, (title, *_) in sizes.OPERATORS.items()
    }
    for name, case in stored["cases"].items():
        assert [int(count) for count in case["sizes"]] == [side * side for side in sizes.sizes_of(name)]
    for title, each in sizes.by_thread(stored):
        assert set(each) == {"tritensor", "PyTorch"} and " M" in title


# ---- memory ---------------------------------------------------------------------------------------------------------

# Operators that take their results and some blocks, by dtype.
WITHIN_BLOCKS = {
    "float32": "add mul exp tanh copy neg sum amax mean argmax softmax log_softmax layer_norm rms_norm matmul cat "
    "absolute_error all any count_nonzero cross_entropy elu erf erfc frac gelu gelu_gradient leaky_relu lerp logsumexp "
    "norm pow relu_gradient rsqrt sgn softplus squared_error std tanh_gradient trunc_divide var where",
    "bfloat16": "add exp copy gelu sum amax softmax layer_norm cross_entropy where",
}


@pytest.mark.sampled(3)
@pytest.mark.usefixtures("few_threads")
@pytest.mark.parametrize(
    ("dtype", "name"), [(dtype, name) for dtype, names in WITHIN_BLOCKS.items() for name in names.split()]
)
def test_an_operator_takes_its_result_and_some_blocks(dtype: str, name: str) -> None:
    forward, _ = memory.operator_memory(registry[name], getattr(dtypes, dtype), megabytes=32)
    assert forward.beside <= memory.LIMIT << 20, forward


def test_memory_beside_inputs_and_results_is_measured() -> None:
    x = tritensor.ones(1 << 20)
    found = memory.measure(lambda: (x * 2).sin(), [x])
    assert found.result == 4 << 20
    assert found.beside == pytest.approx(4 << 20, rel=0.01)
    assert found.ratio == pytest.approx(2, rel=0.01)
    assert memory.measure(lambda: x.view(1024, 1024), [x]).result == 0


def test_what_needs_more_memory_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    assert memory.main(["--only", "std", "--megabytes", "4", "--limit", "64"]) == 0
    assert "std, backward" in capsys.readouterr().out
    assert memory.main(["--only", "std", "--megabytes", "4", "--limit", "0"]) == 1
    assert "OVER: std" in capsys.readouterr().out
    with pytest.raises(SystemExit):
        memory.main(["--only", "nothing"])
