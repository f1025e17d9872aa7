"""What looks at nodes, when they are made, and when a backward pass runs them; and at what compiled functions compute.
Nothing, in most programs."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from typing import Any

# By number, what is called before and behind each step of every optimizer: `each(optimizer, args, kwargs)`
before_steps: OrderedDict[int, Callable[..., Any]] = OrderedDict()
behind_steps: OrderedDict[int, Callable[..., Any]] = OrderedDict()
# Called with each node that is made, in any thread; what stands here twice is called twice
on: list[Callable[[Any], None]] = []
# Called as `each(node, run)` in place of a node's gradient, and return `run()`
around: list[Callable[[Any, Callable[[], Any]], Any]] = []
# Called as `each(name, line, run)` in place of `run`, which computes what a compiled function noted at a line first
computing: list[Callable[[str, str, Callable[[], Any]], Any]] = []
# The gradient with those around it, which `tritensor.autograd.wrapped` sets
observed: Any = None


def made(node: object) -> None:
    """Let all that look at new nodes see this one."""
    for each in tuple(on):
        each(node)
