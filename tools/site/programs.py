"""The pages of the programs in `examples/`: their pictures and times, which `python -m benchmarks.examples` stored."""

from __future__ import annotations

import ast
import json
from collections.abc import Iterator
from itertools import groupby
from typing import Any

from benchmarks.examples import ROOT, STORED

from .operators import code, escaped, heading

__all__ = ["pages"]


def _described(text: str) -> list[str]:
    """What a program says of itself, as reStructuredText: commands as blocks of code, the rest as it is."""
    made = []
    for command, lines in groupby(text.splitlines(), lambda line: line.startswith(("    ", "pip ", "python "))):
        block = "\n".join(line.strip() for line in lines)
        made += code(block, "bash") if command else ["", escaped(block).replace("--", r"\-\-"), ""]
    return made


def _took(found: dict[str, Any]) -> str:
    known = found["machine"]
    return f"{found['seconds']:.0f} s on {known['cores']} cores of {known['processor']}"


def _page(name: str, found: dict[str, Any], text: str) -> Iterator[str]:
    first, _, rest = text.partition("\n")
    yield from (*heading(f"{name}.py"), escaped(first), "")
    yield from (f".. image:: ../pictures/examples/{name}.png", f"   :alt: What {name}.py draws.", "   :width: 640")
    yield from _described(rest)
    yield from ("This command drew the picture:", "", *code(found["command"], "bash"))
    yield f"It took {_took(found)}, which computed {found['processor_seconds']:.0f} s for it, and began at a load of"
    yield f"{found['load']:.1f}, on {found['date']} at commit {found['commit'][:10]}. It printed at last:"
    yield from ("", *code("\n".join(found["printed"]), "text"))
    yield from (f".. literalinclude:: ../../examples/{name}.py", "")


def pages() -> Iterator[tuple[str, str]]:
    """The names of the pages' files and their texts."""
    stored = json.loads(STORED.read_text(encoding="utf-8"))
    lines = [
        *heading("Examples"),
        "Programs in the folder examples/ of a clone; none has to download data. Times and pictures are those of",
        "``python -m benchmarks.examples``, whose figures are in benchmarks/results/examples.json.",
        "",
        ".. toctree::",
        "   :hidden:",
        "",
        *(f"   {name}" for name in stored),
        "",
        ".. grid:: 1 2 3 3",
        "   :gutter: 3",
        "   :class-container: examples",
        "",
    ]
    for name, found in stored.items():
        text = ast.get_docstring(ast.parse((ROOT / "examples" / f"{name}.py").read_text(encoding="utf-8"))) or ""
        lines += [
            f"   .. grid-item-card:: {name}.py",
            f"      :img-top: ../pictures/examples/{name}.png",
            f"      :img-alt: What {name}.py draws.",
            f"      :link: {name}",
            "      :link-type: doc",
            "",
            f"      {escaped(text.splitlines()[0])}",
            "",
            "      .. rst-class:: told",
            "",
            f"      {_took(found)}",
            "",
        ]
        yield f"{name}.rst", "\n".join(_page(name, found, text))
    yield "index.rst", "\n".join(lines)
