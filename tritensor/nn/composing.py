"""Methods that are made of other declarations: functions from their parameters and lines."""

from __future__ import annotations

import inspect
from functools import cache
from typing import Any

__all__ = ["compose"]


@cache
def _compiled(text: str) -> Any:
    return compile(text, f"<{__name__}>", "exec")


def compose(
    place: tuple[str, str], parameters: list[inspect.Parameter], result: str, lines: list[str], values: dict[str, Any]
) -> Any:
    """A function of `self` and `parameters`, which Python checks, from its lines, which name `values`.

    Its place is its module and its qualified name.
    """
    name = place[1].rpartition(".")[2]
    shown, values = ["self"], {**values, "__name__": __name__}
    for each in parameters:
        if each.kind is each.KEYWORD_ONLY and "*" not in shown:
            shown.append("*")
        bare = each.default is each.empty
        shown.append(each.name if bare else f"{each.name}=default_{each.name}")
        values[f"default_{each.name}"] = each.default
    exec(_compiled(f"def {name}({', '.join(shown)}):\n " + "\n ".join(lines)), values)
    made = values[name]
    made.__annotations__ = {each.name: each.annotation for each in parameters} | {"return": result}
    made.__module__, made.__qualname__ = place
    return made
