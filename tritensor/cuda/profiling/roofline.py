"""Draws a roofline: operations a second over operations a byte, below the limits of memory and units."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

from ...errors import DeviceError

Figure: TypeAlias = Any  # matplotlib's, which is not needed to import this
OURS, THEIRS, GROUND = "#2563eb", "#9ca3af", "#374151"


def pyplot(what: str) -> Any:
    """matplotlib's pyplot, which draws into files alone.

    Raises:
        DeviceError: matplotlib is not installed.
    """
    try:
        import matplotlib
    except ImportError as error:
        raise DeviceError(f"{what} drawn by matplotlib", remedy="pip install matplotlib") from error
    matplotlib.use("agg")
    import matplotlib.pyplot as plt

    return plt


def saved(figure: Figure, path: Path) -> Path:
    """Write a figure to a file, whose folder is made, and forget it."""
    figure.tight_layout()
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path)
    pyplot("figures are").close(figure)
    return path


def draw(
    path: Path,
    points: Sequence[Mapping[str, Any]],
    slope: float,
    roofs: Mapping[str, float],
    title: str,
    names: tuple[str, str, str],
) -> Path:
    """Draw a PNG; returns its path.

    Args:
        points: each with "name", "intensity" in operations a byte, "ours" in operations a second, and "theirs" or None.
        slope: bytes a second.
        roofs: operations a second by the name of the units.
        names: of the slope, of our points, of the others.

    Raises:
        DeviceError: matplotlib is not installed.
    """
    plt = pyplot("a roofline is")
    figure, axes = plt.subplots(figsize=(11, 6.5), dpi=120)
    axes.set_xscale("log")
    axes.set_yscale("log")
    top = max([*roofs.values(), *(point["ours"] for point in points), slope, 1.0])
    left = min([0.02, *(point["intensity"] / 2 for point in points)])
    right = max([10_000.0, *(point["intensity"] * 2 for point in points)])
    if slope:
        end = min(right, 2 * top / slope)
        axes.plot([left, end], [left * slope, end * slope], color=GROUND, lw=1.4)
        place = left * 1.3, left * slope * 1.6
        axes.annotate(f"{names[0]} {slope / 1e12:.2f} TB/s", place, color=GROUND, fontsize=9)
    for units, reached in roofs.items():
        start = max(left, reached / slope) if slope else left
        axes.plot([start, right], [reached, reached], color=GROUND, lw=1.0, ls="--")
        text = f"{units} {reached / 1e12:.0f} TFLOP/s"
        axes.annotate(text, (right, reached), color=GROUND, fontsize=8, ha="right", va="bottom")
    if theirs := [point for point in points if point.get("theirs")]:
        places = [p["intensity"] for p in theirs], [p["theirs"] for p in theirs]
        axes.scatter(*places, s=46, facecolors="none", edgecolors=THEIRS, label=names[2])
    axes.scatter([p["intensity"] for p in points], [p["ours"] for p in points], s=16, color=OURS, label=names[1])
    for point in _spread_out(points):
        place, near = (point["intensity"], point["ours"]), (4, -7)
        axes.annotate(point["name"], place, fontsize=6, color=OURS, xytext=near, textcoords="offset points")
    axes.set_xlim(left, right)
    axes.set_xlabel("operations per byte that has to move")
    axes.set_ylabel("operations per second")
    axes.set_title(title)
    axes.grid(True, which="major", color="#e5e7eb", lw=0.6)
    axes.set_axisbelow(True)
    axes.legend(loc="lower right", frameon=False)
    return saved(figure, path)


def _spread_out(points: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """The points that are labelled: of overlapping ones only the first."""
    named: list[Mapping[str, Any]] = []
    for point in points:
        near = (
            abs(point["intensity"] / other["intensity"] - 1) < 0.3 and abs(point["ours"] / other["ours"] - 1) < 0.3
            for other in named
        )
        if not any(near):
            named.append(point)
    return named
