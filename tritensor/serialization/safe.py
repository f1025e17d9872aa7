"""The classes and functions that a program allows checkpoints to name: `torch.serialization`'s safe globals."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..ground.arguments import wrong_type

__all__ = ["add_safe_globals", "clear_safe_globals", "get_safe_globals", "safe_globals"]

Allowed = Callable[..., Any] | tuple[Callable[..., Any], str]  # what is allowed, and the name that files have for it

_allowed: list[Allowed] = []


def add_safe_globals(safe_globals: list[Allowed]) -> None:
    """Allow checkpoints to make objects of classes, and to call functions, when `load` reads them.

    >>> import enum, io, tritensor as torch
    >>> class Colour(enum.Enum):
    ...     RED = 1
    >>> torch.serialization.add_safe_globals([Colour])
    >>> torch.serialization.get_safe_globals()
    [<enum 'Colour'>]
    >>> torch.serialization.clear_safe_globals()

    Args:
        safe_globals: classes and functions, or pairs of one and the name by which files know it.

    Raises:
        ArgumentError: no list.
    """
    if not isinstance(safe_globals, list):
        raise wrong_type("add_safe_globals", "safe_globals", "list", safe_globals, 1)
    _allowed.extend(safe_globals)


def get_safe_globals() -> list[Allowed]:
    """The classes and functions that are allowed now."""
    return list(_allowed)


def clear_safe_globals() -> None:
    """Clear the classes and functions that checkpoints may name."""
    _allowed.clear()


class safe_globals:
    """Allow checkpoints to name classes and functions within a block, see `add_safe_globals`."""

    def __init__(self, safe_globals: list[Allowed]) -> None:
        self.safe_globals = safe_globals

    def __enter__(self) -> None:
        self._before = get_safe_globals()
        add_safe_globals(self.safe_globals)

    def __exit__(self, *exception: object) -> None:
        _allowed[:] = self._before


def by_name() -> dict[str, Any]:
    """What is allowed, by the name that a file has for it."""
    pairs = [each if isinstance(each, tuple) else (each, f"{each.__module__}.{each.__qualname__}") for each in _allowed]
    return {name: thing for thing, name in pairs}
