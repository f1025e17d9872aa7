"""In which order lanes that took different branches execute basic blocks, so that they meet where branches join."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from .parse import Block, Kernel, Name

__all__ = ["ranks"]


def ranks(kernel: Kernel) -> list[int]:
    """The place of each basic block in an order: branches before what they join in, loops before what is behind them.

    Compilers lay blocks out otherwise where they like, as a branch behind the block in which it joins.
    """
    following = [_following(kernel, at, block) for at, block in enumerate(kernel.blocks)]
    found = [0] * len(following)
    for place, at in enumerate(_ordered(list(range(len(following))), following)):
        found[at] = place
    return found


def _following(kernel: Kernel, at: int, block: Block) -> list[int]:
    """The blocks that may be entered after one."""
    last = block.instructions[-1] if block.instructions else None
    name = last.parts[0] if last is not None else ""
    after: list[int] = []
    if last is not None and name == "bra" and isinstance(last.operands[0], Name):
        after.append(kernel.labels[last.operands[0].text])
    falls = last is None or last.guard is not None or name not in ("bra", "ret", "exit", "trap")
    return after + [at + 1] * (falls and at + 1 < len(kernel.blocks))


def _ordered(nodes: Sequence[int], following: Sequence[Iterable[int]]) -> list[int]:
    """Blocks in topological order, of loops each the first block before the others."""
    found: list[int] = []
    for loop in _loops(nodes, following):
        first = loop[0]
        found.append(first)
        if len(loop) > 1:
            found += _ordered(loop[1:], following)
    return found


def _loops(nodes: Sequence[int], following: Sequence[Iterable[int]]) -> list[list[int]]:
    """The strongly connected components in topological order (Kosaraju), each from the block that is entered first."""
    inside = set(nodes)
    left = _postorder(nodes, lambda at: [to for to in following[at] if to in inside])
    before: dict[int, list[int]] = {at: [] for at in nodes}
    for at in nodes:
        for to in following[at]:
            if to in inside:
                before[to].append(at)
    seen: set[int] = set()
    found = []
    for root in reversed(left):
        if root not in seen:
            component = _postorder([root], lambda at: [to for to in before[at] if to not in seen])
            seen.update(component)
            found.append([root, *sorted(each for each in component if each != root)])
    return found


def _postorder(roots: Iterable[int], following: Callable[[int], list[int]]) -> list[int]:
    """Depth first, without recursion: kernels have hundreds of blocks in a row."""
    seen: set[int] = set()
    found = []
    for root in roots:
        if root in seen:
            continue
        seen.add(root)
        stack = [(root, iter(following(root)))]
        while stack:
            at, rest = stack[-1]
            to = next((each for each in rest if each not in seen), None)
            if to is None:
                stack.pop()
                found.append(at)
            else:
                seen.add(to)
                stack.append((to, iter(following(to))))
    return found
