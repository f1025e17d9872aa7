"""What one run of a compiled function computes, written down so that it can be computed again without Python."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from ...autograd.mode import recording
from ...autograd.precision import without_casts
from ...memory.array import DeviceArray
from ...memory.deferred import Form
from ...runtime.call import Call, Operator
from ...tensors import Tensor
from .noting import DRAWN
from .region import Array, Function, Memory, Number, Step, described_line


class Trace:
    """The calls of a run, noted or not, as steps of one plan.

    Args:
        arrays: what the run depends on; each later run passes others of the same forms.

    Attributes:
        values: by place, the arrays that were there, and None for results; viewed: the places that share memory.
        places: of arrays, by id; `kept` are results, whose ids must not be used again.
        problem: why the run cannot be repeated; empty if it can.
    """

    def __init__(self, arrays: Sequence[Array]) -> None:
        self.values: list[Any] = []
        self.forms: dict[int, Form] = {}
        self.places: dict[int, int] = {}
        self.kept: list[Any] = []
        self.steps: list[Step] = []
        self.numbers: list[Any] = []
        self.problem, self.given = "", len(arrays)
        self.viewed: set[int] = set()
        for each in arrays:
            self._enter(each)

    def stop(self, why: str) -> None:
        """The run cannot be repeated."""
        self.problem = self.problem or f"{why}: {described_line()}"

    def changed(self, array: Array, new: Array) -> None:
        """An array's memory gets the elements of another: of a result that nothing views, that is the other one."""
        place = self.places.get(id(array), -1)
        if place < self.given or self.values[place] is not None or place in self.viewed:
            self.stop("memory is changed in place")
        self.places[id(array)] = self._place(new)

    def _enter(self, array: Array) -> int:
        place = len(self.values)
        if array.__class__ is not np.ndarray and array.__class__ is not DeviceArray:
            self.stop("a tensor has no plain array")
        else:
            self.forms[place] = Form.of_array(array)
        self.values.append(array)
        return self.places.setdefault(id(array), place)

    def _place(self, array: Array) -> int:
        found = self.places.get(id(array))
        return self._enter(array) if found is None else found

    def _append(
        self,
        operator: Operator | Function,
        inputs: Iterable[Any],
        metadata: dict[str, Any],
        call: Call | None,
        forms: Sequence[Form],
    ) -> Step:
        step = Step(operator, tuple(inputs), metadata, len(self.values), call, forms)
        if operator.__class__ is Function and operator.kind == "view":
            self.viewed |= {*step.inputs, *step.outputs}
        self.values += [None] * len(forms)
        self.steps.append(step)
        return step

    def _made(self, step: Step, arrays: Sequence[Any]) -> None:
        self.places |= {id(array): place for place, array in zip(step.outputs, arrays, strict=True)}
        self.kept += arrays

    def stretch(
        self, steps: Sequence[Step], leaves: Mapping[int, Any], numbers: Sequence[Any], made: Mapping[int, Any]
    ) -> None:
        """Noted calls that were computed together.

        Args:
            leaves, made: arrays that were there, and the results that were wanted, by the steps' places.
        """
        within = {place: self._place(array) for place, array in leaves.items()}
        first = len(self.numbers)
        self.numbers += numbers

        def moved(x: object) -> Any:
            return Number(first + x) if x.__class__ is Number else within[x] if x.__class__ is int else x

        for step in steps:
            if not DRAWN.isdisjoint(step.metadata):
                self.stop(f"{step.operator.name} draws random numbers")
            metadata = {name: moved(x) if x.__class__ is Number else x for name, x in step.metadata.items()}
            inputs = [moved(x) for x in step.inputs]
            new = self._append(step.operator, inputs, metadata, step.call, step.forms)
            new.line = step.line
            within |= zip(step.outputs, new.outputs, strict=True)
        self.places |= {id(array): within[place] for place, array in made.items()}
        self.kept += made.values()

    def call(self, operator: Operator, inputs: Sequence[Any], metadata: dict[str, Any], made: Sequence[Any]) -> None:
        """A call that was not noted, of tensors with plain arrays."""
        arrays: list[Any] = [getattr(x, "_data", None) for x in made]
        if any(array.__class__ is not np.ndarray and array.__class__ is not DeviceArray for array in arrays):
            self.stop(f"{operator.name} has results that are no plain tensors")
        elif any(isinstance(x, (tuple, list)) for x in inputs):
            self.stop(f"{operator.name} takes several tensors at once")
        else:
            self._computed(operator, inputs, metadata, arrays)

    def watch(self, call: Call, arrays: Sequence[Any]) -> None:
        """A call of plain tensors alone."""
        self._computed(call.operator, call.inputs, call.metadata, arrays)

    def _computed(
        self, operator: Operator, inputs: Sequence[Any], metadata: dict[str, Any], arrays: Sequence[Any]
    ) -> None:
        places = [self._place(x._data) if isinstance(x, Tensor) else (x,) for x in inputs]
        self._made(self._append(operator, places, metadata, None, [Form.of_array(x) for x in arrays]), arrays)

    def function(self, function: Function, sources: Sequence[Array], *made: Any) -> None:
        """A view, a cast, a check, or another function of arrays that were there."""
        self._made(
            self._append(function, [self._place(x) for x in sources], {}, None, [Form.of_array(x) for x in made]), made
        )


class Program:
    """A run of a compiled function that is repeated without Python.

    Args:
        memory: of the function; trace: of the run; wanted: the places of its results.
    """

    def __init__(self, memory: Memory, trace: Trace, wanted: tuple[int, ...]) -> None:
        self.plan, self.wanted, self.numbers = memory.plan(trace.steps, wanted, trace.forms), wanted, trace.numbers
        self.values = trace.values[trace.given :]

    def run(self, arrays: list[Any]) -> list[Any]:
        """The results' arrays, from arrays of the forms that the trace began with."""
        values = arrays + self.values
        before, recording.enabled = recording.enabled, False
        try:
            without_casts(self.plan.run, values, self.numbers)
        finally:
            recording.enabled = before
        return [values[place] for place in self.wanted]
