"""torch.fx: programs run as Python, so nothing is traced."""

from __future__ import annotations

from typing import TypeVar

__all__ = ["wrap"]

T = TypeVar("T")


def wrap(fn_or_name: T) -> T:
    """The function or the name itself: there is no tracer that would have to leave it whole."""
    return fn_or_name
