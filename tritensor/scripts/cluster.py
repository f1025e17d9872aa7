"""`python -m tritensor cluster SCRIPT [ARGS]`: what a training program would take on clusters of several sizes."""

from __future__ import annotations

import argparse
import itertools
import sys
from collections.abc import Sequence
from contextlib import nullcontext
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from ..cuda.profiling import CARDS
from ..distributed.cluster import draw, simulate
from ..distributed.cluster.simulation import EFFICIENCY
from ..drivers.allocator import readable
from ..errors import OutOfMemoryError, TritensorError
from ..runtime.log import duration
from ..tensors.printing import aligned
from ..types.devices import device
from .run import execute, parsed


def main(arguments: Sequence[str]) -> int:
    """Run a program as one rank of each cluster, up to a few steps of its optimizer, and print a line for each.

    Returns 1 if the program failed or did not fit on one of them.

    Raises:
        SystemExit: the options are wrong.
    """
    parser = argparse.ArgumentParser(
        prog="python -m tritensor cluster",
        description="Run a training program as one rank of clusters that are not there: memory, bytes sent and "
        "predicted time of a step. Nothing is measured.",
    )
    parser.add_argument("--nodes", default="1", metavar="N,...", help="numbers of machines (default 1)")
    parser.add_argument("--gpus-per-node", type=int, default=8, metavar="N", help="(default 8)")
    parser.add_argument("--card", default="h100", choices=list(CARDS), help="(default h100)")
    parser.add_argument("--interconnect", default="ib-400", metavar="KIND-GBITS", help="of each card (default ib-400)")
    parser.add_argument("--memory", metavar="SIZE", help="of each card, as 80GB (default the card's own)")
    parser.add_argument(
        "--efficiency", type=float, default=EFFICIENCY, metavar="X", help="share of predicted kernel speed"
    )
    parser.add_argument("--steps", type=int, default=2, metavar="N", help="steps to run, the last is shown (default 2)")
    parser.add_argument(
        "--vary", action="append", default=[], metavar="OPTION=A,B", help="run with each value of an option of SCRIPT"
    )
    parser.add_argument(
        "--on-card",
        action="store_true",
        help="make on the card what SCRIPT makes without naming a device: a large model",
    )
    parser.add_argument("--chart", type=Path, metavar="FILE.png", help="draw memory and time; needs matplotlib")
    parser.add_argument("--report", action="store_true", help="print memory, messages and time of each by line")
    options = parsed(parser, arguments)
    if options.chart and find_spec("matplotlib") is None:
        parser.error("--chart needs matplotlib, which is not installed. Fix: pip install matplotlib")
    try:
        sizes = [int(text) for text in options.nodes.split(",")]
        varied = [(name, values.split(",")) for name, _, values in (text.partition("=") for text in options.vary)]
    except ValueError:
        parser.error(f"--nodes: expected numbers, got {options.nodes!r}")
    given, rows, failed = options.arguments, [], False
    for nodes, values in itertools.product(sizes, itertools.product(*(values for _, values in varied))):
        chosen = dict(zip((name for name, _ in varied), values, strict=True))
        words = [word for name, value in chosen.items() for word in (f"--{name.lstrip('-')}", value)]
        options.arguments = [*given, *words]
        name = ", ".join([f"{nodes * options.gpus_per_node}", *(f"{key}={value}" for key, value in chosen.items())])
        found = _one(options, nodes)
        failed |= isinstance(found, str)
        rows.append((name, found))
        if options.report or isinstance(found, str):
            print(f"GPUs {name}: {found}\n")
    print(table(rows))
    print(f"predicted for {options.card}, {options.interconnect}; not measured: docs/cluster.md has the errors")
    if options.chart:
        print(f"drew {draw([row for row in rows if not isinstance(row[1], str)], options.chart)}")
    return 1 if failed else 0


def _one(options: argparse.Namespace, nodes: int) -> Any:
    """The report of one cluster, or why there is none."""
    facts = options.card, options.interconnect, 0, options.memory, options.efficiency
    raised: list[BaseException] = []
    hook = sys.excepthook
    try:
        with simulate(nodes, options.gpus_per_node, *facts) as cluster:
            cluster.last = options.steps
            sys.excepthook = lambda kind, error, trace: raised.append(error)
            try:
                with device("cuda") if options.on_card else nullcontext():
                    execute(options)
            except SystemExit as end:
                if end.code and not cluster.steps:
                    return f"the program ended with {end.code!r}"
            finally:
                sys.excepthook = hook
            if raised and isinstance(raised[0], OutOfMemoryError):
                cluster.memory.look(cluster.driver.heap(0))
                lines = cluster.memory.by_line()[:8]
                uses = [f"  {readable(nbytes):>11}  {kind} at {site}" for kind, site, nbytes in lines]
                return "\n".join([str(raised[0]).splitlines()[0], *["in use:", *uses] * bool(uses)])
            if raised:
                hook(type(raised[0]), raised[0], raised[0].__traceback__)
                return f"the program failed: {type(raised[0]).__name__}"
        return cluster.report
    except TritensorError as error:
        return str(error)


def table(rows: Sequence[tuple[str, Any]]) -> str:
    """A line for each cluster."""
    lines = [["GPUs", "step", "memory", "MFU", "waits", "sent", "in the way"]]
    for name, report in rows:
        if isinstance(report, str):
            lines.append([name, "-", "-", "-", "-", "-", report.splitlines()[0]])
            continue
        first = next(iter(report.in_the_way), ("", 0.0))
        waits = sum(report.exposed.values()) / report.seconds if report.seconds else 0.0
        cells = [name, duration(report.seconds), readable(report.peak_memory), f"{report.mfu:.1%}", f"{waits:.1%}"]
        lines.append([*cells, readable(sum(report.sent.values())), f"{first[1]:.0%} {first[0]}"])
    return "\n".join(aligned(lines))
