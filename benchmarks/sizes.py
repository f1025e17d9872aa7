"""A handful of operators beside NumPy and torch from 16 to 4 million elements: where calls end and work begins.

    python -m benchmarks.sizes [--only softmax] [--write]

Each library has one thread; at the largest size tritensor and torch are compared on all threads, too. The inputs are
square matrices, and tritensor runs without native code, as `pip install tritensor` does. `--write` puts the figures
into benchmarks/results/sizes.json, from which the site draws its charts. It takes about two minutes.
"""

from __future__ import annotations

import argparse
import importlib
import json
import platform
import sys
import time
from typing import Any

import numpy as np

from benchmarks import compare
from benchmarks.cases import ALL_THREADS, Case, naive_layer_norm, naive_softmax

__all__ = ["OPERATORS", "SIDES", "by_thread", "case"]

SIDES = (4, 16, 64, 256, 1024, 2048)
#: the title, the statement, and that of NumPy, where it is another one
OPERATORS = {
    "add": ("a + b", "a + b", "same"),
    "exp": ("exp", "lib.exp(a)", "same"),
    "sum": ("sum of all", "lib.sum(a)", "same"),
    "softmax": ("softmax of rows", "F.softmax(a, 1)", "softmax(a)"),
    "layer_norm": ("layer norm of rows", "F.layer_norm(a, (a.shape[1],))", "layer_norm(a)"),
    "matmul": ("a @ b", "a @ b", "same"),
}
_NAIVE = {"softmax": naive_softmax, "layer_norm": naive_layer_norm}


def case(name: str, side: int) -> Case:
    """The row of `benchmarks.compare` that one size of an operator is."""
    title, statement, numpy = OPERATORS[name]
    shape = (side, side)
    inputs = {"a": shape, "b": shape} if "b" in statement.replace("lib.", "") else {"a": shape}
    return Case(f"{name}_{side}", title, statement, inputs, {}, numpy, names=dict(_NAIVE))


def sizes_of(name: str) -> tuple[int, ...]:
    """The sides of an operator's matrices."""
    return SIDES[:-1] if name == "matmul" else SIDES


def by_thread(figures: dict[str, Any]) -> list[tuple[str, dict[str, float]]]:
    """Of each operator at its largest size: the time on all threads divided by that on one, by library."""
    found = []
    for case in figures["cases"].values():
        count, row = list(case["sizes"].items())[-1]
        whose = {"tritensor": "ours_us", "PyTorch": "theirs_us"}
        told = {name: row[ALL_THREADS][key] / row["torch"][key] for name, key in whose.items()}
        found.append((f"{case['title']}, {int(count) / 1e6:.1f} M", told))
    return found


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", choices=OPERATORS, help="one operator")
    parser.add_argument("--write", action="store_true", help="store the figures")
    options = parser.parse_args(arguments)
    ours, torch = importlib.import_module("tritensor"), importlib.import_module("torch")
    settings = importlib.import_module("tritensor.settings")
    settings.native_cpu.value = "0"
    every, load, cases = ours.get_num_threads(), compare.load(), {}
    for name in [options.only] if options.only else OPERATORS:
        rows: dict[str, Any] = {}
        for side in sizes_of(name):
            peers = {"numpy": np, "torch": torch}
            if side == sizes_of(name)[-1]:
                peers[ALL_THREADS] = torch
            rows[str(side * side)] = compare.speed(case(name, side), ours, peers, every)
            compare.print_row(f"{OPERATORS[name][0]}, {side * side:,} elements", rows[str(side * side)], [*peers], None)
        cases[name] = {"title": OPERATORS[name][0], "sizes": rows}
    figures = {
        "date": time.strftime("%Y-%m-%d"),
        "commit": compare.commit(),
        "machine": {**compare.machine(), "load_before": load},
        "versions": {"python": platform.python_version(), **{m.__name__: m.__version__ for m in (ours, np, torch)}},
        "threads": {"numpy": 1, "torch": 1, ALL_THREADS: every},
        "cases": cases,
    }
    if options.write:
        path = compare.RESULTS / "sizes.json"
        path.write_text(json.dumps(figures, indent=1) + "\n", encoding="utf-8")
        print(f"wrote {path}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
