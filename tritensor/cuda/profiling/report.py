"""The reports of a profile: a line for each kernel, a timeline, a roofline. All times are predicted."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...runtime.log import duration, scaled
from ...tensors.printing import aligned
from .roofline import draw

if TYPE_CHECKING:
    from .cards import Card
    from .launches import Launch

_HEADING = ["kernel", "launches", "bytes", "flops", "coalescing", "registers", "spilled", "occupancy"]
_HEADING += ["predicted", "bound"]


def by_kernel(launches: Sequence[Launch]) -> dict[str, list[Launch]]:
    """The launches of each kernel, those of most predicted time first."""
    found: dict[str, list[Launch]] = {}
    for launch in launches:
        found.setdefault(launch.name, []).append(launch)
    return dict(sorted(found.items(), key=lambda item: -_seconds(item[1])))


def table(card: Card, launches: Sequence[Launch]) -> str:
    """A line a kernel, and one for all of them."""
    rows = [_HEADING]
    for name, found in by_kernel(launches).items():
        longest = max(found, key=lambda launch: launch.predicted.seconds)
        asked = sum(launch.sectors for launch in found)
        coalescing = sum(launch.coalescing * launch.sectors for launch in found) / asked if asked else 1.0
        moved, work = (sum(map(what, found)) for what in (_moved, _work))
        rows.append([name[:72], str(len(found)), f"{scaled(moved)}B", scaled(work), f"{coalescing:.0%}"])
        rows[-1] += [str(longest.registers), f"{longest.local} B", f"{longest.occupancy:.0%} ({longest.resident})"]
        rows[-1] += [duration(_seconds(found)), longest.predicted.bound]
    taken = f"predicted to take {duration(_seconds(launches))} on {_article(card.name)}"
    notes = ["nothing was measured: times are predicted from the card's published figures"]
    if any(launch.ran < launch.blocks for launch in launches):
        notes.append("counts of larger grids are scaled from samples of their blocks: results were not all computed")
    return "\n".join([*aligned(rows), f"{len(launches)} launches, {taken}", *notes])


def trace(card: Card, launches: Sequence[Launch], path: Path) -> None:
    """Write the timeline: each stream's launches one after the other, for their predicted time."""
    ends: dict[int, float] = {}
    events: list[dict[str, Any]] = [_named("process", 0, f"predicted for {_article(card.name)}, not measured")]
    for launch in launches:
        begin = ends.get(launch.stream)
        if begin is None:
            begin = 0.0
            events.append(_named("thread", launch.stream, f"stream {launch.stream}"))
        length = launch.predicted.seconds * 1e6
        ends[launch.stream] = begin + length
        arguments = {"predicted bound": launch.predicted.bound, "grid": launch.grid, "threads": launch.threads}
        arguments |= {"registers": launch.registers, "resident blocks": launch.resident, "bytes": launch.dram}
        place = {"pid": 0, "tid": launch.stream, "ts": begin, "dur": length}
        events.append({"name": launch.name, "cat": "predicted", "ph": "X", **place, "args": arguments})
    text = json.dumps({"traceEvents": events, "displayTimeUnit": "ns", "otherData": {"card": card.name}})
    path.write_text(text, encoding="utf-8")


def _named(what: str, thread: int, name: str) -> dict[str, Any]:
    return {"name": f"{what}_name", "ph": "M", "pid": 0, "tid": thread, "args": {"name": name}}


def roofline(card: Card, launches: Sequence[Launch], path: Path) -> None:
    """Draw each kernel at its predicted speed."""
    points, units = [], {"cores"}
    for name, found in by_kernel(launches).items():
        moved, work = (sum(map(what, found)) for what in (_moved, _work))
        if work and moved:
            points.append({"name": name, "intensity": work / moved, "ours": work / _seconds(found)})
            units.update(*(launch.operations for launch in found))
    plain = 2 * card.generation.lanes["float32"] * card.multiprocessors * card.clock
    roofs = {name: card.tensor.get(name, plain) for name in sorted(units)}
    title = f"predicted for {_article(card.name)}, not measured"
    draw(path, points, card.dram, roofs, title, ("device memory", "predicted", ""))


def _seconds(launches: Sequence[Launch]) -> float:
    return sum(launch.predicted.seconds for launch in launches)


def _moved(launch: Launch) -> float:
    return launch.dram


def _work(launch: Launch) -> float:
    return sum(launch.operations.values())


def _article(name: str) -> str:
    return f"an {name}" if name[0] in "ah" else f"a {name}"
