"""Two versions of tritensor beside each other, row by row: a change that slows a call shows here.

    python -m benchmarks.versions PATH [--only 'add_*'] [--host] [--limit 1.03]

PATH is a checkout of the other version, the one before. Each version runs in a process of its own, with its own
statements for the rows that both have, on one thread; the two take turns in blocks of A B B A, so that disturbances of
the machine affect both. A row gives the median of now/before over the blocks and its spread. With `--host` the rows are
those of `benchmarks.host`, what a call on a CUDA device costs the host. The exit status says whether a row is above the
limit in two measurements.
"""

from __future__ import annotations

import argparse
import contextlib
import fnmatch
import importlib
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from benchmarks.measure import Comparison, executions, side_by_side, timer

ROOT = Path(__file__).resolve().parents[1]


def serve(device: str) -> None:
    """Answer what comes on the standard input: `rows`, the name of a row, or how often to run its statement."""
    import tritensor

    module: Any = importlib.import_module("benchmarks.host" if device == "cuda" else "benchmarks.cases")
    tritensor.set_num_threads(1)
    cases = {case.name: case for case in (module.ROWS if device == "cuda" else module.CASES)}
    run: Any = None
    for line in sys.stdin:
        request = line.strip()
        if request == "rows":
            answer: Any = " ".join(cases)
        elif request.isdigit():
            answer = run(int(request))
        else:
            case = cases[request]
            run = timer(case.statement, case.namespace(tritensor, case.arrays(), device))
            answer = executions(run, 0.04)
        print(answer, flush=True)


class Version:
    """A process that times statements with the tritensor of a checkout."""

    def __init__(self, root: Path, device: str, environment: dict[str, str]) -> None:
        self.root = root
        self.process = subprocess.Popen(
            [sys.executable, "-P", str(Path(__file__).resolve()), "--serve", device],  # -P: not our modules
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=root,
            env={**os.environ, "PYTHONPATH": str(root), **environment},
        )

    def ask(self, request: object) -> str:
        """The answer to a request."""
        assert self.process.stdin is not None and self.process.stdout is not None
        self.process.stdin.write(f"{request}\n")
        self.process.stdin.flush()
        answer = self.process.stdout.readline().strip()
        if not answer:
            raise SystemExit(f"the version in {self.root} ended at {request}")
        return answer

    def seconds(self, number: int) -> float:
        """Of `number` runs of the row's statement."""
        return float(self.ask(number))


@contextlib.contextmanager
def versions(roots: list[Path], device: str) -> Iterator[list[Version]]:
    """A process for each checkout; for a device with the stub of libcuda that `benchmarks.host` builds."""
    with tempfile.TemporaryDirectory() as folder:
        environment = {}
        if device == "cuda":
            from benchmarks import host

            host.build(Path(folder))
            environment = {"LD_LIBRARY_PATH": folder, "TRITENSOR_SIMULATE_CUDA": "0"}
            environment |= {"TRITENSOR_CACHE_DIR": folder, "TRITON_CACHE_DIR": folder}
        started = [Version(root, device, environment) for root in roots]
        try:
            yield started
        finally:
            for each in started:
                each.process.kill()
                each.process.communicate()  # closes the pipes


def compare(now: Version, before: Version, name: str, blocks: int) -> Comparison:
    """A row, timed as often in both as takes 0.04 s now."""
    number = int(now.ask(name))
    before.ask(name)
    return side_by_side(now.seconds, before.seconds, blocks=blocks, number=number)


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("before", type=Path, metavar="PATH", help="a checkout of the version before")
    parser.add_argument("--only", default="*", metavar="PATTERN", help="rows by name, as in 'add_*'")
    parser.add_argument("--host", action="store_true", help="the rows of benchmarks.host")
    parser.add_argument("--limit", type=float, default=1.03, help="the ratio from which on a row counts as slower")
    options = parser.parse_args(arguments)
    slower = []
    with versions([ROOT, options.before.resolve()], "cuda" if options.host else "cpu") as (now, before):
        both = [name for name in now.ask("rows").split() if name in before.ask("rows").split()]
        for name in [name for name in both if fnmatch.fnmatch(name, options.only)]:
            found = compare(now, before, name, 7)
            if found.ratio > options.limit:  # a disturbance, or a slower call
                found = min(found, compare(now, before, name, 21), key=lambda each: each.ratio)
            mark = "  SLOWER" if found.ratio > options.limit else ""
            low, high = found.spread
            print(
                f"{name:<40}{found.ours * 1e6:>12.1f} us{found.ratio:>7.3f}  {low:.2f} to {high:.2f}  {mark}".rstrip()
            )
            slower += [name] if mark else []
    print(f"\n{len(slower)} rows above {options.limit}: {', '.join(slower)}" if slower else "\nno row is slower")
    return 1 if slower else 0


if __name__ == "__main__":
    if sys.argv[1:2] == ["--serve"]:
        serve(sys.argv[2])
    else:
        sys.exit(main())
