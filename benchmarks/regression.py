"""Figures of a GPU beside the stored ones: what has become slower.

    python -m benchmarks.regression NEW.json [--baseline PATH] [--limit 10]

Without --baseline the stored figures of the same GPU are used; if none are stored, a message says so and nothing fails.
A row is compared by its ratio to a peer or to the copy ceiling, which both runs measured side by side; one without a
peer by its time. Fails when a row is slower by more than the limit and its spread does not reach the stored ratio, or
when a row that was measured is wrong or fails now.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

from benchmarks.compare import RESULTS
from benchmarks.gpu import slug

__all__ = ["regressions"]


def slowdown(old: dict[str, Any], new: dict[str, Any]) -> tuple[float, bool]:
    """By what factor one comparison has become slower, and whether that is more than its spread explains."""
    if new["below"]:
        return new["ratio"] / old["ratio"], new["spread"][0] > old["ratio"]
    return old["ratio"] / new["ratio"], new["spread"][1] < old["ratio"]


def regressions(old: dict[str, Any], new: dict[str, Any], limit: float) -> list[str]:
    """A line for each row that is worse than the stored figures by more than `limit` (0.1 for 10 %)."""
    found = []
    for name, was in old["rows"].items():
        row = new["rows"].get(name)
        if row is None or "error" in was:
            continue
        if "error" in row:
            found.append(f"{name}: fails now: {row['error'].splitlines()[0]}")
            continue
        if was.get("accuracy", {}).get("accurate", True) and not row.get("accuracy", {}).get("accurate", True):
            found.append(f"{name}: is wrong now")
        for peer, before in was.get("speed", {}).items():
            after = row.get("speed", {}).get(peer)
            if after is None or "error" in before or "error" in after:
                continue
            factor, clear = slowdown(before, after)
            if factor > 1 + limit and clear:
                ratios = f"{before['ratio']:.2f} is stored, {after['ratio']:.2f} measured"
                found.append(f"{name}: {factor - 1:.0%} slower beside {peer}: {ratios}")
        if "alone" in was and "alone" in row and row["alone"]["ours_us"] > (1 + limit) * was["alone"]["ours_us"]:
            found.append(f"{name}: {row['alone']['ours_us'] / was['alone']['ours_us'] - 1:.0%} slower")
    return found


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("new", type=Path, help="what python -m benchmarks.gpu wrote")
    parser.add_argument("--baseline", type=Path, help="the figures to compare with")
    parser.add_argument("--limit", type=float, default=10.0, metavar="PERCENT", help="(default 10)")
    options = parser.parse_args(arguments)
    new = json.loads(options.new.read_text(encoding="utf-8"))
    baseline = options.baseline or RESULTS / f"{slug(new['gpu'])}.json"
    if not baseline.exists():
        print(f"no figures of {new['gpu']} are stored: these, committed as {baseline}, are the first")
        return 0
    old = json.loads(baseline.read_text(encoding="utf-8"))
    found = regressions(old, new, options.limit / 100)
    common = len(old["rows"].keys() & new["rows"].keys())
    print(
        f"{common} rows compared with {old['commit']} of {old['date']}: {len(found)} worse by over {options.limit:g} %"
    )
    for line in found:
        print(f"  {line}")
    return 1 if found or not common else 0


if __name__ == "__main__":
    sys.exit(main())
