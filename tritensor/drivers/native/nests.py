"""Writes nests of loops: sinks of one shape, with the reductions that their innermost loop carries."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence, Set
from contextlib import ExitStack

from .elements import constant, elementwise, is_elementwise, literal, register, zero
from .emit import Loop
from .evaluation import Evaluation, shape_of
from .facts import Buffer, Sink, Write, is_costly, is_lazy, needs_of
from .parse import Operation, Unknown, Value
from .values import Lanes, vector

__all__ = ["Nests"]


class Nests(Evaluation):
    """Loops over the elements of tensors."""

    def __init__(self, function: Operation, fma: bool, apart: bool, bits: int) -> None:
        super().__init__(function, fma, apart)
        self.bits = bits
        self.loads: list[Operation] = []  # of tensors, that stand before the current operation
        self.group: list[Operation] = []
        # of the values that the loop around carries on: where they are wanted, and what is there now
        self.targets: dict[Value, tuple[Buffer, Value]] = {}

    # -- groups

    def join(self, operation: Operation) -> None:
        """Add a sink to the group that is written as one nest; what cannot be in it is written first."""
        shape, pointer = shape_of(operation), operation.operands[0]
        if self.group:
            axes = {each.integer("axis") for each in (*self.group, operation) if each.name == "tt.reduce"}
            reach = self.reach(operation.operands)
            if operation.name == "tt.store":  # loads that it may change are computed before the group, if not of it
                reach |= self.reach(each.result for each in self.loads if self.overlap(each.operands[0], pointer))
            stores = [each.operands[0] for each in self.group if each.name == "tt.store"]
            # of two stores to one place the later has to win; a chunk of the earlier might come behind it
            overlaps = operation.name == "tt.store" and any(
                each is not pointer and self.overlap(each, pointer) for each in stores
            )
            if (
                shape != shape_of(self.group[0])
                or len(axes) > 1
                or overlaps
                or any(each in reach for each in self.group)
            ):
                self.flush()
        self.group.append(operation)

    def flush(self) -> None:
        """Write the nest of the group."""
        if self.group:
            group, self.group = self.group, []
            self.emit(group)
            self.done.update(group)

    def settle(self, operations: Iterable[Operation], without: Set[Operation] = frozenset()) -> None:
        """Compute now what is needed later."""
        values = [each.result for each in operations if each.result not in self.buffers]
        self.keep([value for value in values if self.needed(value, without)])

    def keep(self, values: Iterable[Value]) -> None:
        """Compute values to scratch memory of their own, if they are not there."""
        writes = [Write(value, self.buffer_for(value)) for value in dict.fromkeys(values) if value not in self.buffers]
        self.write(writes)
        for each in writes:
            self.buffers.setdefault(each.value, each.buffer)

    def write(self, writes: Sequence[Write]) -> None:
        """Write values to buffers, by a nest for each shape."""
        for shape in dict.fromkeys(map(shape_of, writes)):
            self.emit([each for each in writes if shape_of(each) == shape])

    def _hazards(self, sinks: Sequence[Sink], reach: dict[Operation, None], kept: Set[Value]) -> list[Value]:
        """Loads whose memory the group's stores might change before it is read, or read again."""
        stores = {each.operands[0]: each for each in sinks if isinstance(each, Operation) and each.name == "tt.store"}
        without = {each for each in sinks if isinstance(each, Operation)}
        found = []
        for load in self.loads if stores else ():
            pointer = load.operands[0]
            overlaps = [each for each in stores if self.overlap(each, pointer)]
            if load.result in self.buffers or not overlaps:
                continue
            later = load.result not in kept and self.needed(load.result, without, kept)
            if load in reach and overlaps == [pointer] and not later:
                needs = [value for sink in sinks for value in needs_of(sink)]
                if self.at_own_index(needs, lambda value, load=load: value is load.result):  # type: ignore[misc]
                    continue  # each chunk reads what it writes
            if load in reach or later:
                found.append(load.result)
        return found

    def _across(self, sinks: Sequence[Sink], reach: dict[Operation, None]) -> list[Value]:
        """Loads that are consecutive along another dimension than that of the lanes.

        They are read along theirs, to scratch memory: the second pass stays in the first cache. A transposed copy of
        2048 x 1024 numbers takes a fifth of the time.
        """
        shape = shape_of(sinks[0])
        dim, _ = self.layout(shape, sinks, reach)
        loads = [each for each in reach if each.name == "tt.load" and each.result.shape == shape]
        return [
            each.result
            for each in loads
            if dim is not None
            and self.slope(each.operands[0], dim) not in (0, 1)
            and any(size >= 8 and self.slope(each.operands[0], at) == 1 for at, size in enumerate(shape))
            and not (len(sinks) == 1 and isinstance(sinks[0], Write) and sinks[0].value is each.result)
        ]

    def _kept(self, sinks: Sequence[Sink], reach: dict[Operation, None]) -> dict[Value, None]:
        """Costly values of the group's shape that a later nest needs as well."""
        shape, kept = shape_of(sinks[0]), dict[Value, None]()
        written = {each.value for each in sinks if isinstance(each, Write)}
        without = {each for each in sinks if isinstance(each, Operation)}
        for each in reversed(reach):  # what is made of others first
            if is_costly(each) and each.result.shape == shape and each.result not in written:
                if self.needed(each.result, without, kept.keys()):
                    kept[each.result] = None
        return kept

    def emit(self, sinks: Sequence[Sink]) -> None:
        """Write the nest of some sinks of one shape."""
        shape = shape_of(sinks[0])
        needs = [value for sink in sinks for value in needs_of(sink)]
        reach = self.reach(needs)
        narrow = [each for each in reach if is_lazy(each) and is_costly(each) and each.result.count < math.prod(shape)]
        gathered = [each.operands[0] for each in reach if each.name == "tt.gather"]
        self.keep([*gathered, *(each.result for each in narrow)])
        reach = self.reach(needs)
        if hazards := self._hazards(sinks, reach, self._kept(sinks, reach).keys()):
            self.keep(hazards)
            reach = self.reach(needs)
        for each in reach:
            if not is_lazy(each):
                raise Unknown(f"operation {each.name}")
        if across := self._across(sinks, reach):
            self.keep(across)
            reach = self.reach(needs)
        kept = [Write(each, self.buffer_for(each)) for each in self._kept(sinks, reach)]
        outer = self.lanes
        self._nest([*kept, *sinks], shape, reach)
        self.lanes = outer
        self.memo = {}
        self.buffers |= {write.value: write.buffer for write in kept}

    def _nest(self, sinks: Sequence[Sink], shape: tuple[int, ...], reach: dict[Operation, None]) -> None:
        dim, self.lanes = self.layout(shape, sinks, reach)
        for sink in sinks:
            if isinstance(sink, Write) and sink.buffer.inner is None:
                sink.buffer.inner = dim
        reduces = [each for each in sinks if isinstance(each, Operation) and each.name == "tt.reduce"]
        inner = reduces[0].integer("axis") if reduces else dim
        order = [each for each in range(len(shape)) if each not in (dim, inner)]
        if dim is not None and dim != inner:
            order.append(dim)
        index = [Lanes("0")] * len(shape)
        with ExitStack() as outside:
            self.enter(outside, shape, order, dim, index)
            with ExitStack() as inside:
                loop = None if inner is None else self.enter(inside, shape, [inner], dim, index)
                self.memo = {}
                sums = self._visit(sinks, tuple(index), loop)
            for reduce, values in sums.items():
                self._reduced(reduce, values, index, dim)

    def enter(
        self, stack: ExitStack, shape: Sequence[int], dims: Iterable[int], dim: int | None, index: list[Lanes]
    ) -> Loop | None:
        """Open loops over dimensions, along `dim` by chunks, and set the index to where they are; returns the last."""
        loop = None
        for each in dims:
            step, stride = (self.lanes, 1) if each == dim and self.lanes else (1, 0)
            if shape[each] == step:
                index[each], loop = Lanes("0", stride), None
            else:
                loop = stack.enter_context(self.code.loop(shape[each], step))
                index[each] = Lanes(loop.counter, stride)
        return loop

    def layout(
        self, shape: tuple[int, ...], sinks: Sequence[Sink], reach: dict[Operation, None]
    ) -> tuple[int | None, int]:
        """The dimension along which lanes lie, and their number; the one along which most accesses are consecutive."""
        most = self.bits // 16
        pointers, buffers = list[Value](), [each.buffer for each in sinks if isinstance(each, Write)]
        for each in (*reach, *(sink for sink in sinks if isinstance(sink, Operation))):
            pointers += each.operands[:1] if each.name in ("tt.load", "tt.store") else []
            buffers += [self.buffers[value] for value in each.operands if value in self.buffers]
        best, score = None, 0.0  # type: tuple[int | None, float]
        for dim, size in enumerate(shape):
            slopes = [self.slope(each, dim) for each in pointers if each.shape == shape]
            points = sum(1.0 if slope == 1 else 0.3 if slope == 0 else 0.1 for slope in slopes)
            known = [each for each in buffers if each.shape == shape and each.inner is not None]
            points += sum(0.5 if dim == each.inner else 0.1 for each in known) + 0.01 * (dim == len(shape) - 1)
            points *= min(size, most) / most
            if size > 1 and points >= score:
                best, score = dim, points
        return best, 0 if best is None else min(most, shape[best])

    def _visit(self, sinks: Sequence[Sink], index: tuple[Lanes, ...], loop: Loop | None) -> dict[Operation, list[str]]:
        """Evaluate all that the sinks need at an index, then store, write and check; returns what is being reduced."""
        values = [[self.evaluate(each, index) for each in needs_of(sink)] for sink in sinks]
        sums: dict[Operation, list[str]] = {}
        for sink, found in zip(sinks, values, strict=True):
            if isinstance(sink, Write):
                self.put(sink.buffer, index, found[0], sink.value.element)
            elif sink.name == "tt.store":
                pointer, value, mask = (*found, None)[:3]
                assert pointer is not None and value is not None
                self.deposit(sink.operands[0], pointer, value, mask, sink.operands[1].element)
            elif sink.name == "tt.assert":
                self.fail_unless(found[0])
            else:
                parts = [
                    self.full(value, register(each.element)) for value, each in zip(found, sink.operands, strict=True)
                ]
                sums[sink] = parts if loop is None else self.carried(loop, sink, parts)
        return sums

    # -- reductions

    def carried(self, loop: Loop, operation: Operation, values: list[str]) -> list[str]:
        """Combine values with what a loop has carried: the identity at first, or in its first round nothing."""
        code, lanes = self.code, self.lanes
        kinds = [register(each.element) for each in operation.operands]
        identity = _identity(operation)
        phis = [loop.phi(vector(kind, lanes), code.splat(identity or zero(kind), kind, lanes)) for kind in kinds]
        found = self.combined(operation, [*phis, *values], lanes)
        if not identity:
            fresh = code.op(f"icmp eq i64 {loop.counter}, {loop.start}")
            found = [
                code.op(f"select i1 {fresh}, {vector(kind, lanes)} {value}, {vector(kind, lanes)} {both}")
                for kind, value, both in zip(kinds, values, found, strict=True)
            ]
        loop.next.extend(found)
        return found

    def _reduced(self, reduce: Operation, values: list[str], index: list[Lanes], dim: int | None) -> None:
        """Combine the lanes, if they lie along the axis, and keep the results."""
        axis, lanes = reduce.integer("axis"), self.lanes
        width = lanes if axis != dim else 0
        values = self._halved(reduce, values) if lanes and not width else values
        rest = tuple(each for at, each in enumerate(index) if at != axis)
        self.lanes = width
        for result, value in zip(reduce.results, values, strict=True):
            if result.shape is None:
                self.scalars[result] = value
                continue
            if result not in self.buffers:
                self.buffers[result] = self.buffer_for(result)
                self.buffers[result].inner = dim - (dim > axis) if dim not in (None, axis) else None
            self.put(self.buffers[result], rest, Lanes(value, None if width else 0), result.element)
        self.lanes = lanes

    def _halved(self, reduce: Operation, values: list[str]) -> list[str]:
        """Combine the lanes of vectors, halves with halves."""
        code, lanes = self.code, self.lanes
        kinds = [register(each.element) for each in reduce.operands]
        while lanes > 1:
            half = lanes // 2
            sides = []
            for start in (0, half):
                numbers = ", ".join(f"i32 {start + lane}" for lane in range(half))
                for kind, value in zip(kinds, values, strict=True):
                    if half == 1:
                        sides.append(code.op(f"extractelement <2 x {kind}> {value}, i64 {start}"))
                    else:
                        pair = f"<{lanes} x {kind}> {value}, <{lanes} x {kind}> poison"
                        sides.append(code.op(f"shufflevector {pair}, <{half} x i32> <{numbers}>"))
            values = self.combined(reduce, sides, half if half > 1 else 0)
            lanes = half
        return values

    def combined(self, operation: Operation, values: list[str], lanes: int) -> list[str]:
        """The results of the region of a reduction or a scan for its arguments."""
        (block,) = operation.regions[0]
        known: dict[Value, str] = dict(zip(block.arguments, values, strict=True))

        def name(value: Value) -> str:
            return (
                known[value] if value in known else self.code.splat(self.scalars[value], register(value.element), lanes)
            )

        for each in block.operations[:-1]:
            if each.name == "arith.constant":
                known[each.result] = self.code.splat(constant(each), register(each.result.element), lanes)
            elif is_elementwise(each.name):
                known[each.result] = elementwise(self.code, each, [name(value) for value in each.operands], lanes)
            else:
                raise Unknown(f"{each.name} in a reduction")
        return [name(value) for value in block.operations[-1].operands]


_NUMBERS = {"arith.addf": -0.0, "arith.addi": 0, "arith.ori": 0, "arith.xori": 0, "arith.maximumf": -math.inf}
_NUMBERS |= {"arith.minimumf": math.inf, "arith.maxnumf": math.nan, "arith.minnumf": math.nan, "arith.mulf": 1}


def _identity(operation: Operation) -> str | None:
    """The number that leaves the other one alone, where numbers are combined by one operation."""
    (block,) = operation.regions[0]
    found = _NUMBERS.get(block.operations[0].name)
    if found is None or len(block.operations) != 2 or block.operations[0].operands != block.arguments:
        return None
    return literal(found, register(operation.operands[0].element))
