"""Charts of stored figures, read without colour: each peer has a marker and a line style of its own."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from .pictures import COLOURS, plot, standalone

__all__ = ["PEERS", "peers_of", "ratios", "scatter", "sizes", "speed"]

AXIS = "tritensor's time / the other's: left of 1 tritensor is faster"
PEERS = {"numpy": "NumPy", "torch": "PyTorch", "torch_all": "PyTorch, all threads"}
_TEXT, *_COLOURS = (COLOURS[name][0] for name in ("text", "ours", "theirs", "third"))
Rows = Sequence[tuple[str, Mapping[str, float]]]


def ratios(title: str, rows: Rows, axis: str = AXIS, draw: Any = plot, width: float = 6.0) -> str:
    """Rows of dots on a logarithmic axis, one a peer, with their numbers where the rows are few."""
    few = len(rows) < 12

    def drawn(figure: Any) -> None:
        axes = figure.subplots()
        axes.set_xscale("log", base=2)
        axes.axvline(1, color=_TEXT, linewidth=1)
        for number, peer in enumerate(dict.fromkeys(peer for _, each in rows for peer in each)):
            found = [(each[peer], place) for place, (_, each) in enumerate(rows) if peer in each]
            axes.plot(*zip(*found, strict=True), linestyle="none", label=peer, markersize=5)
            for at in found if few else ():
                text, away = f"{at[0]:.2f}" if at[0] > 0.1 else f"{at[0]:.2g}", (0, (5, -13)[number % 2])
                axes.annotate(text, at, away, textcoords="offset points", ha="center", fontsize=9)
        axes.set_yticks(range(len(rows)), [title if len(title) < 42 else title[:40] + "…" for title, _ in rows])
        axes.set(ylim=(len(rows) - 0.4, -0.6))
        axes.margins(x=0.08)
        axes.set_xlabel(axis, loc="right")
        axes.xaxis.set_major_formatter(lambda value, _: f"{value:g}" if value >= 1 else f"1/{1 / value:g}")
        figure.legend(loc="outside upper right", ncols=3)

    return str(draw(title, drawn, width, 1 + len(rows) * (0.45 if few else 0.2))) if rows else ""


def peers_of(case: Mapping[str, Any], *peers: str) -> dict[str, float]:
    """The ratios of a row of `benchmarks.compare` by the names of the peers."""
    return {PEERS[peer]: case["speed"][peer]["ratio"] for peer in peers or PEERS if peer in case["speed"]}


def speed(figures: Mapping[str, Any], names: Iterable[str], draw: Any = standalone) -> str:
    """Rows of `benchmarks.compare` on one thread: a file, which follows the reader's light or dark mode."""
    cases = [figures["cases"][name] for name in names if name in figures["cases"]]
    rows = [(case["title"], peers_of(case, "numpy", "torch")) for case in cases]
    told = "; ".join(f"{title}: {', '.join(f'{peer} {x:.2f}' for peer, x in each.items())}" for title, each in rows)
    return ratios(f"{AXIS}. {told}", rows, draw=draw, width=6.5)


def sizes(title: str, figures: Mapping[str, Any]) -> str:
    """The times of `benchmarks.sizes` against the number of elements."""
    lines = {"tritensor": ("torch", "ours_us"), "NumPy": ("numpy", "theirs_us"), "PyTorch": ("torch", "theirs_us")}

    def draw(figure: Any) -> None:
        for axes, case in zip(figure.subplots(3, 2, sharex=True).flat, figures["cases"].values(), strict=True):
            for name, (peer, whose) in lines.items():
                found = [(int(count), row[peer][whose]) for count, row in case["sizes"].items()]
                axes.loglog(*zip(*found, strict=True), label=name)
            axes.set_title(case["title"], fontsize=10)
            axes.minorticks_off()
        figure.supxlabel("elements", fontsize=10)
        figure.supylabel("microseconds", fontsize=10)
        figure.legend(*axes.get_legend_handles_labels(), loc="outside upper center", ncols=3)

    return plot(title, draw, height=7.0)


def scatter(title: str, points: Mapping[str, Any], lines: Iterable[tuple[Any, Any, str, str]], x: str, y: str) -> str:
    """Groups of points and named lines (xs, ys, style, name) on two logarithmic axes."""

    def draw(figure: Any) -> None:
        axes = figure.subplots()
        for xs, ys, style, name in lines:
            axes.plot(xs, ys, style, color=_TEXT, marker="none", linewidth=1)
            axes.annotate(name, (xs[1], ys[1]), (-3, 2), textcoords="offset points", ha="right", fontsize=9)
        for colour, marker, (name, each) in zip(_COLOURS, "os^", points.items(), strict=False):
            axes.plot(*zip(*each, strict=True), marker, color=colour, markerfacecolor="none", label=name)
        axes.set(xscale="log", yscale="log", xlabel=x, ylabel=y)
        figure.legend(loc="outside upper center", ncols=3)

    return plot(title, draw, height=4.6)
