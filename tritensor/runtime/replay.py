"""Replays: the launches of an operator's call on a device, repeated on other memory.

What `Operator.__call__` computes for a call (checked arguments, dtypes, the results' shapes, launches) depends on the
forms of its inputs (`memory.array.Form`), on its metadata and on its numbers, not on the contents of memory. So the
first call with a combination is traced (`runtime/trace.py`), and later ones only allocate, launch and wrap: 1 to 4 us,
in place of 25 to 60.

An operator that reads memory or counts its calls must not be repeated: families set `repeatable` where theirs can be.
On simulated devices, in checked mode and in debug mode every call goes through all stages of `Operator.__call__`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from operator import itemgetter
from typing import TYPE_CHECKING, Any

from .. import dtypes, settings
from ..memory import buffer
from ..memory.array import DeviceArray, Form
from ..memory.buffer import Buffer
from ..tensor import Tensor, wrap
from .program import Program, float_bits, watchers

if TYPE_CHECKING:
    from .protocol import Operator

__all__ = ["Replay", "Step", "active", "begin", "converter", "key_of", "stop", "table"]

_make = object.__new__
_tables: list[dict[Any, Replay | None]] = []


class _Mode:
    """Whether calls are repeated: on real devices, unless checked mode or debug mode is on."""

    on = False
    wanted = False
    changes = 0  # how often all replays were dropped


active = _Mode()


def begin() -> None:
    """Repeat calls from now on; called when a kernel is loaded on a device."""
    if not active.wanted:
        active.wanted = True
        forget()


def stop() -> None:
    """Repeat no calls until the next kernel is loaded; for a device that no longer exists."""
    active.wanted = False
    forget()


def forget() -> None:
    """Drop every replay, because a setting that launches may depend on has changed."""
    active.changes += 1
    active.on = active.wanted and not (settings.check.value or settings.debug.value)
    for each in _tables:
        each.clear()


settings.watchers.append(forget)
watchers.append(begin)


def table() -> dict[Any, Replay | None]:
    """A new table of replays by key, for one operator; None marks a combination that cannot be repeated."""
    made: dict[Any, Replay | None] = {}
    _tables.append(made)
    return made


def key_of(operator: Operator, inputs: Sequence[Any], metadata: dict[str, Any]) -> tuple[Any, ...] | None:
    """What the launches of a call depend on; None for a call that cannot be repeated.

    The key holds value and type of each number (a kernel distinguishes 1 from True, and 0.0 from -0.0), but only the
    type for an operator whose kernel takes numbers as arguments.
    """
    parts: list[Any] = []
    for value in inputs:
        kind = value.__class__
        if kind is Tensor or isinstance(value, Tensor):
            data = value._data
            if data.__class__ is not DeviceArray:
                return None
            parts.append(data.form)
        elif kind is float or kind is int:
            parts.append(kind if operator.takes_numbers else (kind, value or str(value)))
        elif kind is bool or value is None:
            parts.append((kind, value))
        else:
            return None
    if metadata:
        parts.extend(metadata)
        for value in metadata.values():
            kind = value.__class__
            parts.append(kind)
            if kind is float or kind is int:
                if not operator.takes_numbers:
                    parts.append(value or str(value))
            elif kind in _PLAIN:
                parts.append(value)
            elif (kind is tuple or kind is list) and all(part.__class__ in _PLAIN for part in value):
                parts.append(tuple([(part.__class__, part) for part in value]))
            else:
                return None
    return tuple(parts)


_PLAIN = frozenset((bool, int, float, str, type(None), dtypes.dtype))


def converter(kind: dtypes.dtype) -> Callable[[Any], Any]:
    """The function that converts a number of compute dtype `kind` to a launch's argument."""
    if kind is dtypes.float64:
        return float
    return _single if kind.is_floating_point else _integer


def _single(value: Any) -> int:
    return float_bits(float(value))


def _integer(value: Any) -> int:
    if not -(1 << 63) <= value < 1 << 63:
        raise OverflowError
    return int(value)


def _prepared(program: Program, grid: tuple[int, int, int], values: list[tuple[Any, Any]]) -> tuple[Any, ...] | None:
    """A launch whose arguments are two or more unchanged places and then numbers: a function to call first (or None),
    the driver's launch, grid, kernel, the itemgetter of the places, and the numbers. None for any other launch."""
    if program.scratch:
        return None
    count = sum(1 for source, _ in values if source is not None)
    if count < 2 or any(source is None or value for source, value in values[:count]):
        return None
    picked = itemgetter(*[source for source, _ in values[:count]])
    return (*program.prepared(grid), picked, (*[value for _, value in values[count:]], 0, 0))


# A program, the grid, and the values as (source, value); see `Replay`.
Step = tuple[Program, tuple[int, int, int], list[tuple[Any, Any]]]


class Replay:
    """How the calls of one operator with one combination of forms and metadata are repeated.

    Args:
        forms: of everything that is allocated, the results first.
        results: the number of results.
        steps: the launches, each with its values as (source, value). A value is the address `places[source]` plus
            `value`, the number `places[source]` where value is None, or the number `value` where source is None. A
            call's `places` are its inputs, then `named`, then the addresses of what was allocated.
        inputs: the number of inputs of a call.
        numbers, named: how numbers among the inputs (by position) and the metadata (by name) are converted.
        metadata: what the operator's `prepare` returned, for the tape.
        missing: None for each input that is left out.
        alike: all inputs have the shape and the dtype of the first result.
    """

    __slots__ = (
        "alike",
        "driver",
        "forms",
        "in_place",
        "index",
        "launches",
        "metadata",
        "missing",
        "named",
        "note",
        "numbers",
        "results",
        "single",
        "steps",
        "threads",
    )

    def __init__(
        self,
        forms: list[Form],
        results: int,
        steps: list[Step],
        inputs: int,
        numbers: list[tuple[int, Any]],
        named: list[tuple[str, Any]],
        metadata: dict[str, Any],
        missing: tuple[None, ...],
        alike: bool,
    ) -> None:
        program = steps[0][0]
        self.metadata, self.missing, self.alike = metadata, missing, alike
        self.driver, self.index, self.threads = program.driver, program.device, program.driver.threads
        self.forms, self.results, self.steps = forms, results, steps
        self.note = program.driver.launched.append
        self.numbers, self.named = numbers, named
        self.launches = [_prepared(*step) for step in steps]
        # what `launch_in_place` needs: a single launch that allocates nothing
        self.in_place = None if forms or numbers or named or len(steps) > 1 else self.launches[0]
        # what the other quick paths below need: a single launch that takes one result, then the inputs in order
        self.single: Any = None
        if len(steps) == len(forms) == 1 and not named and self.launches[0] is not None:
            sources = [source for source, _ in steps[0][2] if source is not None]
            if sources == [inputs, *range(inputs)]:
                place, launch, config, kernel, _, tail = self.launches[0]
                self.single = place, launch, config, kernel, forms[0], tail, program

    def run(self, inputs: Sequence[Any], metadata: dict[str, Any]) -> tuple[Tensor, ...] | None:
        """The results for inputs of the traced forms; None where the call cannot be repeated after all."""
        if self.single is not None and not self.numbers:
            arrays = [value._data for value in inputs if value is not None]
            quick = self.unary(*arrays) if len(arrays) == 1 else self.binary(*arrays) if len(arrays) == 2 else None
            if quick is not None:
                return (quick,)
        stream = self.driver.current_stream(self.index)
        arena = stream.arena
        places: list[Any] = []
        for value in inputs:
            if value.__class__ is Tensor or isinstance(value, Tensor):
                data = value._data
                memory = data.buffer
                if memory.arena is not arena:
                    if memory.arena.driver is not self.driver:  # of a simulated device beside the real one
                        return None
                    memory.record_stream(stream)
                places.append(memory.address + data.offset * data.dtype.itemsize if data.offset else memory.address)
            else:
                places.append(value)
        if self.numbers or self.named:
            try:
                for position, convert in self.numbers:
                    places[position] = convert(places[position])
                for name, convert in self.named:
                    places.append(convert(metadata[name]))
            except OverflowError:
                return None
        made = [buffer.new(arena, form) for form in self.forms]
        places.extend([array.buffer.address for array in made])
        self._repeat(stream, places)
        return tuple([wrap(array) for array in made[: self.results]])

    def _repeat(self, stream: Any, places: list[Any]) -> None:
        """Make the launches."""
        for (program, grid, values), prepared in zip(self.steps, self.launches):
            if prepared is None or buffer.trace is not None:
                program.launch(
                    stream,
                    grid,
                    [
                        value if source is None else places[source] if value is None else places[source] + value
                        for source, value in values
                    ],
                )
                continue
            place, launch, config, kernel, picked, tail = prepared
            try:
                if place is not None:
                    place()
                launch(*(stream.handle, config, kernel) + picked(places) + tail)  # noqa: RUF005  as below
            except Exception as error:
                raise self.driver.refused(program.name, error) from error
            self.note(program)

    def tape(self, metadata: dict[str, Any]) -> dict[str, Any]:
        """The metadata for the tape: that of the traced call, with this call's numbers."""
        return {**self.metadata, **{name: metadata[name] for name, _ in self.named}} if self.named else self.metadata

    # ---- the quick paths of elementwise methods; None where `run` or `Operator.__call__` has to do the call -------

    def unary(self, x: DeviceArray) -> Tensor | None:
        """The result for one array."""
        stream = self.threads.current.get(self.index)
        if self.single is None or stream is None or x.buffer.arena is not stream.arena:
            return None
        address = x.buffer.address
        if x.offset:
            address += x.offset * x.dtype.itemsize
        return self._launch(stream, (address,))

    def binary(self, x: DeviceArray, y: DeviceArray) -> Tensor | None:
        """The result for two arrays."""
        stream = self.threads.current.get(self.index)
        if self.single is None or stream is None:
            return None
        arena = stream.arena
        first, second = x.buffer, y.buffer
        if first.arena is not arena or second.arena is not arena:
            return None
        left, right = first.address, second.address
        if x.offset:
            left += x.offset * x.dtype.itemsize
        if y.offset:
            right += y.offset * y.dtype.itemsize
        return self._launch(stream, (left, right))

    def number(self, x: DeviceArray, value: Any) -> Tensor | None:
        """The result for an array and a number, in the order of the traced call."""
        stream = self.threads.current.get(self.index)
        if self.single is None or stream is None or x.buffer.arena is not stream.arena:
            return None
        address = x.buffer.address
        if x.offset:
            address += x.offset * x.dtype.itemsize
        position, convert = self.numbers[0]
        try:
            bits = convert(value)
        except OverflowError:
            return None
        return self._launch(stream, (address, bits) if position else (bits, address))

    def launch_in_place(self, x: DeviceArray, y: DeviceArray) -> bool:
        """Launch on two arrays, with the first as the result; False where nothing was launched."""
        stream = self.threads.current.get(self.index)
        if self.in_place is None or stream is None or buffer.trace is not None:
            return False
        arena = stream.arena
        first, second = x.buffer, y.buffer
        if first.arena is not arena or second.arena is not arena:
            return False
        left, right = first.address, second.address
        if x.offset:
            left += x.offset * x.dtype.itemsize
        if y.offset:
            right += y.offset * y.dtype.itemsize
        place, launch, config, kernel, picked, tail = self.in_place
        try:
            if place is not None:
                place()
            launch(*(stream.handle, config, kernel) + picked((left, right)) + tail)  # noqa: RUF005  as below
        except Exception as error:
            raise self.driver.refused(self.steps[0][0].name, error) from error
        self.note(self.steps[0][0])
        return True

    def _launch(self, stream: Any, operands: tuple[int, ...]) -> Tensor | None:
        """Allocate, launch and wrap, without calling functions for it: each would add 3% to the time."""
        if buffer.trace is not None:  # another call is being traced, and this launch may be part of it
            return None
        place, launch, config, kernel, form, tail, program = self.single
        arena = stream.arena
        heap = arena.heap
        try:
            block = arena.bins[form.block_size].pop()
        except IndexError:
            block = arena.miss(form)
        block.use = form
        heap.allocated = allocated = heap.allocated + block.size
        if allocated > heap.peak:
            heap.peak = allocated
        memory = _make(Buffer)
        memory.arena = arena
        memory.block = block
        memory.address = address = block.address
        memory.nbytes = form.nbytes
        try:
            if place is not None:
                place()
            # joined by +, which is 40 ns faster than unpacking
            launch(*(stream.handle, config, kernel, address) + operands + tail)  # noqa: RUF005
        except Exception as error:
            raise self.driver.refused(program.name, error) from error
        self.note(program)
        array = _make(DeviceArray)
        array.buffer, array.form, array.offset = memory, form, 0
        result: Tensor = _make(Tensor)
        result._data = array
        result._counter = result._origin = result._node = None
        result._needs = False
        return result
