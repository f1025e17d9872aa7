"""What `cuda.tune` finds for the rows of the GPU table: on a card by measuring, without one by predicted times.

    python -m benchmarks.tuned [--rows 'matmul_bf16_*'] [--card h200] [--json build/gpu/tuned.json]

What it finds is kept for this machine's programs, as `cuda.tune` does.
"""

from __future__ import annotations

import argparse
import fnmatch
import json
import sys
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any

import tritensor
from benchmarks.budgets import device
from benchmarks.gpu_rows import DEVICE, ROWS, Row
from benchmarks.sides import Side
from tritensor.cuda.profiling import card


def tuned(row: Row, on: str | None) -> Any:
    """Tune what a row launches; on a virtual card of a name, or on the device that is there."""
    place: AbstractContextManager[None] = nullcontext() if on is None else device(card(on))
    with place:
        side = Side("tritensor", tritensor, "cuda")
        case = row.case_for("tritensor")
        with side.precision(row.precision):
            names = side.filled(case)
            code = compile(case.statement, row.name, "eval")
            return tritensor.cuda.tune(lambda: eval(code, dict(names)), card=on)


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", default="matmul_*,linear_*,conv_*,attention_*", metavar="PATTERN", help="by name")
    parser.add_argument("--card", help="predict for this card; without it a device is measured")
    parser.add_argument("--json", type=Path, help="write what was found to this file")
    options = parser.parse_args(arguments)
    found = {}
    for row in ROWS:
        if row.kind == DEVICE and any(fnmatch.fnmatch(row.name, each) for each in options.rows.split(",")):
            result = tuned(row, options.card)
            print(f"{row.name}: {result}", flush=True)
            found[row.name] = {"measured": result.measured, "problems": [each._asdict() for each in result]}
    if options.json:
        options.json.parent.mkdir(parents=True, exist_ok=True)
        options.json.write_text(json.dumps(found, indent=1), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
