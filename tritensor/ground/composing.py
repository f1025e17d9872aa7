"""Makes functions from their parameters and source lines, and conv1d, conv2d and conv3d from one template."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Mapping
from functools import cache
from typing import Any

from .public import public


def shown_as(function: Any, name: str, doc: str | None, signature: Any = None, module: str = "") -> Any:
    """A function that stands for others, with the name, documentation, signature and module that it shows; without a
    signature or module those that it has."""
    function.__name__ = function.__qualname__ = name
    function.__code__ = function.__code__.replace(co_name=name)  # in tracebacks, and where frames are named
    function.__doc__ = doc
    if signature is not None:
        function.__signature__ = signature
    function.__module__ = module or function.__module__
    return function


@cache
def _compiled(text: str) -> Any:
    return compile(text, f"<{__name__}>", "exec")


def compose(
    place: tuple[str, str],
    parameters: list[inspect.Parameter],
    result: str,
    lines: list[str],
    values: dict[str, Any],
    first: tuple[str, ...] = ("self",),
) -> Any:
    """Compile a function of `first` and `parameters`, which Python checks, from its lines, which name `values`.

    Its place is its module, by whose names its annotations are understood, and its qualified name.
    """
    name, shown, values = place[1].rpartition(".")[2], [*first], dict(values)
    for each in parameters:
        if each.kind is each.KEYWORD_ONLY and "*" not in shown:
            shown.append("*")
        bare = each.default is each.empty
        shown.append(each.name if bare else f"{each.name}=default_{each.name}")
        values[f"default_{each.name}"] = each.default
    head = f"def made({', '.join(values)}):\n def {name}({', '.join(shown)}):\n  "
    found: dict[str, Any] = {}
    exec(_compiled(head + "\n  ".join(lines) + f"\n return {name}"), vars(sys.modules[place[0]]), found)
    function = found["made"](**values)
    function.__annotations__ = {each.name: each.annotation for each in parameters} | {"return": result}
    function.__module__, function.__qualname__ = place
    return function


def declare(
    function: Any, name: str, rank: int, package: bool = False, autocast: Mapping[str, str] | None = None
) -> Any:
    """Make a function public under the name with the number of dimensions, with its docstring's fields filled in.

    Fields: `{rank}`, `{sizes}` (the dimensions' names), and for examples of a single row `{ones}` (the sizes before
    its elements, with the channels), `{unit}` (the same of a window) and `{open}` and `{close}` (brackets). With
    `package` it is a name of tritensor too; `autocast` is `public`'s.
    """
    function.__name__ = function.__qualname__ = name
    function.__doc__ = function.__doc__.format(
        rank=rank,
        sizes=", ".join(["L"] if rank == 1 else "DHW"[-rank:]),
        ones="1, " * rank,
        unit="1, " * (rank - 1),
        open="[" * (rank + 1),
        close="]" * (rank + 1),
    )
    return public(package=package, autocast=autocast)(function)
