"""The operators that programs define by `tritensor.library`, by namespace and name: `ops.mylib.sin(x)`."""

from __future__ import annotations

from typing import Any

__all__: list[str] = []


class Namespace:
    """The operators of one namespace."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(f"'_OpNamespace' '{self.name}' object has no attribute '{name}'")


def namespace(name: str) -> Namespace:
    """The namespace of a name, which is made when its first operator is defined."""
    made: Namespace = globals().setdefault(name, Namespace(name))
    return made
