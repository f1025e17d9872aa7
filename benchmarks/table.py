"""The tables in README.md and benchmarks/README.md, made only from the figures in benchmarks/results.

README.md has some rows of the CPU's table, benchmarks/README.md all of them with their targets. The GPU's table is made
from the figures of `python -m benchmarks.gpu`, and there is none while there are none. The rows of README.md are also
drawn, into docs/pictures/speed.svg; that needs matplotlib.

python -m benchmarks.table          print them
python -m benchmarks.table --write  put them into the files
"""

from __future__ import annotations

import json
import sys
import textwrap
from pathlib import Path
from typing import Any

from benchmarks.cases import ALL_THREADS
from benchmarks.compare import RESULTS, duration

HERE = Path(__file__).resolve().parent
FRONT, README = HERE.parent / "README.md", HERE / "README.md"
PICTURE = HERE.parent / "docs" / "pictures" / "speed.svg"
# Of the rows of cpu.json, those of README.md and of the site's front page.
GPU_ROWS = {
    "matmul_bf16_8192": "torch",
    "attention_64_causal_bf16": "torch",
    "softmax_4096_fp32": "torch",
    "layer_norm_8192_bf16": "torch",
    "cross_entropy_32768_fp32": "torch",
    "adamw": "torch fused",
    "lstm_1024_bf16": "torch",
    "start": "torch",
}
ROWS = ("add_10", "softmax", "attention", "step_128", "resnet18", "import")
START, END = "<!-- from benchmarks/results/cpu.json by `python -m benchmarks.table --write` -->\n", "<!-- end -->\n"
GPU_START = "<!-- from a GPU's figures in benchmarks/results by `python -m benchmarks.table --write` -->\n"


def stored(name: str) -> dict[str, Any]:
    """The figures of a file in benchmarks/results."""
    found: dict[str, Any] = json.loads((RESULTS / name).read_text(encoding="utf-8"))
    return found


def cell(entry: dict[str, Any] | None) -> str:
    """A ratio, and its target where it has one; marked if it is above the target."""
    if entry is None:
        return ""
    if entry["target"] is None:
        return f"{entry['ratio']:.2f}"
    return f"{entry['ratio']:.2f} of {entry['target']:.2f}" + ("" if entry["met"] else " ▲")


def table(figures: dict[str, Any]) -> str:
    """The comparison in Markdown, from the JSON that `benchmarks.compare` wrote."""
    peers = [name for name in ("numpy", "torch") if name in figures["versions"]]
    every = None if isinstance(figures["threads"], int) else figures["threads"].get(ALL_THREADS)
    versions = ", ".join(f"{name} {version}" for name, version in figures["versions"].items() if name != "tritensor")
    also = "" if every is None else f" The last three columns are of {every} threads each."
    lines = [
        f"One thread of {figures['machine']['processor']}; {versions}. A ratio is our time divided by",
        f"the peer's, beside its target: below 1 tritensor is the faster one. ▲ marks a ratio above its target.{also}",
        "",
        "| | tritensor |"
        + "".join(f" {name} | ratio |" for name in peers)
        + ("" if every is None else " tritensor, all threads | torch, all threads | ratio |"),
        "|---|---|" + "---|---|" * len(peers) + ("" if every is None else "---|---|---|"),
    ]
    for case in figures["cases"].values():
        speed = case["speed"]
        wrong = "" if case.get("accuracy", {}).get("accurate", True) else " **inaccurate**"
        cells = [case["title"] + wrong, duration(next(iter(speed.values()))["ours_us"])]
        for name in peers:
            entry = speed.get(name)
            cells += [duration(entry["theirs_us"]) if entry else "", cell(entry)]
        if every is not None:
            entry = speed.get(ALL_THREADS)
            cells += [duration(entry[whose]) if entry else "" for whose in ("ours_us", "theirs_us")]
            cells.append(cell(entry))
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


def front_table(figures: dict[str, Any]) -> str:
    """Some rows of the comparison, on one thread, for readers who know of no target."""
    peers = [name for name in ("numpy", "torch") if name in figures["versions"]]
    versions = ", ".join(f"{name} {figures['versions'][name]}" for name in ("python", *peers))
    lines = [
        f"One thread of {figures['machine']['processor']}; {versions}.",
        "",
        "| | tritensor |" + "".join(f" {name} | ratio |" for name in peers),
        "|---|---|" + "---|---|" * len(peers),
    ]
    for name in ROWS:
        if name in figures["cases"]:
            speed = figures["cases"][name]["speed"]
            cells = [figures["cases"][name]["title"], duration(next(iter(speed.values()))["ours_us"])]
            for peer in peers:
                entry = speed.get(peer)
                cells += [duration(entry["theirs_us"]), f"{entry['ratio']:.2f}"] if entry else ["", ""]
            lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


def gpu_figures() -> dict[str, Any] | None:
    """The newest stored figures of a GPU."""
    found = []
    for path in sorted(RESULTS.glob("*.json")):
        figures = json.loads(path.read_text(encoding="utf-8"))
        if "gpu" in figures and not figures["simulated"]:
            found.append(figures)
    return max(found, key=lambda figures: str(figures["date"]), default=None)


def gpu_table(figures: dict[str, Any]) -> str:
    """The GPU's table in Markdown, from the JSON that `benchmarks.gpu` wrote."""
    names = ("torch", "cupy", "triton")
    versions = ", ".join(f"{name} {figures['versions'][name]}" for name in names if name in figures["versions"])
    ceiling = figures["ceiling"]["bytes_per_second"] / 1e12
    lines = [
        f"{figures['gpu']}, driver {figures['device']['driver']}; {versions}; copy ceiling {ceiling:.2f} TB/s. A ratio",
        "is the peer's time divided by ours, and of the ceiling the share that is reached: above 1 tritensor is the",
        "faster one. Where the target says `<=` it is our time divided by the peer's. ▼ marks a target that is missed.",
        "",
        "| | tritensor | against | | ratio | target |",
        "|---|---|---|---|---|---|",
    ]
    for row in figures["rows"].values():
        title = row.get("title", "")
        if "error" in row:
            lines.append(f"| {title} | **failed** | | | | |")
            continue
        title += "" if row.get("accuracy", {}).get("accurate", True) else " **inaccurate**"
        for peer, entry in row["speed"].items():
            if entry.get("gate") is None:
                continue
            sign = "<=" if entry["below"] else ">="
            target = f"{sign} {entry['gate']:.2f}" + (" ▼" if entry["reached"] in ("under", "wrong") else "")
            cells = [
                title,
                duration(entry["ours_us"]),
                peer,
                duration(entry["theirs_us"]),
                f"{entry['ratio']:.2f}",
                target,
            ]
            lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


def gpu_front(figures: dict[str, Any]) -> str:
    """Some rows of the GPU's table in a sentence, as times that are divided like those of the CPU's."""
    when = f"On an {figures['gpu']} ({figures['date']}, the kernels of commit {figures['commit']}; torch"
    ratios = []
    for name, peer in GPU_ROWS.items():
        row = figures["rows"].get(name, {})
        entry = row.get("speed", {}).get(peer)
        if entry is not None:
            ratios.append(f"{row['title']} {entry['ours_us'] / entry['theirs_us']:.2f}")
    words = f"{when} {figures['versions']['torch']}) the ratios beside PyTorch are: {'; '.join(ratios)}."
    return textwrap.fill(words, 118) + "\n"


def sections() -> list[tuple[Path, str, str]]:
    """The tables that files have to contain: the file, the table's first line, the table."""
    figures = stored("cpu.json")
    made = [(FRONT, START, front_table(figures)), (README, START, table(figures))]
    of_gpu = gpu_figures()
    return (
        made
        if of_gpu is None
        else [*made, (FRONT, GPU_START, gpu_front(of_gpu)), (README, GPU_START, gpu_table(of_gpu))]
    )


def draw() -> None:
    """Draw the rows of README.md."""
    from tools.site import charts

    PICTURE.write_text(charts.speed(stored("cpu.json"), ROWS), encoding="utf-8")


def main(arguments: list[str]) -> None:
    made = sections()
    if arguments != ["--write"]:
        print("\n".join(text for _, _, text in made), end="")
        return
    for path, start, text in made:
        page = path.read_text(encoding="utf-8")
        if start not in page:  # the first figures of a GPU: their table comes after the other one
            before, _, after = page.partition(END)
            page = before + END + "\n" + start + END + after
        before, _, rest = page.partition(start)
        _, _, after = rest.partition(END)
        path.write_text(before + start + "\n" + text + "\n" + END + after, encoding="utf-8")
    draw()


if __name__ == "__main__":
    main(sys.argv[1:])
