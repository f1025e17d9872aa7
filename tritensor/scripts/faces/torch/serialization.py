"""torch.serialization: what is safe to load, which everything is that `load` reads: it makes no other objects."""

from __future__ import annotations

from contextlib import nullcontext
from typing import Any

__all__ = ["add_safe_globals", "clear_safe_globals", "get_safe_globals", "safe_globals"]

_safe: list[Any] = []


def add_safe_globals(safe_globals: list[Any]) -> None:
    """Remember classes; objects of them are not made."""
    _safe.extend(safe_globals)


def clear_safe_globals() -> None:
    """Forget them."""
    _safe.clear()


def get_safe_globals() -> list[Any]:
    """What was remembered."""
    return list(_safe)


def safe_globals(safe_globals: list[Any]) -> Any:
    """A context that changes nothing."""
    return nullcontext()
