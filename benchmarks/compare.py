"""tritensor beside NumPy and torch, case by case: one thread each, and beside torch on all threads too.

Where native code is installed (`tritensor[native]`) it is used, with targets of its own, and a column has the time
beside that of the same statement without it, one thread each.

    python -m benchmarks.compare --device cpu [--only 'add_*'] [--json PATH]

Both libraries run in this process on the same inputs, in blocks of A B B A; a row gives the median of ours/theirs over
the blocks, its spread, and the target. A ratio above its target is marked SHORT. Beside each speed is the error against
float64, which must not be above 1.5 times torch's. All threads are as many as tritensor uses by default, for both
libraries. A whole run writes benchmarks/results/cpu.json, or cpu-native.json.
"""

from __future__ import annotations

import argparse
import fnmatch
import importlib
import importlib.util
import json
import os
import platform
import shutil
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np

import benchmarks
from benchmarks.cases import ALL_THREADS, CASES, Case
from benchmarks.import_time import take_turns
from benchmarks.measure import Comparison, side_by_side, timer
from benchmarks.native_cases import ALL_CASES, with_native

RESULTS = Path(benchmarks.__file__).parent / "results"
IMPORT_OVER_NUMPY = 0.040  # seconds that `import tritensor` may take on top of NumPy's own
IMPORT_OF_TORCH = 0.15
WITHOUT_NATIVE = "without_native"  # the peer tritensor without native code


def relative_error(result: np.ndarray, truth: np.ndarray) -> float:
    """The Frobenius norm of the difference over that of the truth."""
    return float(np.linalg.norm(result - truth) / np.linalg.norm(truth))


def accuracy(case: Case, ours: ModuleType, peers: dict[str, ModuleType], device: str) -> dict[str, Any]:
    """Errors against float64 of ours and of the peers, and whether ours is within the limit; see `judged`."""
    answers: dict[str, Answer] = {"tritensor": lambda arrays: case.answer(ours, arrays, device)}
    for name, peer in peers.items():
        if name not in (ALL_THREADS, WITHOUT_NATIVE) and case.statement_for(peer) is not None:
            answers[name] = partial(case.answer, peer)
    return judged(case, answers)


Answer = Callable[[dict[str, np.ndarray]], np.ndarray]  # from inputs to what a library makes of them, flattened


def judged(case: Case, answers: Mapping[str, Answer]) -> dict[str, Any]:
    """Errors against float64, by library, and whether tritensor's is within the limit.

    In float32 the limit is derived from torch's error, or from NumPy's if torch is missing; if neither has the case it
    is 1e-5. In half precision it is 1e-2.
    """
    arrays = case.arrays()
    truth = case.truth(arrays)
    errors = {name: relative_error(answer(arrays), truth) for name, answer in answers.items()}
    report: dict[str, Any] = verdict(case, errors)
    if case.nonfinite:
        arrays = case.arrays(nonfinite=True)
        result, truth = answers["tritensor"](arrays), case.truth(arrays)
        same = np.array_equal(np.isnan(result), np.isnan(truth)) and np.array_equal(
            result[np.isinf(truth)], truth[np.isinf(truth)]
        )
        report["nonfinite"] = same
        report["accurate"] = report["accurate"] and same
    return report


def verdict(case: Case, errors: dict[str, float]) -> dict[str, Any]:
    """The errors, the limit, and whether tritensor's error is within it."""
    torch = [error for name, error in errors.items() if name.startswith("torch")]
    held_against = min(torch) if torch else errors.get("numpy", 1e-5 / 1.5)
    allowed = max(1.5 * held_against, case.rounding) if case.dtype == "float32" else 1e-2
    return {"errors": errors, "allowed": allowed, "accurate": errors["tritensor"] <= allowed}


def speed(case: Case, ours: ModuleType, peers: dict[str, ModuleType], every: int = 1) -> dict[str, Any]:
    """Comparisons by peer, as plain numbers; that of `ALL_THREADS` is on `every` thread."""
    arrays = case.arrays()
    rows = {}
    for name, peer in peers.items():
        statement = case.statement_for(peer)
        if statement is None:
            continue
        for library in (ours, peer):
            if library is not np:  # whose BLAS follows ours
                library.set_num_threads(every if name == ALL_THREADS else 1)
        run = timer(case.statement, case.namespace(ours, arrays))
        theirs = timer(statement, case.namespace(peer, arrays))
        if WITHOUT_NATIVE in peers:
            run = with_setting("", run)
            if name == WITHOUT_NATIVE:
                theirs = with_setting("0", theirs)
        measured = side_by_side(run, theirs, pause=0.02 if name == ALL_THREADS else 0.0)
        rows[name] = row(measured, case.targets.get(name))
    return rows


def with_setting(native: str, run: Callable[[int], float]) -> Callable[[int], float]:
    """Let a statement run with a value of `settings.native_cpu`, after calls in which its native code is made."""
    from tritensor import settings
    from tritensor.runtime import native_replay

    def timed(number: int) -> float:
        if settings.native_cpu.value != native:
            settings.native_cpu.value = native
            run(60 if number > 60 else 1)  # small calls are made quick after some 50
            for _ in range(3):
                run(2)
                made = threading.Event()
                native_replay._worker.offer(SimpleNamespace(make=made.set))
                made.wait()
        return run(number)

    return timed


def row(measured: Comparison, target: float | None) -> dict[str, Any]:
    return {
        "ours_us": measured.ours * 1e6,
        "theirs_us": measured.theirs * 1e6,
        "ratio": measured.ratio,
        "spread": measured.spread,
        "target": target,
        "met": None if target is None else measured.ratio <= target,
    }


def import_row(peers: dict[str, ModuleType]) -> dict[str, Any]:
    """Import times in the format of a case's row."""
    times = take_turns(["tritensor", *peers])
    ours = statistics.median(times["tritensor"])
    rows = {}
    for name in peers:
        ratios = [a / b for a, b in zip(times["tritensor"], times[name], strict=True)]
        measured = Comparison(ours, statistics.median(times[name]), tuple(ratios))
        target = 1 + IMPORT_OVER_NUMPY / measured.theirs if name == "numpy" else IMPORT_OF_TORCH
        rows[name] = row(measured, target)
    return rows


def machine() -> dict[str, Any]:
    """The machine that the figures were measured on."""
    model = platform.processor() or platform.machine()
    if os.path.exists("/proc/cpuinfo"):
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        model = next((line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")), model)
    return {"processor": model, "cores": os.cpu_count(), "system": f"{platform.system()} {platform.machine()}"}


def load() -> float | None:
    """How many processes were ready to run over the last minute, if the system reports it."""
    return round(os.getloadavg()[0], 2) if hasattr(os, "getloadavg") else None


def commit() -> str:
    """The commit measured, with `+changes` where the working tree differs from it."""
    folder = Path(benchmarks.__file__).parent

    if shutil.which("git") is None:
        return "unknown"

    def git(*words: str) -> str:
        return subprocess.run(["git", *words], cwd=folder, capture_output=True, text=True, check=False).stdout.strip()

    head = git("rev-parse", "HEAD") or "unknown"
    return head + ("+changes" if git("status", "--porcelain", "--", ":/tritensor") else "")


def duration(microseconds: float) -> str:
    """Three digits and a unit."""
    for unit, size in (("us", 1), ("ms", 1e3), ("s", 1e6)):
        if microseconds < 1000 * size or unit == "s":
            break
    return f"{microseconds / size:.3g} {unit}"


def print_heading(peers: list[str], checked: bool = True) -> None:
    note = "; the error is against float64" if checked else ""
    print(f"ratios are ours/theirs, median and spread over blocks of A B B A{note}\n")
    columns = "".join(
        f"{'ours, all':>12}" * (name == ALL_THREADS)
        + f"{name.partition('_')[0]:>10}{'ratio':>7}  {'spread':<13}{'target':<14}"
        for name in peers
    )
    print(f"{'case':<48}{'ours':>9}{columns}" + "   error" * checked)


def print_row(title: str, rows: dict[str, Any], peers: list[str], checked: dict[str, Any] | None) -> None:
    cells = [f"{title:<48}{duration(next(iter(rows.values()))['ours_us']):>9}"]
    for name in peers:
        if name not in rows:
            cells.append(" " * (58 if name == ALL_THREADS else 46))
            continue
        entry = rows[name]
        if name == ALL_THREADS:
            cells.append(f"{duration(entry['ours_us']):>12}")
        spread = "{:.2f} to {:.2f}".format(*entry["spread"])
        goal = "" if entry["target"] is None else f"<= {entry['target']:.2f}"
        verdict = {None: "", True: "ok", False: "SHORT"}[entry["met"]]
        cells.append(f"{duration(entry['theirs_us']):>10}{entry['ratio']:>7.2f}  {spread:<13}{goal:<8}{verdict:<6}")
    if checked:
        verdict = "ok" if checked["accurate"] else "WRONG"
        cells.append(f"{checked['errors']['tritensor']:>8.1e} <= {checked['allowed']:.1e} {verdict}")
    print("".join(cells).rstrip(), flush=True)


def summary(results: dict[str, Any]) -> int:
    """Print what missed its target; returns the number of results that are not accurate."""
    judged = [
        (name, peer, entry)
        for name, result in results.items()
        for peer, entry in result["speed"].items()
        if entry["met"] is not None
    ]
    short = [f"{name} against {peer}" for name, peer, entry in judged if not entry["met"]]
    wrong = [name for name, result in results.items() if not result.get("accuracy", {}).get("accurate", True)]
    print(f"\n{len(judged) - len(short)} of {len(judged)} targets met")
    if short:
        print(f"SHORT: {', '.join(short)}")
    if wrong:
        print(f"WRONG, so their speeds do not count: {', '.join(wrong)}")
    return len(wrong)


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", choices=("cpu",), default="cpu")
    parser.add_argument("--only", default="*", metavar="PATTERN", help="cases by name, as in 'add_*'; writes no JSON")
    parser.add_argument("--json", type=Path, metavar="PATH", help="where to write the figures")
    options = parser.parse_args(arguments)
    native = importlib.import_module("tritensor.backends.native")
    cases = [with_native(case) for case in ALL_CASES] if native.is_available() else [*CASES]
    cases = [case for case in cases if fnmatch.fnmatch(case.name, options.only)]
    with_import = fnmatch.fnmatch("import", options.only)
    if not cases and not with_import:
        parser.error(f"--only {options.only!r} names none of: {', '.join([*(c.name for c in CASES), 'import'])}")

    ours = importlib.import_module("tritensor")
    peers: dict[str, ModuleType] = {"numpy": np}
    if importlib.util.find_spec("torch") is not None:
        peers["torch"] = importlib.import_module("torch")
    versions = {name: module.__version__ for name, module in {"tritensor": ours, **peers}.items()}
    every: int = ours.get_num_threads()
    print(f"Python {platform.python_version()}, {', '.join(map(' '.join, versions.items()))}, one thread each", end="")
    alone = dict(peers)
    if native.is_available():
        peers[WITHOUT_NATIVE] = ours
    if "torch" in peers:
        peers[ALL_THREADS] = peers["torch"]
        print(f"; the last columns: {every} threads each", end="")
    print()
    load_before = load()
    if load_before is not None and load_before > 0.5:
        print(f"the machine is busy (load {load_before}): expect wide spreads, and do not publish these figures")
    print_heading(list(peers))

    results: dict[str, Any] = {}
    for case in cases:
        rows, checked = speed(case, ours, peers, every), accuracy(case, ours, peers, options.device)
        if not rows:
            continue
        results[case.name] = {"title": case.title, "speed": rows, "accuracy": checked}
        print_row(case.title, rows, list(peers), checked)
    if with_import:
        results["import"] = {"title": "import", "speed": import_row(alone)}
        print_row("import", results["import"]["speed"], list(peers), None)
    for library in {ours, *peers.values()} - {np}:
        library.set_num_threads(every)
    wrong = summary(results)

    kind = f"{options.device}-native" if native.is_available() else options.device
    path = options.json or (RESULTS / f"{kind}.json" if options.only == "*" else None)
    if path is not None:
        facts = {
            "date": time.strftime("%Y-%m-%d"),
            "commit": commit(),
            "machine": {**machine(), "load_before": load_before},
            "versions": {"python": platform.python_version(), **versions},
            "threads": {name: every if name == ALL_THREADS else 1 for name in peers},
        }
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps({**facts, "cases": results}, indent=1) + "\n")
        print(f"wrote {path}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
