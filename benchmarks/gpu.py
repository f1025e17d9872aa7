"""Everything that is measured on a GPU, in one command: its tests, then the table, side by side with torch and CuPy.

    python -m benchmarks.gpu [--minutes 9] [--rows 'matmul_*'] [--json PATH] [--list]
    python -m benchmarks.gpu --simulate     # the same at toy sizes on a simulated device: does this program work?
    python -m benchmarks.gpu --emulate      # toy sizes by the real driver's calls, on a libcuda that runs PTX in NumPy

Rows are timed in blocks of A B B A, at least five: device time by events over 20 ms of work or more, kernels under
50 us from a graph, the host's time over 10,000 calls; the ratio is the median, beside its spread. The copy ceiling is
measured in every run, in turn with each row that is compared with it. Beside each speed is the error against float64:
of a small problem, with NaN and infinities too, and of a part of the measured one. A ratio is theirs/ours, so more is
better, unless the target says `<=`.

Figures are written after each row, to benchmarks/results/NAME-OF-THE-GPU.json with a roofline beside it when the whole
table is measured. A row that raises, hangs or loses the device is reported and the others are still measured.
"""

from __future__ import annotations

import argparse
import fnmatch
import importlib.util
import json
import math
import multiprocessing
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from benchmarks import gpu_tests, laboratory
from benchmarks.compare import RESULTS, commit, duration, load
from benchmarks.gpu_rows import ROWS

__all__ = ["main", "print_row", "slug", "supervise"]

ROW_SECONDS = 90  # that a row may take, compilations included
COMPILERS = 4  # processes that compile kernels beside the tests
START_SECONDS = 180  # that the measuring process may take until it answers
TESTS_SHARE = 0.32  # of the time, for the tests


def slug(gpu: str) -> str:
    """A device's name as a file name.

    >>> slug("NVIDIA H200")
    'nvidia-h200'
    """
    return re.sub(r"[^a-z0-9]+", "-", gpu.lower()).strip("-")


# ---- the measuring process ------------------------------------------------------------------------------------------


class Lost(Exception):
    """The measuring process has ended, or does not answer."""


class Worker:
    """A process that runs `serve`, and answers one question after the other."""

    def __init__(self, serve: Callable[..., None], *arguments: Any) -> None:
        context = multiprocessing.get_context("spawn")
        self._connection, theirs = context.Pipe()
        self._process = context.Process(target=serve, args=(theirs, *arguments), daemon=True)
        self._process.start()
        theirs.close()  # so that reading ends when the process ends

    def answer(self, seconds: float) -> dict[str, Any]:
        """The process's next answer.

        Raises:
            Lost: it ended, or did not answer in time.
        """
        try:
            if self._connection.poll(max(seconds, 0)):
                return dict(self._connection.recv())
        except (EOFError, ConnectionError):
            self._process.join(10)
            raise Lost(f"the measuring process ended with status {self._process.exitcode}") from None
        raise Lost(f"no answer within {seconds:.0f} s")

    def ask(self, question: Any, seconds: float) -> dict[str, Any]:
        """The answer to a question; raises `Lost` as `answer` does."""
        try:
            self._connection.send(question)
        except (OSError, ValueError):
            raise Lost("the measuring process is gone") from None
        return self.answer(seconds)

    def stop(self) -> None:
        """End the process, whatever it is doing."""
        self._process.kill()
        self._process.join()
        self._connection.close()


def supervise(
    names: list[str], start: Callable[[], Worker], deadline: float, row_seconds: float = ROW_SECONDS
) -> Iterator[tuple[str, dict[str, Any]]]:
    """Request one row after the other, in a new process after each that is lost.

    Yields ("facts", facts) each time that a process has started, (name, figures) for each row, with an "error" for one
    that failed, and ends at the deadline (of `time.monotonic`).

    Raises:
        Lost: a process does not start.
    """
    worker: Worker | None = None
    try:
        for name in names:
            if time.monotonic() > deadline - 2:
                yield name, {"error": "not reached in time"}
                continue
            if worker is None:
                worker = start()
                first = worker.answer(min(START_SECONDS, deadline - time.monotonic()))
                if "error" in first:
                    raise Lost(first["error"])
                yield "facts", first["facts"]
            try:
                reply = worker.ask(name, min(row_seconds, deadline - time.monotonic()))
                entry = {**reply["row"], "seconds": reply["seconds"]}
            except Lost as error:
                entry = {"error": str(error), "lost": True}
            yield name, entry
            if entry.get("lost"):
                worker.stop()
                worker = None
    finally:
        if worker is not None:
            worker.stop()


# ---- what is printed ------------------------------------------------------------------------------------------------


def rate(entry: dict[str, Any]) -> str:
    """The measured time as bytes per second, or as operations per second if there are more than 20 for each byte."""
    times = [each["ours_us"] for each in entry.get("speed", {}).values() if "ours_us" in each]
    times += [entry["alone"]["ours_us"]] if "alone" in entry else []
    if not times or entry.get("kind") not in ("device", "transfer"):
        return ""
    seconds = min(times) * 1e-6
    if entry["operations"] > 20 * entry["bytes"]:
        return f"{entry['operations'] / seconds / 1e12:.0f} TFLOP/s"
    return f"{entry['bytes'] / seconds / 1e9:.0f} GB/s"


def print_heading() -> None:
    print(
        f"\n{'case':<50}{'ours':>9}  {'against':<15}{'theirs':>9}{'ratio':>7}  {'spread':<14}{'gate':<8}{'goal':<6}"
        f"{'':<7}{'rate':<13}error"
    )


def print_row(name: str, entry: dict[str, Any]) -> None:
    """A row of the table: a line for each peer."""
    title = entry.get("title", name)
    if "error" in entry:
        print(f"{title:<50}  FAILED: {entry['error'].splitlines()[0][:160]}", flush=True)
        return
    checked = entry.get("accuracy")
    error = ""
    if checked:
        error = f"{max(checked['errors']['tritensor'], _part_error(checked)):.1e}"
        error += " ok" if checked["accurate"] else f" WRONG{'' if checked.get('nonfinite', True) else ' (NaN, inf)'}"
    tail = f"{rate(entry):<13}{error}"
    lines = entry.get("speed", {})
    if not any("ours_us" in each for each in lines.values()):
        ours = duration(entry["alone"]["ours_us"]) if "alone" in entry else ""
        print(f"{title:<50}{ours:>9}{'':74}{tail}".rstrip(), flush=True)
        title = tail = ""
    for peer, each in lines.items():
        if "error" in each:
            print(f"{title:<59}  {peer:<15}{each['error'].splitlines()[0][:100]}", flush=True)
            continue
        sign = "<=" if each["below"] else ">="
        gate = "" if each["gate"] is None else f"{sign} {each['gate']:.2f}"
        goal = "" if each["goal"] is None else f"{each['goal']:.2f}"
        spread = "{:.2f} to {:.2f}".format(*each["spread"])
        reached = {None: "", "wrong": "WRONG", "under": "UNDER", "gate": "gate", "goal": "goal"}[each["reached"]]
        print(
            f"{title:<50}{duration(each['ours_us']):>9}  {peer:<15}{duration(each['theirs_us']):>9}"
            f"{each['ratio']:>7.2f}  {spread:<14}{gate:<8}{goal:<6}{reached:<7}{tail}".rstrip(),
            flush=True,
        )
        title = tail = ""


def _part_error(checked: dict[str, Any]) -> float:
    return float(checked["part"]["errors"]["tritensor"]) if "part" in checked else 0.0


def summary(figures: dict[str, Any]) -> int:
    """Print what is under its gate, wrong, failed or missing; returns the number of rows that are wrong or failed."""
    rows = figures["rows"]
    judged = [
        (name, peer, each["reached"])
        for name, entry in rows.items()
        for peer, each in entry.get("speed", {}).items()
        if each.get("reached")
    ]
    under = [f"{name} against {peer}" for name, peer, reached in judged if reached == "under"]
    gates, goals = (sum(reached in these for _, _, reached in judged) for these in (("gate", "goal"), ("goal",)))
    wrong = [name for name, entry in rows.items() if not entry.get("accuracy", {}).get("accurate", True)]
    failed = [name for name, entry in rows.items() if "error" in entry]
    if figures["simulated"]:
        how = "EMULATED" if figures.get("emulated") else "SIMULATED"
        print(f"\n{how}: {len(rows)} rows ran, and no speed was measured")
    else:
        print(
            f"\n{gates} of {len(judged)} gates reached, {goals} goals; {len(rows)} rows"
            f"{'' if figures['complete'] else ' (not all were measured)'}"
        )
    for label, names in (("UNDER", under), ("WRONG, so their speeds do not count", wrong), ("FAILED", failed)):
        if names:
            print(f"{label}: {', '.join(names)}")
    return len(wrong) + len(failed)


def finite(value: Any) -> Any:
    """The same with None in place of NaN and infinities, which JSON does not have."""
    if isinstance(value, dict):
        return {key: finite(each) for key, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [finite(each) for each in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def write(path: Path, figures: dict[str, Any]) -> None:
    """Replace the file in one step, so that it is complete whenever this program is stopped."""
    path.parent.mkdir(parents=True, exist_ok=True)
    unfinished = path.with_name(path.name + ".new")
    unfinished.write_text(json.dumps(finite(figures), indent=1, allow_nan=False) + "\n", encoding="utf-8")
    os.replace(unfinished, path)


# ---- the command ----------------------------------------------------------------------------------------------------


def parse(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, help="that all of it may take (default 9, emulated 60)")
    parser.add_argument("--rows", default="*", metavar="PATTERN", help="rows by name, as in 'matmul_*,copy_*'")
    parser.add_argument("--list", action="store_true", help="print the rows' names and targets, and stop")
    parser.add_argument("--json", type=Path, metavar="PATH", help="where to write the figures")
    parser.add_argument(
        "--simulate", action="store_true", help="toy sizes on a simulated device; no figures come of it"
    )
    parser.add_argument(
        "--emulate", action="store_true", help="toy sizes on an emulated one: cuda-core and PTX are real"
    )
    parser.add_argument("--no-tests", action="store_true", help="leave the tests out")
    parser.add_argument("--commit", help="what is measured, where git cannot say so")
    options = parser.parse_args(arguments)
    patterns = options.rows.split(",")
    options.toy = options.simulate or options.emulate
    options.minutes = options.minutes or (60.0 if options.emulate else 9.0)
    options.chosen = [row for row in ROWS if any(fnmatch.fnmatch(row.name, pattern) for pattern in patterns)]
    if not options.chosen:
        parser.error(f"--rows {options.rows!r} names none of: {', '.join(row.name for row in ROWS)}")
    return options


def print_list(rows: list[Any]) -> None:
    for row in rows:
        targets = [
            f"{peer} {'<=' if target.below else '>='} {target.gate:g}, goal {target.goal:g}"
            for peer, target in row.targets.items()
        ]
        print(f"{row.name:<28}{row.case.title:<52}{'; '.join(targets) or 'no target'}")


def emulate(arguments: list[str]) -> int:
    """Run this program in a process, and the tests in processes of that, whose libcuda runs kernels on the host."""
    from tests.devices import libcuda_stub

    with tempfile.TemporaryDirectory() as folder:
        # few multiprocessors, as simulated devices have: kernels that divide work among them run their loops
        variables = {"STUB_MULTIPROCESSORS": "4", "STUB_FORGIVES": "1"}
        environment = libcuda_stub.environment(Path(folder), libcuda_stub.EMULATED, **variables)
        return subprocess.call([sys.executable, "-m", "benchmarks.gpu", *arguments], env=environment)


def main(arguments: list[str] | None = None) -> int:
    options = parse(arguments)
    if options.list:
        print_list(options.chosen)
        return 0
    if options.emulate and "STUB_DEVICES" not in os.environ:
        return emulate(sys.argv[1:] if arguments is None else arguments)
    begin = time.monotonic()
    deadline = begin + 60 * options.minutes
    # Settings in the environment must not change what is measured.
    os.environ["TRITENSOR_SIMULATE_CUDA"] = "1" if options.simulate else "0"
    whole = options.rows == "*"
    figures: dict[str, Any] = {
        "date": time.strftime("%Y-%m-%d"),
        "commit": options.commit or commit(),
        "simulated": options.toy,
        "emulated": options.emulate,
        "load_before": load(),
        "complete": False,
        "rows": {},
    }
    if options.simulate:
        print("SIMULATED: toy sizes in an interpreter. Nothing here says how fast anything is.")
    if options.emulate:
        print("EMULATED: toy sizes, compiled kernels run in NumPy. Nothing here says how fast anything is.")
    path: Path | None = options.json
    if path is None and options.toy:
        path = Path(tempfile.mkdtemp(prefix="tritensor-benchmark-")) / "simulated.json"
    names = [row.name for row in options.chosen]
    seconds = TESTS_SHARE * 60 * options.minutes
    # Kernels are compiled by several processes, beside the tests, before anything is timed.
    compiling = (
        []
        if options.toy
        else [
            [sys.executable, "-m", "benchmarks.laboratory", f"{part}/{COMPILERS}", *names] for part in range(COMPILERS)
        ]
    )
    if not options.no_tests:
        folder = Path(tempfile.mkdtemp(prefix="tritensor-tests-")) if path is None else path.parent
        log = folder / "gpu-tests.log"
        figures["tests"] = gpu_tests.run(options.simulate, seconds, log, compiling, options.emulate)
        gpu_tests.report(figures["tests"], log)
    elif compiling:
        gpu_tests.run_all(compiling, seconds)

    print_heading()
    row_seconds = ROW_SECONDS * (5 if options.emulate else 1)
    try:
        steps = supervise(names, lambda: Worker(laboratory.serve, options.toy, options.emulate), deadline, row_seconds)
        for name, entry in steps:
            if name == "facts":
                figures.update(entry)
                print(
                    f"-- {entry['gpu']}, copy ceiling {entry['ceiling']['bytes_per_second'] / 1e12:.2f} TB/s, "
                    + ", ".join(map(" ".join, entry["versions"].items())),
                    flush=True,
                )
                if path is None and whole and not options.toy:
                    path = RESULTS / f"{slug(entry['gpu'])}.json"
            else:
                figures["rows"][name] = entry
                print_row(name, entry)
            figures["seconds"] = round(time.monotonic() - begin, 1)
            if path is not None:
                write(path, figures)
    except Lost as error:
        print(f"nothing can be measured: {error}\n(python -m tritensor doctor says what is missing)")
        return 2
    left_out = [entry for entry in figures["rows"].values() if "not reached" in entry.get("error", "")]
    figures["complete"] = whole and not left_out
    bad = summary(figures)
    if path is not None:
        write(path, figures)
        print(f"wrote {path} after {figures['seconds']:.0f} s")
        if importlib.util.find_spec("matplotlib") is None:
            print("no roofline was drawn: pip install matplotlib, then python -m benchmarks.roofline " + str(path))
        else:
            from benchmarks import roofline

            print(f"drew {roofline.draw(figures, path.with_suffix('.png'))}")
    return 1 if bad or figures.get("tests", {}).get("failed") else 0


if __name__ == "__main__":
    sys.exit(main())
