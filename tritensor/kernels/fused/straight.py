"""A plan that is computed again and again, as one Python function: what remains of a run is what its calls cost.

Operators are called by what `runtime.replay` remembers of them, groups likewise. A view of a view is made from the
array that has the memory, where that is one of NumPy, and none that only other views read.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ...memory.array import DeviceArray
from ...operators.deferring import Function, Number, Step
from ...runtime.replay import active
from .family import written
from .groups import Group

_VARIABLE = re.compile(r"\bv\d+\b")

Unit = Any  # a group, or what is computed by itself
Code = Callable[[list[Any], Sequence[Any]], bool]


def straight(units: Sequence[Any], wanted: Sequence[int], values: Sequence[Any]) -> Code | None:
    """The function of the values and numbers of a run that puts the results among the values, or returns False.

    Args:
        values: all of a run, as examples.
    """
    try:
        return _Text(units, wanted, values).function()
    except _Unknown:
        return None


class _Unknown(Exception):
    """A call that is not remembered."""


class _Text:
    def __init__(self, units: Sequence[Any], wanted: Sequence[int], values: Sequence[Any]) -> None:
        self.values, self.wanted = values, wanted
        self.scope: dict[str, Any] = {"strided": np.ndarray, "active": active, "seen": active.changes}
        self.lines: list[str] = []
        self.there: set[int] = set()  # places that have a variable
        self.leaves: set[int] = set()  # of arrays that were there
        self.views = {step.outputs[0]: step for unit in units for step in unit.steps if _is_view(step)}
        for unit in units:
            self._unit(unit)
        for place in wanted:
            self.lines.append(f"values[{place}] = {self._variable(place)}")

    def function(self) -> Code:
        """What is written."""
        last = {name: at for at, line in enumerate(self.lines) for name in _VARIABLE.findall(line)}
        lines = [["if active.changes != seen: return False"]]
        lines += [[line] for line in self.lines]
        for name, at in last.items():
            if int(name[1:]) not in self.leaves:
                lines[at + 1].append(f"{name} = None")
        text = "".join(f"    {line}\n" for group in lines for line in group)
        made: Code = written(f"def run(values, numbers):\n{text}    return True\n", "run", self.scope)
        return made

    def _constant(self, value: object) -> str:
        name = f"c{len(self.scope)}"
        self.scope[name] = value
        return name

    def _variable(self, place: int) -> str:
        """The name of a value's variable, which is set before."""
        name = f"v{place}"
        if place not in self.there:
            self.there.add(place)
            step = self.views.get(place)
            if step is None:
                text = f"values[{place}]"
                self.leaves.add(place)
            else:
                root = step.inputs[0]
                while root in self.views:
                    root = self.views[root].inputs[0]
                x, base = self.values[place], self.values[root]
                known = x.__class__ is np.ndarray and base.flags.c_contiguous and base.dtype == x.dtype
                if known and np.may_share_memory(x, base):  # "view" copies what it must
                    facts = x.shape, x.dtype, self._variable(root), x.ctypes.data - base.ctypes.data, x.strides
                    text = f"strided({facts[0]}, {self._constant(x.dtype)}, {', '.join(map(str, facts[2:]))})"
                else:
                    text = self._function(step)
            self.lines.append(f"{name} = {text}")
        return name

    def _function(self, step: Step) -> str:
        function = step.operator
        arguments = "".join(f", {self._constant(each)}" for each in function.arguments)
        arrays = ", ".join(map(self._variable, step.inputs))
        return f"{self._constant(function.function)}({arrays}{arguments})"

    def _unit(self, unit: Unit) -> None:
        step, grouped = unit.steps[0], unit.__class__ is Group
        function = step.operator.__class__ is Function and not grouped
        known = None if function or unit.key is None else unit.operator.replays.get(unit.key)
        if function and step.outputs:
            if step.outputs[0] not in self.views:
                self.lines.append(f"v{step.outputs[0]} = {self._function(step)}")
                self.there.add(step.outputs[0])
        elif known is None:
            made = {place: name for place in unit.reads if (name := self._variable(place)) and place not in self.leaves}
            self.lines += [f"values[{place}] = {name}" for place, name in made.items()]
            self.lines.append(f"{self._constant(unit)}.run(values, numbers)")
            for place in unit.wanted:
                self._set(place, f"values[{place}]")
            self.lines += [f"values[{place}] = None" for place in made]
        else:
            arguments = [self._passed(x) for x in unit.passed]
            self.lines.append(f"made = {self._constant(known)}.run({', '.join(arguments)})")
            self.lines.append("if made is None: return False")
            for at, place in enumerate(unit.wanted):
                x = self.values[place]
                if grouped and not (x.__class__ is DeviceArray or x.flags.c_contiguous):
                    raise _Unknown
                result = f"made{f'[{at}]' if len(unit.wanted) > 1 else ''}._data"
                self._set(place, f"{result}.reshape({tuple(x.shape)})" if grouped else result)

    def _set(self, place: int, text: str) -> None:
        self.lines.append(f"v{place} = {text}")
        self.there.add(place)

    def _passed(self, x: int | tuple[Any, ...]) -> str:
        """An argument: a place, alone or with the shape that it is passed in, a number, or a constant in a tuple."""
        if x.__class__ is Number:
            return f"numbers[{int(x)}]"
        if isinstance(x, int):
            return self._variable(x)
        if len(x) == 1:
            return self._constant(x[0])
        place, shape = x
        return (
            self._variable(place) if self.values[place].shape == shape else f"{self._variable(place)}.reshape({shape})"
        )


def _is_view(step: Step) -> bool:
    return step.operator.__class__ is Function and step.operator.kind == "view"
