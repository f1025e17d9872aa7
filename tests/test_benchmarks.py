"""The benchmarks measure what they say they measure, and say so when a result is wrong or slow."""

from __future__ import annotations

import importlib.util
import json
import shutil
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import tritensor
from benchmarks import compare, import_time, install_size, measure
from benchmarks.cases import CASES, Case
from benchmarks.training import exact_chain, exact_perceptron

SMALL = [case for case in CASES if case.name != "add_10m"]


def test_blocks_are_ours_theirs_theirs_ours() -> None:
    order = []

    def run(name: str, seconds: float) -> Any:
        def timed(number: int) -> float:
            order.append(name)
            return seconds * number

        return timed

    measured = measure.side_by_side(run("a", 2.0), run("b", 0.5), blocks=5, seconds=1.0)
    assert "".join(order).endswith("abba" * 5)
    assert len(measured.ratios) == 5
    assert measured.ours == pytest.approx(2.0)
    assert measured.theirs == pytest.approx(0.5)
    assert measured.ratio == pytest.approx(4.0)
    assert measured.spread == pytest.approx((4.0, 4.0))


def test_a_disturbed_block_moves_the_spread_and_not_the_ratio() -> None:
    measured = measure.Comparison(1.0, 1.0, (1.0, 1.0, 1.0, 1.0, 9.0))
    assert measured.ratio == 1.0
    assert measured.spread == (1.0, 9.0)


@pytest.mark.parametrize("each", [1e-6, 1e-3, 3.0])
def test_executions_fill_the_time(each: float) -> None:
    assert measure.executions(lambda number: each * number, 0.04) == max(1, round(0.04 / each))


def test_what_a_first_execution_costs_does_not_count() -> None:
    seconds = iter([60.0, *[1e-3] * 99])
    assert measure.executions(lambda number: next(seconds) * number, 0.04) == 40


def test_timer_runs_the_statement_with_garbage_collection_on() -> None:
    seen: list[bool] = []
    import gc

    measure.timer("seen.append(gc.isenabled())", {"seen": seen})(3)
    assert seen == [True] * 3
    assert gc.isenabled()


@pytest.mark.parametrize("case", SMALL, ids=lambda case: case.name)
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


def central_difference(function: Any, arrays: dict[str, np.ndarray], name: str) -> np.ndarray:
    gradient = np.zeros(arrays[name].size)
    for i in range(gradient.size):
        values = []
        for step in (1e-6, -1e-6):
            moved = arrays[name].astype(np.float64)
            moved.flat[i] += step
            values.append(function({**arrays, name: moved}))
        gradient[i] = (values[0] - values[1]) / 2e-6
    return gradient.reshape(arrays[name].shape)


def test_exact_chain_is_the_gradient_of_the_chain(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("benchmarks.training.LINKS", 5)
    arrays = {name: np.linspace(-0.8, 0.7, 4) + k / 9 for k, name in enumerate("hwb")}

    def total(values: dict[str, np.ndarray]) -> float:
        state = values["h"]
        for _ in range(5):
            state = np.tanh(state * values["w"] + values["b"])
        return float(state.sum())

    for name, gradient in zip("hwb", exact_chain(arrays), strict=True):
        np.testing.assert_allclose(gradient, central_difference(total, arrays, name), rtol=1e-6, atol=1e-9)


def test_first_exact_step_moves_every_weight_against_its_gradient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("benchmarks.training.STEPS", 1)
    generator = np.random.default_rng(0)
    shapes = {"x": (6, 5), "w0": (4, 5), "b0": (4,), "w1": (3, 4), "b1": (3,), "scores": (6, 3)}
    arrays = {name: generator.standard_normal(shape) for name, shape in shapes.items()}

    def loss(values: dict[str, np.ndarray]) -> float:
        hidden = np.maximum(values["x"] @ values["w0"].T + values["b0"], 0)
        scores = hidden @ values["w1"].T + values["b1"]
        chosen = scores[np.arange(6), values["scores"].argmax(1)]
        return float((np.log(np.exp(scores).sum(1)) - chosen).mean())

    for name, moved in zip(("w0", "b0", "w1", "b1"), exact_perceptron(arrays), strict=True):
        gradient = central_difference(loss, arrays, name)
        # Adam's first step is the learning rate, against the gradient's sign.
        np.testing.assert_allclose(moved, -1e-3 * gradient / (np.abs(gradient) + 1e-8), rtol=1e-4, atol=1e-7)


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


@pytest.mark.peer
def test_host_costs_are_measured_over_a_driver_that_does_nothing(tmp_path: Path) -> None:
    missing = [name for name in ("torch", "triton", "cuda") if importlib.util.find_spec(name) is None]
    if missing or not sys.platform.startswith("linux") or not (shutil.which("cc") or shutil.which("gcc")):
        pytest.skip("needs torch, Triton, cuda-core, Linux and a C compiler")
    path = tmp_path / "host.json"
    words = ["--only", "add_10*", "--seconds", "0.002", "--json", str(path)]
    run = subprocess.run([sys.executable, "-m", "benchmarks.host", *words], capture_output=True, text=True, timeout=300)
    assert run.returncode == 0, run.stderr
    assert "targets met" in run.stdout
    written = json.loads(path.read_text())
    assert written["machine"]["device"] == "a stub of libcuda"
    assert {name: case["speed"]["torch"]["target"] for name, case in written["cases"].items()} == {
        "add_10": 2.0,
        "add_10_grad": 1.5,
    }
    shares = [part["share"] for part in written["parts"].values()]
    assert 0 < min(shares) <= max(shares) < 3  # of a whole call, however disturbed the machine is


def test_import_gate_fails_above_its_limit(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    seconds = {"numpy": 0.100, "tritensor": 0.150}
    monkeypatch.setattr(import_time, "import_seconds", seconds.__getitem__)
    assert import_time.main(["--limit", "60"]) == 0
    assert import_time.main([]) == 0
    assert import_time.main(["--limit", "40"]) == 1
    assert "50 ms more" in capsys.readouterr().out


def test_import_seconds_are_those_of_a_fresh_process() -> None:
    assert 0 < import_time.import_seconds("json") < 10


def test_install_size_counts_every_file(tmp_path: Path) -> None:
    (tmp_path / "pkg" / "deep").mkdir(parents=True)
    (tmp_path / "pkg" / "deep" / "a.so").write_bytes(bytes(1500))
    (tmp_path / "pkg" / "b.py").write_bytes(bytes(500))
    (tmp_path / "other.py").write_bytes(bytes(250))
    assert install_size.megabytes(tmp_path) == pytest.approx({"pkg": 0.002, "other.py": 0.00025})


@pytest.mark.slow
def test_default_install_is_under_80_megabytes(capsys: pytest.CaptureFixture[str]) -> None:
    assert install_size.main(["--limit", "80"]) == 0, capsys.readouterr().out
