"""How long `import tritensor` takes, beyond the import of NumPy.

    python -m benchmarks.import_time [--limit MILLISECONDS]

Each import runs in a new process; the libraries take turns, and the median of ten is reported, with the modules that
cost most. With a limit the exit status says whether `import tritensor` stays within NumPy's time plus that many
milliseconds.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import statistics
import subprocess
import sys

PROGRAMS = {
    "numpy": "import numpy",
    "tritensor": "import tritensor",
    "a first sum": "import tritensor; tritensor.ones(3) + 1",
}
PROGRAM = "import time; start = time.perf_counter(); {}; print(time.perf_counter() - start)"


def import_seconds(name: str) -> float:
    """Seconds that a program of `PROGRAMS` takes in a fresh process, or an import; without the interpreter's start."""
    # With bytecode, as for an installed package: compiling the source takes longer than everything else.
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    command = [sys.executable, "-c", PROGRAM.format(PROGRAMS.get(name, f"import {name}"))]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    return float(done.stdout)


def take_turns(libraries: list[str], rounds: int = 10) -> dict[str, list[float]]:
    """Import times by library, `rounds` of each; a first import of each, which may write bytecode, does not count."""
    for library in libraries:
        import_seconds(library)
    times: dict[str, list[float]] = {library: [] for library in libraries}
    for turn in range(rounds):
        for library in libraries if turn % 2 == 0 else reversed(libraries):
            times[library].append(import_seconds(library))
    return times


def installed(*libraries: str) -> list[str]:
    return [library for library in libraries if importlib.util.find_spec(library) is not None]


def costs(most: int = 10) -> list[tuple[str, float]]:
    """How many modules of the package are imported, and those that take longest by themselves, in milliseconds."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    command = [sys.executable, "-X", "importtime", "-c", "import tritensor"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    found = []
    for line in done.stderr.splitlines():
        own, _, name = line.removeprefix("import time:").split("|")
        if name.strip().startswith("tritensor"):
            found.append((name.strip(), int(own) / 1000))
    return [("all", float(len(found))), *sorted(found, key=lambda each: -each[1])[:most]]


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--limit", type=float, metavar="MILLISECONDS", help="fail above NumPy's time and this much")
    limit = parser.parse_args(arguments).limit
    times = take_turns(list(PROGRAMS))
    base, ours, first = (1000 * statistics.median(found) for found in times.values())
    print(f"import numpy {base:.0f} ms, import tritensor {ours:.0f} ms: {ours - base:.0f} ms more, median of ten")
    print(f"and a first sum, tritensor.ones(3) + 1: {first - base:.0f} ms more than NumPy's import")
    (_, modules), *longest = costs()
    print(f"{modules:.0f} modules of the package; these take longest, in ms by themselves:")
    for name, own in longest:
        print(f"  {own:5.1f}  {name}")
    if limit is not None and ours - base > limit:
        print(f"over the limit of {limit:.0f} ms")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
