"""Groups along rows: softmax and its relatives, layer normalisation, sums and other reductions of the last dimension,
with what is computed elementwise before and after them, in one kernel that reads each row once.

A tile holds whole rows. A variable is a block (rows, cols), or (rows, 1) where it has a value for each row; columns
beyond a row's end are set to what a reduction ignores before each one.
"""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from ...operators import Operator, Shapes
from ...runtime.call import Call
from ...runtime.launch import Kernel, kernel, launch
from ...runtime.reference import metadata_of
from ...runtime.source import as_number
from ...tensors import wrap
from ...types import dtypes
from ..blocks import forced_tile, is_processor, power_of_two
from ..reduction.family import Reduction
from ..reduction.kernel import bare_state, element_state
from ..rowwise.family import Rowwise
from ..rowwise.kernel import as_columns, contiguous
from ..rowwise.layer_norm import FORWARD, LayerNorm
from .family import SPOKEN, Fused, Stage, named_in, written

#: the longest row, and the elements of a tile: on a GPU, on the processor (with 4,096 a masked softmax took 1.6 times
#: as long), and where Triton's interpreter takes a step for a tile of any size
LONGEST = 16384
_TILE, _PROCESSORS_TILE, _INTERPRETED_TILE = 4096, 256, 1 << 16

#: how an operand lies in the group's (rows, cols): whole, a value for each column or row, one, or whole in its last
#: dimensions alone, for which rows are counted modulo
FULL, COLUMN, ROW, ONE, PERIOD = "full", "column", "row", "one", "period"


def lies(shape: tuple[int, ...], within: tuple[int, ...]) -> str | None:
    """How a row-major operand of a shape lies in one that it is broadcast to; None where it is none of those."""
    size, whole = prod(shape), prod(within)
    if size == 1:
        return ONE
    if size == whole:
        return FULL
    if len(shape) == len(within) and shape == (*within[:-1], 1):
        return ROW
    trailing = tuple(shape)
    while trailing and trailing[0] == 1:
        trailing = trailing[1:]
    if trailing and within[len(within) - len(trailing) :] == trailing:
        return COLUMN if len(trailing) == 1 else PERIOD
    return None


RowText = tuple[list[str], list[str]]  # of a stage along rows: statements, and the results' expressions


class Rows(Fused):
    """A group along rows.

    Args:
        group: the arguments of `Fused`.
        lying: how each input lies, by its name.
        per_row: the names of variables that have a value for each row.
    """

    family = "fused_rows"
    about = "Reductions along rows of a compiled function with what is around them; a row is read once."

    def __init__(self, *group: Any, lying: dict[str, str], per_row: frozenset[str]) -> None:
        self.lying, self.per_row = lying, per_row
        self.shaped = list(lying.values()).index(FULL)
        self.exact: Any = None
        super().__init__(*group)

    def allocate(self, call: Call) -> Shapes:
        """(rows, cols), or (rows,) of what has a value for each row."""
        shape = tuple(call.arrays[self.shaped].shape)
        kinds = zip(self.wanted, call.results, strict=True)
        return [(shape[:1] if name in self.per_row else shape, kind.numpy) for name, kind in kinds]

    def on_host(self, call: Call) -> Any:
        """The operators one after the other, each as it computes large arrays."""
        return Operator.on_host(self, call)

    def _composed(self, *arrays: Any, **numbers: Any) -> tuple[Any, ...]:
        shape = arrays[self.shaped].shape
        known: dict[str, Any] = dict(numbers)
        for (name, lies), array in zip(self.lying.items(), arrays, strict=True):
            if lies == PERIOD:
                array = np.broadcast_to(array, (shape[0] // len(array), *array.shape)).reshape(shape)
            known[name] = array[:, None] if lies == ROW else array
        for stage, dead in zip(self.stages, self.dead, strict=True):
            if stage.operator is None or stage.operator.family == "elementwise":
                self._stage(stage, known)
            else:
                metadata = named_in(stage, known)
                inputs = [wrap(known[name]) if name is not None else None for name in stage.inputs]
                metadata |= _along(stage.operator)
                found = stage.operator(*inputs, **metadata)
                for name, each in zip(stage.outputs, found if found.__class__ is tuple else (found,), strict=True):
                    known[name] = each._data.reshape(shape[0], 1) if name in self.per_row else each._data
            for name in dead:
                del known[name]
        found = []
        for name in self.wanted:
            rows = shape[:1] if name in self.per_row else shape
            value = known[name]
            if value.size < prod(rows):
                value = np.broadcast_to(value, (*rows, 1) if name in self.per_row else rows).copy()
            found.append(value.reshape(rows))
        return tuple(found) if len(found) > 1 else found[0]

    def terms(self, call: Call) -> int:
        """The length of a row."""
        return int(call.arrays[self.shaped].shape[1])

    # ---- the kernel -----------------------------------------------------------------------------------------------

    def _body(self) -> Kernel:
        return self._written(False)

    def _written(self, exact: bool) -> Kernel:
        """The kernel, as text; where tiles are `exact`, they have no elements beyond rows and columns."""
        scope: dict[str, Any] = {"__name__": __name__, "as_columns": as_columns}
        outs = [f"{name}_out" for name in self.wanted]
        pointers = [f"{name}_in" for name in self.inputs]
        periods = [f"{name}_rows" for name, lies in self.lying.items() if lies == PERIOD]
        head = [*outs, *pointers, *self.metadata, *periods, "rows", "cols", "ROWS: tl.constexpr", "COLS: tl.constexpr"]
        lines = [
            "row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)",
            "col = tl.arange(0, COLS)",
            *(_EXACT if exact else _MASKED),
            "place = row[:, None] * cols + col[None, :]",
        ]
        for name, lies in self.lying.items():
            lines.append(f"{name} = {_LOADS[lies].format(name, *(_UNMASKED if exact else _MASKS))}")
        for position, stage in enumerate(self.stages):
            if stage.operator is None or stage.operator.family == "elementwise":
                lines += self._elementwise(position, stage, scope)
            else:
                more, results = _ALONG[type(stage.operator)](position, stage, scope)
                lines += more
                for name, kind, text in zip(stage.outputs, stage.results, results, strict=True):
                    lines.append(f"{name} = {text}.to({SPOKEN[kind.triton]})")
        for name in self.wanted:
            if name in self.per_row:
                value = f"tl.reshape(tl.broadcast_to({name}, (ROWS, 1)), (ROWS,))"
                lines.append(f"tl.store({name}_out + row, {value}{'' if exact else ', mask=there'})")
            else:
                mask = "" if exact else ", mask=mask"
                lines.append(f"tl.store({name}_out + place, tl.broadcast_to({name}, (ROWS, COLS)){mask})")
        text = "from __future__ import annotations\n" + f"def fused_rows_kernel({', '.join(head)}):\n"
        text += "".join(f"    {line}\n" for line in lines)
        return kernel(written(text, "fused_rows_kernel", scope))

    def _elementwise(self, position: int, stage: Stage, scope: dict[str, Any]) -> list[str]:
        """A stage of blocks of one shape."""
        lines, operands = [], []
        row = stage.outputs[0] in self.per_row
        for source, kind in zip(stage.inputs, stage.kinds, strict=True):
            text = f"{source}.to({SPOKEN[kind.triton]})"
            operands.append(text if source in self.metadata or row else f"tl.broadcast_to({text}, (ROWS, COLS))")
        text, more = self.call_of(position, stage, operands, scope)
        lines.append(f"{', '.join(stage.outputs)} = {text}")
        return lines + more

    def launch(self, call: Call) -> None:
        """One program for some rows."""
        x = call.arrays[self.shaped]
        rows, cols = x.shape
        arrays = [contiguous(x) for x in call.arrays]
        col_block = power_of_two(cols)
        forced = forced_tile(rows, cols)
        if forced:
            row_block = forced[0]
        elif is_processor(x):
            row_block = _PROCESSORS_TILE // col_block
        else:
            width = max(1, len(self.inputs) // 2)
            row_block = x.buffer.driver.pick(_TILE // width // col_block, _INTERPRETED_TILE // col_block)
        row_block = max(1, min(power_of_two(rows), row_block))
        numbers = [as_number(value, self.dtypes[0]) for value in metadata_of(call).values()]
        periods = [len(array) for array, lies in zip(arrays, self.lying.values(), strict=True) if lies == PERIOD]
        elements = row_block * col_block
        body = self.body
        if rows % row_block == 0 and cols == col_block:  # no load has a mask, and no reduction a choice
            body = self.exact = self.exact or self._written(True)
        launch(
            body,
            (-(-rows // row_block),),
            (*call.outs, *arrays, *numbers, *periods, rows, cols),
            {"ROWS": row_block, "COLS": col_block},
            x.device,
            warps=4 if elements <= _TILE else 8 if elements <= 8192 else 16,
            name=self.name,
        )


#: of a name, and what follows the address for whole tiles, columns and rows
_LOADS = {
    FULL: "tl.load({0}_in + place{1})",
    COLUMN: "tl.load({0}_in + col{2})[None, :]",
    ROW: "tl.load({0}_in + row{3})[:, None]",
    ONE: "tl.load({0}_in)",
    PERIOD: "tl.load({0}_in + (row % {0}_rows)[:, None] * cols + col[None, :]{1})",
}
_MASKS, _UNMASKED = (", mask=mask, other=0", ", mask=col < cols, other=0", ", mask=there, other=0"), ("", "", "")
_MASKED = ("there = row < rows", "mask = there[:, None] & (col < cols)[None, :]")
_EXACT = ("mask = tl.full((ROWS, COLS), True, tl.int1)",)


def _along(operator: Operator) -> dict[str, Any]:
    """The dimension of a row, as metadata of an operator on (rows, cols)."""
    if isinstance(operator, Reduction):
        return {"dim": (1,), "keepdim": True}
    return {} if isinstance(operator, LayerNorm) else {"dim": 1}


def _masked(name: str, kind: dtypes.dtype, beyond: float) -> str:
    spoken = SPOKEN[kind.triton]
    value = f"tl.broadcast_to({name}.to({spoken}), (ROWS, COLS))"
    return f"tl.where(mask, {value}, tl.full((ROWS, COLS), {_literal(beyond)}, {spoken}))"


def _literal(value: float) -> str:
    return repr(value) if value == value and abs(value) != float("inf") else f'float("{value}")'


def _rowwise(position: int, stage: Stage, scope: dict[str, Any]) -> RowText:
    bodies, short = stage.operator.bodies, stage.results[0].itemsize == 2
    scope[f"summary{position}"], scope[f"apply{position}"] = bodies.summary, bodies.apply
    names = [f"w{position}_{i}" for i in range(len(stage.inputs))]
    lines = [f"{w} = {_masked(x, stage.compute, bodies.beyond)}" for w, x in zip(names, stage.inputs, strict=True)]
    values = f"({', '.join(names)},)"
    lines.append(f"s{position} = as_columns(summary{position}({values}, (), (), col[None, :], mask, cols, ({short},)))")
    lines.append(f"r{position} = apply{position}({values}, (), (), s{position}, col[None, :], ({short},))")
    return lines, [f"r{position}[0]"]


def _layer_norm(position: int, stage: Stage, scope: dict[str, Any]) -> RowText:
    x, *parameters = stage.inputs
    full = stage.results[0].itemsize > 2
    scope |= {f"{name}{position}": getattr(FORWARD, name) for name in ("apply", "summary", "finish")}
    kind = SPOKEN[stage.compute.triton]
    eps = next(value.name for name, value in stage.metadata if name == "eps")
    numbers = f"({eps}, {parameters[0] is not None}, {parameters[1] is not None}, {full})"
    lines = [f"w{position} = {_masked(x, stage.compute, 0.0)}"]
    given = "".join(f"{name}.to({kind}), " for name in parameters if name is not None)
    lines.append(f"t{position} = summary{position}((w{position},), (), (), col[None, :], mask, cols, {numbers})")
    lines.append(f"s{position} = as_columns(t{position})")
    lines.append(f"r{position} = apply{position}((w{position},), (), ({given}), s{position}, col[None, :], {numbers})")
    lines.append(f"f{position} = as_columns(finish{position}(t{position}, (), {numbers}))")
    return lines, [f"r{position}[0]", *[f"f{position}[{i}]" for i in range(3)]]


def _reduction(position: int, stage: Stage, scope: dict[str, Any]) -> RowText:
    parts = stage.operator.parts({**dict(stage.metadata), "dim": (1,)})
    scope |= {f"start{position}": parts.start or element_state, f"fold{position}": parts.fold}
    scope[f"finish{position}"] = parts.finish or bare_state
    numbers = "".join(f"{_literal(float(value))}, " for value in parts.numbers)
    lines = [f"w{position} = {_masked(stage.inputs[0], stage.compute, 0)}"]
    lines.append(f"b{position} = start{position}((w{position},), col[None, :], ({numbers}))")
    states = []
    for i, (value, kind) in enumerate(parts.identity(stage.compute)):
        spoken = SPOKEN[kind.triton]
        state = f"tl.broadcast_to(b{position}[{i}].to({spoken}), (ROWS, COLS))"
        lines.append(f"c{position}_{i} = tl.where(mask, {state}, tl.full((ROWS, COLS), {_literal(value)}, {spoken}))")
        states.append(f"c{position}_{i}")
    lines.append(f"d{position} = finish{position}(fold{position}(({', '.join(states)},), 1), cols, ({numbers}))")
    return lines, [f"d{position}[{i}][:, None]" for i in range(len(stage.outputs))]


_ALONG = {Rowwise: _rowwise, LayerNorm: _layer_norm, Reduction: _reduction}
