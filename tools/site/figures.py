"""The pages of figures: what `benchmarks/results/` holds, as tables with bars. No figure is typed."""

from __future__ import annotations

import html
import json
import math
from collections.abc import Iterator
from typing import Any

from benchmarks import table
from benchmarks.cases import ALL_THREADS
from benchmarks.compare import RESULTS, duration

from .operators import heading

__all__ = ["front", "pages"]

WIDEST = 16.0  # the ratio at which a bar is as long as it can be
PEERS = {"numpy": "NumPy", "torch": "torch", ALL_THREADS: "torch, all threads"}


def bar(ratio: float) -> str:
    """A bar from the middle: to the left where tritensor is faster, to the right where it is slower."""
    share = max(-1.0, min(1.0, math.log(ratio) / math.log(WIDEST)))
    start = 50 + min(0.0, share) * 50
    kind = "faster" if ratio <= 1 else "slower"
    return f'<span class="bar"><i class="{kind}" style="left:{start:.1f}%;width:{abs(share) * 50:.1f}%"></i></span>'


def comparison(cases: dict[str, Any], peers: list[str]) -> str:
    """The rows of a comparison as a table of HTML, with a bar for each ratio."""
    heads = "".join(f'<th colspan="2">beside {PEERS[peer]}</th>' for peer in peers)
    lines = [f'<div class="figures"><table><thead><tr><th></th><th>tritensor</th>{heads}</tr></thead><tbody>']
    for name, case in cases.items():
        speed = case["speed"]
        ours = duration(next(iter(speed.values()))["ours_us"])
        wrong = "" if case.get("accuracy", {}).get("accurate", True) else " <b>inaccurate</b>"
        cells = f'<td id="{html.escape(name)}">{html.escape(case["title"])}{wrong}</td><td class="number">{ours}</td>'
        for peer in peers:
            entry = speed.get(peer)
            if entry is None:
                cells += '<td class="number"></td><td></td>'
                continue
            low, high = entry["spread"]
            told = f"{duration(entry['ours_us'])} beside {duration(entry['theirs_us'])}, ratio {low:.2f} to {high:.2f}"
            target = "" if entry["target"] is None else f", wanted {entry['target']:.2f}"
            cells += (
                f'<td class="number" title="{told}{target}">{entry["ratio"]:.2f}</td><td>{bar(entry["ratio"])}</td>'
            )
        lines.append(f"<tr>{cells}</tr>")
    return "\n".join([*lines, "</tbody></table></div>"])


def raw(text: str) -> list[str]:
    """HTML in reStructuredText."""
    return [".. raw:: html", "", *(f"   {line}" for line in text.split("\n")), ""]


def machine(figures: dict[str, Any], source: str) -> list[str]:
    """Where, when and with what the figures were measured."""
    known = figures["machine"]
    versions = ", ".join(f"{name} {version}" for name, version in figures["versions"].items())
    where = ", ".join(str(known[key]) for key in ("processor", "system", "device") if key in known)
    rows = [
        ("machine", f"{where}; {known.get('cores', '?')} cores"),
        ("versions", versions),
        ("measured", f"{figures['date']}, at commit {figures['commit'][:10]}"),
        ("figures", f"benchmarks/results/{source}"),
    ]
    lines = [".. list-table::", "   :class: facts", "   :stub-columns: 1", "   :widths: auto", ""]
    for name, text in rows:
        lines += [f"   * - {name}", f"     - {text}"]
    return [*lines, ""]


RATIO = (
    "A ratio is tritensor's time divided by the peer's, the median of blocks that take turns in one process. A bar to",
    "the left says that tritensor is faster, one to the right that it is slower; on a logarithmic scale, at its end a",
    f"factor of {WIDEST:.0f}. Hold the pointer over a ratio to see both times, the spread and the target.",
    "",
)


def cpu() -> str:
    """The page beside NumPy and torch."""
    figures = json.loads((RESULTS / "cpu.json").read_text(encoding="utf-8"))
    threads = figures["threads"]
    peers = [peer for peer in PEERS if any(peer in case["speed"] for case in figures["cases"].values())]
    told = f"All threads are {threads[ALL_THREADS]}." if isinstance(threads, dict) and ALL_THREADS in threads else ""
    lines = [*heading("On the CPU, beside NumPy and torch"), *machine(figures, "cpu.json"), *RATIO]
    lines += [f"Beside NumPy and torch each library has one thread. {told}", ""]
    lines += [*raw(comparison(figures["cases"], peers)), "Made by ``python -m benchmarks.compare --device cpu``.", ""]
    return "\n".join([*lines, "What falls short, and why: :doc:`/performance`.", ""])


def host() -> str:
    """The page of the host's part of a GPU call."""
    figures = json.loads((RESULTS / "host.json").read_text(encoding="utf-8"))
    lines = [*heading("The host's part of a GPU call"), *machine(figures, "host.json")]
    lines += [
        "Calls on a device whose driver is a stub that returns at once: dispatch, replay, memory, launch and tape",
        "",
    ]
    lines[-2] += " are the real ones. The peer is torch's same call on the CPU."
    lines += [*RATIO, *raw(comparison(figures["cases"], ["torch"]))]
    return "\n".join([*lines, "Made by ``python -m benchmarks.host``.", ""])


def gpu() -> str:
    """The page of the GPU's table; what is known while none is measured."""
    figures = table.gpu_figures()
    lines = heading("On a GPU, beside torch and CuPy")
    if figures is None:
        lines += [
            "No figure of a GPU is stored in benchmarks/results, so none is shown. ``python -m benchmarks.gpu``",
            "measures them. What each row asks of a card, and the time that is predicted from it: :doc:`/performance`.",
            "",
        ]
        return "\n".join(lines)
    lines += [".. list-table::", "   :class: facts", "   :stub-columns: 1", "   :widths: auto", ""]
    versions = ", ".join(f"{name} {version}" for name, version in figures["versions"].items())
    for name, text in (("device", figures["gpu"]), ("versions", versions), ("measured", str(figures["date"]))):
        lines += [f"   * - {name}", f"     - {text}"]
    rows = []
    for case in figures["rows"].values():
        for peer, entry in case.get("speed", {}).items():
            if entry.get("ratio") is not None:
                ours, theirs = duration(entry["ours_us"]), duration(entry["theirs_us"])
                ratio = entry["theirs_us"] / entry["ours_us"]
                rows.append(
                    f'<tr><td>{html.escape(case["title"])}</td><td class="number">{ours}</td>'
                    f"<td>{html.escape(peer)}</td>"
                    f'<td class="number">{theirs}</td><td class="number">{ratio:.2f}</td><td>{bar(1 / ratio)}</td></tr>'
                )
    heads = "<tr><th></th><th>tritensor</th><th>beside</th><th></th><th>speed</th><th></th></tr>"
    lines += [
        "",
        *raw(
            f'<div class="figures"><table><thead>{heads}</thead><tbody>\n'
            + "\n".join(rows)
            + "\n</tbody></table></div>"
        ),
    ]
    return "\n".join(lines)


def front() -> str:
    """The figures of the front page, as HTML."""
    figures = json.loads((RESULTS / "cpu.json").read_text(encoding="utf-8"))
    cases = {name: case for name, case in figures["cases"].items() if name in table.ROWS} or figures["cases"]
    versions = figures["versions"]
    told = (
        f"One thread of {figures['machine']['processor']}, numpy {versions['numpy']}, torch {versions['torch']}, "
        f"{figures['date']}. A ratio is tritensor's time divided by the other's; a bar to the left: faster."
    )
    link = '<a href="benchmarks/index.html">All figures</a>'
    return comparison(cases, ["numpy", "torch"]) + f'\n<p class="told">{html.escape(told)} {link}</p>\n'


def pages() -> Iterator[tuple[str, str]]:
    """The names of the pages' files and their texts."""
    lines = [
        *heading("Benchmarks"),
        "Drawn from the figures in benchmarks/results, which the programs in benchmarks/ write. How they are measured,",
        "what falls short, and why: :doc:`/performance`.",
        "",
        ".. toctree::",
        "",
        "   cpu",
        "   host",
        "   gpu",
        "",
    ]
    yield "index.rst", "\n".join(lines)
    yield "cpu.rst", cpu()
    yield "host.rst", host()
    yield "gpu.rst", gpu()
    yield "front.html", front()
