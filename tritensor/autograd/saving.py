"""Hooks on what nodes save for the backward pass: it is packed when a node is made, and unpacked when it is read."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

from ..errors import ArgumentError, AutogradError
from .gradients import _reattach
from .levels import Crossing
from .mode import no_grad
from .tape import Node, Slot, record
from .watched import watch, watched
from .wrapped import Wrapped

Pair = tuple[Callable[[Any], Any], Callable[[Any], Any]]


class _State(threading.local):
    """This thread's hooks, the innermost last, and why there must be none."""

    def __init__(self) -> None:
        self.pairs: list[Pair | None] = []
        self.disabled: str | None = None


state = _State()


class packed_by:
    """A block in which this thread's nodes pack what they save by a pair of hooks; None lets them save it as it is.

    Raises:
        AutogradError: at its start, hooks are disabled.
    """

    def __init__(self, pair: Pair | None) -> None:
        self._pair = pair

    def __enter__(self) -> None:
        if state.disabled is not None and self._pair is not None:
            raise AutogradError(state.disabled)
        state.pairs.append(self._pair)
        watch(1)

    def __exit__(self, *exception: object) -> None:
        state.pairs.pop()
        watch(-1)


paused = packed_by(None)


class Packed:
    """A tensor that a node saved, as a hook packed it.

    Attributes:
        data: what the hook returned.
        edge: that of the tensor, None if it needs no gradient, or the number of the node's output that it is.
    """

    _node = None  # it was a tensor, for the names of nodes
    __slots__ = ("data", "edge", "unpack")

    def __init__(self, value: Any, edge: object, hooks: Pair) -> None:
        pack, self.unpack = hooks
        self.edge, version = edge, value._version
        with no_grad():
            self.data = pack(value)
        if value._version != version:
            raise AutogradError(
                "A saved tensor pack hook is modifying its input in place. Tensors provided as input to pack hook can "
                "not be modified by in-place operations as this can lead to unexpected side-effects.",
                remedy="let the hook change a copy: x.clone()",
            )

    def of(self, node: Node) -> Any:
        """The tensor again, with its history."""
        found = self.unpack(self.data)
        if not hasattr(found, "_needs"):
            kind = type(found).__name__
            raise ArgumentError(
                f"Output of saved tensor unpack_hook expected to be a Tensor but got result of type {kind}"
            )
        edge = self.edge
        if edge is None or edge is found:
            return found
        if edge.__class__ is int:
            edge = node if node.outputs == 1 else Slot(node, edge)
        elif edge.__class__ not in (Node, Slot):  # a leaf, of which another tensor has the history
            edge = record(Crossing("AliasBackward0", [lambda gradient: gradient]), (edge,))
        made = found._without_node()
        made._node, made._needs = edge, True
        return made


class _Unpacking(Wrapped):
    """The gradient of a node whose saved values have to be unpacked."""

    def run(self, node: Node, gradient: object) -> Any:
        """Unpack them, and compute the node's own gradient."""
        before = node.saved, node.versions
        node.saved, node.versions = _unpacked(node.saved, node), None
        try:
            return self.backward.run(node, gradient)
        finally:
            node.saved, node.versions = before


def _unpacked(saved: tuple[Any, ...], node: Node) -> tuple[Any, ...]:
    return tuple(
        [x.of(node) if x.__class__ is Packed else _unpacked(x, node) if x.__class__ is tuple else x for x in saved]
    )


def _packed(value: Any, node: Node, source: tuple[str, Any], hooks: Pair) -> Any:
    """A value that a node saved, packed if it is a tensor."""
    if value.__class__ is tuple:
        parts = tuple([_packed(each, node, ("input", None), hooks) for each in value])
        return value if all(x is y for x, y in zip(value, parts)) else parts  # a shape is as it was
    if source[0] == "output":
        value = _reattach(value, node, source[1])
        return Packed(value, source[1] if value._needs else None, hooks)
    if hasattr(value, "of") and hasattr(value, "index"):  # an output that a function of the user's keeps
        return Packed(value.of(node), value.index, hooks)
    if hasattr(value, "_needs"):
        return Packed(value, value._edge() if value._needs else None, hooks)
    return value


_NAMES = {"x": "self", "y": "other", "out": "result"}  # PyTorch's, in whose order values are packed


def pack(node: Node, hooks: Pair, only: int | None = None) -> None:
    """Replace what a node saved, or one value of it, by what hooks pack it as."""
    saved, order = list(node.saved), [*range(len(node.saved))] if only is None else [only]
    versions, sources = list(node.versions or (None,) * len(saved)), getattr(node.backward, "capture", None)
    if sources is not None:
        labels = [_NAMES.get(label, str(label)) for label in node.backward.labels]
        order.sort(key=labels.__getitem__)
    for i in order:
        value = _packed(saved[i], node, sources[i] if sources is not None else ("input", None), hooks)
        if value is not saved[i]:
            saved[i], versions[i] = value, None
    if any(x is not y for x, y in zip(saved, node.saved)):
        node.saved, node.versions = tuple(saved), tuple(versions)
        if node.backward.reads and not isinstance(node.backward, _Unpacking):
            node.backward = _Unpacking(node.backward)


def _made(node: Node) -> None:
    """Pack what a new node saved, by this thread's innermost hooks."""
    for each in on_nodes:
        each(node)
    hooks = state.pairs[-1] if state.pairs else None
    if hooks is not None and node.saved:
        pack(node, hooks)


on_nodes: list[Callable[[Node], None]] = []
watched.made = _made
