"""What each row of the GPU table asks of a card at its real shape, counted without a card, and the predicted time.

    python -m benchmarks.budgets [--rows 'softmax_*'] [--jobs 2]    # what has changed since the stored budgets
    python -m benchmarks.budgets --write                            # store what is counted now

The host's part runs as it is; memory of the simulated device is made when it is touched; of a kernel's grid a sample of
blocks is run, and counts are scaled. Numbers are therefore not all computed: what depends on them (which labels, which
places) is that of memory that is mostly zero. Nothing here is a measured time.
"""

from __future__ import annotations

import argparse
import fnmatch
import gc
import json
import multiprocessing
import sys
import time
import traceback
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from importlib.metadata import version
from math import prod
from pathlib import Path
from typing import Any

from benchmarks.compare import RESULTS
from benchmarks.gpu_rows import DEVICE, HOST, ROWS, TRANSFER, Row
from benchmarks.sides import Side
from tritensor import cuda, settings
from tritensor.cuda.profiling import Card, Launch, card
from tritensor.drivers import selection
from tritensor.drivers.compiled import CompiledSimulator
from tritensor.runtime.log import duration

__all__ = ["count", "differences", "documented", "roofline", "shortfalls", "stored"]

BUDGETS = Path(__file__).parent / "budgets" / "sm_90.json"
PAGE = Path(__file__).parent.parent / "docs" / "performance.md"
START, END = "<!-- from benchmarks/budgets by `python -m benchmarks.budgets --write` -->\n\n", "\n<!-- end -->\n"
CARD = "h200"
FAR = 0.75  # of the card's limits; what a row that is compared with a library is listed under
# Blocks that are run of a grid, by the first word of the row's name: one of products, which all do much and the same.
SAMPLES, SAMPLE = {"matmul": 1, "linear": 1, "conv": 1}, 4
# What may grow, by how much: counts that are scaled from samples differ with the samples.
SLACK = {"launches": 0.0, "bytes": 0.02, "sectors": 0.02, "instructions": 0.02, "registers": 0.0, "spilled": 0.0}
SLACK |= {"copied": 0.0, "predicted_us": 0.02}
_LARGE = 1 << 20  # bytes; what is not read back is not written either


class Virtual(CompiledSimulator):
    """A device whose memory is only touched by the blocks that run: it is neither poisoned nor copied at large."""

    def fill(self, address: int, byte: int, nbytes: int, queue: Any) -> None:
        if nbytes < _LARGE:
            super().fill(address, byte, nbytes, queue)

    def copy_d2d(self, target: int, source: int, nbytes: int, queue: Any, devices: tuple[int, int]) -> None:
        if nbytes < _LARGE:
            super().copy_d2d(target, source, nbytes, queue, devices)


@contextmanager
def device(of: Card) -> Iterator[None]:
    """The block's CUDA device is a virtual one of a card's size."""
    driver = Virtual(1, of.memory, of.capability, of.name)
    try:
        with selection.use(driver):
            yield
    finally:
        driver.close()
        settings.changed()


def count(row: Row) -> dict[str, Any]:
    """The budget of a row."""
    import tritensor

    of, sample = card(CARD), SAMPLES.get(row.name.split("_")[0], SAMPLE)
    with device(of), cuda.profile(CARD, sample) as p:
        side = Side("tritensor", tritensor, "cuda")
        case = row.case_for("tritensor")
        with side.precision(row.precision):
            names = side.filled(case)
            code = compile(case.statement, row.name, "eval")
            eval(code, dict(names))  # states of optimizers, tables of addresses, bounds of indices
            tritensor.cuda.synchronize()
            p.launches.clear()
            with cuda.transfers() as moved:
                result = eval(code, dict(names))
                tritensor.cuda.synchronize()
        entry = budget(row, of, p.launches, side.nbytes(result))
        if copied := sum(each.nbytes for each in moved.entries):
            entry["copied"] = copied
        del names, result
    gc.collect()
    return entry


def budget(row: Row, of: Card, launches: list[Launch], results: int) -> dict[str, Any]:
    """What launches ask for, summed, beside the row's targets."""
    shapes, width = row.case.inputs, 4 if row.case.dtype == "float32" else 2
    seconds = sum(launch.predicted.seconds for launch in launches)
    elements = max(map(prod, shapes.values()))
    entry: dict[str, Any] = {"launches": len(launches)}
    if launches:
        longest = max(launches, key=lambda launch: launch.predicted.seconds)
        entry |= {
            "bytes": round(sum(launch.dram for launch in launches)),
            "sectors": round(sum(launch.sectors for launch in launches)),
            "instructions": _short(sum(sum(launch.lanes.values()) for launch in launches) / elements),
            "registers": max(launch.registers for launch in launches),
            "spilled": max(launch.local for launch in launches),
            "blocks": longest.resident,
            "occupancy": round(longest.occupancy, 3),
            "predicted_us": _short(seconds * 1e6),
            "bound": longest.predicted.bound,
        }
    if row.kind == DEVICE:
        moved = row.moved(shapes) if row.moved else sum(map(prod, shapes.values())) * width + results
        units = {"float32": "tf32", "bfloat16": "bf16", "float16": "fp16"}[row.case.dtype]
        work = row.work(shapes) / of.tensor[units] if row.work else 0.0
        entry["least_us"] = _short(max(moved / of.dram, work) * 1e6)
    for peer, target in row.targets.items():
        entry[peer] = [target.gate, target.goal]
    return entry


def _short(number: float) -> float:
    return float(f"{number:.4g}")


def differences(stored: dict[str, Any], found: dict[str, Any]) -> tuple[list[str], list[str]]:
    """What has grown beyond its slack, or of resident blocks shrunk; and all that has changed."""
    grown, changed = [], []
    for key in dict.fromkeys([*stored, *found]):
        before, after = stored.get(key), found.get(key)
        if before == after:
            continue
        changed.append(f"{key} {before} -> {after}")
        more = key in SLACK and (after or 0) > (before or 0) * (1 + SLACK[key])
        if more or (key == "blocks" and (after or 0) < (before or 0)):
            grown.append(changed[-1])
    return grown, changed


def stored() -> dict[str, Any]:
    """The budgets in the repository."""
    return json.loads(BUDGETS.read_text(encoding="utf-8")) if BUDGETS.exists() else {"rows": {}}


def write(rows: dict[str, Any]) -> None:
    """Store budgets, a line a row."""
    lines = [f"  {json.dumps(name)}: {json.dumps(entry)}" for name, entry in rows.items()]
    facts = {"card": CARD, "triton": version("triton"), "times": "predicted, not measured"}
    head = json.dumps(facts, indent=1)[:-2] + ',\n "rows": {\n'
    BUDGETS.parent.mkdir(exist_ok=True)
    BUDGETS.write_text(head + ",\n".join(lines) + "\n }\n}\n", encoding="utf-8")


def measured() -> dict[str, float]:
    """Microseconds that rows took on the card, where a run of `benchmarks.gpu` on it is stored."""
    path = next(RESULTS.glob(f"*{CARD}*.json"), None)
    if path is None:
        return {}
    found = {}
    for name, entry in json.loads(path.read_text(encoding="utf-8"))["rows"].items():
        times = [
            each["ours_us"] for each in (*entry.get("speed", {}).values(), entry.get("alone", {})) if "ours_us" in each
        ]
        if times:
            found[name] = min(times)
    return found


Points = list[tuple[float, float]]


def roofline(rows: dict[str, Any]) -> tuple[dict[str, Points], list[tuple[list[float], list[float], str, str]], Points]:
    """What is predicted of measured rows of a GPU's figures, which know their operations.

    Returns:
        operations per byte and TFLOP/s by dtype; the roofs of bf16 and tf32 as lines with their style and name; and the
        predicted and the measured milliseconds.
    """
    of, times, clock = card(CARD), [], measured()
    points: dict[str, Points] = {"bfloat16": [], "float16": [], "float32": []}
    for name, entry in stored()["rows"].items():
        row = rows.get(name, {})
        if row.get("kind") == DEVICE and "predicted_us" in entry and name in clock:
            times.append((entry["predicted_us"] / 1e3, clock[name] / 1e3))
            if row["operations"]:
                rate = row["operations"] / entry["predicted_us"] / 1e6
                points[row["dtype"]].append((row["operations"] / entry["bytes"], rate))
    low, high = (end((x for each in points.values() for x, _ in each), default=1.0) for end in (min, max))
    roofs = [(of.tensor[unit] / 1e12, unit) for unit in ("bf16", "tf32")]
    slope = of.dram / 1e12
    lines = [([low, y / slope, high], [low * slope, y, y], "-", f"{y:.0f} TFLOP/s, {unit}") for y, unit in roofs]
    return points, lines, times


def shortfalls(rows: dict[str, Any]) -> list[tuple[str, float, str]]:
    """Rows whose predicted time is not enough: name, share of what there is to reach, and the gate.

    Beside the copy ceiling the share is of a copy's predicted speed, and the gate says how much it has to be. Beside a
    library there is nothing to predict, so the share is of the card's own limits, and `FAR` stands in for the gate.
    """
    found = []
    copy = rows["copy_fp32"]["least_us"] / rows["copy_fp32"]["predicted_us"]
    for name, entry in rows.items():
        if "least_us" not in entry:
            continue
        share = entry["least_us"] / entry["predicted_us"]
        if "ceiling" in entry and share / copy < entry["ceiling"][0]:
            found.append((name, share / copy, f"{entry['ceiling'][0]:g} of a copy"))
        elif "ceiling" not in entry and share < FAR:
            gate = f", gate {entry['torch'][0]:g} beside torch" if "torch" in entry else ""
            found.append((name, share, f"{FAR} of the limits{gate}"))
    return found


def table(rows: dict[str, Any]) -> str:
    """The rows that fall short, in Markdown."""
    lines = [
        "| row | predicted | measured | least | share | of | what is in the way | registers, blocks |",
        "|---|---|---|---|---|---|---|---|",
    ]
    known = measured()
    for name, share, gate in shortfalls(rows):
        entry = rows[name]
        seconds = (entry["predicted_us"], known.get(name), entry["least_us"])
        times = " | ".join("" if each is None else duration(each * 1e-6) for each in seconds)
        spilled = f", {entry['spilled']} B spilled" if entry["spilled"] else ""
        sizes = f"{entry['registers']}, {entry['blocks']}{spilled}"
        lines.append(f"| `{name}` | {times} | {share:.2f} | {gate} | {entry['bound']} | {sizes} |")
    return "\n".join(lines) + "\n"


def documented(rows: dict[str, Any]) -> str:
    """The page on performance with the table of these rows."""
    text = PAGE.read_text(encoding="utf-8")
    before, _, rest = text.partition(START)
    return before + START + table(rows) + END + rest.partition(END)[2]


def _counted(name: str) -> tuple[str, dict[str, Any], float]:
    start = time.monotonic()
    try:
        entry = count(next(row for row in ROWS if row.name == name))
    except Exception as error:
        traceback.print_exc()
        entry = {"error": f"{type(error).__name__}: {error}"}
    return name, entry, time.monotonic() - start


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", default="*", metavar="PATTERN", help="rows by name, as in 'matmul_*,copy_*'")
    parser.add_argument("--write", action="store_true", help="store what is counted")
    parser.add_argument("--jobs", type=int, default=2, help="processes (default 2)")
    options = parser.parse_args(arguments)
    kinds = DEVICE, HOST, TRANSFER
    names = [row.name for row in ROWS if row.kind in kinds]
    names = [name for name in names if any(fnmatch.fnmatch(name, each) for each in options.rows.split(","))]
    before, found = stored()["rows"], {}
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(options.jobs, context, max_tasks_per_child=1) as pool:
        for name, entry, seconds in pool.map(_counted, names):
            found[name] = entry
            grown, changed = differences(before.get(name, {}), entry)
            mark = "GROWN  " if grown else "changed" if changed else "as was "
            print(f"{mark} {name:<28}{seconds:6.1f} s  {'; '.join(changed)}", flush=True)
    if options.write:
        order = [row.name for row in ROWS]
        write(dict(sorted({**before, **found}.items(), key=lambda item: order.index(item[0]))))
        PAGE.write_text(documented(stored()["rows"]), encoding="utf-8")
        print(f"wrote {BUDGETS} and {PAGE}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
