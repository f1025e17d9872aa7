"""The benchmarks measure what they say they measure, and say so when a result is wrong or slow."""

from __future__ import annotations

import importlib.util
import json
import shutil
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tritensor
from benchmarks import (
    compare,
    gpu,
    gpu_rows,
    gpu_tests,
    import_time,
    install_size,
    laboratory,
    measure,
    regression,
    versions,
)
from benchmarks.cases import Case
from benchmarks.gpu_rows import ROWS, Row, Target
from benchmarks.sides import Side
from benchmarks.training import exact_chain, exact_perceptron

from ..needs import needs_triton


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
        "add_10": 1.2,
        "add_10_grad": 1.1,
    }
    shares = [part["share"] for part in written["parts"].values()]
    assert 0 < min(shares) <= max(shares) < 3  # of a whole call, however disturbed the machine is


def test_import_gate_fails_above_its_limit(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    seconds = {"numpy": 0.100, "tritensor": 0.150, "a first sum": 0.160}
    monkeypatch.setattr(import_time, "import_seconds", seconds.__getitem__)
    assert import_time.main(["--limit", "60"]) == 0
    assert import_time.main([]) == 0
    assert import_time.main(["--limit", "40"]) == 1
    shown = capsys.readouterr().out
    assert "50 ms more" in shown and "60 ms more" in shown and "tritensor.tensors.tensor" in shown


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


# ---- the GPU table --------------------------------------------------------------------------------------------------


def test_rows_have_names_of_their_own_and_every_target_has_its_peer() -> None:
    assert len({row.name for row in ROWS}) == len(ROWS)
    for row in ROWS:
        assert set(row.targets) <= set(row.peers), row.name
        for target in row.targets.values():
            assert (target.goal <= target.gate) if target.below else (target.goal >= target.gate), row.name
        assert set(row.prepares) <= set(row.peers)
        assert set(row.part) in (set(), {"out", *row.case.inputs})


@pytest.mark.parametrize("row", [row for row in ROWS if row.part], ids=lambda row: row.name)
def test_a_part_of_the_result_is_made_of_the_parts_of_the_inputs(row: Row) -> None:
    case = replace(gpu_rows.toy(row).case, inputs=gpu_rows.toy(row).small)
    arrays = case.arrays()
    if case.exact is not None:
        whole = case.exact(arrays)
    else:
        whole = eval(case.numpy if case.numpy != "same" else case.statement, case.namespace(np, arrays))
    part = case.truth({name: array[row.part[name]] for name, array in arrays.items()})
    np.testing.assert_allclose(part, whole[row.part["out"]].reshape(-1), rtol=1e-3, atol=1e-5)


def test_a_ratio_points_the_way_of_its_target() -> None:
    measured = measure.Comparison(2e-6, 1e-6, (2.0, 1.9, 2.1))
    speed = laboratory.judge(measured, Target(0.4, 0.6))
    assert (speed["ratio"], speed["reached"]) == (0.5, "gate")
    assert speed["spread"] == [1 / 2.1, 1 / 1.9]
    assert laboratory.judge(measured, Target(0.6, 0.9))["reached"] == "under"
    below = laboratory.judge(measured, Target(2.0, 1.0, below=True))
    assert (below["ratio"], below["reached"]) == (2.0, "gate")
    share = laboratory.judge(measured, Target(0.95, 0.98), scale=1.96)  # 1.96 times the copy's bytes in twice its time
    assert (share["ratio"], share["reached"]) == (0.98, "goal")
    assert share["theirs_us"] == pytest.approx(1.96)
    assert laboratory.judge(measured, None)["reached"] is None


def test_inputs_that_are_filled_repeat_what_was_drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("benchmarks.sides._DRAWN", 8)
    side = Side("tritensor", tritensor, "cpu")
    for dtype in ("float32", "bfloat16"):
        case = Case("", "", "", {"a": (5, 4), "b": (3,)}, {}, dtype=dtype)
        names = side.filled(case)
        a = side.array(names["a"])
        assert a.shape == (5, 4)
        np.testing.assert_array_equal(a.reshape(-1)[:8], a.reshape(-1)[8:16])
        assert names["b"].dtype is getattr(tritensor, dtype)  # type: ignore[attr-defined]
        assert len(np.unique(a)) > 4


def test_pieces_of_the_optimizer_row_are_all_of_it() -> None:
    for total in (100_000_000, 30_000, 2500):
        sizes = gpu_rows.optimizers.pieces(total)
        assert sum(sizes) == total
        assert min(sizes) > 0
    assert len(gpu_rows.optimizers.pieces(100_000_000)) == 300


def serve_badly(connection: Any, mood: str) -> None:
    """A measuring process that fails in all the ways that one can."""
    if mood == "never":
        connection.send({"error": "no device"})
        return
    connection.send({"facts": {"gpu": "Card"}})
    while True:
        name = connection.recv()
        if name == "dies":
            raise SystemExit(3)
        if name == "hangs":
            time.sleep(60)
        answer = {"error": "RuntimeError: lost", "lost": True} if name == "lost" else {"title": name}
        connection.send({"row": answer, "seconds": 0.1})


@pytest.mark.thorough
def test_rows_go_on_after_one_that_dies_hangs_or_loses_the_device() -> None:
    started = []

    def start() -> gpu.Worker:
        started.append(1)
        return gpu.Worker(serve_badly, "often")

    names = ["a", "dies", "b", "lost", "hangs", "c"]
    steps = list(gpu.supervise(names, start, time.monotonic() + 120, row_seconds=2))
    rows = {name: entry for name, entry in steps if name != "facts"}
    assert list(rows) == names
    assert [rows[name].get("title") for name in "abc"] == ["a", "b", "c"]
    assert "ended with status 3" in rows["dies"]["error"]
    assert "no answer within 2 s" in rows["hangs"]["error"]
    assert len(started) == 4
    late = list(gpu.supervise(names, start, time.monotonic(), row_seconds=2))
    assert [entry["error"] for _, entry in late] == ["not reached in time"] * len(names)
    with pytest.raises(gpu.Lost, match="no device"):
        list(gpu.supervise(names, lambda: gpu.Worker(serve_badly, "never"), time.monotonic() + 60))


def test_what_is_under_its_gate_wrong_or_failed_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    measured = laboratory.judge(measure.Comparison(2e-6, 1e-6, (2.0,)), Target(0.95, 0.98))
    wrong = {"accurate": False, "errors": {"tritensor": 0.5}, "allowed": 1e-2, "nonfinite": False}
    rows = {
        "slow": {
            "title": "slow one",
            "kind": "device",
            "bytes": 8000,
            "operations": 1000,
            "speed": {"torch": measured},
        },
        "off": {"title": "wrong one", "accuracy": wrong, "speed": {}, "alone": {"ours_us": 3.0}},
        "bad": {"title": "bad one", "error": "RuntimeError: it fell over\nlong story"},
    }
    for name, entry in rows.items():
        gpu.print_row(name, entry)
    assert gpu.summary({"rows": rows, "complete": True, "simulated": False}) == 2
    printed = capsys.readouterr().out
    assert "UNDER: slow against torch" in printed
    assert "WRONG, so their speeds do not count: off" in printed
    assert "FAILED: bad" in printed
    assert "WRONG (NaN, inf)" in printed
    assert "it fell over" in printed
    assert "4 GB/s" in printed  # 8000 bytes in 2 us
    assert "0 of 1 gates reached" in printed
    assert gpu.finite({"a": [(1.0, float("nan"))], "b": float("inf")}) == {"a": [[1.0, None]], "b": None}


@needs_triton
def test_the_speed_of_a_wrong_answer_reaches_nothing() -> None:
    row = gpu_rows.toy(next(row for row in ROWS if row.name == "exp_fp32"))
    with tritensor.cuda.simulate():
        room = laboratory.Laboratory(simulated=True)
        room.simulated = False  # else there are no targets
        assert room.measure(row)["speed"]["ceiling"]["reached"] == "under"
        wrong = room.measure(replace(row, statements={"tritensor": "lib.exp(x) * 1.001"}))
    assert not wrong["accuracy"]["accurate"]
    assert wrong["speed"]["ceiling"]["reached"] == "wrong"


def test_rows_are_listed_and_patterns_must_name_one(capsys: pytest.CaptureFixture[str]) -> None:
    assert gpu.main(["--list", "--rows", "copy_*,enqueue_add"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == ["copy_fp32", "copy_bf16", "enqueue_add"]
    assert "ceiling >= 0.95, goal 0.98" in lines[0]
    assert "torch <= 1.3, goal 0.9" in lines[2]
    with pytest.raises(SystemExit):
        gpu.main(["--rows", "nothing"])


def figures_of(rows: dict[str, Any]) -> dict[str, Any]:
    return {"gpu": "A Card", "commit": "c", "date": "d", "rows": rows}


def test_regressions_are_found_and_noise_is_not() -> None:
    def row(ratio: float, low: float, high: float, below: bool = False) -> dict[str, Any]:
        speed = {"ratio": ratio, "spread": [low, high], "below": below}
        return {"speed": {"torch": speed}, "accuracy": {"accurate": True}}

    old = {name: row(1.0, 0.99, 1.01) for name in ("same", "slower", "noisy", "fails", "wrong", "gone")}
    old["host"], old["quicker"] = row(1.0, 0.99, 1.01, below=True), row(1.0, 0.99, 1.01, below=True)
    old["was_broken"] = {"error": "RuntimeError"}
    new = {
        "same": row(0.95, 0.94, 0.96),
        "slower": row(0.85, 0.84, 0.86),
        "noisy": row(0.85, 0.5, 1.2),
        "fails": {"error": "RuntimeError: now"},
        "wrong": {**row(1.0, 0.9, 1.1), "accuracy": {"accurate": False}},
        "host": row(1.2, 1.15, 1.25, below=True),
        "quicker": row(0.7, 0.6, 0.8, below=True),
        "was_broken": row(1, 1, 1),
    }
    found = regression.regressions(figures_of(old), figures_of(new), 0.1)
    assert [line.split(":")[0] for line in found] == ["slower", "fails", "wrong", "host"]


def test_a_gpu_without_stored_figures_fails_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    new, stored = tmp_path / "new.json", tmp_path / "stored.json"
    alone = {"alone": {"ours_us": 10.0}}
    new.write_text(json.dumps(figures_of({"a": alone})))
    assert regression.main([str(new), "--baseline", str(stored)]) == 0
    assert "no figures of A Card are stored" in capsys.readouterr().out
    stored.write_text(json.dumps(figures_of({"a": {"alone": {"ours_us": 5.0}}})))
    assert regression.main([str(new), "--baseline", str(stored)]) == 1
    assert "a: 100% slower" in capsys.readouterr().out
    assert regression.main([str(new), "--baseline", str(new)]) == 0


def compared(*ratios: float, again: float = 1.02) -> measure.Comparison:
    return measure.Comparison(1.0, 1.0, ratios, (), (again,) * len(ratios))


def test_a_row_of_the_cpu_is_slower_only_outside_of_its_own_noise() -> None:
    assert regression.is_slower(1.0, compared(0.9, 1.45, 1.5, 1.5, 1.6), 0.25)  # one block may be disturbed
    assert not regression.is_slower(1.0, compared(1.15, 1.2, 1.2, 1.2, 1.2), 0.25)
    assert not regression.is_slower(1.0, compared(0.9, 0.95, 1.5, 1.5, 1.6), 0.25)
    assert not regression.is_slower(1.0, compared(1.4, 1.5, 1.5, 1.5, 1.6, again=0.6), 0.25)
    assert measure.Comparison(1.0, 1.0, (1.0,) * 3, (), (2.0, 0.8, 1.0)).noise == 1.25


def test_a_row_that_seems_slower_is_measured_again_and_beside_each_peer() -> None:
    stored = {name: {"numpy": 1.0, "torch": 2.0} for name in ("same", "slow", "once", "peer")}
    asked: list[str] = []

    def run(name: str) -> dict[str, measure.Comparison]:
        asked.append(name)
        factor = 1.5 if name == "slow" or (name == "once" and asked.count(name) == 1) else 1.0
        theirs = 3.0 if name == "peer" else 2.0 * factor  # torch has become quicker, NumPy has not
        return {"numpy": compared(*[factor] * 5), "torch": compared(*[theirs] * 5), "unknown": compared(*[9.0] * 5)}

    found = [(turn, name) for turn, name, _, slower in regression.slower_rows(stored, stored, run, 0.25) if slower]
    assert found == [(0, "slow"), (0, "once"), (1, "slow"), (2, "slow")]
    assert asked == ["same", "slow", "once", "peer", "slow", "once", "slow"]


@pytest.mark.thorough
def test_rows_of_the_cpu_are_compared_with_stored_ratios(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    stored, new = tmp_path / "stored.json", tmp_path / "new.json"
    speed = {"numpy": {"ratio": 1000.0}}
    facts = {"date": "d", "commit": "c", "cases": {"add_10": {"speed": speed}}}
    for processor, ratio, status, limit in (("", 1000.0, 0, 25.0), ("", 0.001, 1, 25.0), ("another", 0.001, 1, 100.0)):
        speed["numpy"]["ratio"] = ratio
        machine = {"processor": processor or compare.machine()["processor"]}
        stored.write_text(json.dumps({**facts, "machine": machine}))
        assert regression.main(["--cpu", "--only", "add_*", "--baseline", str(stored), "--json", str(new)]) == status
        written = json.loads(new.read_text())
        assert written["limit"] == limit and len(written["rows"]["add_10"]) == (3 if status else 1)
    assert "add_10" in capsys.readouterr().out.splitlines()[-1]
    for words in ([], ["--cpu", str(new)]):
        with pytest.raises(SystemExit):
            regression.main(words)


@pytest.mark.thorough
def test_the_roofline_is_drawn_from_the_figures(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    from benchmarks import roofline

    speed = laboratory.judge(measure.Comparison(2e-6, 1e-6, (2.0,)), None)
    row = {"kind": "device", "dtype": "bfloat16", "bytes": 100, "operations": 10_000, "speed": {"torch": speed}}
    figures = {
        **figures_of({"matmul_bf16_8192": row, "copy": {**row, "operations": 10}, "bad": {"error": "no"}}),
        "ceiling": {"bytes_per_second": 4e12},
    }
    (point, other) = roofline.points(figures)
    assert (point["intensity"], point["ours"], point["theirs"]) == (100, 5e9, 1e10)
    assert roofline.levels([point, other]) == {"bfloat16": 1e10}
    (tmp_path / "new.json").write_text(json.dumps(figures))
    assert roofline.main([str(tmp_path / "new.json"), str(tmp_path / "out.png")]) == 0
    assert (tmp_path / "out.png").read_bytes()[:4] == b"\x89PNG"


def simulate_the_table(tmp_path: Path, *words: str) -> dict[str, Any]:
    path = tmp_path / "simulated.json"
    command = [sys.executable, "-m", "benchmarks.gpu", "--simulate", "--json", str(path), *words]
    run = subprocess.run(command, capture_output=True, text=True, timeout=400, check=False)
    assert run.returncode == 0, run.stdout + run.stderr
    assert "SIMULATED" in run.stdout
    figures: dict[str, Any] = json.loads(path.read_text())
    assert figures["simulated"]
    assert all("error" not in entry for entry in figures["rows"].values())
    assert all(entry["reached"] is None for row in figures["rows"].values() for entry in row["speed"].values())
    assert not list(laboratory.ROOT.glob("benchmarks/results/*simulated*"))
    return figures


@pytest.mark.thorough
@needs_triton
def test_the_gpu_table_runs_on_a_simulated_device(tmp_path: Path) -> None:
    figures = simulate_the_table(tmp_path, "--no-tests", "--rows", "add_fp32,sum_rows_fp32,enqueue_add,to_host_pinned")
    assert list(figures["rows"]) == ["add_fp32", "sum_rows_fp32", "enqueue_add", "to_host_pinned"]
    assert not figures["complete"]
    assert figures["rows"]["add_fp32"]["speed"]["ceiling"]["ours_us"] > 0
    assert figures["rows"]["add_fp32"]["bytes"] == 3 * 4 * 2500
    assert figures["ceiling"]["bytes_per_second"] > 0


@pytest.mark.slow
@needs_triton
def test_the_whole_gpu_table_runs_on_a_simulated_device(tmp_path: Path) -> None:
    figures = simulate_the_table(tmp_path)
    assert list(figures["rows"]) == [row.name for row in ROWS]
    assert figures["complete"]
    assert figures["tests"]["passed"] > 20
    assert not figures["tests"]["failed"]


@needs_triton
def test_rows_are_compiled_before_they_are_measured() -> None:
    rows = {row.name: gpu_rows.toy(row) for row in ROWS}
    broken = replace(rows["exp_fp32"], case=replace(rows["exp_fp32"].case, statement="x.nothing()"))
    with tritensor.cuda.simulate():
        assert laboratory.warm([rows["add_fp32"], broken, rows["enqueue_add_grad"], rows["start"]]) == ["exp_fp32"]


@pytest.mark.thorough
@needs_triton
def test_a_test_that_fails_is_counted_and_one_that_hangs_is_stopped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def start(job: tuple[str, ...], devices: str, output: Path) -> Any:
        code = "print('tests/test_a.py::test_b[1 2] PASSED [ 1%]\\ntests/test_a.py::test_c FAILED [ 2%]', flush=True)"
        if job[0] == "hangs":
            code += "; import time; time.sleep(60)"
        with output.open("wb") as file:
            return subprocess.Popen([sys.executable, "-c", code], stdout=file)

    monkeypatch.setattr(gpu_tests, "_start", start)
    monkeypatch.setattr(gpu_tests, "_SIMULATED", (("ends",), ("hangs",), ("waits",)))
    log = tmp_path / "tests.log"
    found = gpu_tests.run(True, 3.0, log, [[sys.executable, "-c", "import time; time.sleep(60)"]])
    assert (found["passed"], found["failed"], found["unfinished"]) == (2, 2, 2)
    assert found["failures"] == ["tests/test_a.py::test_c"]
    gpu_tests.report(found, log)
    assert "test_b" in log.read_text()


@pytest.mark.thorough
def test_two_versions_are_timed_beside_each_other(capsys: pytest.CaptureFixture[str]) -> None:
    """This one and itself, with limits that no ratio and every ratio is above."""
    for limit, status, words in (("1000", 0, "no row is slower"), ("0", 1, "1 rows above 0.0: add_10")):
        assert versions.main([str(versions.ROOT), "--only", "add_10", "--limit", limit]) == status
        assert words in capsys.readouterr().out
    with pytest.raises(SystemExit, match="ended at nothing"), versions.versions([versions.ROOT], "cpu") as (only,):
        only.ask("nothing of the kind")
