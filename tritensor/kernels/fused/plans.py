"""How noted calls are computed: groups of them as one kernel each, the others one by one.

Calls are taken in order. One that can be part of a group joins the last group of its shape that stands at or behind
all that it reads; otherwise it opens a group. A view that keeps the elements in order is another name of its value. So
every operand of a group is computed before it, and what is read inside of the group alone is never in memory.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from copy import copy
from functools import partial
from math import prod
from operator import is_
from typing import Any

from ...autograd import watched
from ...memory.deferred import Form
from ...operators import registry
from ...operators.deferring import Function, Number, Step
from ...runtime.choice import allowed
from ...runtime.replay import key_of
from ...tensors import wrap
from ...types import devices, dtypes, layout
from ..elementwise.family import Elementwise
from ..reduction.family import Reduction
from ..rowwise.family import Rowwise
from ..rowwise.layer_norm import LayerNorm
from .groups import Facts, Group, is_whole
from .reports import noted_at, refusal, refuse, refused, watch
from .rows import LONGEST
from .straight import straight

#: microseconds beside a call of its own to note an operator that is then computed by itself, or a view
_ALONE, _VIEWED = 6.0, 3.0


class Alone:
    """A step that is computed by itself."""

    def __init__(self, step: Step) -> None:
        self.step = step
        self.steps, self.wanted, self.name, self.operator = [step], step.outputs, step.operator.name, step.operator
        self.reads = {x for x in step.inputs if x.__class__ is int}
        self.key: Any = None  # of the operator's call
        self.moves = getattr(step.operator, "kind", "") not in ("view", "check")  # which move nothing

    def gain(self) -> float:
        """The microseconds that are spared: less than none."""
        return -_ALONE if self.moves else -_VIEWED

    def run(self, values: list[Any], numbers: Sequence[Any]) -> None:
        """Compute the results."""
        step = self.step
        if self.key is not None and (known := step.operator.replays.get(self.key)) is not None:
            # of arrays of the same forms, whose results lie as they did the first time
            found = known.run(*[values[x] if x.__class__ is int else given(x, numbers) for x in self.passed])
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
        inputs = [wrap(values[x]) if x.__class__ is int else given(x, numbers) for x in step.inputs]
        metadata = {name: given(x, numbers) if x.__class__ is Number else x for name, x in step.metadata.items()}
        varies = any(x.__class__ is Number for x in step.metadata.values()) and not step.operator.takes_numbers
        self.key = key_of(step.operator, inputs, metadata, taken) if step.operator.repeatable and not varies else None
        named = [x if x.__class__ is Number else (x,) for x in step.metadata.values()]
        numeric = [x for x, value in zip(named, metadata.values(), strict=True) if value.__class__ in (int, float)]
        self.passed = [*step.inputs, *(numeric if step.operator.takes_numbers else ())]


def given(x: Number | tuple[Any], numbers: Sequence[Any]) -> Any:
    """A number of the call, or what is the same in each."""
    return numbers[x] if isinstance(x, int) else x[0]


_NOTED = ("view", "cast")  # functions that can be a part of a group


class Apart:
    """A group of which the kernel was refused: its steps are computed by themselves."""

    moves, key = True, None

    def __init__(self, group: Group, plan: Plan, why: str) -> None:
        self.group, self.steps, self.wanted, self.why = group, group.steps, group.wanted, why
        self.reads = group.reads
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
        steps = _needed(steps, wanted)
        forms = dict(leaves)
        for step in steps:
            forms |= zip(step.outputs, step.forms, strict=True)
        steps = steps if apart else _with_sums_of_rows(_with_epilogues(steps, wanted), forms)
        self.steps = steps
        self.forms, self.places = forms, max(forms, default=-1) + 1
        # what was not noted, and of groups along rows, which need an operand that is whole, those that have none
        alone = {x for x in steps if apart or (x.call is None and getattr(x.operator, "kind", "") not in _NOTED)}
        if not allowed("fused"):
            alone |= {step for step in steps if _is_little(step, forms)}
        units = self._grouped(steps, alone)
        while shapeless := [unit for unit in units if unit.__class__ is Group and unit.shapeless()]:
            alone.update(step for unit in shapeless for step in unit.steps)
            units = self._grouped(steps, alone)
        self._finish(units, set(wanted), forms)
        self.wanted, self.runs = wanted, 0
        self.code: Any = None  # what computes it from its third run on

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
                unit.finish()
                reads = unit.reads
                why = refused.get((unit.operator, unit.device))
                unit = Apart(unit, self, why) if why else unit
            else:
                reads = unit.reads
            dead.append([place for place in reads.union(outputs) if place not in needed])
            needed |= reads
            kept.append(unit)
        self.units, self.dead = kept[::-1], dead[::-1]
        self.gain = sum(unit.gain() for unit in self.units)

    def run(self, values: list[Any], numbers: Sequence[Any]) -> None:
        """Put the results that are wanted in their places among the values."""
        values += [None] * (self.places - len(values))
        if self.code is not None and not watched.computing and self.code(values, numbers):
            return
        self.runs += 1
        kept = values.copy() if self.runs == 2 else None
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
            if kept is not None:
                kept[: len(values)] = [new if new is not None else old for new, old in zip(values, kept, strict=True)]
            for place in dead:
                values[place] = None
        if kept is not None:
            self.code = straight(self.units, self.wanted, kept)

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


def _is_little(step: Step, forms: dict[int, Form]) -> bool:
    """Whether a group's references, on the CPU without native code, would take longer than the operators themselves."""
    sizes = [form.size for form in (*step.forms, *[forms[x] for x in step.inputs if x.__class__ is int])]
    return max(sizes, default=0) < FEW and all(form.device is devices.cpu for form in step.forms)


#: elements from which blocks of the references gain: chains of 3 to 10 take 0.9 to 1.06 of the time there
FEW = 100_000


def _needed(steps: list[Step], wanted: tuple[int, ...]) -> list[Step]:
    """The steps without those that have results, which nothing needs."""
    needed, kept = set(wanted), list[Step]()
    for step in reversed(steps):
        if not step.outputs or not needed.isdisjoint(step.outputs):
            needed.update(x for x in step.inputs if x.__class__ is int)
            kept.append(step)
    return kept[::-1]


def _with_epilogues(steps: list[Step], wanted: tuple[int, ...]) -> list[Step]:
    """The steps, with an activation behind a product or a convolution as a part of its kernel, on a device.

    In half precision it is not, as the product is rounded before it; on the CPU native code of a group is quicker.
    """
    uses = Counter([*wanted, *[x for step in steps for x in step.inputs if x.__class__ is int]])
    made = {x.outputs[0]: x for x in steps if x.call is not None and "activation" in x.operator.metadata}
    found = list[Step]()
    for step in steps:
        operator, first = step.operator, step.inputs[0] if step.inputs else None
        product = made.get(first) if isinstance(first, int) and uses[first] == 1 else None
        if product is not None and operator.__class__ is Elementwise and not step.metadata:
            form, before = step.forms[0], product.forms[0]
            alone = len(operator.inputs) == 1 and not operator.metadata and registry.get(operator.name) is operator
            kept = form.dtype == before.dtype and form.dtype.char in "fd" and form.strides == before.strides
            if alone and kept and form.device is not devices.cpu and product.metadata.get("activation") is None:
                found.remove(product)
                metadata = {**product.metadata, "activation": operator.name}
                both = Step(product.operator, product.inputs, metadata, step.outputs[0], None, step.forms)
                both.line = step.line
                step = both
        found.append(step)
    return found


def _with_sums_of_rows(steps: list[Step], forms: dict[int, Form]) -> list[Step]:
    """The steps, with two in place of each that reduces all of what a group computes: one along rows, which can be a
    part of the group, so that the elements are not stored for it, and one of the rows' results."""
    made = {place for step in steps if step.call is not None and fits(step, forms) for place in step.outputs}
    found, free = list[Step](), max(forms, default=-1) + 1
    for step in steps:
        form = forms[step.inputs[0]] if step.inputs and step.inputs[0].__class__ is int else None
        if form is None or step.inputs[0] not in made or not _reduces_all(step, form):
            found.append(step)
            continue
        rest = tuple(range(form.ndim - 1))
        call = copy(step.call)
        call.metadata = {**call.metadata, "dim": (form.ndim - 1,)}
        row = Form.of(form.shape[:-1], layout.contiguous_strides(form.shape[:-1]), step.forms[0].dtype, form.device)
        rows = Step(step.operator, step.inputs, {**step.metadata, "dim": (form.ndim - 1,)}, free, call, [row])
        last = Step(step.operator, (free,), {**step.metadata, "dim": rest}, step.outputs[0], None, step.forms)
        rows.line = last.line = step.line
        forms[free] = row
        free += 1
        found += [rows, last] if goes_along(rows, forms) else [step]
    return found


def _reduces_all(step: Step, form: Form) -> bool:
    """Whether a step is a sum, a mean, or an extreme value of a whole array of two dimensions or more."""
    if type(step.operator) is not Reduction or step.operator.name not in _OF_PARTS or step.call is None:
        return False
    metadata, kind = step.call.metadata, step.forms[0].dtype
    every = metadata["dim"] == tuple(range(form.ndim)) and not metadata.get("keepdim")
    return bool(every and form.ndim > 1 and form.size >= _MANY and form.dtype == kind and kind.char in "fd")


#: reductions that can be computed from those of rows, and the elements from which this is worth one call more
_OF_PARTS, _MANY = frozenset(("sum", "mean", "amax", "amin")), 1 << 14


def _is_alias(step: Step, forms: dict[int, Any]) -> bool:
    """True of a view of all elements of a row-major array in their order."""
    if step.operator.__class__ is not Function or step.operator.kind != "view":
        return False
    size = prod(step.forms[0][0])
    return is_whole(forms[step.inputs[0]], size) and is_whole(step.forms[0], size)


def goes_along(step: Step, forms: dict[int, Form]) -> bool:
    """Whether a step computes along rows that fit a tile, the last dimension of its first input."""
    if type(step.operator) not in (Rowwise, LayerNorm, Reduction) or step.inputs[0].__class__ is not int:
        return False
    form, operator, call = forms[step.inputs[0]], step.operator, step.call
    if (
        not 1 < (form.shape[-1] if form.ndim else 0) <= LONGEST
        or not is_whole(form, form.size)
        or not 0 < form.size < 1 << 30
    ):
        return False
    kinds = {dtypes.of(each.dtype) for each in (form, *step.forms)}
    if not kinds <= _FLOATS or call.compute not in _FLOATS or any(not is_whole(each, each.size) for each in step.forms):
        return False
    if isinstance(operator, Rowwise):
        same = all(
            forms[x].shape == form.shape and is_whole(forms[x], form.size) for x in step.inputs if x.__class__ is int
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
        or any(not is_whole(each, size) or each[0] != form[0] for each in step.forms)
    ):
        return False
    kinds = {dtypes.of(form[2]) for form in [*step.forms, *[forms[x] for x in step.inputs if x.__class__ is int]]}
    if not kinds <= _KINDS:
        return False
    operator = step.operator
    if operator.__class__ is Function:
        source, target = dtypes.of(forms[step.inputs[0]][2]), dtypes.of(form[2])
        return bool(operator.kind == "cast") and (target.is_floating_point or not source.is_floating_point)
    if type(operator) is not Elementwise or operator.one_text or operator.body is None or operator.whole:
        return operator.__class__ is Elementwise and operator.name == "copy"
    return operator.rule.rounds(step.call) is None and not step.call.compute.is_complex
