"""The last check of an unpickled object: no cycles, no unlimited nesting, only data."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from .allowlist import Global, Refused
from .builder import StorageType, StorageView
from .malformed import Malformed
from .numpy_objects import TypeName

# PyTorch's own writer stops at Python's recursion limit, which is this number.
DEEPEST = 1000
NO_VALUES = (Global, StorageType, StorageView, TypeName)
LEAVES = frozenset((str, int, float, bool, bytes, bytearray, complex, type(None)))


def check_tree(root: object, shared: set[int], refused: list[Malformed] | None = None) -> None:
    """Raise `Malformed` if `root` contains itself, nests deeper than `DEEPEST`, or holds a bare name.

    Args:
        root: what was read.
        shared: the ids of the containers that the pickle refers to more than once; only these can close a cycle or
            make a small pickle a large tree, so only these are remembered.
        refused: not None if refused names were listed instead of raised, so that the object may contain them.
    """
    depths: dict[int, int] = {}  # the depth of each shared container that is finished
    unfinished: set[int] = set()
    stack: list[list[Any]] = []  # [container, iterator over its parts, levels below it that were seen]

    def note(levels: int) -> None:
        if levels + len(stack) > DEEPEST:
            raise Malformed(f"the pickle nests deeper than {DEEPEST} levels")
        if stack:
            stack[-1][2] = max(stack[-1][2], levels)

    def enter(value: object) -> bool:
        parts = _parts(value)
        if parts is None:
            if type(value) in NO_VALUES or (refused is None and type(value) is Refused):
                raise Malformed(f"the pickle holds a bare {getattr(value, 'name', 'storage')} where a value should be")
            return False
        if id(value) in unfinished:
            raise Malformed(
                f"the pickle holds a {type(value).__name__} that contains itself", remedy="save data without cycles"
            )
        if id(value) in depths:
            note(depths[id(value)])
            return False
        if id(value) in shared:
            unfinished.add(id(value))
        note(1)
        stack.append([value, parts, 0])
        return True

    enter(root)
    while stack:
        value, parts, _ = stack[-1]
        if any(type(part) not in LEAVES and enter(part) for part in parts):
            continue
        levels = stack.pop()[2] + 1
        if id(value) in unfinished:
            unfinished.discard(id(value))
            depths[id(value)] = levels
        note(levels)


def _parts(value: Any) -> Iterator[Any] | None:
    """The values in a container, or None for anything else."""
    if isinstance(value, dict):
        return _items(value)
    if isinstance(value, (list, tuple, set, frozenset)):
        return iter(value)
    return None


def _items(value: dict[Any, Any]) -> Iterator[Any]:
    for key, item in value.items():
        yield key
        yield item
    if getattr(value, "__dict__", None):  # the _metadata attribute of a module's state dict
        yield value.__dict__
