"""Trees of values: dicts, lists, tuples and named tuples, nested, with anything else as a leaf; None is a leaf."""

from __future__ import annotations

from collections import OrderedDict, defaultdict, deque
from collections.abc import Callable, Sequence
from typing import Any

_MAPPINGS = (dict, OrderedDict, defaultdict)
_SEQUENCES = (list, tuple, deque)


class Spec:
    """The structure of a tree without its leaves: the kind of a node, its keys, and the structures below."""

    def __init__(self, kind: Any = None, keys: Any = None, below: Sequence[Spec] = ()) -> None:
        self.kind, self.keys, self.below = kind, keys, tuple(below)
        self.count: int = 1 if kind is None else sum([each.count for each in below])

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Spec) and (self.kind, self.keys, self.below) == (other.kind, other.keys, other.below)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        if self.kind is None:
            return "*"
        keys = [""] * len(self.below) if self.keys is None else [f"{key!r}: " for key in self.keys]
        return f"{self.kind.__name__}({', '.join(map('{}{}'.format, keys, self.below))})"


def _children(tree: Any) -> tuple[Any, list[Any]] | None:
    """The keys (None of a sequence) and the values of a node; None of a leaf."""
    if type(tree) in _MAPPINGS:
        return list(tree), list(tree.values())
    if type(tree) in _SEQUENCES or (isinstance(tree, tuple) and hasattr(tree, "_fields")):
        return None, list(tree)
    return None


def flatten(tree: object) -> tuple[list[Any], Spec]:
    """The leaves, and the structure."""
    found = _children(tree)
    if found is None:
        return [tree], Spec()
    leaves, below = [], []
    for child in found[1]:
        more, spec = flatten(child)
        leaves += more
        below.append(spec)
    return leaves, Spec(type(tree), found[0], below)


def unflatten(leaves: Sequence[Any], spec: Spec) -> Any:
    """The tree of this structure with these leaves."""
    if spec.kind is None:
        return leaves[0]
    values, start = [], 0
    for each in spec.below:
        values.append(unflatten(leaves[start : start + each.count], each))
        start += each.count
    if spec.keys is not None:
        pairs = zip(spec.keys, values, strict=True)
        return defaultdict(None, pairs) if spec.kind is defaultdict else spec.kind(pairs)
    return spec.kind(*values) if hasattr(spec.kind, "_fields") else spec.kind(values)


def tree_map(function: Callable[[Any], Any], tree: object) -> Any:
    """The tree of what `function` makes of each leaf."""
    leaves, spec = flatten(tree)
    return unflatten([function(leaf) for leaf in leaves], spec)


def broadcast(tree: object, spec: Spec) -> list[Any] | None:
    """A leaf of `tree` for each leaf of the structure, which `tree` is the upper part of; None where it is not."""
    found = _children(tree)
    if found is None:
        return [tree] * spec.count
    keys, children = found
    if type(tree) is not spec.kind or keys != spec.keys or len(children) != len(spec.below):
        return None
    parts = [broadcast(child, each) for child, each in zip(children, spec.below, strict=True)]
    return None if any(part is None for part in parts) else [leaf for part in parts for leaf in part or ()]
