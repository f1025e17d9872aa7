"""python -m tests.programs --family views --count 20000 --seed 0 [--device simulated] [--jobs 2] [--only SEED]"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from multiprocessing import get_context
from pathlib import Path

from tqdm import tqdm

from .running import FAMILIES, Result, Tally, devices, enter, run, run_task, smallest
from .session import CRASH, REFUSED, VALUE

MOST_REFUSED = 0.003  # of the programs: refused here alone, for the reasons that are listed
HEADER = "import torch  # or: import tritensor as torch\nfrom math import inf, nan\n"


def results(tasks: list[tuple[str, int]], device: str, jobs: int) -> Iterator[Result]:
    """The results of all tasks, in processes of their own if there is more than one job."""
    if jobs > 1:
        with ProcessPoolExecutor(jobs, get_context("spawn"), initializer=enter, initargs=(device,)) as pool:
            yield from pool.map(partial(run_task, device=device), tasks, chunksize=50)
    else:
        with devices(device):
            for task in tasks:
                yield run_task(task, device)


def report(tally: Tally, device: str) -> str:
    """The counts, and every kind that is not listed with its smallest program."""
    share = tally.accepted / max(tally.statements, 1)
    lines = [
        f"{tally.programs} programs, {tally.statements} statements, of which PyTorch ran {share:.0%};"
        f" {tally.compared} values compared",
        *(f"  {outcome}: {count}" for outcome, count in tally.outcomes.items()),
        f"  refused here alone: {tally.outcomes[REFUSED] / max(tally.programs, 1):.2%} of the programs",
        *(f"  listed: {title}: {count}" for title, count in sorted(tally.listed.items())),
    ]
    with devices(device):
        for kind, found in sorted(tally.kinds.items(), key=lambda item: -len(item[1])):
            shortest = min(found[:20], key=lambda result: len(result.statements))
            assert shortest.found is not None
            lines += ["", f"## {len(found)} x {' | '.join(kind)}   [{shortest.found.place}] seed {shortest.seed}"]
            lines += [f"    {statement}" for statement in smallest(shortest, device)]
            lines += [f"    # {line}" for line in shortest.found.detail.splitlines()]
    return "\n".join(lines) + "\n"


def only(family: str, seed: int, device: str) -> int:
    """Run one seed and print its program."""
    with devices(device):
        result = run(family, seed, device)
        print(HEADER + "\n".join(result.statements))
        if result.found is None:
            print("# the same in both")
            return 0
        print(f"# {result.found.outcome} ({result.found.place}): {result.found.detail}\n\n# The smallest:")
        print("\n".join(smallest(result, device)))
    return 1


def main(arguments: Iterable[str] | None = None) -> int:
    """The command."""
    parser = argparse.ArgumentParser(prog="python -m tests.programs", description=__doc__)
    parser.add_argument("--family", choices=[*FAMILIES, "all"], default="all")
    parser.add_argument("--count", type=int, default=1000, help="programs of each family")
    parser.add_argument("--seed", type=int, default=0, help="the first seed")
    parser.add_argument("--only", type=int, help="run this seed alone and print its program")
    parser.add_argument("--device", choices=["cpu", "simulated"], default="cpu")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--report", type=Path, help="write the report here too")
    options = parser.parse_args(arguments)
    families = FAMILIES if options.family == "all" else (options.family,)
    if options.only is not None:
        return only(families[0], options.only, options.device)
    whole, text = Tally(), ""
    for family in families:
        tally = Tally()
        tasks = [(family, seed) for seed in range(options.seed, options.seed + options.count)]
        for result in tqdm(results(tasks, options.device, options.jobs), family, len(tasks), mininterval=5):
            tally.add(result)
            whole.add(result)
        told = f"# {family}, {options.device}, seeds from {options.seed}\n\n{report(tally, options.device)}\n"
        text += told
        print(told)
    if options.report:
        options.report.write_text(text, encoding="utf-8")
    share = whole.outcomes[REFUSED] / whole.programs
    unlisted = [kind for kind in whole.kinds if kind[1] in (VALUE, CRASH, REFUSED)]
    return 1 if unlisted or share > MOST_REFUSED else 0


if __name__ == "__main__":
    sys.exit(main())
