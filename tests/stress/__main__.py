"""python -m tests.stress --minutes 60 [--only NAME] [--seed SEED]"""

from __future__ import annotations

import argparse
import faulthandler
import itertools
import os
import random
import sys
import threading
import time
import traceback
from collections import Counter
from collections.abc import Iterable

from tqdm import tqdm

from . import files, interrupts, jobs, loaders, threads
from .scenarios import SCENARIOS

MODULES = (files, interrupts, jobs, loaders, threads)  # which fill the table
_HANGS = 180.0  # seconds after which a round is taken to hang


class Record:
    """What was tried with counts, and what failed."""

    def __init__(self) -> None:
        self.start = time.monotonic()
        self.rounds: Counter[str] = Counter()
        self.tried: dict[str, Counter[str]] = {name: Counter() for name in SCENARIOS}
        self.failures: list[str] = []

    @property
    def minutes(self) -> float:
        return (time.monotonic() - self.start) / 60

    def round(self, name: str, seed: int) -> None:
        """Run a scenario once. If it hangs, say where and end the process."""
        repeat = f"--only {name} --seed {seed}"

        def end() -> None:
            faulthandler.dump_traceback()
            self.failures.append(f"{repeat} hangs")
            print(self, flush=True)
            os._exit(1)

        watch = threading.Timer(_HANGS, end)
        watch.daemon = True
        watch.start()
        try:
            self.tried[name] += SCENARIOS[name](random.Random(f"{name} {seed}"))
        except Exception:
            self.failures.append(f"{repeat}\n{traceback.format_exc()}")
        finally:
            watch.cancel()
            self.rounds[name] += 1

    def __str__(self) -> str:
        lines = [f"{self.rounds.total()} rounds in {self.minutes:.1f} minutes, {len(self.failures)} failures", ""]
        lines += ["| scenario | rounds | tried |", "|---|---|---|"]
        for name in SCENARIOS:
            counts = ", ".join(f"{count:,} {what}" for what, count in sorted(self.tried[name].items()))
            lines.append(f"| {name} | {self.rounds[name]} | {counts} |")
        return "\n".join([*lines, *(f"\n{failure}" for failure in self.failures)])


def main(arguments: Iterable[str] | None = None) -> int:
    """The command; 1 if a round failed."""
    parser = argparse.ArgumentParser(prog="python -m tests.stress", description=__doc__)
    parser.add_argument("--minutes", type=float, default=1.0)
    parser.add_argument("--only", choices=[*SCENARIOS], action="append", help="this scenario (may be repeated)")
    parser.add_argument("--seed", type=int, help="run one round of each with this seed")
    options = parser.parse_args(arguments)
    names = options.only or [*SCENARIOS]
    record = Record()
    first = options.seed if options.seed is not None else int(time.time())
    with tqdm(unit=" rounds", disable=not sys.stderr.isatty()) as bar:
        for number in itertools.count():
            seed, position = divmod(number, len(names))
            if (seed and options.seed is not None) or (number and record.minutes > options.minutes):
                break
            bar.set_description(names[position])
            record.round(names[position], first + seed)
            bar.update()
    print(record)
    return bool(record.failures)


if __name__ == "__main__":
    sys.exit(main())
