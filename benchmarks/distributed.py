"""Collectives and DistributedDataParallel of two processes beside PyTorch's by gloo, in turns.

    python -m benchmarks.distributed [--torch FOLDER/with/bin/python] [--only 'all_reduce*'] [--blocks 7] [--json PATH]

Two ranks of ours, started by the mpiexec beside this Python, and two of PyTorch's stay alive together, one thread each;
those whose turn it is not wait for a line of text and use no processor. A row is the median of ours/theirs over blocks
of A B B A, its spread, and the target; a ratio above it is marked SHORT. Sizes are those of the whole tensor: what
all_gather makes and reduce_scatter reads. A whole run writes benchmarks/results/distributed.json. Without PyTorch
(`--torch` names the interpreter that has it, this one unless given) only our times are printed.
"""

from __future__ import annotations

import argparse
import fnmatch
import json
import os
import platform
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.compare import RESULTS, commit, load, machine, print_heading, print_row, row
from benchmarks.measure import Comparison, executions, side_by_side
from benchmarks.ranks import COLLECTIVES, DDP, DTYPES, PASSES, RANKS, SHARDED, SIZES

ROOT = Path(__file__).parents[1]
TARGET, TARGET_OF_STEPS = 0.7, 1.2


class Side:
    """The ranks of a library, which run cases on demand.

    Args:
        name: tritensor or torch.
        python: the interpreter that has it.
        stack: what closes its files and waits for its processes.
    """

    def __init__(self, name: str, python: str, stack: ExitStack) -> None:
        folder = stack.enter_context(tempfile.TemporaryDirectory())
        for rank in range(RANKS):
            os.mkfifo(Path(folder) / str(rank))
        command = [python, "-m", "benchmarks.ranks", name, folder]
        common = {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
        if name == "tritensor":
            commands = [[str(Path(python).with_name("mpiexec")), "-n", str(RANKS), *command]]
            settings: list[dict[str, str]] = [{}]
        else:
            with socket.socket() as found:
                found.bind(("127.0.0.1", 0))
                port = str(found.getsockname()[1])
            common |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port, "WORLD_SIZE": str(RANKS)}
            commands, settings = [command] * RANKS, [{"RANK": str(rank)} for rank in range(RANKS)]
        processes = [
            stack.enter_context(
                subprocess.Popen(each, cwd=ROOT, env={**common, **setting}, stdout=subprocess.PIPE, text=True)
            )
            for each, setting in zip(commands, settings, strict=True)
        ]
        self.answers: Any = processes[0].stdout
        # opened to read too, or it would wait here for a rank that cannot start
        self.pipes = [stack.enter_context((Path(folder) / str(rank)).open("r+b", 0)) for rank in range(RANKS)]

    def figures(self, name: str, count: int) -> list[float]:
        """What the ranks measure for some runs of a case."""
        for pipe in self.pipes:
            pipe.write(json.dumps([name, count]).encode() + b"\n")
        while not (line := self.answers.readline()).startswith("["):
            if not line:
                raise SystemExit("a process ended: its message stands above")
        found: list[float] = json.loads(line)
        return found

    def seconds(self, name: str, count: int) -> float:
        """The seconds of some runs of a case."""
        return self.figures(name, count)[0]


def collectives(name: str, ours: Side, theirs: Side | None, blocks: int) -> dict[str, Any]:
    """A row: our seconds, and beside theirs where there are any."""
    run = partial(ours.seconds, name)
    if theirs is not None:
        target = TARGET_OF_STEPS if name in SHARDED else TARGET
        return row(side_by_side(run, partial(theirs.seconds, name), blocks, 0.06), target)
    number = executions(run, 0.1)
    return {"ours_us": statistics.median(run(number) for _ in range(blocks)) / number * 1e6}


def training(ours: Side, theirs: Side, blocks: int) -> dict[str, Comparison]:
    """Backward passes in blocks of A B B A: the whole pass, what DistributedDataParallel adds to it, and its memory."""
    samples = []
    for _ in range(blocks):
        turns = [side.figures(DDP, PASSES) for side in (ours, theirs, theirs, ours)]
        plain, parallel, growth = np.array([turns[0], turns[1]]).T + np.array([turns[3], turns[2]]).T
        samples.append([parallel / 2 / PASSES, (parallel - plain) / 2 / PASSES, growth / 2])
    found = {}
    for place, title in enumerate(("backward pass", "backward pass, what it adds", "memory, what it adds")):
        pairs = np.array([sample[place] for sample in samples])
        middle = np.median(pairs, 0)
        found[f"{DDP}: {title}"] = Comparison(middle[0], middle[1], tuple((pairs[:, 0] / pairs[:, 1]).tolist()))
    return found


def version_of(python: str) -> str | None:
    """The version of the PyTorch that an interpreter has."""
    command = [python, "-c", "import torch; print(torch.__version__)"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return done.stdout.strip() if done.returncode == 0 else None


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.distributed", description=__doc__)
    parser.add_argument("--torch", default=sys.executable, metavar="PYTHON", help="the interpreter that has PyTorch")
    parser.add_argument("--only", default="*", help="cases whose names match this pattern; writes no JSON")
    parser.add_argument("--blocks", type=int, default=7)
    parser.add_argument("--json", type=Path, help="where to write the figures")
    options = parser.parse_args()
    names = [f"{what} {kind} {size}" for what in COLLECTIVES for kind in DTYPES for size in SIZES]
    names += SHARDED
    torch, load_before = version_of(options.torch), load()
    print_heading(["torch"] if torch is not None else [], checked=False)
    rows: dict[str, Any] = {}
    with ExitStack() as stack:
        ours = Side("tritensor", sys.executable, stack)
        theirs = None if torch is None else Side("torch", options.torch, stack)
        for name in fnmatch.filter(names, options.only):
            rows[name] = collectives(name, ours, theirs, options.blocks)
            print_row(name, {"torch": rows[name]}, [] if theirs is None else ["torch"], None)
        if theirs is not None and fnmatch.fnmatch(DDP, options.only):
            for name, found in training(ours, theirs, options.blocks).items():
                if "memory" in name:
                    rows[name] = {"ours_bytes": found.ours, "theirs_bytes": found.theirs, "ratio": found.ratio}
                    print(f"{name:<48} {found.ours / 1e6:.0f} MB, {found.theirs / 1e6:.0f} MB {found.ratio:.2f}")
                else:
                    rows[name] = row(found, None)
                    print_row(name, {"torch": rows[name]}, ["torch"], None)
    path = options.json or (RESULTS / "distributed.json" if options.only == "*" and torch is not None else None)
    if path is not None:
        facts = {
            "date": time.strftime("%Y-%m-%d"),
            "commit": commit(),
            "machine": {**machine(), "load_before": load_before},
            "versions": {"python": platform.python_version(), "torch": torch},
            "ranks": RANKS,
        }
        path.write_text(json.dumps({**facts, "cases": rows}, indent=1) + "\n")


if __name__ == "__main__":
    main()
