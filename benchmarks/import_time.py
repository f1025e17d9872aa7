"""How long `import tritensor` takes, beyond the import of NumPy.

    python -m benchmarks.import_time [--limit MILLISECONDS]

Each import runs in a new process; the libraries take turns, and the median of ten is reported. With a limit the exit
status says whether `import tritensor` stays within NumPy's time plus that many milliseconds.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import statistics
import subprocess
import sys

PROGRAM = "import time; start = time.perf_counter(); import {}; print(time.perf_counter() - start)"


def import_seconds(library: str) -> float:
    """Seconds that `import library` takes in a fresh process, the interpreter's own start left out."""
    # With bytecode, as for an installed package: compiling the source takes longer than everything else.
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    command = [sys.executable, "-c", PROGRAM.format(library)]
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


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--limit", type=float, metavar="MILLISECONDS", help="fail above NumPy's time and this much")
    limit = parser.parse_args(arguments).limit
    times = take_turns(["numpy", "tritensor"])
    base, ours = (1000 * statistics.median(times[library]) for library in ("numpy", "tritensor"))
    print(f"import numpy {base:.0f} ms, import tritensor {ours:.0f} ms: {ours - base:.0f} ms more, median of ten")
    if limit is not None and ours - base > limit:
        print(f"over the limit of {limit:.0f} ms; `python -X importtime -c 'import tritensor'` shows what costs")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
