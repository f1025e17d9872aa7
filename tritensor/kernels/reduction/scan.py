"""The scan family: each result from all elements up to its place along a dimension, by one generic kernel.

    cumprod = Scan("cumprod", _cumprod, SUMS, multiply, one)

The kernel makes a *state* of each element (`start`), and combines the states up to each place, the earlier one first
(`combine`). As in reductions, `identity` is the state of no elements. The results are the last values of the states.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from ...ground.arguments import wrong_type
from ...memory import buffer
from ...memory.array import DeviceArray
from ...operators import Dtypes, Operator
from ...operators.lifting.batching import along_dim
from ...operators.rules import Rule, asked_dtype, compute_dtype
from ...runtime.call import Call
from ...runtime.choice import Native
from ...runtime.launch import device_function, kernel, launch
from ...tensors import Tensor
from ...types import dtypes, layout
from ..addressing import collapse_dims, offset_of
from ..blocks import forced_tile, power_of_two
from ..pairs import is_complex, launch_by_parts
from .kernel import reach

if TYPE_CHECKING:
    import triton.language as tl

_TILE = 2048
_INTERPRETED_TILE = 1 << 14
# A row with more columns than this is cut into parts, unless rows alone fill the device.
_LONG = 8 * _TILE


class Parts(NamedTuple):
    """The device functions of the kernel, see `Scan`; the name is for the log."""

    name: str
    combine: Any
    identity: tuple[tuple[Any, dtypes.dtype], ...]
    start: Any


@functools.cache
def running(combine: Any) -> Any:
    """`state -> state`, a tile's states combined up to each column: `tl.associative_scan` takes `combine` from no
    constant, but from a variable of the enclosing function."""

    @device_function
    def running(state):
        return tl.associative_scan(state, 1, combine)

    return running


@device_function
def element_state(values, index):
    """The default START: the state of an element is the element."""
    return values


class AlongDim(Operator):
    """The base of operators along one dimension, `dim`, whose results have the input's shape."""

    batched = staticmethod(along_dim)
    repeatable = True

    def prepare(self, call: Call) -> None:
        """Normalise the dimension."""
        x = call.inputs[0]
        if not isinstance(x, Tensor):
            raise wrong_type(self.name, "input", "Tensor", x, 1)
        call.metadata["dim"] = layout.normalize_dim(call.metadata["dim"], x.ndim)

    def calls(self, draw: Any) -> Iterator[tuple[Any, ...]]:
        """Each dimension, short and long ones, and empty tensors."""
        for dim, shape in (
            (-1, (4, 7)),
            (0, (5, 3)),
            (1, (2, 3, 4)),
            (0, ()),
            (-1, (3, 0)),
            (1, (0, 3)),
            (-1, (3, 1500)),
        ):
            yield [draw.input(name, shape) for name in self.inputs], {"dim": dim}


class Scan(AlongDim):
    """An operator whose result at each place depends on all elements up to there along `dim`.

    Args:
        combine, identity, start: as of `Reduction.kernel`; here the first state that combine takes is that of the
            elements before the second one's.
    """

    family = "scan"
    about = "Blocks in a fixed order, so that sums are the same in every run."
    native = Native()

    def __init__(
        self,
        name: str,
        reference: Callable[..., Any],
        rule: Rule,
        combine: Any,
        identity: Callable[[dtypes.dtype], tuple[tuple[Any, dtypes.dtype], ...]],
        start: Any = None,
        outputs: Sequence[str] | None = None,
    ) -> None:
        super().__init__(name, reference, rule, outputs=outputs)
        self.body, self.parts = combine, lambda kind: Parts(name, combine, identity(kind), start or element_state)

    def resolve_dtypes(self, call: Call) -> Dtypes:
        """By the rule, or `dtype=`, to which the input is converted first; indices are int64."""
        wanted = asked_dtype(call)
        compute, result = self.rule(self.name, call.inputs) if wanted is None else (compute_dtype(wanted), wanted)
        return compute, (result, dtypes.int64)[: len(self.outputs)]

    def terms(self, call: Call) -> int:
        """The last element of a row is made of all."""
        x = call.arrays[0]
        return max(x.shape[call.metadata["dim"]], 1) if x.shape else 1

    def launch(self, call: Call) -> None:
        """Scan every row, in parts if rows are few and long."""
        if self.on_pairs and (call.compute.is_complex or is_complex(call.arrays[0])):
            launch_by_parts(call, dense=False)
            return
        kinds, reverse = (call.compute,) * len(call.arrays), call.metadata.get("reverse", False)
        launch_scan(self.parts(call.compute), call.outs, call.arrays, kinds, call.metadata["dim"], reverse)


# ---- on a device ----------------------------------------------------------------------------------------------


@kernel
def scan_kernel(
    outs,
    ins,
    carries,
    out_strides,
    in_strides,
    shape,
    out_col_strides,
    in_col_strides,
    rows,
    cols,
    part,
    parts,
    START: tl.constexpr,
    RUNNING: tl.constexpr,
    COMBINE: tl.constexpr,
    IDENTITY: tl.constexpr,
    STATE: tl.constexpr,
    COMPUTE: tl.constexpr,
    OUT_DTYPES: tl.constexpr,
    RANK: tl.constexpr,
    REVERSE: tl.constexpr,
    MODE: tl.constexpr,
    INDEX64: tl.constexpr,
    ROWS: tl.constexpr,
    COLS: tl.constexpr,
):
    """Combine the elements up to each of `cols`, `rows` times; a program takes `part` columns of some rows.

    Args:
        outs, ins: tuples of pointers, the results being the last values of a state.
        carries: [rows, parts + 1], contiguous, for each value of a state. When MODE is "totals": written, the identity
            and then each part's state. When MODE is "parts": read, the state before each part. Not used when MODE is
            "whole".
        out_strides, in_strides, shape: from which a row's number gives its offset in each array.
        REVERSE: from the last column to the first.
    """
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    number = tl.program_id(1)
    span = tl.arange(0, COLS)
    if INDEX64:
        row = row.to(tl.int64)
        number = number.to(tl.int64)
        span = span.to(tl.int64)
    start = number * part
    stop = tl.minimum(start + part, cols)
    row_mask = row < rows
    place = (row * (parts + 1) + number)[:, None]
    in_rows = ()
    for position in tl.static_range(len(ins)):
        in_rows = in_rows + ((ins[position] + offset_of(row, in_strides[position], shape, RANK))[:, None],)  # type: ignore[assignment]  # noqa: RUF005
    out_rows = ()
    for position in tl.static_range(len(outs)):
        out_rows = out_rows + ((outs[position] + offset_of(row, out_strides[position], shape, RANK))[:, None],)  # type: ignore[assignment]  # noqa: RUF005
    # of shape (rows, 1): Triton 3.6 generates invalid code for row sums that are accumulated in a loop
    total = ()
    for position in tl.static_range(len(STATE)):
        one = tl.full((ROWS, 1), IDENTITY[position], STATE[position])
        if MODE == "parts":
            one = tl.load(carries[position] + place, mask=row_mask[:, None], other=0)
        total = total + (one,)  # type: ignore[assignment]  # noqa: RUF005
    for first in range(start, stop, COLS):
        col = first + span
        mask = row_mask[:, None] & (col < stop)[None, :]
        if REVERSE:
            col = cols - 1 - col
        values = ()
        for position in tl.static_range(len(ins)):
            x = tl.load(in_rows[position] + (col * in_col_strides[position])[None, :], mask=mask, other=0)
            values = values + (x.to(COMPUTE[position]),)  # type: ignore[assignment]  # noqa: RUF005
        fresh = START(values, col[None, :])
        state, before = (), ()
        for position in tl.static_range(len(STATE)):
            state = state + (tl.broadcast_to(fresh[position].to(STATE[position]), (ROWS, COLS)),)  # type: ignore[assignment]  # noqa: RUF005
            before = before + (tl.broadcast_to(total[position], (ROWS, COLS)),)  # type: ignore[assignment]  # noqa: RUF005
        found = COMBINE(*before, *RUNNING(state))
        if len(STATE) == 1:
            found = (found,)
        if MODE != "totals":
            for position in tl.static_range(len(outs)):
                result = found[len(STATE) - len(outs) + position].to(OUT_DTYPES[position])
                tl.store(out_rows[position] + (col * out_col_strides[position])[None, :], result, mask=mask)
        # what lies beyond `stop` is in the last tile of the last part, whose total nothing reads
        total = ()
        for position in tl.static_range(len(STATE)):
            last = tl.where((span == COLS - 1)[None, :], found[position], tl.zeros_like(found[position]))
            total = total + (tl.sum(last, 1, keep_dims=True).to(STATE[position]),)  # type: ignore[assignment]  # noqa: RUF005
    if MODE == "totals":
        for position in tl.static_range(len(STATE)):
            tl.store(carries[position] + place + 1, total[position], mask=row_mask[:, None])
            if number == 0:
                nothing = tl.full((ROWS, 1), IDENTITY[position], STATE[position])
                tl.store(carries[position] + place, nothing, mask=row_mask[:, None])


def launch_scan(
    scan: Parts,
    outs: Sequence[DeviceArray],
    ins: Sequence[DeviceArray],
    compute: Sequence[dtypes.dtype],
    dim: int,
    reverse: bool = False,
) -> None:
    """Scan arrays of one shape together along `dim`; each is converted to its dtype of `compute`."""
    x = ins[0]
    if x.size == 0:
        return
    arrays = (*outs, *ins)
    kept = [each for each in range(x.ndim) if each != dim]
    sizes, steps = collapse_dims([x.shape[each] for each in kept], [[a.strides[each] for each in kept] for a in arrays])
    cols = x.shape[dim] if x.ndim else 1
    rows = x.size // cols
    col_steps = tuple([array.strides[dim] if array.ndim else 1 for array in arrays])
    count = len(outs)
    row_block, col_block, part = _tile(x, rows, cols, col_steps[count] == 1 or steps[count][-1] != 1)
    state = tuple([kind for _, kind in scan.identity])
    parts = -(-cols // part)
    carries: Sequence[DeviceArray] = (outs[0],) * len(state)
    if parts > 1:
        carries = [buffer.empty((rows, parts + 1), kind.numpy, x.device) for kind in state]

    def run(mode: str) -> None:
        launch(
            scan_kernel,
            (-(-rows // row_block), parts),
            (
                tuple(outs),
                tuple(ins),
                tuple(carries),
                tuple(steps[:count]),
                tuple(steps[count:]),
                sizes,
                col_steps[:count],
                col_steps[count:],
                rows,
                cols,
                part,
                parts,
            ),
            {
                "START": scan.start,
                "RUNNING": running(scan.combine),
                "COMBINE": scan.combine,
                "IDENTITY": tuple([value for value, _ in scan.identity]),
                "STATE": state,
                "COMPUTE": tuple(compute),
                "OUT_DTYPES": tuple([dtypes.of(out.dtype) for out in outs]),
                "RANK": len(sizes),
                "REVERSE": reverse,
                "MODE": mode,
                "INDEX64": max(*map(reach, arrays), cols) + _INTERPRETED_TILE >= 1 << 31,
                "ROWS": row_block,
                "COLS": col_block,
            },
            x.device,
            name=f"{scan.name}_{mode}",
        )

    if parts == 1:
        run("whole")
        return
    run("totals")
    # in place: each program reads what it writes before it writes it
    launch_scan(scan._replace(start=element_state), carries, carries, state, 1)
    run("parts")


def _tile(x: DeviceArray, rows: int, cols: int, inner: bool) -> tuple[int, int, int]:
    """Rows and columns of a tile, and columns per part."""
    driver = x.buffer.driver
    forced = forced_tile(rows, cols)
    if forced:
        row_block, col_block = forced
        return row_block, col_block, cols if cols <= 4 * col_block else 2 * col_block
    tile = driver.pick(_TILE, _INTERPRETED_TILE)
    if inner:
        col_block = min(power_of_two(cols), tile)
        row_block = min(power_of_two(rows), tile // col_block)
    else:
        row_block = min(power_of_two(rows), 64)
        col_block = min(power_of_two(cols), tile // row_block)
    enough = driver.properties(x.device.index).multi_processor_count * 4
    programs = -(-rows // row_block)
    if cols <= _LONG or programs * 2 > enough:
        return row_block, col_block, cols
    wanted = -(-cols * programs // enough)
    return row_block, col_block, -(-max(wanted, 4 * col_block) // col_block) * col_block
