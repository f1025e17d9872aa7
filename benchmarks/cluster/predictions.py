"""Predicts every published run with `distributed.simulate`, and stores what it found.

    python -m benchmarks.cluster.predictions [--only 'torchtitan-*'] [--jobs 2]

Nothing is measured here: results are predicted seconds and bytes of one rank, for kernels at several shares of their
predicted speed, from which `benchmarks.cluster.table` takes the share that a run of the smallest size had.
"""

from __future__ import annotations

import argparse
import fnmatch
import json
import sys
import time
import traceback
from concurrent.futures import ProcessPoolExecutor
from typing import Any

from benchmarks.compare import RESULTS

from .recipes import runs

STORED = RESULTS / "cluster.json"
#: shares of the predicted speed of kernels that times are stored for
MICRO = 6  # micro steps, from which on not all are run
SHARES = [round(1.3 - 0.05 * step, 2) for step in range(20)]
# Gbit/s of each card between machines where a run's source names none: NVIDIA's DGX of that card, and for torchtitan's
# A100 the 400 Gbit/s of each machine of AWS p4de that an issue names.
NETWORKS = {"a100": 200, "h100": 400, "h200": 400, "b200": 400}
NAMED = {"torchtitan-*a100*": 50, "mpt-*a100*": 200, "fms-*a100*": 50, "fms-*h100*": 100}


def cluster_of(run: dict[str, Any]) -> dict[str, Any]:
    """The arguments of `simulate` for a run."""
    card = run["card"].split("-")[0]
    per_node = run["gpus_per_node"] or 8
    gigabits = next((found for name, found in NAMED.items() if fnmatch.fnmatch(run["name"], name)), NETWORKS[card])
    return {
        "nodes": max(-(-run["gpus"] // per_node), 1),
        "gpus_per_node": min(per_node, run["gpus"]),
        "card": card,
        "interconnect": f"ib-{gigabits}",
        "memory": "400GB",  # what is predicted too large is an error, too, and not a run that ends
    }


def report_of(run: dict[str, Any], micro: int) -> Any:
    """The second step of a run with so many micro steps."""
    from tritensor.distributed.cluster import simulate

    from .training import train

    with simulate(**cluster_of(run)) as cluster:
        train(run | {"accumulation": micro}, steps=2)
    return cluster.report


def predicted(name: str) -> dict[str, Any]:
    """The prediction of a run; of many micro steps, which are all alike behind the first, two and three are run."""
    run, began = runs()[name], time.perf_counter()
    count = run["accumulation"]
    few = report_of(run, 2) if count > MICRO else None
    report = report_of(run, 3 if few else count)
    seconds = {share: report.seconds_at(share) for share in SHARES}
    if few:
        seconds = {share: s + (count - 3) * (s - few.seconds_at(share)) for share, s in seconds.items()}
    return {
        "tokens": run["local_batch"] * run["accumulation"] * run["model"]["sequence"] // run["parallel"]["tp"],
        "interconnect": report.network,
        "seconds": {f"{share:g}": round(each, 5) for share, each in seconds.items()},
        "peak": report.peak_memory,
        "reserved": report.reserved_memory,
        "memory": report.memory,
        "mfu": round(report.mfu, 4),
        "waits": round(sum(report.exposed.values()), 5),
        "sent": dict(report.sent),
        "took": round(time.perf_counter() - began, 1),
    }


def _attempt(name: str) -> tuple[str, Any]:
    try:
        return name, predicted(name)
    except Exception:
        return name, traceback.format_exc()


def stored() -> dict[str, Any]:
    """The stored predictions by name."""
    return json.loads(STORED.read_text(encoding="utf-8"))["runs"] if STORED.exists() else {}


def store(found: dict[str, Any]) -> None:
    """Store predictions, a line each."""
    lines = [f"  {json.dumps(name)}: {json.dumps(entry)}" for name, entry in sorted(found.items())]
    head = '{\n "what": "predicted by tritensor.distributed.simulate, nothing measured",\n "runs": {\n'
    STORED.write_text(head + ",\n".join(lines) + "\n }\n}\n", encoding="utf-8")


def main() -> int:
    """Predict runs and store what was found; returns 1 if one could not be."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="*", default=["*"], metavar="PATTERN")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--missing", action="store_true", help="only runs without a stored prediction")
    given = parser.parse_args()
    found, failed = stored(), 0
    names = [name for name in runs() if any(fnmatch.fnmatch(name, pattern) for pattern in given.only)]
    names = [name for name in names if not (given.missing and name in found)]
    with ProcessPoolExecutor(given.jobs) as pool:
        for done, (name, entry) in enumerate(pool.map(_attempt, names), 1):
            if isinstance(entry, str):
                failed += 1
                print(f"{done}/{len(names)} {name}: could not be predicted\n{entry}", file=sys.stderr, flush=True)
                continue
            found = stored() | {name: entry}
            store(found)
            speed = entry["tokens"] / entry["seconds"]["1"]
            print(f"{done}/{len(names)} {name}: {speed:.0f} tokens/s, {entry['took']} s", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
