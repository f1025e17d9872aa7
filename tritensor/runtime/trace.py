"""Trace a call of an operator on a device, so that it can be repeated (`replay.py`).

The operator runs as usual, but on stand-ins for its inputs, whose addresses are marked with the number of the input.
Its allocations and launches are noted. A call with a launch that takes an unmarked address cannot be repeated.
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

__all__ = ["Address", "Trace", "trace_call"]

# Replays kept for one operator: bounded, because combinations may change with every step.
_MOST = 4096

_lock = threading.RLock()
Arguments = tuple[Sequence[Any], dict[str, Any]]  # the arguments of a call, by position and by name


class Address(int):
    """An address with the number of the array that it belongs to, and its distance from that array's first element."""

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
    """A buffer with the memory of another one, which it does not own."""

    __slots__ = ("real",)

    real: Buffer

    def record_stream(self, stream: Stream) -> None:
        self.real.record_stream(stream)

    def __del__(self) -> None:
        pass


class Trace:
    """The launches and allocations of one call in one thread."""

    def __init__(self) -> None:
        self.thread = threading.get_ident()
        self.arrays: list[DeviceArray] = []  # allocated during the call, in order
        self.launches: list[tuple[Any, tuple[int, int, int], tuple[Any, ...]]] = []
        self.repeatable = True

    def stand_in(self, array: DeviceArray, source: int) -> DeviceArray:
        """The same array, with an address that is marked as that of input number `source`."""
        real = array.buffer
        made: _StandIn = object.__new__(_StandIn)
        made.address = Address.of(real.address, source, -array.offset * array.dtype.itemsize)
        made.arena, made.block, made.nbytes, made.real = real.arena, real.block, real.nbytes, real
        return DeviceArray(made, array.form, array.offset)

    def allocated(self, array: DeviceArray) -> None:
        """Note an allocation; allocations are numbered -1, -2, ..."""
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


def trace_call(
    operator: Operator,
    table: dict[Any, Replay | None],
    key: Any,
    arguments: Arguments,
    inputs: Sequence[Any],
    compute: dtypes.dtype,
    metadata: dict[str, Any],
    run: Callable[[list[Any]], list[DeviceArray]],
) -> list[DeviceArray]:
    """Run a call, and store its replay in a table.

    Args:
        table, key: where the replay is stored, or None if the call cannot be repeated; the key is made by `key_of`.
        arguments: as they were passed. The call can be repeated only if `prepare` did not change the inputs.
        inputs, compute, metadata: what the operator computed from the arguments.
        run: makes the launches, from arrays and numbers in the inputs' order; returns the results.
    """
    arrays = [value._data if isinstance(value, Tensor) else value for value in inputs]
    with _lock:
        if buffer.trace is not None:  # another operator is being traced, and these launches are part of its call
            return run(arrays)
        trace, changes = Trace(), active.changes
        stand_ins = [
            trace.stand_in(value, position) if value.__class__ is DeviceArray else value
            for position, value in enumerate(arrays)
        ]
        buffer.trace, program.observer = trace.allocated, trace
        try:
            outs = run(stand_ins)
        finally:
            buffer.trace = program.observer = None
            for array in trace.arrays:
                array.buffer.address = int(array.buffer.address)
    rest = inputs[len(arguments[0]) :]
    same = all(value is passed for value, passed in zip(inputs, arguments[0])) and all(value is None for value in rest)
    if len(table) >= _MOST:
        table.clear()
    if active.changes == changes:  # another thread may have changed a setting meanwhile
        table[key] = _replay_of(operator, trace, outs, arrays, compute, metadata, arguments) if same else None
    return outs


def _replay_of(
    operator: Operator,
    trace: Trace,
    outs: list[DeviceArray],
    arrays: list[Any],
    compute: dtypes.dtype,
    metadata: dict[str, Any],
    arguments: Arguments,
) -> Replay | None:
    """The replay of a traced call; None where it cannot be repeated."""
    if not trace.launches or not trace.repeatable or any(a is not b for a, b in zip(outs, trace.arrays)):
        return None
    numbers: list[tuple[int, Any]] = []
    # numbers that were passed as metadata have their own places, after the inputs
    numeric = [name for name in metadata if name in arguments[1] and metadata[name].__class__ in (int, float)]
    named = [(name, converter(compute)) for name in numeric] if operator.takes_numbers else []
    first = len(arguments[0]) + len(named)
    steps: list[Step] = []
    for loaded, grid, values in trace.launches:
        pairs = [
            (value.source if value.source >= 0 else first - 1 - value.source, value.delta)
            if value.__class__ is Address
            else (None, value)
            for value in values
        ]
        steps.append((loaded, grid, pairs))
    if operator.takes_numbers:
        # the kernel's first values are the results, then inputs and metadata in the call's order
        slots, at = steps[0][2], len(outs) or 1  # in place, the first input is the only result
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
                    slots[at] = len(arguments[0]) + numeric.index(name), None
                at += 1
    missing = (None,) * (len(arrays) - len(arguments[0]))
    forms = [array.form for array in trace.arrays]
    present = [array for array in (*outs, *arrays) if array.__class__ is DeviceArray]
    alike = all((array.shape, array.dtype) == (present[0].shape, present[0].dtype) for array in present)
    return Replay(forms, len(outs), steps, len(arguments[0]), numbers, named, metadata, missing, alike)
