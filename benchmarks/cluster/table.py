"""Published runs beside predictions, with errors, for docs/cluster.md.

    python -m benchmarks.cluster.table            # print
    python -m benchmarks.cluster.table --write    # into docs/cluster.md, and its picture

Tokens a second are predicted twice: with the share of their predicted speed that kernels had on a measured card, and
with the share that the smallest run of the same source, model and card had. Memory is compared as its source counts it.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from statistics import median
from typing import Any

from tritensor.distributed.cluster.simulation import EFFICIENCY

from .predictions import SHARES, stored
from .recipes import runs

PAGE = Path(__file__).parents[2] / "docs" / "cluster.md"
PICTURE = PAGE.parent / "pictures" / "cluster-published.png"
START = "<!-- from benchmarks/results/cluster.json by `python -m benchmarks.cluster.table --write` -->\n"
END = "<!-- end -->"


def seconds_at(entry: dict[str, Any], share: float) -> float:
    """The predicted step at a share of the predicted speed of kernels, between those that are stored."""
    share = min(max(share, SHARES[-1]), SHARES[0])
    upper = min((each for each in SHARES if each >= share), default=SHARES[0])
    lower = max((each for each in SHARES if each <= share), default=SHARES[-1])
    high, low = entry["seconds"][f"{upper:g}"], entry["seconds"][f"{lower:g}"]
    if upper == lower:
        return float(high)
    part = (1 / share - 1 / upper) / (1 / lower - 1 / upper)  # kernels take the inverse
    return float(high + part * (low - high))


def share_of(entry: dict[str, Any], seconds: float) -> float:
    """The share at which a step takes so long."""
    return min(
        (share / 100 for share in range(int(SHARES[-1] * 100), int(SHARES[0] * 100) + 1)),
        key=lambda share: abs(seconds_at(entry, share) - seconds),
    )


def family(run: dict[str, Any]) -> tuple[Any, ...]:
    """Runs of one family are of one source, card, model and way to train, on several numbers of GPUs."""
    source = run["source"]
    shape = run["model"]["name"], run["model"]["sequence"], run["recompute"], run["compile"]
    return source["repository"], source["path"], run["card"], *shape


def rows() -> list[dict[str, Any]]:
    """A row for each run that is predicted."""
    found, known = [], stored()
    families: dict[Any, list[dict[str, Any]]] = {}
    for name, run in runs().items():
        if name in known:
            families.setdefault(family(run), []).append(run)
    for members in families.values():
        members.sort(key=lambda run: run["gpus"])
        timed = [run for run in members if run["tokens_per_second_per_gpu"]]
        share = None
        for run in members:
            entry, speed = known[run["name"]], run["tokens_per_second_per_gpu"]
            row = {"run": run, "name": run["name"], "gpus": run["gpus"], "published": speed}
            row["predicted"] = entry["tokens"] / seconds_at(entry, EFFICIENCY)
            if speed and share is None:
                share = share_of(entry, entry["tokens"] / speed)
                row["base"] = share
            elif speed and share is not None and len(timed) > 1 and run["gpus"] > timed[0]["gpus"]:
                row["calibrated"] = entry["tokens"] / seconds_at(entry, share)
            row["memory"] = run["peak_memory_gib"]
            reserved = "reserved" in (run["memory_definition"] or "").split("(")[0]
            row["counted"] = entry["reserved" if reserved else "peak"] / 2**30
            found.append(row)
    return found


def error(predicted: float, published: float) -> float:
    """By how much a prediction is too large, as a share."""
    return predicted / published - 1


def summary(table: list[dict[str, Any]]) -> dict[str, tuple[int, float, float]]:
    """Number, median and largest of the absolute errors."""
    kinds = {
        "tokens a second, calibrated nowhere": [error(r["predicted"], r["published"]) for r in table if r["published"]],
        "tokens a second, calibrated at the smallest size": [
            error(r["calibrated"], r["published"]) for r in table if "calibrated" in r
        ],
        "peak memory": [error(r["counted"], r["memory"]) for r in table if r["memory"]],
    }
    return {
        name: (len(errors), median(map(abs, errors)), max(map(abs, errors))) for name, errors in kinds.items() if errors
    }


def markdown(table: list[dict[str, Any]]) -> str:
    """The summary and the table."""
    lines = ["| | runs | median error | largest |", "|---|---|---|---|"]
    for name, (count, middle, most) in summary(table).items():
        lines.append(f"| {name} | {count} | {middle:.1%} | {most:.0%} |")
    lines += ["", "![Predicted and published](pictures/cluster-published.png)", ""]
    lines += ["| run | tokens/s/GPU | predicted | error | calibrated | error | GiB | predicted | error |"]
    lines += ["|---|---|---|---|---|---|---|---|---|"]
    for r in sorted(table, key=lambda r: (r["run"]["source"]["repository"], r["name"])):
        cells = [r["name"]]
        cells += _pair(r["published"], r["predicted"], "{:,.0f}")
        if "base" in r and any(family(o["run"]) == family(r["run"]) and "calibrated" in o for o in table):
            cells += [f"at {r['base']:.2f}", ""]
        else:
            cells += _pair(r["published"], r.get("calibrated"), "{:,.0f}")[1:]
        cells += _pair(r["memory"], r["counted"], "{:.1f}")
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def _pair(published: float | None, predicted: float | None, form: str) -> list[str]:
    shown = form.format(published) if published else ""
    if not published or predicted is None:
        return [shown, "", ""]
    return [shown, form.format(predicted), f"{error(predicted, published):+.0%}"]


def draw(table: list[dict[str, Any]], path: Path) -> None:
    """Draw predictions over what was published."""
    import matplotlib

    matplotlib.use("agg")
    import matplotlib.pyplot as plt

    figure, (left, right) = plt.subplots(1, 2, figsize=(11, 4.6), dpi=120)
    kinds = (("predicted", "#94a3b8", "calibrated nowhere"), ("calibrated", "#1d4ed8", "calibrated at one size"))
    for key, colour, label in kinds:
        points = [(r["published"], r[key]) for r in table if r["published"] and key in r]
        left.scatter(*zip(*points, strict=True), s=16, color=colour, label=label)
    points = [(r["memory"], r["counted"]) for r in table if r["memory"]]
    right.scatter(*zip(*points, strict=True), s=16, color="#1d4ed8")
    for axes, what, scale in ((left, "tokens a second and GPU", "log"), (right, "GiB at the peak", "linear")):
        axes.set_xscale(scale)
        axes.set_yscale(scale)
        low, high = axes.get_xlim()
        axes.plot([low, high], [low, high], color="#dc2626", lw=0.8)
        axes.fill_between([low, high], [0.9 * low, 0.9 * high], [1.1 * low, 1.1 * high], color="#dc2626", alpha=0.08)
        axes.set_xlabel(f"published: {what}")
        axes.set_ylabel("predicted")
        axes.spines[["top", "right"]].set_visible(False)
    left.legend(frameon=False)
    figure.tight_layout()
    figure.savefig(path)
    plt.close(figure)


def main() -> None:
    """Print the table, or write it into the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", action="store_true")
    given = parser.parse_args()
    table = rows()
    text = markdown(table)
    if not given.write:
        print(text)
        return
    page = PAGE.read_text(encoding="utf-8")
    before, rest = page.split(START)
    PAGE.write_text(before + START + "\n" + text + "\n" + END + rest.split(END, 1)[1], encoding="utf-8")
    draw(table, PICTURE)
    print(f"wrote {len(table)} runs into {PAGE.name}")


if __name__ == "__main__":
    main()
