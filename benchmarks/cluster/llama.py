"""Llama 3 8B and 70B on 8 to 1,024 H100: memory and time of a step of examples/train_llama.py, with charts.

    python -m benchmarks.cluster.llama [--only 8B]     # predict, store, and write into docs/cluster.md

Nothing is measured. The program is run as one rank of each cluster, a second step is what is shown.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import os
import resource
import runpy
import sys
import time
from pathlib import Path
from typing import Any

from benchmarks.compare import RESULTS
from tritensor.distributed.cluster import draw, simulate
from tritensor.errors import OutOfMemoryError

ROOT = Path(__file__).parents[2]
PROGRAM, PAGE = ROOT / "examples" / "train_llama.py", ROOT / "docs" / "cluster.md"
STORED = RESULTS / "cluster-llama.json"
NODES = (1, 2, 4, 8, 16, 32, 64, 128)
START = "<!-- from benchmarks/results/cluster-llama.json by `python -m benchmarks.cluster.llama` -->\n"
END = "<!-- end -->"
# name, options of the program by the number of machines, sequences of each rank in a step, ranks that share them
VARIANTS: dict[str, Any] = {
    "8B, fully sharded": (lambda nodes: ["--size", "8B"], 1, 1),
    "8B, sharded within machines (HSDP)": (lambda nodes: ["--size", "8B", "--copies", str(nodes)], 1, 1),
    "70B, fully sharded, recomputed": (lambda nodes: ["--size", "70B", "--recompute", "1"], 1, 1),
    "70B, divided by 8 (TP), fully sharded, recomputed": (
        lambda nodes: ["--size", "70B", "--recompute", "1", "--tp", "8", "--batch", "4"],
        4,
        8,
    ),
}
SEQUENCE = 8192


def run(nodes: int, options: list[str]) -> Any:
    """The report of a step, or the first line of why it does not fit."""
    before, sys.argv = sys.argv, [str(PROGRAM), *options]
    try:
        with simulate(nodes=nodes, gpus_per_node=8, card="h100", interconnect="ib-400") as cluster:
            cluster.last = 2
            with contextlib.suppress(SystemExit), contextlib.redirect_stdout(io.StringIO()):
                runpy.run_path(str(PROGRAM), run_name="__main__")
        return cluster.report
    except OutOfMemoryError as error:
        return str(error).splitlines()[0]
    finally:
        sys.argv = before


def entry(report: Any, batch: int, sharing: int) -> dict[str, Any]:
    """What is stored of a report."""
    waits = sum(report.exposed.values()) / report.seconds
    return {
        "seconds": round(report.seconds, 5),
        "tokens": round(batch * SEQUENCE / sharing / report.seconds),
        "peak": report.peak_memory,
        "memory": report.memory,
        "mfu": round(report.mfu, 4),
        "waits": round(waits, 4),
        "sent": sum(report.sent.values()),
        "in_the_way": [[name, round(share, 3)] for name, share in report.in_the_way[:3]],
    }


def table(found: dict[str, Any]) -> str:
    """The tables and charts in Markdown."""
    lines = []
    for number, (name, rows) in enumerate(found.items()):
        lines += [f"**Llama 3 {name}**", "", f"![{name}](pictures/cluster-llama-{number + 1}.png)", ""]
        lines += ["| GPUs | s a step | tokens/s/GPU | GiB | MFU | waits | sent, GiB | in the way |"]
        lines += ["|---|---|---|---|---|---|---|---|"]
        for gpus, row in rows.items():
            if isinstance(row, str):
                lines.append(f"| {gpus} | does not fit | | | | | | {row} |")
                continue
            way, share = row["in_the_way"][0]
            lines.append(
                f"| {gpus} | {row['seconds']:.2f} | {row['tokens']:,} | {row['peak'] / 2**30:.1f} | {row['mfu']:.1%} | "
                f"{row['waits']:.1%} | {row['sent'] / 2**30:.1f} | {share:.0%} {way} |"
            )
        lines.append("")
    return "\n".join(lines)


def main() -> None:
    """Predict and write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="names that contain it")
    given = parser.parse_args()
    stored: dict[str, Any] = {"what": "predicted, not measured", "runs": {}}
    if STORED.exists():
        stored = json.loads(STORED.read_text(encoding="utf-8"))
    for number, (name, (options, batch, sharing)) in enumerate(VARIANTS.items(), 1):
        if given.only not in name:
            continue
        rows, reports = {}, []
        for nodes in NODES:
            began = time.perf_counter()
            report = run(nodes, options(nodes))
            rows[str(8 * nodes)] = report if isinstance(report, str) else entry(report, batch, sharing)
            if not isinstance(report, str):
                reports.append((str(8 * nodes), report))
            most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
            took = time.perf_counter() - began
            print(f"{name}, {8 * nodes} GPUs: took {took:.1f} s, {most:.2f} GiB of this machine", flush=True)
        draw(reports, PAGE.parent / "pictures" / f"cluster-llama-{number}.png")
        stored["runs"][name] = rows
        STORED.write_text(json.dumps(stored, indent=1) + "\n", encoding="utf-8")
    page = PAGE.read_text(encoding="utf-8")
    before, rest = page.split(START)
    runs = {name: stored["runs"][name] for name in VARIANTS if name in stored["runs"]}
    PAGE.write_text(before + START + "\n" + table(runs) + "\n" + END + rest.split(END, 1)[1], encoding="utf-8")


if __name__ == "__main__":
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    main()
