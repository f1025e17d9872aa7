"""Figures beside the stored ones: what has become slower.

    python -m benchmarks.regression NEW.json [--baseline PATH] [--limit 10]
    python -m benchmarks.regression --cpu [--only 'add_*'] [--baseline PATH] [--limit 25] [--json PATH]

The first form compares figures of a GPU. Without --baseline the stored figures of the same GPU are used; if none are
stored, a message says so and nothing fails. A row is compared by its ratio to a peer or to the copy ceiling, which both
runs measured side by side; one without a peer by its time. Fails when a row is slower by more than the limit and its
spread does not reach the stored ratio, or when a row that was measured is wrong or fails now.

The second form measures the rows of `benchmarks.compare` on one thread, beside NumPy and torch in the same process, and
compares each ratio with the stored one. It counts processor time, which other work on the machine disturbs less than
time by the clock. A row is slower when, beside each of its peers, the median ratio is above the stored one by more than
the limit, and the ratio of each block but one, divided by the noise, is above the stored one, too. The noise is the
factor by which the same work of ours differed within a block (A/A), in all blocks but the worst. Slower rows are
measured again after all others, and once more: a row fails if it was slower each time. On a processor other than the
stored one the limit is 100 %.
"""

from __future__ import annotations

import argparse
import fnmatch
import importlib
import importlib.util
import json
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from benchmarks import compare
from benchmarks.cases import Case
from benchmarks.compare import RESULTS
from benchmarks.gpu import slug
from benchmarks.measure import Comparison, side_by_side, timer
from benchmarks.native_cases import ALL_CASES

__all__ = ["regressions", "slower_rows"]

ROUNDS = 3  # a row fails if it is slower in each
OTHER_PROCESSOR = 100.0  # percent that a ratio may be above that of another processor
Measure = Callable[[str], dict[str, Comparison]]  # from the name of a row to its comparisons by peer


def slowdown(old: dict[str, Any], new: dict[str, Any]) -> tuple[float, bool]:
    """By what factor one comparison has become slower, and whether that is more than its spread explains."""
    if new["below"]:
        return new["ratio"] / old["ratio"], new["spread"][0] > old["ratio"]
    return old["ratio"] / new["ratio"], new["spread"][1] < old["ratio"]


def regressions(old: dict[str, Any], new: dict[str, Any], limit: float) -> list[str]:
    """A line for each row that is worse than the stored figures by more than `limit` (0.1 for 10 %)."""
    found = []
    for name, was in old["rows"].items():
        row = new["rows"].get(name)
        if row is None or "error" in was:
            continue
        if "error" in row:
            found.append(f"{name}: fails now: {row['error'].splitlines()[0]}")
            continue
        if was.get("accuracy", {}).get("accurate", True) and not row.get("accuracy", {}).get("accurate", True):
            found.append(f"{name}: is wrong now")
        for peer, before in was.get("speed", {}).items():
            after = row.get("speed", {}).get(peer)
            if after is None or "error" in before or "error" in after:
                continue
            factor, clear = slowdown(before, after)
            if factor > 1 + limit and clear:
                ratios = f"{before['ratio']:.2f} is stored, {after['ratio']:.2f} measured"
                found.append(f"{name}: {factor - 1:.0%} slower beside {peer}: {ratios}")
        if "alone" in was and "alone" in row and row["alone"]["ours_us"] > (1 + limit) * was["alone"]["ours_us"]:
            found.append(f"{name}: {row['alone']['ours_us'] / was['alone']['ours_us'] - 1:.0%} slower")
    return found


def is_slower(stored: float, measured: Comparison, limit: float) -> bool:
    """Whether a ratio is above the stored one by more than the limit, and clear of what the run itself varied by."""
    return measured.ratio > stored * (1 + limit) and sorted(measured.ratios)[1] / measured.noise > stored


def beside_peers(case: Case, peers: dict[str, ModuleType], native: bool) -> dict[str, Comparison]:
    """The comparisons of a row by peer, in processor time on one thread each."""
    ours, arrays, found = importlib.import_module("tritensor"), case.arrays(), {}
    for name, peer in peers.items():
        statement = case.statement_for(peer)
        if statement is not None:
            run = timer(case.statement, case.namespace(ours, arrays), time.process_time)
            theirs = timer(statement, case.namespace(peer, arrays), time.process_time)
            found[name] = side_by_side(compare.with_setting("", run) if native else run, theirs)
    return found


def slower_rows(
    stored: dict[str, dict[str, float]], names: Iterable[str], measure: Measure, limit: float
) -> Iterator[tuple[int, str, dict[str, Comparison], bool]]:
    """Measure rows, and the slower ones again: the round, the row, its comparisons, and whether it is slower.

    Args:
        stored: the stored ratios by row and peer.
        names: the rows to measure.
        measure: measures a row.
        limit: by how much a ratio may be above the stored one, 0.25 for 25 %.
    """
    for turn in range(ROUNDS):
        again = []
        for name in names:
            found = {peer: each for peer, each in measure(name).items() if peer in stored[name]}
            slower = bool(found) and all(is_slower(stored[name][peer], each, limit) for peer, each in found.items())
            again += [name] * slower
            yield turn, name, found, slower
        names = again


def cpu(options: argparse.Namespace) -> int:
    """Measure the rows of the CPU and compare; the exit status."""
    native: bool = importlib.import_module("tritensor.backends.native").is_available()
    baseline = options.baseline or RESULTS / ("cpu-native.json" if native else "cpu.json")
    old = json.loads(baseline.read_text(encoding="utf-8"))
    peers = {name: importlib.import_module(name) for name in ("numpy", "torch") if importlib.util.find_spec(name)}
    stored = {
        name: {peer: row["speed"][peer]["ratio"] for peer in peers if peer in row["speed"]}
        for name, row in old["cases"].items()
    }
    cases = {
        case.name: case for case in ALL_CASES if stored.get(case.name) and fnmatch.fnmatch(case.name, options.only)
    }
    here, there = compare.machine()["processor"], old["machine"]["processor"]
    limit = (25.0 if here == there else OTHER_PROCESSOR) if options.limit is None else options.limit
    print(f"stored on {there}, {old['date']}, commit {old['commit'][:10]}; measured on {here}, load {compare.load()}")
    libraries = [importlib.import_module("tritensor"), *(peer for peer in peers.values() if peer is not np)]
    threads = [library.get_num_threads() for library in libraries]
    for library in libraries:
        library.set_num_threads(1)
    figures: dict[str, Any] = {}
    for turn, name, found, slower in slower_rows(
        stored, cases, lambda name: beside_peers(cases[name], peers, native), limit / 100
    ):
        told = [f"{each.ratio / stored[name][peer]:.2f} of the stored {peer}" for peer, each in found.items()]
        noise = max(each.noise for each in found.values())
        print(f"{name:<32}{', '.join(told)}; noise {noise:.2f}{', slower' * slower}{f', try {turn + 1}' * bool(turn)}")
        figures.setdefault(name, []).append({"slower": slower, **{peer: vars(each) for peer, each in found.items()}})
    for library, number in zip(libraries, threads, strict=True):
        library.set_num_threads(number)
    failed = [name for name, tries in figures.items() if len(tries) == ROUNDS and tries[-1]["slower"]]
    if options.json:
        options.json.parent.mkdir(parents=True, exist_ok=True)
        options.json.write_text(json.dumps({"processor": here, "limit": limit, "rows": figures}, indent=1) + "\n")
    print(
        f"{len(figures)} rows, {len(failed)} slower by over {limit:g} % in each of {ROUNDS} tries: {' '.join(failed)}"
    )
    return 1 if failed or not figures else 0


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("new", type=Path, nargs="?", help="what python -m benchmarks.gpu wrote")
    parser.add_argument("--cpu", action="store_true", help="measure the rows of the CPU")
    parser.add_argument("--only", default="*", metavar="PATTERN", help="rows of the CPU by name, as in 'add_*'")
    parser.add_argument("--json", type=Path, metavar="PATH", help="where to write what was measured on the CPU")
    parser.add_argument("--baseline", type=Path, help="the figures to compare with")
    parser.add_argument("--limit", type=float, metavar="PERCENT", help="(default 10; with --cpu 25)")
    options = parser.parse_args(arguments)
    if options.cpu == (options.new is not None):
        parser.error("give either the figures of a GPU or --cpu")
    if options.cpu:
        return cpu(options)
    options.limit = 10.0 if options.limit is None else options.limit
    new = json.loads(options.new.read_text(encoding="utf-8"))
    baseline = options.baseline or RESULTS / f"{slug(new['gpu'])}.json"
    if not baseline.exists():
        print(f"no figures of {new['gpu']} are stored: these, committed as {baseline}, are the first")
        return 0
    old = json.loads(baseline.read_text(encoding="utf-8"))
    found = regressions(old, new, options.limit / 100)
    common = len(old["rows"].keys() & new["rows"].keys())
    print(
        f"{common} rows compared with {old['commit']} of {old['date']}: {len(found)} worse by over {options.limit:g} %"
    )
    for line in found:
        print(f"  {line}")
    return 1 if found or not common else 0


if __name__ == "__main__":
    sys.exit(main())
