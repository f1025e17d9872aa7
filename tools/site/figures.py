"""The pages of figures: what `benchmarks/results/` holds, as charts and tables. No figure is typed."""

from __future__ import annotations

import html
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from benchmarks import budgets, published, table
from benchmarks.compare import duration
from benchmarks.sizes import by_thread
from benchmarks.table import stored

from .charts import PEERS, peers_of, ratios, scatter, sizes, speed
from .operators import heading
from .pictures import plot

__all__ = ["front", "pages"]


def page(title: str, *parts: str) -> str:
    """A page of paragraphs, of HTML, and of headings, which begin with "# "."""
    lines = heading(title)
    for part in parts:
        if part.startswith("<"):
            lines += [".. raw:: html", "", *(f"   {line}" for line in part.split("\n")), ""]
        elif part.startswith("# "):
            lines += [part[2:], "-" * len(part), ""]
        elif part:
            lines += [part, ""]
    return "\n".join(lines)


def grid(heads: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    """A table of HTML, whose first column is text and whose others are numbers."""
    head = "".join(
        f'<th scope="col"{" class=number" * bool(k)}>{html.escape(each)}</th>' for k, each in enumerate(heads)
    )
    cells = ("".join(f"<td{' class=number' * bool(k)}>{each}</td>" for k, each in enumerate(row)) for row in rows)
    body = "\n".join(f"<tr>{each}</tr>" for each in cells)
    return f'<div class="figures"><table><thead>\n<tr>{head}</tr>\n</thead><tbody>\n{body}\n</tbody></table></div>'


def comparison(cases: Mapping[str, Any], peers: Iterable[str]) -> str:
    """The rows of a comparison: times, ratios and their targets."""
    rows = []
    for name, case in cases.items():
        wrong = "" if case.get("accuracy", {}).get("accurate", True) else " <b>inaccurate</b>"
        title = f'<span id="{html.escape(name)}">{html.escape(case["title"])}</span>{wrong}'
        cells = [title, duration(next(iter(case["speed"].values()))["ours_us"])]
        for entry in map(case["speed"].get, peers):
            cells += [duration(entry["theirs_us"]) if entry else "", table.cell(entry)]
        rows.append(cells)
    return grid(["", "tritensor", *(each for peer in peers for each in (PEERS[peer], "ratio"))], rows)


def machine(figures: Mapping[str, Any], source: str) -> str:
    """Where, when and with what the figures were measured."""
    known = figures.get("machine", {})
    where = [figures.get("gpu"), *(known.get(key) for key in ("processor", "system", "device"))]
    rows = {
        "machine": ", ".join(filter(None, where)) + (f"; {known['cores']} cores" if "cores" in known else ""),
        "versions": ", ".join(f"{name} {version}" for name, version in figures.get("versions", {}).items()),
        "measured": f"{figures.get('date', '')} at commit {figures['commit'][:10]}" if "commit" in figures else "",
        "load before": f"{known['load_before']} processes ready to run" if "load_before" in known else "",
        "figures": f"benchmarks/results/{source}",
    }
    lines = [".. list-table::", "   :class: facts", "   :stub-columns: 1", "   :widths: auto", ""]
    return "\n".join([*lines, *(f"   * - {name}\n     - {text}" for name, text in rows.items() if text)])


RATIO = (
    "A ratio is tritensor's time divided by the peer's: below 1 tritensor is faster. It is the median of blocks that "
)
RATIO += "take turns in one process. Its target stands beside it, where it has one; ▲ marks a ratio above its target."


def _cpu() -> str:
    figures = stored("cpu.json")
    every = figures["threads"].get("torch_all", 1)
    return page(
        "CPU, beside NumPy and PyTorch",
        machine(figures, "cpu.json"),
        RATIO,
        f"Beside NumPy and PyTorch each library has one thread; all threads are {every}. Made by "
        "``python -m benchmarks.compare --device cpu``. Reasons of rows above their targets: :doc:`/performance`.",
        ratios("Ratios of all rows", [(case["title"], peers_of(case)) for case in figures["cases"].values()]),
        "# All rows",
        comparison(figures["cases"], PEERS),
    )


def _by_size() -> str:
    figures = stored("sizes.json")
    every = figures["threads"]["torch_all"]
    return page(
        "CPU, by size and thread",
        machine(figures, "sizes.json"),
        "Square matrices of float32, one thread, tritensor without native code as in the default install. Made by "
        "``python -m benchmarks.sizes``.",
        sizes("Time against elements on one thread, both axes logarithmic", figures),
        "# Threads",
        f"Each library beside itself: its time on {every} threads divided by that on one.",
        ratios("Time by thread", by_thread(figures), f"time on {every} threads / on 1: left of 1 threads help"),
    )


def _host() -> str:
    cases = stored("host.json")["cases"]
    return page(
        "The host's part of a GPU call",
        machine(stored("host.json"), "host.json"),
        "Calls on a device whose driver is a stub that returns at once: dispatch, replay, memory, launch and tape are "
        "the real ones. The peer is PyTorch's same call on the CPU. Made by ``python -m benchmarks.host``.",
        RATIO,
        ratios("Ratios to PyTorch's call on the CPU", [(case["title"], peers_of(case)) for case in cases.values()]),
        comparison(cases, ["torch"]),
    )


def _gpu() -> str:
    figures = table.gpu_figures()
    if figures is None:
        return page("GPU, beside PyTorch and CuPy", "No figure of a GPU is stored in benchmarks/results.")
    torch = {"torch": "PyTorch", "torch fused": "PyTorch, fused", "torch foreach": "PyTorch, foreach"}
    beside, copies, rows = [], [], []
    for case in figures["rows"].values():
        found = {peer: each for peer, each in case.get("speed", {}).items() if each.get("ratio") is not None}
        ratio = {peer: each["ours_us"] / each["theirs_us"] for peer, each in found.items()}
        beside.append((case.get("title"), {torch[peer]: x for peer, x in ratio.items() if peer in torch}))
        copies += [(case["title"], {"copy of as many bytes": ratio["ceiling"]})] if "ceiling" in ratio else []
        for peer, each in found.items():
            target = "" if each.get("gate") is None else ("≤ " if each["below"] else "≥ ") + f"{each['gate']:.2f}"
            times = duration(each["ours_us"]), html.escape(peer), duration(each["theirs_us"])
            rows.append((html.escape(case["title"]), *times, f"{ratio[peer]:.2f}", target))
    axis = "tritensor's time / that of a copy of as many bytes: 1 is the limit"
    return page(
        "GPU, beside PyTorch and CuPy",
        machine(figures, "nvidia-h200.json"),
        "A ratio is tritensor's time divided by the peer's. Made by ``python -m benchmarks.gpu``.",
        ratios(f"Measured on {figures['gpu']}, beside PyTorch", [each for each in beside if each[1]]),
        "# Limited by memory",
        ratios(f"Measured on {figures['gpu']}, beside a copy", copies, axis),
        "# All rows",
        "Targets with ≥ are of the speed, the peer's time divided by tritensor's, those with ≤ of the ratio.",
        grid(["", "tritensor", "beside", "", "ratio", "target"], rows),
    )


def _predicted() -> str:
    measured = table.gpu_figures() or {"rows": {}, "gpu": "", "date": "", "commit": ""}
    points, lines, times = budgets.roofline(measured["rows"])
    same = [([1e-3, 1e2], [1e-3 * f, 1e2 * f], style, "") for f, style in ((1, "-"), (1.25, ":"), (0.8, ":"))]
    axes = "predicted milliseconds", "measured milliseconds"
    return page(
        "Predicted times",
        "``cuda.profile`` counts what compiled kernels ask of a card and predicts their times; how, and how far it is "
        "off: :doc:`/performance`.",
        "# Roofline of an H200, predicted",
        "Every point is predicted, none is measured: a row of the GPU's table by the counts in benchmarks/budgets. "
        "Slope and levels are those of the data sheet.",
        scatter("Predicted kernels", points, lines, "operations per byte of DRAM", "predicted TFLOP/s"),
        "# Measured rows",
        f"{len(times)} rows measured on {measured['gpu']}, {measured['date']}, at commit {measured['commit']}, beside "
        "the prediction for the kernels of today. Dotted lines: 25 % off.",
        scatter("Measured against predicted times", {"tritensor": times}, same, *axes),
        "# Rows that others published",
        "Kernels of others, measured by others on A100 and H100 (sources: benchmarks/published.json), beside the "
        "prediction for the same kernel, size and card.",
        scatter("Published against predicted times", published.pairs(), same, *axes),
    )


def _simulated() -> str:
    figures, rows = stored("simulation.json"), {}
    for found, name, way in (
        (stored("native.json"), "machine code", -1),
        (figures, "compiled for a card, in NumPy", 1),
    ):
        for case in found["cases"].values():
            if "ratio" in case:
                rows.setdefault(case["title"], {})[name] = case["ratio"] ** way
    return page(
        "Simulated devices",
        machine(figures, "simulation.json and native.json"),
        "The time of a call on a simulated device, divided by that in Triton's interpreter. Made by "
        "``python -m benchmarks.simulation`` and ``benchmarks.native``.",
        ratios("Time by engine", [*rows.items()], "time / that of the interpreter: left of 1 is faster"),
    )


def front() -> str:
    """The chart of the front page, as HTML."""
    figures = stored("cpu.json")
    told = "One thread of {machine[processor]}, numpy {versions[numpy]}, torch {versions[torch]}, {date}".format(
        **figures
    )
    link = '<a href="benchmarks/index.html">All figures</a>'
    return speed(figures, table.ROWS, plot) + f'<p class="told">{html.escape(told)}. {link}</p>\n'


PAGES = {each.__name__[1:]: each for each in (_cpu, _by_size, _gpu, _host, _predicted, _simulated)}


def pages() -> Iterator[tuple[str, str]]:
    """The names of the pages' files and their texts."""
    text = "Drawn from the figures in benchmarks/results. How they are measured, and why rows miss their targets:"
    text += " :doc:`/performance`. Clusters, predicted and published: :doc:`/cluster`."
    yield "index.rst", page("Benchmarks", text, "\n   ".join([".. toctree::\n", *PAGES]))
    for name, each in PAGES.items():
        yield f"{name}.rst", each()
    yield "front.html", front()
