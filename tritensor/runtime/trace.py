"""Trace a call of an operator, so that it can be repeated (`replay.py`).

On a device the operator runs as usual, but on stand-ins for its inputs: the same memory under other buffers, so that
each array that a kernel is launched with, views included, can be traced back to an input or to an allocation of the
call. A call with a launch that takes an array from elsewhere cannot be repeated.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from ..ground.locks import lock
from ..memory import buffer
from ..memory.array import DeviceArray
from ..memory.buffer import Buffer
from ..types import devices
from . import program
from .program import Program
from .replay import Replay, Step, active, converter, on_device, on_host

if TYPE_CHECKING:
    from ..drivers import Stream
    from .call import Call

# Replays kept for one operator: bounded, because combinations may change with every step.
_MOST = 4096

_lock = lock()


class _StandIn(Buffer):
    """A buffer with the memory of another one, which it does not own."""

    __slots__ = ("real",)

    real: Buffer

    def record_stream(self, stream: Stream) -> None:
        self.real.record_stream(stream)

    def __del__(self) -> None:
        pass


class Trace:
    """The launches and allocations of one call in one thread.

    Args:
        values: the arrays and numbers that the call is repeated with.
    """

    def __init__(self, values: Sequence[Any]) -> None:
        self.thread = threading.get_ident()
        self.values = [self.stand_in(value) if value.__class__ is DeviceArray else value for value in values]
        self.arrays: list[DeviceArray] = []  # allocated during the call, in order
        # by the id of a buffer: the number of its value or allocation, and the address of that array's first element
        self.sources = {
            id(value.buffer): (number, value.data_ptr())
            for number, value in enumerate(self.values)
            if value.__class__ is DeviceArray
        }
        self.steps: list[Step] = []
        self.repeatable = True

    @staticmethod
    def stand_in(array: DeviceArray) -> DeviceArray:
        """The same array over another buffer."""
        real = array.buffer
        made: _StandIn = object.__new__(_StandIn)
        made.arena, made.block, made.real = real.arena, real.block, real
        made.address, made.nbytes = real.address, real.nbytes
        return DeviceArray(made, array.form, array.offset)

    def allocated(self, array: DeviceArray) -> None:
        """Note an allocation."""
        if threading.get_ident() == self.thread:
            self.sources[id(array.buffer)] = len(self.values) + len(self.arrays), array.data_ptr()
            self.arrays.append(array)

    def launched(self, program: Program, grid: tuple[int, int, int], values: Sequence[Any], arguments: tuple) -> None:
        """Note a launch with these values, of which each address is that of an array among the arguments."""
        if threading.get_ident() != self.thread:
            return
        arrays = _arrays(arguments)
        noted: list[tuple[Any, Any]] = []
        for value, is_pointer in zip(values, program.pointers, strict=True):
            if not is_pointer:
                noted.append((None, value))
                continue
            source, start = self.sources.get(id(next(arrays).buffer), (None, 0))
            if source is None:
                self.repeatable = False
            noted.append((source, value - start))
        self.steps.append((program, grid, noted))

    def interpreted(self) -> None:
        """Note a launch that cannot be repeated."""
        if threading.get_ident() == self.thread:
            self.repeatable = False


def _arrays(arguments: tuple) -> Iterator[DeviceArray]:
    for value in arguments:
        if value.__class__ is tuple:
            yield from _arrays(value)
        elif value.__class__ is DeviceArray:
            yield value


def traced(
    call: Call, key: object, arguments: tuple[Sequence[Any], dict[str, Any]], values: list[Any], run: Callable[[], Any]
) -> Any:
    """Run a call and store its replay in the operator's table: None, if it cannot be repeated.

    Args:
        call: the call, with its arrays.
        key, values: what `key_of` made of the arguments.
        arguments: by position and by name, as they were passed. If `prepare` changed the inputs, the call cannot be
            repeated.
        run: makes the launches from the arrays of the call, or computes on the CPU; returns the results' arrays.
    """
    inputs, metadata = arguments
    operator, table, changes = call.operator, call.operator.replays, active.changes
    kept = all(value is passed for value, passed in zip(call.inputs, inputs))
    kept = kept and all(value is None for value in call.inputs[len(inputs) :])
    # numbers that were passed as metadata are among the values, behind the inputs
    named = [name for name, value in metadata.items() if value.__class__ in (int, float)]
    named = named if operator.takes_numbers else []
    again: Callable[..., Any] | None
    if call.device is devices.cpu:
        made = run()
        again = on_host(call, operator.on_host(call), len(inputs), named, metadata)
    else:
        with _lock:
            if buffer.trace is not None:  # another call is being traced, and these launches are part of it
                return run()
            trace, arrays, outs = Trace(values), call.arrays, call.outs
            stand_ins = trace.values[len(outs) : len(outs) + len(inputs)]
            call.arrays = [*stand_ins, *arrays[len(inputs) :]] if kept else arrays
            call.outs = trace.values[: len(outs)]
            buffer.trace, program.observer = trace.allocated, trace
            try:
                made = run()
            finally:
                buffer.trace = program.observer = None
                call.arrays = arrays
        again = _repeated(call, trace, made if not outs else [], named, len(inputs)) if kept else None
    if len(table) >= _MOST:
        table.clear()
    if active.changes == changes:  # another thread may have changed a setting meanwhile
        replay = None
        if kept and again is not None:
            replay = Replay(again, call.metadata, named, len(call.inputs) - len(inputs), _alike(call, made))
        table[key] = replay
    return made


def _alike(call: Call, made: Sequence[Any]) -> bool:
    present = [array for array in (*made, *call.arrays) if hasattr(array, "shape")]
    return all((array.shape, array.dtype) == (present[0].shape, present[0].dtype) for array in present)


def _repeated(
    call: Call, trace: Trace, made: list[DeviceArray], named: list[str], count: int
) -> Callable[..., Any] | None:
    """The function that repeats a traced call; None where it cannot be repeated.

    Args:
        made: the results, unless the call writes into an array that was passed.
        named: the metadata whose numbers are values.
        count: the number of inputs among the values.
    """
    operator, steps = call.operator, trace.steps
    if not steps or not trace.repeatable or any(a is not b for a, b in zip(made, trace.arrays)):
        return None
    converters: dict[int, Any] = {}
    if operator.takes_numbers:
        # the kernel's first values are the results, then inputs and metadata in the call's order; two for complex ones
        slots, given = steps[0][2], len(trace.values) - count - len(named)
        at = sum(1 + kind.is_complex for kind in call.results)
        for position, value in enumerate(call.arrays):
            name = operator.inputs[position]
            kind = operator.kinds.get(name, call.compute)
            if value.__class__ is float or value.__class__ is int:
                convert = converter(kind, operator.rule.number(name, call))
                if repr(slots[at]) != repr((None, convert(value))):
                    return None
                slots[at] = given + position, 0
                converters[given + position] = convert
            at += 1 + kind.is_complex
        for name, value in call.metadata.items():
            if value.__class__ is float or value.__class__ is int:
                convert = converter(call.compute, operator.rule.number(name, call))
                if repr(slots[at]) != repr((None, convert(value))):
                    return None
                if name in named:
                    place = given + count + named.index(name)
                    slots[at] = place, 0
                    converters[place] = convert
                at += 1 + call.compute.is_complex
    return on_device(steps, trace.values, converters, [array.form for array in trace.arrays], len(made))
