"""What the documentation's site is made of besides the pages in `docs/`: a page for each public operator, pages for the
modules' names, of figures, and of the programs in `examples/`. `docs/conf.py` calls `write` before it reads the pages.

Imports NumPy and tritensor; Sphinx is not needed to make the texts.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

__all__ = ["FOLDERS", "table", "texts", "write"]

#: the folders of `docs/` that hold nothing else, and that git ignores
FOLDERS = ("operators", "reference", "benchmarks", "examples")


def table(name: str) -> dict[str, Any]:
    """What a file of `docs/` says about the pages that are made."""
    return tomllib.loads((Path(__file__).parents[2] / "docs" / f"{name}.toml").read_text(encoding="utf-8"))


def texts() -> Iterator[tuple[str, str]]:
    """The names of the files that are made, relative to `docs/`, and their texts."""
    from . import api, figures, operators, programs

    for folder, module in zip(FOLDERS, (operators, api, figures, programs), strict=True):
        for name, text in module.pages():
            yield f"{folder}/{name}", text


def write(docs: Path) -> None:
    """Write the files that changed, and remove those that are made no more."""
    kept = set()
    for name, text in texts():
        path = docs / name
        kept.add(path)
        path.parent.mkdir(exist_ok=True)
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")
    for folder in FOLDERS:
        for path in (docs / folder).iterdir():
            if path not in kept:
                path.unlink()
