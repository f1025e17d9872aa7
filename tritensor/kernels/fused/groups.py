"""Groups: steps of a plan that become one operator."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np

from ...memory.deferred import Form
from ...operators.deferring import Function, Number, Step
from ...runtime.reference import metadata_of
from ...runtime.replay import key_of
from ...tensors import wrap
from ...types import dtypes, layout
from ..elementwise.family import FUNCTIONS
from ..reduction.family import Reduction
from ..rowwise.family import Rowwise
from ..rowwise.layer_norm import LayerNorm
from .family import Fused, Named, Stage
from .rows import COLUMN, FULL, ONE, ROW, Rows, lies

#: of a group: a kernel with more operands spills registers, and takes longer to compile than it saves
_MOST_STAGES, _MOST_OPERANDS = 48, 24


class Facts:
    """The forms of a plan's values, and of a view of all elements in their order what it views."""

    def __init__(self, forms: dict[int, Form]) -> None:
        self.forms = forms
        self.root = {place: place for place in forms}


class Group:
    """Some steps that become one operator.

    Attributes:
        shape: of the results; operands are broadcast to it.
        along: whether a step computes along rows.
        names: of variables, by place.
        per_row: of them, those that have a value for each row.
        operands: by place and shape, the names of values that are computed before.
        lying: how they lie in the shape, by name; see `rows.lies`.
    """

    moves = True

    def __init__(self, form: Form, facts: Facts) -> None:
        self.shape, self.size, self.device, self.facts = form.shape, form.size, form.device, facts
        self.along = False
        self.steps: list[Step] = []
        self.names: dict[int, str] = {}
        self.per_row: set[str] = set()
        self.operands: dict[tuple[int, tuple[int, ...]], str] = {}
        self.lying: dict[str, str | None] = {}
        self.inputs: dict[str, dtypes.dtype] = {}
        self.numbers: dict[int, str] = {}
        self.constants: dict[str, float] = {}
        self.stages: list[Stage] = []
        self.compute: dtypes.dtype | None = None
        self.wanted: list[int] = []

    def shapeless(self) -> bool:
        """True of a group along rows of which no operand says how many rows and columns there are."""
        return self.along and FULL not in self.lying.values()

    def takes(self, step: Step, along: bool) -> bool:
        """Whether a step can be part of the group; `along` says that it computes along rows."""
        form = step.forms[0]
        if form.device is not self.device or len(self.stages) >= _MOST_STAGES or len(self.operands) >= _MOST_OPERANDS:
            return False
        numbers = any(x.__class__ is Number for x in step.inputs) or (step.call is not None and step.call.metadata)
        if numbers and self.compute not in (None, step.call.compute):
            return False
        places = [x for x in step.inputs if x.__class__ is int]
        if along:
            source = self.facts.forms[places[0]]
            if source.size != self.size or source.shape[-1:] != self.shape[-1:]:
                return False
            whole = [x for x in places if self.facts.forms[x].size == self.size]
            return self._in_rows(whole) and (self.along or self._in_rows([place for place, _ in self.operands]))
        per_row = [self.names.get(self.facts.root[x], "") in self.per_row for x in places]
        if self.along:
            if form.size * self.shape[-1] == self.size and any(per_row):
                # of values for each row
                return all(own or self.facts.forms[x].size == 1 for own, x in zip(per_row, places, strict=True))
            return form.size == self.size and form.shape[-1:] == self.shape[-1:] and self._in_rows(places, form.shape)
        if form.shape == self.shape:
            return True
        # the elements of another shape are in the same order where no operand is broadcast
        return form.size == self.size and all(is_whole(self.facts.forms[x], self.size) for x in places)

    def _in_rows(self, places: Sequence[int], shape: tuple[int, ...] = ()) -> bool:
        """Whether operands lie in rows in one of the known ways; `shape` is the one that they are broadcast to."""
        for place in places:
            form, base = self.facts.forms[place], self.facts.root[place]
            own = self.names.get(base, "")
            if own in self.per_row:
                if form.size != self.size // self.shape[-1] or form.shape[-1:] != (1,):
                    return False
            elif not own:
                if form.size > 1 and not layout.is_contiguous(form.shape, form.strides):
                    return False
                if lies(form.shape, shape or self.shape) is None:
                    return False
        return True

    def add(self, step: Step, along: bool) -> None:
        """Make a step part of the group."""
        self.along |= along
        form = step.forms[0]
        sources: list[Any] = []
        for x in step.inputs:
            if x.__class__ is Number:
                sources.append(self.number(x, step))
            elif x.__class__ is int:
                sources.append(self.operand(x, form.shape if form.size == self.size else self.shape))
            else:
                sources.append(None)
        results = tuple([dtypes.of(form.dtype) for form in step.forms])
        named: dict[str, Any] = {}
        if step.operator.__class__ is Function:
            operator, compute, kinds = None, results[0], (results[0],)
        else:
            operator, compute = step.operator, step.call.compute
            kinds = tuple([operator.kinds.get(name, compute) for name in operator.inputs])
            for name, value in metadata_of(step.call).items():
                given = step.metadata.get(name)
                if given.__class__ is Number:
                    value = Named(self.number(given, step))
                elif value.__class__ in (float, int) and not isinstance(operator, Reduction):
                    value = Named(self.constant(value, step))
                if name not in _DIMENSIONS or not along:
                    named[name] = value
        for place, form in zip(step.outputs, step.forms, strict=True):
            name = self.names[place] = f"v{len(self.names)}"
            if self.along and form.size != self.size:
                self.per_row.add(name)
        outputs = tuple([self.names[place] for place in step.outputs])
        self.stages.append(Stage(operator, tuple(sources), tuple(named.items()), kinds, results, outputs, compute))
        self.steps.append(step)

    def number(self, x: Number, step: Step) -> str:
        """The name of a number."""
        self.compute = step.call.compute
        return self.numbers.setdefault(int(x), f"n{len(self.numbers) + len(self.constants)}")

    def constant(self, value: float, step: Step) -> str:
        """The name of a number that is the same in each call, but no constant of the kernel: bodies compute with it."""
        self.compute = step.call.compute
        name = f"n{len(self.numbers) + len(self.constants)}"
        self.constants[name] = value
        return name

    def operand(self, place: int, within: tuple[int, ...]) -> str:
        """The name of an operand, which is broadcast to the shape `within`."""
        base, form = self.facts.root[place], self.facts.forms[place]
        own = self.names.get(base)
        if own is not None:
            return own
        whole = is_whole(form, self.size)
        key = base, self.shape if whole else form.shape
        name = self.operands.get(key)
        if name is None:
            name = self.operands[key] = f"x{len(self.operands)}"
            self.inputs[name] = dtypes.of(form.dtype)
            self.lying[name] = FULL if whole else lies(form.shape, within)
        return name

    def finish(self) -> None:
        """Make the operator."""
        compute = self.compute or next(
            (stage.compute for stage in self.stages if stage.compute is dtypes.float32), self.stages[0].compute
        )
        wanted = [self.names[place] for place in self.wanted]
        numbers = {**dict.fromkeys(self.numbers.values(), 0), **self.constants}
        key: Any = tuple(self.stages), tuple(self.inputs.items()), tuple(wanted), compute, tuple(self.numbers.values())
        key = (*key, tuple((name, repr(x)) for name, x in self.constants.items()))
        if self.along:
            key = (*key, tuple(self.lying.items()))
        found = _operators.get(key)
        if found is None:
            if len(_operators) > _MOST_OPERATORS:
                _operators.clear()
            given = self.stages, self.inputs, wanted, numbers, compute
            if self.along:
                lying: Any = dict(self.lying)
                found = Rows(*given, lying=lying, per_row=frozenset(self.per_row))
            else:
                found = Fused(*given)
            _operators[key] = found
        self.operator, self.name = found, found.name
        self.key: Any = None  # of the operator's call, which is the same each time but for the numbers' classes
        cols = self.shape[-1] if self.along else 1
        self.passed: list[Any] = []
        for (place, shape), name in self.operands.items():
            if self.along:
                size = self.facts.forms[place].size
                flat = {COLUMN: (cols,), ROW: (size,), ONE: ()}
                shape = flat.get(self.lying[name] or "", (size // cols, cols))
            self.passed.append((place, tuple(shape)))
        self.reads = {place for place, _ in self.operands}
        self.named = list(self.numbers.items())
        self.passed += [Number(place) for place, _ in self.named]

    def gain(self) -> float:
        """The microseconds that are spared, about; see the constants."""
        total = 0.0
        for step in self.steps:
            form = step.forms[0]
            each = _IN_CACHE if form.size < _FITS_CACHE else _IN_MEMORY
            total += (_OF_HALVES if form.dtype.itemsize == 2 else each) * form.size / 1000 + _CALL - _NOTED
            rows = type(step.operator) in (Rowwise, LayerNorm)
            total += 4 * each * form.size / 1000 if rows or getattr(step.operator, "native", None) is FUNCTIONS else 0
        return total - _NOTING if len(self.steps) > 1 else -_NOTING

    def run(self, values: list[Any], numbers: Sequence[Any]) -> None:
        """Compute the results."""
        arrays = []
        for place, shape in self.passed[: len(self.operands)]:
            array = values[place]
            arrays.append(array if array.shape == shape else array.reshape(shape))
        named = [numbers[place] for place, _ in self.named]
        known = self.operator.replays.get(self.key) if self.key is not None else None
        found = None if known is None else known.run(*arrays, *named)
        if found is None:
            inputs, metadata = [wrap(array) for array in arrays], {n: numbers[place] for place, n in self.named}
            found = self.operator(*inputs, **metadata)
            self.key = key_of(self.operator, inputs, metadata, [])
        results = found if found.__class__ is tuple else (found,)
        for place, each in zip(self.wanted, results, strict=True):
            array, shape = each._data, self.facts.forms[place].shape
            if array.__class__ is np.ndarray and not array.flags.c_contiguous:
                array = np.ascontiguousarray(array)  # as it was noted
            values[place] = array if array.shape == shape else array.reshape(shape)


#: metadata that says which dimension a step is along: the last one, in a group
_DIMENSIONS = frozenset(("dim", "keepdim", "dtype"))

_operators: dict[Any, Fused] = {}
_MOST_OPERATORS = 1024


#: Microseconds, by measurements of chains of 6 to 10 operators on one thread: what a call of an operator costs beside
#: its elements, what noting one and computing a unit cost, and a thousand elements of an operator that a group spares:
#: one more pass through the cache, or through memory, and the conversions of halves
_CALL, _NOTED, _NOTING, _IN_CACHE, _IN_MEMORY, _OF_HALVES = 0.7, 1.2, 4.0, 0.15, 0.4, 4.0
_FITS_CACHE = 1 << 18


def is_whole(form: Form, size: int) -> bool:
    """True of arrays of so many elements in row-major order."""
    return prod(form[0]) == size and layout.is_contiguous(form[0], form[1])
