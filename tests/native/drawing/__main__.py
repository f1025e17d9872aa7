"""Draws kernels and runs each natively and interpreted: `python -m tests.native.drawing --count 100`."""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections import Counter
from pathlib import Path

import numpy as np

from tritensor import settings

from .flow import draw
from .running import judged, smallest, summary


def main() -> int:
    """The command."""
    parser = argparse.ArgumentParser(prog="python -m tests.native.drawing", description=__doc__)
    parser.add_argument("--count", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0, help="the first seed")
    parser.add_argument("--only", action="store_true", help="print this seed's kernel, and the smallest that differs")
    parser.add_argument("--limit", type=int, default=1024, help="elements of a tensor")
    parser.add_argument("--length", type=int, default=22, help="statements of a kernel")
    parser.add_argument("--seconds", type=float, default=60.0, help="for the search of the smallest")
    parser.add_argument("--save", type=Path, help="a folder for the smallest of those that differ")
    options = parser.parse_args()
    counts: Counter[str] = Counter()
    details: dict[str, list[int]] = {}
    with tempfile.TemporaryDirectory() as name, settings.cache_dir(name):
        folder = Path(name)
        for seed in range(options.seed, options.seed + (1 if options.only else options.count)):
            program = draw(seed, options.limit, options.length)
            if options.only:
                print(program.source, flush=True)
            outcome = judged(program, folder)
            counts[outcome.kind] += 1
            if outcome.kind == "same" and not outcome.detail:
                continue
            details.setdefault(f"{outcome.kind}: {summary(outcome.detail)}", []).append(seed)
            if outcome.kind == "different" or (options.only and outcome.kind == "refused"):
                print(f"seed {seed}: {outcome.detail}", flush=True)
                if options.save or options.only:
                    least = smallest(program, folder, outcome, options.seconds)
                    after = judged(least, folder)
                    body = least.source[least.source.index("@triton.jit\ndef kernel") :]
                    given = {k: v for k, v in least.arguments.items() if not isinstance(v, np.ndarray)}
                    text = f"# seed {seed}, grid {least.grid}, {given}\n"
                    text += "".join(f"# {line}\n" for line in after.detail.splitlines()[-8:]) + body
                    print(text, flush=True)
                    if options.save:
                        (options.save / f"seed_{seed}.py").write_text(text)
    print(dict(counts))
    for kind, seeds in sorted(details.items(), key=lambda item: -len(item[1])):
        print(len(seeds), kind, seeds[:5])
    return bool(counts["different"])


if __name__ == "__main__":
    sys.exit(main())
