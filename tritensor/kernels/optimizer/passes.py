"""A rule of an optimizer as passes of NumPy over the memory of parameter and state: few, in place, without temporaries.

The rule is called once with stand-ins for its arrays, which note what is done to them. Each operation becomes a ufunc
with a place for its result: an array of the state whose old elements are not needed any more, or a block of scratch
memory. What multiplies by 1 and adds 0 is left out; which numbers of a call are 0, 1, -1 or below 0.5 decides which
text there is.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from .words import spoken

BLOCKS = 3  # of scratch memory, which is what Rprop takes

_MASKS = ("greater", "less", "equal", "not_equal")


def kind_of(numbers: Sequence[float]) -> tuple[Any, ...]:
    """What of the numbers decides which operations there are."""
    return tuple([value if value in (0.0, 1.0, -1.0) else "low" if value < 0.5 else "high" for value in numbers])


class _Number:
    """A number that is passed at run time, at a position of the constants; of its value only `kind_of` is used."""

    def __init__(self, place: str, value: float) -> None:
        self.place, self.value = place, value

    def __eq__(self, other: object) -> bool:
        return self.value == other

    def __lt__(self, other: float) -> bool:
        return self.value < other

    __hash__ = None  # type: ignore[assignment]


def _is(value: object, number: float) -> bool:
    return (value.value if isinstance(value, _Number) else value) == number if not isinstance(value, _Array) else False


class _Array:
    """An array that is computed by a ufunc from others, or one of those that are passed."""

    def __init__(self, ufunc: str, *operands: Any) -> None:
        self.ufunc, self.operands = ufunc, operands
        self.place = ""

    def __add__(self, other: object) -> Any:
        if _is(other, 0.0):
            return self
        if self.ufunc == "negative":
            return other - self.operands[0]
        return _Array("add", self, other)

    def __sub__(self, other: object) -> Any:
        return self if _is(other, 0.0) else _Array("subtract", self, other)

    def __mul__(self, other: object) -> Any:
        if _is(other, 1.0):
            return self
        return _Array("negative", self) if _is(other, -1.0) else _Array("multiply", self, other)

    def __truediv__(self, other: object) -> Any:
        return self if _is(other, 1.0) else _Array("divide", self, other)

    __radd__, __rmul__ = __add__, __mul__

    def __rsub__(self, other: object) -> Any:
        return _Array("subtract", other, self)

    def __rtruediv__(self, other: object) -> Any:
        return _Array("divide", other, self)

    def __gt__(self, other: object) -> Any:
        return _Array("greater", self, other)

    def __lt__(self, other: object) -> Any:
        return _Array("less", self, other)


def _where(condition: bool, x: object, y: object) -> Any:
    return _Array("where", condition, x, y) if isinstance(condition, _Array) else x if condition else y


_WORDS: dict[str, Callable[..., Any]] = {
    "root_of": lambda x: _Array("sqrt", x),
    "larger": lambda x, y: _Array("maximum", x, y),
    "smaller": lambda x, y: _Array("minimum", x, y),
    "sign_of": lambda x: _Array("sign", x),
    "size_of": lambda x: _Array("absolute", x),
    "choose": _where,
}


def passes(rule: Any, inputs: int, numbers: Sequence[float]) -> Callable[..., None]:
    """The function `run(arrays, blocks, masks, constants)` for a rule of so many arrays.

    `blocks` and `masks` are scratch memory, of the arrays' dtype and of booleans, as long as the arrays; `constants`
    are the numbers as arrays without dimensions, which a ufunc takes 0.2 us faster than Python's.
    """
    leaves = [_Array("") for _ in range(inputs)]
    for position, leaf in enumerate(leaves):
        leaf.place = f"a{position}"
    given = [_Number(f"c{position}", value) for position, value in enumerate(numbers)]
    found = spoken(rule, _WORDS)(*leaves, *given)
    writer = _Writer(leaves, list(found) if isinstance(found, tuple) else [found])
    names = [f"c{position}" for position in range(len(numbers))]
    text = ["def run(arrays, blocks, masks, constants):", f" {', '.join(leaf.place for leaf in leaves)}, = arrays"]
    text += [f" {', '.join(names)}, = constants"]
    text += [f" t{position} = blocks[{position}][:a0.size]" for position in range(writer.made["t"])]
    text += [f" m{position} = masks[{position}][:a0.size]" for position in range(writer.made["m"])]
    space = {name: getattr(np, name) for name in ("copyto", *writer.ufuncs)}
    exec("\n".join(text + [f" {line}" for line in writer.lines]), space)
    return space["run"]


class _Writer:
    """Decides where the result of each operation lies, and writes the lines."""

    def __init__(self, leaves: list[_Array], results: list[_Array]) -> None:
        self.lines: list[str] = []
        self.ufuncs: set[str] = set()
        self.made, self.free = {"t": 0, "m": 0}, {"t": list[str](), "m": list[str]()}
        self.results = results
        order: list[_Array] = []
        for result in results:
            self.visit(result, order)
        self.users: dict[_Array, list[int]] = {leaf: [] for leaf in leaves}
        for position, node in enumerate(order):
            self.users.setdefault(node, [])
            for operand in node.operands:
                if isinstance(operand, _Array):
                    self.users[operand].append(position)
        self.order = order
        self.content = dict(enumerate(leaves))  # of the arrays that are passed
        for position, node in enumerate(order):
            self.write(position, node)
        for position, result in enumerate(results):
            place = f"a{position + (position > 0)}"
            if result.place != place:
                self.lines.append(f"copyto({place}, {result.place})")

    def visit(self, node: _Array, order: list[_Array]) -> None:
        """Operands before what is computed from them."""
        if node.ufunc and node not in order:
            for operand in node.operands:
                if isinstance(operand, _Array):
                    self.visit(operand, order)
            order.append(node)

    def ends(self, node: Any, position: int) -> bool:
        """True if the operation at a position is the last that needs a value."""
        return node not in self.results and all(user <= position for user in self.users[node])

    def becomes(self, node: _Array) -> int:
        """The array that a result is for, or whose only use leads to such a result; -1 for others."""
        if node in self.results:
            found = self.results.index(node)
            return found + (found > 0)
        users = set(self.users[node])
        return self.becomes(self.order[users.pop()]) if len(users) == 1 else -1

    def write(self, position: int, node: _Array) -> None:
        """The line of an operation."""
        kind = "m" if node.ufunc in _MASKS else "t"
        ending = [each for each in node.operands if isinstance(each, _Array) and self.ends(each, position)]
        home = self.becomes(node) if kind == "t" else -1
        ends = {each.place for each in ending}
        if node.ufunc == "where":  # what is kept lies there before the other is written over it
            ends &= {getattr(node.operands[2], "place", "")}
        spare = sorted(place for place in ends if place[0] == kind)
        dead = home >= 0 and self.ends(self.content[home], position)
        if dead and (f"a{home}" in ends or (node in self.results and node.ufunc != "where")):
            node.place, self.content[home] = f"a{home}", node
        elif spare:
            node.place = spare[0]
        else:
            if not self.free[kind]:
                self.free[kind].append(f"{kind}{self.made[kind]}")
                self.made[kind] += 1
            node.place = self.free[kind].pop()
        operands = [each.place if hasattr(each, "place") else repr(each) for each in node.operands]
        for each in dict.fromkeys(ending):
            if each.place[0] in "tm" and each.place != node.place:
                self.free[each.place[0]].append(each.place)
        if node.ufunc == "where":
            mask, one, other = operands
            self.lines += [f"copyto({node.place}, {other})"] * (other != node.place)
            self.lines += [f"copyto({node.place}, {one}, where={mask})"]
        else:
            self.ufuncs.add(node.ufunc)
            self.lines.append(f"{node.ufunc}({', '.join(operands)}, out={node.place})")
