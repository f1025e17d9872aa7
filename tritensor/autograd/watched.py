"""What looks at nodes: when they are made, and when a backward pass runs them. Nothing, in most programs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..ground.locks import lock


class _Watched:
    """The functions that look at nodes; the tape asks for `on` at each node that it makes, and for `around` in a pass.

    Attributes:
        on: how many things of all threads want to see the nodes that are made.
        made: called with such a node; `tritensor.autograd.saving` sets it.
        around: called as `each(node, run)` in place of a node's gradient, and return `run()`.
        observed: the gradient with these functions around it; `tritensor.autograd.wrapped` sets it.
    """

    __slots__ = ("around", "made", "observed", "on")

    made: Any
    observed: Any

    def __init__(self) -> None:
        self.on = 0
        self.around: list[Callable[[Any, Callable[[], Any]], Any]] = []


watched = _Watched()
_lock = lock()


def watch(count: int) -> None:
    """Add to the number of things that want to see nodes, or subtract."""
    with _lock:
        watched.on += count
