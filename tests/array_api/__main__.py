"""python -m tests.array_api --suite PATH [--simulate] [--examples 200] [-n 2] [-k EXPRESSION]

Runs the array API standard's own tests, github.com/data-apis/array-api-tests, of which PATH is a clone with its
submodules. Fails if a test fails that is not listed, with its reason, in xfails.txt or xfails_simulated.txt.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from xml.etree import ElementTree

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]


def listed(simulate: bool) -> Path:
    """The file of the tests that fail, with the reasons."""
    return HERE / ("xfails_simulated.txt" if simulate else "xfails.txt")


def command(suite: Path, simulate: bool, examples: int, jobs: int, only: str, results: Path) -> list[str]:
    """How the suite's tests are run."""
    tests = [sys.executable, "-m", "pytest", "array_api_tests", "-q", "-rfE", "-p", "no:cacheprovider"]
    # a simulated device takes longer for an example than the 0.8 s that the suite allows
    tests += ["--max-examples", str(examples), "--disable-deadline", "--xfails-file", str(listed(simulate))]
    return [*tests, "--junitxml", str(results), *(["-n", str(jobs)] * (jobs > 1)), *(["-k", only] if only else [])]


def outcomes(results: Path) -> Counter[str]:
    """How many tests passed, failed, failed as listed, ended in an error, and were skipped."""
    counts: Counter[str] = Counter()
    for case in ElementTree.parse(results).iter("testcase"):
        found = {entry.tag: entry.get("type", "") for entry in case}
        if "error" in found or "failure" in found:
            counts["errors" if "error" in found else "failed"] += 1
        elif "skipped" in found:
            counts["failed as listed" if "xfail" in found["skipped"] else "skipped"] += 1
        else:
            counts["passed"] += 1
    return counts


def main(arguments: Iterable[str] | None = None) -> int:
    """The command."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.array_api", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--suite", type=Path, required=True, help="a clone of array-api-tests with its submodules")
    parser.add_argument("--simulate", action="store_true", help="with a simulated CUDA device as the default one")
    parser.add_argument("--examples", type=int, default=200, help="of each test")
    parser.add_argument("-n", type=int, default=1, dest="jobs", help="processes")
    parser.add_argument("-k", default="", dest="only", help="run the tests alone that pytest's -k chooses")
    options = parser.parse_args(arguments)
    if not (options.suite / "array-api" / "src").is_dir():
        parser.error(f"{options.suite} is no clone of array-api-tests with its submodules")
    module = "tests.array_api.simulated" if options.simulate else "tritensor.array_api"
    named = {"ARRAY_API_TESTS_MODULE": module, "ARRAY_API_TESTS_VERSION": "2024.12", "PYTHONPATH": str(ROOT)}
    with tempfile.TemporaryDirectory() as folder:
        results = Path(folder) / "results.xml"
        asked = (options.suite, options.simulate, options.examples, options.jobs, options.only)
        subprocess.run(command(*asked, results), cwd=options.suite, env={**os.environ, **named}, check=False)
        if not results.exists():
            print("the suite did not run")
            return 2
        counts = outcomes(results)
    print(f"{module}, {options.examples} examples: " + ", ".join(f"{count} {name}" for name, count in counts.items()))
    return int(bool(counts["failed"] or counts["errors"]) or not counts["passed"])


if __name__ == "__main__":
    raise SystemExit(main())
