"""How functions that differ by the number of dimensions, such as `conv1d` to `conv3d`, are declared by one text."""

from __future__ import annotations

from typing import Any

from ..ground.public import public

__all__ = ["declare"]


def declare(function: Any, name: str, rank: int, package: bool = False) -> Any:
    """Make a function public under the name with the number of dimensions, with its docstring's fields filled in.

    Fields: `{rank}`, `{sizes}` (the dimensions' names), and for examples of a single row `{ones}` (the sizes before
    its elements, with the channels), `{unit}` (the same of a window) and `{open}` and `{close}` (brackets). With
    `package` it is a name of tritensor too.
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
    return public(package=package)(function)
