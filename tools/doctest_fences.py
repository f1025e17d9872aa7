"""An extension for the documentation's site that shows examples in docstrings as code."""

from __future__ import annotations

from typing import Any

import griffe

__all__ = ["DoctestFences"]


def fenced(text: str) -> str:
    """A docstring with its doctests between fences; an example goes on to the next empty line."""
    lines: list[str] = []
    inside = False
    for line in text.split("\n"):
        indent = line[: len(line) - len(line.lstrip())]
        if not inside and line.lstrip().startswith(">>>"):
            lines.append(f"{indent}```pycon")
            inside = True
        elif inside and not line.strip():
            lines.append(f"{lines[-1][: len(lines[-1]) - len(lines[-1].lstrip())]}```")
            inside = False
        lines.append(line)
    return "\n".join([*lines, "```"] if inside else lines)


class DoctestFences(griffe.Extension):
    """Puts every example between fences."""

    def on_object(self, *, obj: griffe.Object, **_: Any) -> None:
        """Called for each object after it is read."""
        if obj.docstring is not None:
            obj.docstring.value = fenced(obj.docstring.value)
