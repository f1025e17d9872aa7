"""Charts of steps on clusters: memory by kind, time by what it goes to, and the share of the cards' operations."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, TypeAlias

from ...cuda.profiling.roofline import pyplot, saved
from .memory import KINDS
from .report import Report

Axes: TypeAlias = Any  # and whatever else is matplotlib's, which is not needed to import this

_COLOURS = (
    "#1d4ed8",
    "#60a5fa",
    "#0f766e",
    "#f59e0b",
    "#a855f7",
    "#ec4899",
    "#f472b6",
    "#84cc16",
    "#94a3b8",
    "#64748b",
)
_TIMES = (
    ("products", "#1d4ed8"),
    ("other kernels", "#60a5fa"),
    ("waiting for messages", "#dc2626"),
    ("no kernel", "#cbd5e1"),
)


def times(report: Report) -> list[float]:
    """The seconds of a step by what they go to: products, other kernels, waiting for messages, nothing."""
    waits = sum(report.exposed.values())
    products = min(report.products, report.computing)
    return [products, report.computing - products, waits, max(report.seconds - report.computing - waits, 0.0)]


def draw(rows: Sequence[tuple[str, Report]], path: str | Path) -> Path:
    """Draw a step on several clusters into a PNG or SVG; returns its path.

    Args:
        rows: names, as numbers of GPUs, and reports.

    Raises:
        DeviceError: matplotlib is not installed.
    """
    plt = pyplot("charts are")
    figure, (left, middle, right) = plt.subplots(1, 3, figsize=(13, 4.2), dpi=120)
    names, reports = [name.replace(", ", "\n") for name, _ in rows], [report for _, report in rows]
    stacked(left, names, [[r.memory.get(kind, 0) / 2**30 for r in reports] for kind in KINDS], KINDS, _COLOURS)
    if reports:
        left.axhline(reports[0].capacity / 2**30, color="#dc2626", lw=1, ls="--")
    left.set_ylabel("GiB of a card at the peak")
    parts = list(zip(*map(times, reports), strict=True))
    stacked(middle, names, parts, [name for name, _ in _TIMES], [colour for _, colour in _TIMES])
    middle.set_ylabel("seconds a step, predicted")
    right.plot(names, [100 * r.mfu for r in reports], marker="o", color="#1d4ed8", label="MFU")
    right.plot(names, [100 * r.hfu for r in reports], marker="o", color="#94a3b8", label="HFU")
    right.set_ylabel("% of the cards' operations")
    right.set_ylim(bottom=0)
    for axes in (left, middle, right):
        axes.set_xlabel("GPUs")
        axes.tick_params(axis="x", labelsize=8)
        axes.spines[["top", "right"]].set_visible(False)
        axes.legend(fontsize=7, frameon=False, ncols=3, loc="lower center", bbox_to_anchor=(0.5, 1.0))
    return saved(figure, Path(path))


def stacked(
    axes: Axes, names: Sequence[str], parts: Sequence[Sequence[float]], labels: Sequence[str], colours: Sequence[str]
) -> None:
    """Bars of parts upon each other; of labels only those that show."""
    base = [0.0] * len(names)
    for values, label, colour in zip(parts, labels, colours, strict=False):
        if any(values):
            axes.bar(names, values, bottom=base, label=label, color=colour, width=0.7)
            base = [low + value for low, value in zip(base, values, strict=True)]


def draw_memory(report: Report, path: str | Path) -> Path:
    """Draw the memory in use over a step; as `draw`."""
    plt = pyplot("charts are")
    figure, axes = plt.subplots(figsize=(9, 3.6), dpi=120)
    seconds, nbytes = zip(*report.memory_over_time, strict=True) if report.memory_over_time else ((0.0,), (0,))
    axes.fill_between(seconds, [each / 2**30 for each in nbytes], step="post", color="#60a5fa", lw=0)
    axes.axhline(report.capacity / 2**30, color="#dc2626", lw=1, ls="--")
    axes.set_xlabel("seconds of the step, predicted")
    axes.set_ylabel("GiB in use")
    axes.spines[["top", "right"]].set_visible(False)
    return saved(figure, Path(path))
