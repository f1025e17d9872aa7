"""python -m tests.stress --minutes 60 [--only NAME] [--seed SEED]"""

from __future__ import annotations

import argparse
import random
import sys
import time
import traceback
from collections import Counter
from collections.abc import Iterable

from tqdm import tqdm

from . import files, interrupts, jobs, loaders, threads
from .scenarios import SCENARIOS

MODULES = (files, interrupts, jobs, loaders, threads)  # which fill the table


def table(rounds: Counter[str], tried: dict[str, Counter[str]], failures: list[str], seconds: float) -> str:
    """What was tried with counts, and what failed."""
    lines = [f"{sum(rounds.values())} rounds in {seconds:.0f} s, {len(failures)} failures", ""]
    lines += ["| scenario | rounds | tried |", "|---|---|---|"]
    for name in SCENARIOS:
        counts = ", ".join(f"{count:,} {what}" for what, count in sorted(tried[name].items()))
        lines.append(f"| {name} | {rounds[name]} | {counts} |")
    return "\n".join([*lines, *(f"\n{failure}" for failure in failures)])


def main(arguments: Iterable[str] | None = None) -> int:
    """The command; 1 if a round failed."""
    parser = argparse.ArgumentParser(prog="python -m tests.stress", description=__doc__)
    parser.add_argument("--minutes", type=float, default=1.0)
    parser.add_argument("--only", choices=[*SCENARIOS], action="append", help="this scenario (may be repeated)")
    parser.add_argument("--seed", type=int, help="run one round of each with this seed")
    options = parser.parse_args(arguments)
    names = options.only or [*SCENARIOS]
    rounds: Counter[str] = Counter()
    tried: dict[str, Counter[str]] = {name: Counter() for name in SCENARIOS}
    failures: list[str] = []
    start = time.monotonic()
    first = options.seed if options.seed is not None else int(time.time())
    with tqdm(unit=" rounds", disable=not sys.stderr.isatty()) as bar:
        for seed in range(first, sys.maxsize):
            for name in names:
                if rounds and options.seed is None and time.monotonic() - start > options.minutes * 60:
                    break
                bar.set_description(name)
                try:
                    tried[name] += SCENARIOS[name](random.Random(f"{name} {seed}"))
                except Exception:
                    failures.append(f"--only {name} --seed {seed}\n{traceback.format_exc()}")
                rounds[name] += 1
                bar.update()
            if options.seed is not None or time.monotonic() - start > options.minutes * 60:
                break
    print(table(rounds, tried, failures, time.monotonic() - start))
    return bool(failures)


if __name__ == "__main__":
    sys.exit(main())
