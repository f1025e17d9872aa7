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

__all__ = ["draw", "points"]

OURS, THEIRS, GROUND = "#2563eb", "#9ca3af", "#374151"
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
    import matplotlib

    matplotlib.use("agg")
    import matplotlib.pyplot as plt

    found = points(figures)
    slope = figures.get("ceiling", {}).get("bytes_per_second", 0.0)
    roofs = levels(found)
    figure, axes = plt.subplots(figsize=(11, 6.5), dpi=120)
    axes.set_xscale("log")
    axes.set_yscale("log")
    top = max([*roofs.values(), *(point["ours"] for point in found), slope, 1.0])
    left = min([0.02, *(point["intensity"] / 2 for point in found)])
    right = max([10_000.0, *(point["intensity"] * 2 for point in found)])
    if slope:
        end = min(right, 2 * top / slope)
        axes.plot([left, end], [left * slope, end * slope], color=GROUND, lw=1.4)
        axes.annotate(
            f"copy ceiling {slope / 1e12:.2f} TB/s", (left * 1.3, left * slope * 1.6), color=GROUND, fontsize=9
        )
    for units, reached in roofs.items():
        start = max(left, reached / slope) if slope else left
        axes.plot([start, right], [reached, reached], color=GROUND, lw=1.0, ls="--")
        axes.annotate(
            f"{_UNITS[units]} {reached / 1e12:.0f} TFLOP/s",
            (right, reached),
            color=GROUND,
            fontsize=8,
            ha="right",
            va="bottom",
        )
    theirs = [point for point in found if point["theirs"]]
    axes.scatter(
        [p["intensity"] for p in theirs],
        [p["theirs"] for p in theirs],
        s=46,
        facecolors="none",
        edgecolors=THEIRS,
        label="torch",
    )
    axes.scatter([p["intensity"] for p in found], [p["ours"] for p in found], s=16, color=OURS, label="tritensor")
    for point in _spread_out(found):
        axes.annotate(
            point["name"],
            (point["intensity"], point["ours"]),
            fontsize=6,
            color=OURS,
            xytext=(4, -7),
            textcoords="offset points",
        )
    axes.set_xlim(left, right)
    axes.set_xlabel("operations per byte that has to move")
    axes.set_ylabel("operations per second")
    simulated = "SIMULATED, no figures: " if figures.get("simulated") else ""
    axes.set_title(f"{simulated}{figures.get('gpu', '')}, {figures.get('date', '')}")
    axes.grid(True, which="major", color="#e5e7eb", lw=0.6)
    axes.set_axisbelow(True)
    axes.legend(loc="lower right", frameon=False)
    figure.tight_layout()
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path)
    plt.close(figure)
    return path


def _spread_out(found: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The points that are labelled: of overlapping ones only the first."""
    named: list[dict[str, Any]] = []
    for point in found:
        near = (
            abs(point["intensity"] / other["intensity"] - 1) < 0.3 and abs(point["ours"] / other["ours"] - 1) < 0.3
            for other in named
        )
        if not any(near):
            named.append(point)
    return named


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("figures", type=Path, help="what python -m benchmarks.gpu wrote")
    parser.add_argument("picture", type=Path, help="the PNG to draw")
    options = parser.parse_args(arguments)
    print(f"drew {draw(json.loads(options.figures.read_text(encoding='utf-8')), options.picture)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
