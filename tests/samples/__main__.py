"""python -m tests.samples modules|operators|optimizers [NAME ...]

[--device cpu|simulated] [--dtype float64] [--most N] [--all] [--native]
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable

from tqdm import tqdm

from .running import TABLES, chosen, report, run

FLOATING = ("float64", "float32", "float16", "bfloat16")


def main(arguments: Iterable[str] | None = None) -> int:
    """The command."""
    parser = argparse.ArgumentParser(prog="python -m tests.samples", description=__doc__)
    parser.add_argument("table", choices=TABLES)
    parser.add_argument("names", nargs="*", help="entries, as patterns: 'Conv*', 'nn.functional.*pool*'")
    parser.add_argument("--device", choices=["cpu", "simulated"], default="cpu")
    parser.add_argument("--dtype", choices=[*FLOATING, "complex64", "complex128"], default="float64")
    parser.add_argument("--most", type=int, help="so many samples of each entry, spread over all of them")
    parser.add_argument("--native", action="store_true", help="with native code for every call on the CPU")
    parser.add_argument("--all", action="store_true", help="also a row for each entry that is missing here")
    options = parser.parse_args(arguments)
    names = chosen(options.table, options.names)
    how = options.device, options.most, options.dtype, options.native
    rows = [run(options.table, name, *how) for name in tqdm(names, mininterval=5)]
    print(report(row for row in rows if row.samples > row.missing or options.all))
    return 1 if any(row.found for row in rows) else 0


if __name__ == "__main__":
    sys.exit(main())
