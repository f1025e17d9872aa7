"""Gradients around the gradients of nodes: for hooks of a node, and for what looks at a backward pass."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from ..errors import ArgumentError, AutogradError, require
from . import watched
from .leaves import as_tensors
from .tape import Gradient, Node, _fit


class Wrapped(Gradient):
    """A gradient with something around it, in which functions of the user's may run."""

    ours = False

    backward: Any

    def __init__(self, backward: Gradient) -> None:
        self.backward, self.frees, self.reads = backward, backward.frees, backward.reads

    def __getattr__(self, name: str) -> Any:
        return getattr(self.backward, name)

    def name_of(self, node: Node) -> str:
        """The name of a node with the gradient inside."""
        return str(self.backward.name_of(node))

    def renamed(self, name: str) -> Gradient:
        """Itself, with the gradient inside for nodes of this name."""
        self.backward = self.backward.renamed(name)
        return self


class _Observed(Wrapped):
    """A gradient in a pass that something looks at."""

    def run(self, node: Node, gradient: Any) -> Any:
        """The gradients, computed inside of all that looks at them."""
        run: Callable[[], Any] = partial(self.backward.run, node, gradient)
        for each in watched.around:
            run = partial(each, node, run)
        return run()


watched.observed = _Observed


class Hooked(Wrapped):
    """A gradient with the hooks of a node: `before` get and may replace what it gets, `after` what it computes, too."""

    def __init__(self, backward: Gradient) -> None:
        super().__init__(backward)
        self.before: list[Callable[..., Any]] = []
        self.after: list[Callable[..., Any]] = []

    def run(self, node: Node, gradient: Any) -> Any:
        """The gradients of the inputs, as the hooks leave them."""
        given = _through(self.before, tuple(gradient) if node.outputs > 1 else (gradient,))
        parts = self.backward.run(node, list(given) if node.outputs > 1 else given[0])
        forms = node.reduce or (None,) * len(parts)
        found = tuple([x if x is None else as_tensors(_fit(x, *f) if f else x) for x, f in zip(parts, forms)])
        return _through(self.after, found, given)


def _through(hooks: list[Callable[..., Any]], values: tuple[Any, ...], *more: tuple[Any, ...]) -> tuple[Any, ...]:
    """The values, as hooks leave them.

    Raises:
        ArgumentError: one returned no tuple. AutogradError: one returned another number of values.
    """
    for hook in tuple(hooks):
        changed, expected = hook(values, *more), len(values)
        if changed is not None:
            kind, name = type(changed).__name__, getattr(hook, "__name__", type(hook).__name__)
            require(isinstance(changed, tuple), ArgumentError, "expected tuple, but hook returned '{}'", kind)
            words = "hook '{}' has returned an incorrect number of values (got {}, but expected {})"
            require(len(changed) == expected, AutogradError, words, name, len(changed), expected)
            values = changed
    return values
