"""Recording a call of an operator on a device, so that it can be repeated (`replay.py`).

The operator runs as ever, but on stand-ins for its inputs, whose addresses say where they come from. What it allocates
and launches is noted. A launch that gets any other address than theirs cannot be repeated.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from .. import dtypes
from ..memory import buffer
from ..memory.array import DeviceArray
from ..memory.buffer import Buffer
from ..tensor import Tensor
from . import program
from .program import Program
from .replay import Replay, Step, active, converter

if TYPE_CHECKING:
    from ..drivers import Stream
    from .protocol import Operator

__all__ = ["Address", "Recording", "record_call"]

# Combinations that change with every step must not pile up.
_MOST = 4096

_lock = threading.RLock()
Given = tuple[Sequence[Any], dict[str, Any]]  # the arguments of a call, by position and by name


class Address(int):
    """An address that knows which array it belongs to, and how far from the array's first element it is."""

    source: int
    delta: int

    @classmethod
    def of(cls, value: int, source: int, delta: int) -> Address:
        """The address `value`."""
        made = cls(value)
        made.source, made.delta = source, delta
        return made

    def __add__(self, other: int) -> Address:
        return Address.of(int(self) + other, self.source, self.delta + other)

    __radd__ = __add__


class _StandIn(Buffer):
    """A buffer in place of another one's. It owns nothing."""

    __slots__ = ("real",)

    real: Buffer

    def record_stream(self, stream: Stream) -> None:
        self.real.record_stream(stream)

    def __del__(self) -> None:
        pass


class Recording:
    """The launches and allocations of one call in one thread."""

    def __init__(self) -> None:
        self.thread = threading.get_ident()
        self.arrays: list[DeviceArray] = []  # made on the way, in order
        self.launches: list[tuple[Any, tuple[int, int, int], tuple[Any, ...]]] = []
        self.repeatable = True

    def stand_in(self, array: DeviceArray, source: int) -> DeviceArray:
        """The same array, with an address that says that it is input number `source`."""
        real = array.buffer
        made: _StandIn = object.__new__(_StandIn)
        made.address = Address.of(real.address, source, -array.offset * array.dtype.itemsize)
        made.arena, made.block, made.nbytes, made.real = real.arena, real.block, real.nbytes, real
        return DeviceArray(made, array.shape, array.strides, array.offset, array.dtype, array.device)

    def allocated(self, array: DeviceArray) -> None:
        """Note an allocation; they are numbered -1, -2, ..."""
        if threading.get_ident() == self.thread:
            self.arrays.append(array)
            array.buffer.address = Address.of(array.buffer.address, -len(self.arrays), 0)

    def launched(self, program: Program, grid: tuple[int, int, int], values: Sequence[Any]) -> list[Any]:
        """Note a launch; returns its values as plain numbers."""
        if threading.get_ident() == self.thread:
            self.launches.append((program, grid, tuple(values)))
            pointers = [value for value, is_pointer in zip(values, program.pointers, strict=True) if is_pointer]
            if any(value.__class__ is not Address for value in pointers):
                self.repeatable = False
        return [int(value) if value.__class__ is Address else value for value in values]

    def interpreted(self) -> None:
        """Note a launch that cannot be repeated."""
        if threading.get_ident() == self.thread:
            self.repeatable = False


def record_call(
    operator: Operator,
    table: dict[Any, Replay | None],
    key: Any,
    given: Given,
    inputs: Sequence[Any],
    compute: dtypes.dtype,
    metadata: dict[str, Any],
    run: Callable[[list[Any]], list[DeviceArray]],
) -> list[DeviceArray]:
    """Run a call, and keep in a table how it is repeated.

    Args:
        table, key: where it is kept; the key is what `key_of` said of the call.
        given: the arguments as they came. The call can be repeated if `prepare` left the inputs as they were.
        inputs, compute, metadata: what the operator made of them.
        run: makes the launches, from arrays and numbers in the inputs' order; returns the results.
    """
    arrays = [value._data if isinstance(value, Tensor) else value for value in inputs]
    with _lock:
        if buffer.trace is not None:  # within another operator's recording, which notes these launches as its own
            return run(arrays)
        notes, changes = Recording(), active.changes
        stand_ins = [
            notes.stand_in(value, position) if value.__class__ is DeviceArray else value
            for position, value in enumerate(arrays)
        ]
        buffer.trace, program.recorder = notes.allocated, notes
        try:
            outs = run(stand_ins)
        finally:
            buffer.trace = program.recorder = None
            for array in notes.arrays:
                array.buffer.address = int(array.buffer.address)
    rest = inputs[len(given[0]) :]
    same = all(value is passed for value, passed in zip(inputs, given[0])) and all(value is None for value in rest)
    if len(table) >= _MOST:
        table.clear()
    if active.changes == changes:  # another thread may have changed a setting meanwhile
        table[key] = _replay_of(operator, notes, outs, arrays, compute, metadata, given) if same else None
    return outs


def _replay_of(
    operator: Operator,
    notes: Recording,
    outs: list[DeviceArray],
    arrays: list[Any],
    compute: dtypes.dtype,
    metadata: dict[str, Any],
    given: Given,
) -> Replay | None:
    """The replay of a recorded call; None where it cannot be repeated."""
    if not notes.launches or not notes.repeatable or any(a is not b for a, b in zip(outs, notes.arrays)):
        return None
    numbers: list[tuple[int, Any]] = []
    # numbers among the metadata that was given have places of their own, after the inputs
    numeric = [name for name in metadata if name in given[1] and metadata[name].__class__ in (int, float)]
    named = [(name, converter(compute)) for name in numeric] if operator.takes_numbers else []
    first = len(given[0]) + len(named)
    steps: list[Step] = []
    for loaded, grid, values in notes.launches:
        pairs = [
            (value.source if value.source >= 0 else first - 1 - value.source, value.delta)
            if value.__class__ is Address
            else (None, value)
            for value in values
        ]
        steps.append((loaded, grid, pairs))
    if operator.takes_numbers:
        # the kernel's first values are the results, then inputs and metadata in the call's order
        slots, at = steps[0][2], len(outs) or 1  # where the first input is the result as well, there is one
        for position, value in enumerate(arrays):
            if value.__class__ is float or value.__class__ is int:
                convert = converter(operator.kinds.get(operator.inputs[position], compute))
                if repr(slots[at]) != repr((None, convert(value))):
                    return None
                slots[at] = position, None
                numbers.append((position, convert))
            at += 1
        for name, value in metadata.items():
            if value.__class__ is float or value.__class__ is int:
                if repr(slots[at]) != repr((None, converter(compute)(value))):
                    return None
                if name in numeric:
                    slots[at] = len(given[0]) + numeric.index(name), None
                at += 1
    missing = (None,) * (len(arrays) - len(given[0]))
    forms = [array.form for array in notes.arrays]
    present = [array for array in (*outs, *arrays) if array.__class__ is DeviceArray]
    alike = all((array.shape, array.dtype) == (present[0].shape, present[0].dtype) for array in present)
    return Replay(forms, len(outs), steps, len(given[0]), numbers, named, metadata, missing, alike)
