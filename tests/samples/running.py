"""The entries of PyTorch's tables that are asked for, each run and told in a row of one table."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from fnmatch import fnmatch
from types import ModuleType

import torch as reference

from tritensor import settings

from ..programs.running import devices
from . import modules, operators, optimizers
from .cases import Row, compared

TABLES: dict[str, ModuleType] = {"modules": modules, "operators": operators, "optimizers": optimizers}


def chosen(table: str, patterns: Sequence[str]) -> list[str]:
    """The names of entries that match one of the patterns, whole or after their last dot."""
    return [
        name
        for name in TABLES[table].ENTRIES
        if not patterns or any(fnmatch(text, each) for each in patterns for text in (name, name.split(".")[-1]))
    ]


def run(
    table: str, name: str, device: str = "cpu", most: int | None = None, dtype: str = "float64", native: bool = False
) -> Row:
    """Run the samples of an entry, of more than `most` so many that are spread over all.

    In float64 nothing but the definition decides a value; half precision has no gradients. `native` computes each
    sample on the CPU four times, and compares the last, for which native code is there of every call that has a kernel.
    """
    row = Row(name)
    if not TABLES[table].is_there(name):
        return row
    with devices(device), settings.native_cpu("force" if native else "0"):
        reference.manual_seed(0)
        orders = 2 if "32" in dtype or "64" in dtype else 0
        cases = list(TABLES[table].cases(name, getattr(reference, dtype), orders))
        step = max(1, -(-len(cases) // most)) if most else 1
        for case in cases[::step]:
            row.add(compared(case, "cuda" if device == "simulated" else device, 4 if native else 1))
    return row


def report(rows: Iterable[Row]) -> str:
    """The table, and under it the first difference of each kind."""
    lines = [
        "| entry | samples | agree | listed | missing | differ | first difference |",
        "|---|---|---|---|---|---|---|",
    ]
    whole, count = Row("all"), Counter[str]()
    for row in rows:
        count[row.verdict] += 1
        lines.append(str(row))
        whole.agree += row.agree
        whole.missing += row.missing
        whole.listed += row.listed
        whole.found += row.found
    lines += [str(whole), *(f"listed: {title}: {count}" for title, count in whole.listed.items())]
    told = ", ".join(f"{number} {verdict}" for verdict, number in sorted(count.items()))
    lines.append(f"{count.total()} entries: {told}")
    kinds = {(each.statement.split("(")[0], each.kind): each for each in reversed(whole.found)}
    for each in reversed(list(kinds.values())):
        lines += ["", f"## {each.outcome} [{each.place}]", each.statement]
        lines += [f"# {line}" for line in each.detail.splitlines()]
    return "\n".join(lines)
