"""Hooks on what nodes save for the backward pass: it is packed when a node is made, and unpacked when it is read."""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import partial
from operator import is_
from typing import Any

from ..errors import ArgumentError, AutogradError, require
from . import watched
from .gradients import _reattach
from .levels import Crossing
from .mode import no_grad
from .tape import Node, Slot, record
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
        watched.on.append(_made)

    def __exit__(self, *exception: object) -> None:
        state.pairs.pop()
        watched.on.remove(_made)


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
        text = "Output of saved tensor unpack_hook expected to be a Tensor but got result of type {}"
        require(hasattr(found, "_needs"), ArgumentError, text, type(found).__name__)
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
        node.saved, node.versions = _each(node.saved, lambda x: x.of(node) if x.__class__ is Packed else x), None
        try:
            return self.backward.run(node, gradient)
        finally:
            node.saved, node.versions = before


def _each(saved: Any, change: Callable[[Any], Any]) -> Any:
    """What `change` makes of a saved value, or of all in a tuple, which is itself if they are."""
    if saved.__class__ is not tuple:
        return change(saved)
    parts = tuple([_each(each, change) for each in saved])
    return saved if all(map(is_, saved, parts)) else parts


def _packed(value: Any, node: Node, index: int | None, hooks: Pair) -> Any:
    """A value that a node saved, packed if it is a tensor; `index` is that of an output."""
    edge = index
    if index is not None:
        value = _reattach(value, node, index)
    elif hasattr(value, "of") and hasattr(value, "index"):  # an output that a function of the user's keeps
        value, edge = value.of(node), value.index
    elif hasattr(value, "_needs"):
        edge = value._edge()
    else:
        return value
    return Packed(value, edge if value._needs else None, hooks)


_NAMES = {"x": "self", "y": "other", "out": "result"}  # PyTorch's, in whose order values are packed


def pack(node: Node, hooks: Pair, only: int | None = None) -> None:
    """Replace what a node saved, or one value of it, by what hooks pack it as."""
    saved, order = list(node.saved), [*range(len(node.saved))] if only is None else [only]
    versions, outputs = list(node.versions or (None,) * len(saved)), [None] * len(saved)
    if hasattr(node.backward, "capture"):
        outputs = [key if kind == "output" else None for kind, key in node.backward.capture]
        labels = [_NAMES.get(label, str(label)) for label in node.backward.labels]
        order.sort(key=labels.__getitem__)
    for i in order:
        value = _each(saved[i], partial(_packed, node=node, index=outputs[i], hooks=hooks))
        if value is not saved[i]:
            saved[i], versions[i] = value, None
    if not all(map(is_, saved, node.saved)):
        node.saved, node.versions = tuple(saved), tuple(versions)
        if node.backward.reads and not isinstance(node.backward, _Unpacking):
            node.backward = _Unpacking(node.backward)


def _made(node: Node) -> None:
    """Pack what a new node saved, if it is not, by this thread's innermost hooks."""
    hooks = state.pairs[-1] if state.pairs else None
    if hooks is not None and node.saved:
        pack(node, hooks)
