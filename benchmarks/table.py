"""The table in README.md, made from the figures in benchmarks/results and from nothing else.

python -m benchmarks.table          print it
python -m benchmarks.table --write  put it into README.md
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from benchmarks.compare import RESULTS, duration

README = Path(__file__).resolve().parent.parent / "README.md"
START, END = "<!-- from benchmarks/results/cpu.json by `python -m benchmarks.table --write` -->\n", "<!-- end -->\n"


def cell(entry: dict[str, Any] | None) -> str:
    """A ratio, and its target where it has one; what falls short of the target says so."""
    if entry is None:
        return ""
    if entry["target"] is None:
        return f"{entry['ratio']:.2f}"
    verdict = "" if entry["met"] else " **short**"
    return f"{entry['ratio']:.2f} of {entry['target']:.2f}{verdict}"


def table(figures: dict[str, Any]) -> str:
    """The comparison in Markdown, from the JSON that `benchmarks.compare` wrote."""
    peers = [name for name in ("numpy", "torch") if name in figures["versions"]]
    versions = ", ".join(f"{name} {version}" for name, version in figures["versions"].items() if name != "tritensor")
    lines = [
        f"One thread of {figures['machine']['processor']}; {versions}. A ratio is our time divided by",
        "the peer's, beside its target: below 1 tritensor is the faster one.",
        "",
        "| | tritensor |" + "".join(f" {name} | ratio |" for name in peers),
        "|---|---|" + "---|---|" * len(peers),
    ]
    for case in figures["cases"].values():
        speed = case["speed"]
        wrong = "" if case.get("accuracy", {}).get("accurate", True) else " **inaccurate**"
        cells = [case["title"] + wrong, duration(next(iter(speed.values()))["ours_us"])]
        for name in peers:
            entry = speed.get(name)
            cells += [duration(entry["theirs_us"]) if entry else "", cell(entry)]
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


def main(arguments: list[str]) -> None:
    made = table(json.loads((RESULTS / "cpu.json").read_text(encoding="utf-8")))
    if arguments == ["--write"]:
        before, _, rest = README.read_text(encoding="utf-8").partition(START)
        _, _, after = rest.partition(END)
        README.write_text(before + START + "\n" + made + "\n" + END + after, encoding="utf-8")
    else:
        print(made, end="")


if __name__ == "__main__":
    main(sys.argv[1:])
