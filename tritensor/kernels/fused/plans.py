"""How noted calls are computed: groups of them as one kernel each, the others one by one.

Calls are taken in order. One that can be part of a group joins the last group of its shape that stands at or behind
all that it reads; otherwise it opens a group. A view that keeps the elements in order is another name of its value. So
every operand of a group is computed before it, and what is read inside of the group alone is never in memory.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from math import prod
from operator import is_
from typing import Any

import numpy as np

from ...autograd import watched
from ...memory.deferred import Form
from ...operators.deferring import Function, Number, Step
from ...runtime.reference import metadata_of
from ...runtime.replay import key_of
from ...tensors import wrap
from ...types import dtypes, layout
from ..elementwise.family import FUNCTIONS, Elementwise
from ..reduction.family import Reduction
from ..rowwise.family import Rowwise
from ..rowwise.layer_norm import LayerNorm
from .family import Fused, Named, Stage
from .reports import noted_at, refusal, refuse, refused, watch
from .rows import COLUMN, FULL, LONGEST, ONE, ROW, Rows, lies

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
        self.writes: list[tuple[int, tuple[int, ...]]] = []

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
        return form.size == self.size and all(_whole(self.facts.forms[x], self.size) for x in places)

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
        whole = _whole(form, self.size)
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
        self.reads = []
        for (place, shape), name in self.operands.items():
            if self.along:
                size = self.facts.forms[place].size
                flat = {COLUMN: (cols,), ROW: (size,), ONE: ()}
                shape = flat.get(self.lying[name] or "", (size // cols, cols))
            self.reads.append((place, shape))
        self.named = list(self.numbers.items())

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
        for place, shape in self.reads:
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
        for (place, shape), each in zip(self.writes, results, strict=True):
            array = each._data
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
#: and what it takes beside a call of its own to note an operator that is then computed by itself, or a view
_ALONE, _VIEWED = 6.0, 3.0
_FITS_CACHE = 1 << 18


class Alone:
    """A step that is computed by itself."""

    def __init__(self, step: Step) -> None:
        self.step = step
        self.steps, self.wanted, self.name = [step], step.outputs, step.operator.name
        self.key: Any = None  # of the operator's call
        self.moves = step.operator.__class__ is not Function or step.operator.cast  # a view moves nothing

    def gain(self) -> float:
        """The microseconds that are spared: less than none."""
        return -_ALONE if self.moves else -_VIEWED

    def run(self, values: list[Any], numbers: Sequence[Any]) -> None:
        """Compute the results."""
        step = self.step
        if self.key is not None and (known := step.operator.replays.get(self.key)) is not None:
            # of arrays of the same forms, whose results lie as they did the first time
            found = known.run(*[values[x] if x.__class__ is int else _given(x, numbers) for x in self.passed])
            if found is not None:
                each = found if found.__class__ is tuple else (found,)
                values[step.outputs[0] : step.outputs[-1] + 1] = [x._data for x in each]
                return
        arrays = step.compute(values, numbers)
        results = step.laid(arrays)
        if step.operator.__class__ is not Function and all(map(is_, arrays, results)):
            self._remember(values, numbers)
        for place, found in zip(step.outputs, results, strict=True):
            values[place] = found

    def _remember(self, values: list[Any], numbers: Sequence[Any]) -> None:
        """Keep the key of the call, and which of its arguments `Replay.run` takes."""
        step, taken = self.step, list[Any]()
        inputs = [wrap(values[x]) if x.__class__ is int else _given(x, numbers) for x in step.inputs]
        metadata = {name: _given(x, numbers) if x.__class__ is Number else x for name, x in step.metadata.items()}
        varies = any(x.__class__ is Number for x in step.metadata.values()) and not step.operator.takes_numbers
        self.key = key_of(step.operator, inputs, metadata, taken) if step.operator.repeatable and not varies else None
        named = [x if x.__class__ is Number else (x,) for x in step.metadata.values()]
        numeric = [x for x, value in zip(named, metadata.values(), strict=True) if value.__class__ in (int, float)]
        self.passed = [*step.inputs, *(numeric if step.operator.takes_numbers else ())]


def _given(x: Any, numbers: Sequence[Any]) -> Any:
    """A number of the call, or what is the same in each."""
    return numbers[x] if x.__class__ is Number else x[0]


class Apart:
    """A group of which the kernel was refused: its steps are computed by themselves."""

    moves = True

    def __init__(self, group: Group, plan: Plan, why: str) -> None:
        self.group, self.steps, self.wanted, self.why = group, group.steps, group.wanted, why
        self.name = group.name
        steps = [step for step in plan.steps if step in group.steps or _is_alias(step, plan.forms)]
        self.plan = Plan(steps, tuple(group.wanted), plan.forms, apart=True)

    def gain(self) -> float:
        """The microseconds that are spared: less than none."""
        return self.plan.gain

    def run(self, values: list[Any], numbers: Sequence[Any]) -> None:
        """Compute the results."""
        own = [*values]  # where what the group reads is not let go
        self.plan.run(own, numbers)
        for place in self.wanted:
            values[place] = own[place]


class Plan:
    """The calls that are needed for some results, in order.

    Args:
        steps: all that was noted.
        wanted: the places of the results that something references.
        leaves: the forms of arrays that were there, by place.
        apart: compute each step by itself.
    """

    def __init__(
        self, steps: list[Step], wanted: tuple[int, ...], leaves: dict[int, Form], apart: bool = False
    ) -> None:
        self.steps = steps = _needed(steps, wanted)
        forms = dict(leaves)
        for step in steps:
            forms |= zip(step.outputs, step.forms, strict=True)
        self.forms = forms
        # what was not noted, and of groups along rows, which need an operand that is whole, those that have none
        alone = {x for x in steps if apart or (x.call is None and (x.operator.__class__ is not Function or not x.forms))}
        units = self._grouped(steps, alone)
        while shapeless := [unit for unit in units if unit.__class__ is Group and unit.shapeless()]:
            alone.update(step for unit in shapeless for step in unit.steps)
            units = self._grouped(steps, alone)
        self._finish(units, set(wanted), forms)

    def _grouped(self, steps: list[Step], alone: set[Step]) -> list[Any]:
        """The groups, and the steps that are computed by themselves, in order."""
        forms = self.forms
        facts = Facts(forms)
        made: dict[int, int] = {}  # by place, the unit that computes it
        units: list[Any] = []
        for step in steps:
            reads = [x for x in step.inputs if x.__class__ is int]
            if _is_alias(step, forms):
                facts.root[step.outputs[0]] = facts.root[reads[0]]
                units.append(Alone(step))
                continue
            first = max([made.get(facts.root[x], -1) for x in reads], default=-1)
            along = step not in alone and goes_along(step, forms)
            if along or (step not in alone and fits(step, forms)):
                at = len(units) - 1
                while at >= max(first, 0) and not (units[at].__class__ is Group and units[at].takes(step, along)):
                    at -= 1
                if at < max(first, 0):
                    at = len(units)
                    units.append(Group(forms[reads[0]] if along else step.forms[0], facts))
                units[at].add(step, along)
            else:
                at = len(units)
                units.append(Alone(step))
            for place in step.outputs:
                made[place] = at
        return units

    def _finish(self, units: list[Any], needed: set[int], forms: dict[int, Form]) -> None:
        """Find out what each unit has to leave for later ones, and which values are dead after it."""
        kept: list[Any] = []
        dead: list[list[int]] = []
        needed = set(needed)
        for unit in reversed(units):
            outputs = [place for step in unit.steps for place in step.outputs]
            if outputs and needed.isdisjoint(outputs):
                continue
            if unit.__class__ is Group:
                unit.wanted = [place for place in outputs if place in needed]
                unit.writes = [(place, forms[place][0]) for place in unit.wanted]
                unit.finish()
                reads = {place for place, _ in unit.operands}
                why = refused.get((unit.operator, unit.device))
                unit = Apart(unit, self, why) if why else unit
            else:
                reads = {x for x in unit.step.inputs if x.__class__ is int}
            dead.append([place for place in reads.union(outputs) if place not in needed])
            needed |= reads
            kept.append(unit)
        self.units, self.dead = kept[::-1], dead[::-1]
        self.gain = sum(unit.gain() for unit in self.units)

    def run(self, values: list[Any], numbers: Sequence[Any]) -> None:
        """Put the results that are wanted in their places among the values."""
        for at, (unit, dead) in enumerate(zip(self.units, self.dead, strict=True)):
            try:
                if watched.computing and unit.moves:
                    watch(unit.name, unit.steps, partial(unit.run, values, numbers), values, unit.wanted)
                else:
                    unit.run(values, numbers)
            except Exception as error:
                if not self._goes_apart(at, error, values, numbers):
                    kernel = "one kernel of " if unit.__class__ is Group else ""
                    error.add_note(f"while computing {kernel}{noted_at(unit.steps)}")
                    raise
            for place in dead:
                values[place] = None

    def _goes_apart(self, at: int, error: Exception, values: list[Any], numbers: Sequence[Any]) -> bool:
        """Compute a group's steps by themselves, now and later, if its kernel was refused."""
        unit, why = self.units[at], refusal(error)
        if unit.__class__ is not Group or not why:
            return False
        apart = Apart(unit, self, why)
        apart.run(values, numbers)  # which raises, too, where it is not for the kernel
        self.units[at] = apart
        refuse(unit.operator, unit.device, why, unit.steps)
        return True


def _needed(steps: list[Step], wanted: tuple[int, ...]) -> list[Step]:
    """The steps without those that have results, which nothing needs."""
    needed, kept = set(wanted), list[Step]()
    for step in reversed(steps):
        if not step.outputs or not needed.isdisjoint(step.outputs):
            needed.update(x for x in step.inputs if x.__class__ is int)
            kept.append(step)
    return kept[::-1]


def _whole(form: Form, size: int) -> bool:
    """True of arrays of so many elements in row-major order."""
    return prod(form[0]) == size and layout.is_contiguous(form[0], form[1])


def _is_alias(step: Step, forms: dict[int, Any]) -> bool:
    """True of a view of all elements of a row-major array in their order."""
    if step.operator.__class__ is not Function or step.operator.cast or not step.forms:
        return False
    size = prod(step.forms[0][0])
    return _whole(forms[step.inputs[0]], size) and _whole(step.forms[0], size)


def goes_along(step: Step, forms: dict[int, Form]) -> bool:
    """Whether a step computes along rows that fit a tile, the last dimension of its first input."""
    if type(step.operator) not in (Rowwise, LayerNorm, Reduction) or step.inputs[0].__class__ is not int:
        return False
    form, operator, call = forms[step.inputs[0]], step.operator, step.call
    if (
        not 1 < (form.shape[-1] if form.ndim else 0) <= LONGEST
        or not _whole(form, form.size)
        or not 0 < form.size < 1 << 30
    ):
        return False
    kinds = {dtypes.of(each.dtype) for each in (form, *step.forms)}
    if not kinds <= _FLOATS or call.compute not in _FLOATS or any(not _whole(each, each.size) for each in step.forms):
        return False
    if isinstance(operator, Rowwise):
        same = all(
            forms[x].shape == form.shape and _whole(forms[x], form.size) for x in step.inputs if x.__class__ is int
        )
        return same and operator.bodies.apply is not None and call.metadata["dim"] == form.ndim - 1
    if isinstance(operator, LayerNorm):
        return all(x.__class__ is not int or forms[x].size == form.shape[-1] for x in step.inputs[1:])
    if call.metadata["dim"] != (form.ndim - 1,) or operator.parts is None:
        return False
    return not operator.parts(call.metadata).shifted


_FLOATS = frozenset((dtypes.float16, dtypes.bfloat16, dtypes.float32, dtypes.float64))
_KINDS = frozenset(each for each in dtypes.ALL if each.category < dtypes.COMPLEX)


def fits(step: Step, forms: dict[int, Any]) -> bool:
    """Whether a step can be part of a group."""
    form = step.forms[0]
    size = prod(form[0])
    if (
        size < 2
        or any(x.__class__ is tuple for x in step.inputs)
        or any(not _whole(each, size) or each[0] != form[0] for each in step.forms)
    ):
        return False
    kinds = {dtypes.of(form[2]) for form in [*step.forms, *[forms[x] for x in step.inputs if x.__class__ is int]]}
    if not kinds <= _KINDS:
        return False
    operator = step.operator
    if operator.__class__ is Function:
        source, target = dtypes.of(forms[step.inputs[0]][2]), dtypes.of(form[2])
        return bool(operator.cast) and (target.is_floating_point or not source.is_floating_point)
    if type(operator) is not Elementwise or operator.one_text or operator.body is None or operator.whole:
        return operator.__class__ is Elementwise and operator.name == "copy"
    return operator.rule.rounds(step.call) is None and not step.call.compute.is_complex
