"""torch._dynamo: programs run as Python, so nothing is to be switched off."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from ....compiler import allow_in_graph, disable, reset

__all__ = ["allow_in_graph", "config", "disable", "graph_break", "is_compiling", "mark_dynamic", "mark_static"]
__all__ += ["mark_static_address", "reset"]

config = SimpleNamespace(cache_size_limit=8, recompile_limit=8, suppress_errors=False)


def is_compiling() -> bool:
    """False: programs run as Python."""
    return False


def graph_break(msg: str = "") -> None:
    """Nothing: there is no graph."""


def mark_static_address(t: Any, guard: bool = True) -> None:
    """Nothing: there is no graph."""


def mark_dynamic(t: Any, index: Any, **options: Any) -> None:
    """Nothing: there is no graph."""


mark_static = mark_dynamic
