"""What a compiled function does, as text: its groups, their kernels, and where it had to compute."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf, prod
from typing import NamedTuple

from ...runtime.log import duration
from ...runtime.source import source_of
from .groups import Group
from .plans import Alone, Apart, Plan


class Unit(NamedTuple):
    """A kernel, or an operator that is computed by itself.

    Attributes:
        operators: the names of what it computes.
        shape: of its results; inputs, outputs: their numbers.
        moved, before: the bytes that it reads and writes, and those that its operators would one by one.
        text: the kernel that was written for it; empty for an operator by itself.
        refused: why the kernel cannot be used, and the operators are computed one by one.
    """

    operators: tuple[str, ...]
    shape: tuple[int, ...]
    inputs: int
    outputs: int
    moved: int
    before: int
    text: str
    refused: str = ""


class Explanation(NamedTuple):
    """What one call of a compiled function did; prints as a table.

    Attributes:
        units: in order.
        cuts: why what was noted had to be computed before the end: the user's line, and the function called there.
        gain: the microseconds that noting spares, about; calls that spare too few run as they are.
        card: the name of a card, if one was given; predicted: the seconds that the bytes take at the bandwidth of its
            data sheet, as they are and one by one. Memory traffic by count: nothing was measured.
    """

    units: tuple[Unit, ...]
    cuts: tuple[str, ...]
    gain: float
    card: str = ""
    predicted: tuple[float, float] = (0.0, 0.0)

    @property
    def kernels(self) -> tuple[str, ...]:
        """The texts of the kernels that were written for groups."""
        return tuple([unit.text for unit in self.units if unit.text])

    def __str__(self) -> str:
        before = sum(len(unit.operators) for unit in self.units)
        after = sum(len(unit.operators) if unit.refused else 1 for unit in self.units)
        moved = [sum(getattr(unit, name) for unit in self.units) / 1e6 for name in ("before", "moved")]
        lines = [f"{before} operators become {after}; they move {moved[1]:.3g} MB, one by one {moved[0]:.3g} MB"]
        if self.card:
            times = "{}, one by one {}".format(*map(duration, self.predicted))
            lines.append(f"  predicted of these bytes on {self.card}, not measured: {times}")
        for unit in self.units:
            kind = "one by one" if unit.refused else "one kernel" if unit.text else "by itself"
            size = "x".join(map(str, unit.shape)) or "1"
            lines.append(f"  {kind:10} {size:>16}  {unit.inputs} in, {unit.outputs} out  {', '.join(unit.operators)}")
            lines += [f"    its kernel was refused: {unit.refused}"] if unit.refused else []
        lines += [f"  computed early: {cut}" for cut in self.cuts]
        return "\n".join(lines)


def explanation(
    plans: Sequence[Plan], cuts: Sequence[str], gain: float, card: str = "", bandwidth: float = inf
) -> Explanation:
    """The explanation of a run's plans; of a card its name, and the bytes that its memory moves in a second."""
    units = tuple([_unit(unit, plan) for plan in plans for unit in plan.units])
    seconds = sum(unit.moved for unit in units) / bandwidth, sum(unit.before for unit in units) / bandwidth
    return Explanation(units, tuple(cuts), gain, card, seconds)


def _unit(unit: Group | Alone | Apart, plan: Plan) -> Unit:
    unit, why = (unit.group, unit.why) if isinstance(unit, Apart) else (unit, "")

    def nbytes(places: Sequence[int]) -> int:
        forms = [plan.forms[place] for place in places]
        return sum(prod(form.shape) * form.dtype.itemsize for form in forms)

    steps = [([x for x in step.inputs if x.__class__ is int], [*step.outputs]) for step in unit.steps]
    names = tuple(["cast" if name == "copy" else name for name in (step.operator.name for step in unit.steps)])
    before = sum(nbytes(reads) + nbytes(writes) for reads, writes in steps)
    if isinstance(unit, Alone):
        moved = before if unit.moves else 0
        (reads, writes) = steps[0]
        return Unit(names, unit.steps[0].forms[0].shape, len(reads), len(writes), moved, moved, "")
    reads = [place for place, _ in unit.operands]
    moved = before if why else nbytes(reads) + nbytes(unit.wanted)
    text = source_of(unit.operator.body.function)
    return Unit(names, unit.shape, len(reads), len(unit.wanted), moved, before, text, why)
