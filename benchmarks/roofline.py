"""The roofline of a GPU's figures: the speed of each row, below the limits of memory and matrix units.

    python -m benchmarks.roofline benchmarks/results/NAME.json out.png

The slope is the copy ceiling of the run. The levels are the fastest product of each dtype that the run has seen, of
either library: nothing in the picture comes from a datasheet. Needs matplotlib.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

from tritensor.cuda.profiling import roofline

__all__ = ["draw", "points"]

_UNITS = {"bfloat16": "bf16", "float16": "fp16", "float32": "fp32", "tf32": "tf32"}


def points(figures: dict[str, Any]) -> list[dict[str, Any]]:
    """The rows that are in the picture: operations per byte, and operations a second of ours and of torch."""
    found = []
    for name, row in figures["rows"].items():
        speed = row.get("speed", {})
        times = [entry["ours_us"] for entry in speed.values() if "ours_us" in entry]
        if row.get("kind") != "device" or not times or not row["bytes"] or not row["operations"]:
            continue
        torch = [entry["theirs_us"] for peer, entry in speed.items() if peer.startswith("torch") and "ours_us" in entry]
        found.append(
            {
                "name": name,
                "units": "tf32" if name.startswith("matmul_tf32") else row["dtype"],
                "product": name.startswith("matmul"),
                "intensity": row["operations"] / row["bytes"],
                "ours": row["operations"] / (min(times) * 1e-6),
                "theirs": row["operations"] / (min(torch) * 1e-6) if torch else None,
            }
        )
    return found


def levels(found: list[dict[str, Any]]) -> dict[str, float]:
    """Operations a second of the fastest product, by the units it ran on."""
    highest: dict[str, float] = {}
    for point in found:
        if point["product"]:
            reached = max(point["ours"], point["theirs"] or 0.0)
            highest[point["units"]] = max(highest.get(point["units"], 0.0), reached)
    return highest


def draw(figures: dict[str, Any], path: Path) -> Path:
    """Draw the figures of `benchmarks.gpu` into a PNG; returns its path."""
    found = points(figures)
    slope = figures.get("ceiling", {}).get("bytes_per_second", 0.0)
    roofs = {_UNITS[units]: reached for units, reached in levels(found).items()}
    simulated = "SIMULATED, no figures: " if figures.get("simulated") else ""
    title = f"{simulated}{figures.get('gpu', '')}, {figures.get('date', '')}"
    return roofline.draw(path, found, slope, roofs, title, ("copy ceiling", "tritensor", "torch"))


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("figures", type=Path, help="what python -m benchmarks.gpu wrote")
    parser.add_argument("picture", type=Path, help="the PNG to draw")
    options = parser.parse_args(arguments)
    print(f"drew {draw(json.loads(options.figures.read_text(encoding='utf-8')), options.picture)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
