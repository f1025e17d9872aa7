"""Writes nests of loops: sinks of one shape, with the reductions that their innermost loop carries."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence, Set
from contextlib import ExitStack

from .access import Index
from .elements import constant, elementwise, is_elementwise, literal, register, zero
from .emit import Loop
from .evaluation import DIVISIONS, Evaluation, shape_of
from .facts import Buffer, Sink, Write, is_costly, is_lazy, needs_of
from .parse import Operation, Unknown, Value
from .values import Lanes, vector

__all__ = ["Nests"]

# Operations whose chunks are whole ones.
_WHOLE = {"tt.reshape", "tt.join", "tt.split", "tt.cat", "tt.gather", "tt.assert"}
# Where the lanes of a chunk begin.
_HERE = Lanes("here", 1)


class Nests(Evaluation):
    """Loops over the elements of tensors."""

    def __init__(self, function: Operation, fma: bool, apart: bool, bits: int) -> None:
        super().__init__(function, fma, apart)
        self.bits, self.code.scales = bits, bits > 256
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
            divisions = [] if dim is None or inner != dim else self._divisions(sinks, reach, index, dim)
            divisors = {self.uniform(each.operands[1]) for each, _ in divisions if each.name in DIVISIONS}
            if not divisors:
                self._innermost(sinks, shape, inner, dim, index, [])
                return
            code, some = self.code, "true"
            for divisor, kind in filter(None, divisors):  # steps of few lanes take longer than vectors' divisions
                some = code.op(f"and i1 {some}, {code.op(f'icmp sge {kind} {divisor}, {self.lanes // 5}')}")
            then, other, after = code.name("then"), code.name("else"), code.name("joined")
            code.branch(some, then, other)
            for label, found in ((then, divisions), (other, [])):
                code.label(label)
                self._innermost(sinks, shape, inner, dim, index, found)
                code.jump(after)
            code.label(after)

    def _innermost(
        self,
        sinks: Sequence[Sink],
        shape: tuple[int, ...],
        inner: int | None,
        dim: int | None,
        index: list[Lanes],
        divisions: Sequence[tuple[Operation, Index]],
    ) -> None:
        """Write the innermost loop of a nest; with divisions, one over rows, which end where a quotient does."""
        with ExitStack() as inside:
            self.memo = {}
            loop: Loop | None
            if divisions and dim is not None:
                loop = self._along_rows(inside, sinks, shape[dim], divisions, index, dim)
            else:
                loop = None if inner is None else self.enter(inside, shape, [inner], dim, index)
            sums = self._visit(sinks, tuple(index), loop)
        self.active, self.implied = None, ""
        for reduce, values in sums.items():
            self._reduced(reduce, values, index, dim)

    def _divisions(
        self, sinks: Sequence[Sink], reach: dict[Operation, None], index: Sequence[Lanes], dim: int
    ) -> list[tuple[Operation, Index]]:
        """The divisions of consecutive numbers by one number in a nest whose chunks may end anywhere.

        Rows are counted so: within a row the quotient is one number, and remainders are consecutive again. They are
        found by evaluating what the sinks need; its code is not kept.
        """
        operations = [*reach, *(each for each in sinks if isinstance(each, Operation))]
        joined = [each for each in operations if each.name == "tt.reduce"]
        if (
            not self.lanes
            or any(each.name in _WHOLE for each in operations)
            or not any(each.name in DIVISIONS for each in reach)
        ):
            return []
        if any(_identity(each) is None or each.result.shape is None for each in joined):
            return []
        code, at = self.code, list(index)
        mark, block, at[dim] = len(code.lines), code.block, Lanes(code.name("i"), 1)
        self.divisions, self.memo = [], {}
        if mask := self._mask_of_all(sinks, tuple(at)):
            self.implied = mask.base
        for sink in sinks:
            for value in needs_of(sink):
                self.evaluate(value, tuple(at))
        found, self.divisions, self.implied = self.divisions, None, ""
        del code.lines[mark:]
        code.block = block
        return [(each, tuple([_HERE if place == at[dim] else place for place in places])) for each, places in found]

    def _along_rows(
        self,
        stack: ExitStack,
        sinks: Sequence[Sink],
        size: int,
        divisions: Sequence[tuple[Operation, Index]],
        index: list[Lanes],
        dim: int,
    ) -> Loop:
        """Open a loop over rows and one over their chunks, and set the index; one over both, where it carries sums."""
        code, most = self.code, str(self.lanes)
        rows = loop = stack.enter_context(code.loop(size))
        index[dim] = Lanes(rows.counter, 1)
        rows.step = left = self._row(divisions, size, rows.counter)
        if any(isinstance(each, Operation) and each.name == "tt.reduce" for each in sinks):
            rows.step = left = code.intrinsic("smin", "i64", left, most)
        else:
            if mask := self._mask_of_all(sinks, tuple(index)):
                self.implied = mask.base
                stack.enter_context(self.on_condition(self.some(mask)))
            found = [self.evaluate(each.result, _placed(at, rows.counter)) for each, at in divisions]
            loop = stack.enter_context(code.loop(left, self.lanes))
            here = index[dim] = Lanes(code.op(f"add i64 {rows.counter}, {loop.counter}"), 1)
            for (operation, at), (base, stride) in zip(divisions, found, strict=True):
                if stride:
                    step = self.cast(Lanes(loop.counter), "i64", operation.result.element)
                    base = self.plus(Lanes(base), step, operation.result.element).base
                self.memo[operation.result, _placed(at, here.base)] = Lanes(base, stride)
            left = code.intrinsic("smin", "i64", code.op(f"sub i64 {left}, {loop.counter}"), most)
        self.active = self.mask_between("0", left)
        if mask := self._mask_of_all(sinks, tuple(index)):
            self.active = self.mask_between("0", code.intrinsic("smin", "i64", left, self.between[mask.base][1]))
            self.implied = mask.base
            stack.enter_context(self.on_condition(self.some(mask)))
        return loop

    def _mask_of_all(self, sinks: Sequence[Sink], index: Index) -> Lanes | None:
        """The mask by which all that is computed is stored, if it is of a chunk's first lanes: no others are computed.

        What these lanes load by that mask is one number then, where its address is.
        """
        masks = [each.operands[2] for each in sinks if isinstance(each, Operation) and len(each.operands) == 3]
        stores = [each for each in sinks if isinstance(each, Operation) and each.name == "tt.store"]
        if len(sinks) > len(stores) or len(stores) > len(masks) or len({*masks}) > 1:
            return None
        found = self.evaluate(masks[0], index)
        return found if self.between.get(found.base, ("", ""))[0] == "0" else None

    def _row(self, divisions: Sequence[tuple[Operation, Index]], size: int, counter: str) -> str:
        """Divide the first number of a row; returns how many there are, at least one, until a quotient changes."""
        code = self.code
        step = code.op(f"sub i64 {size}, {counter}")
        for operation, at in divisions:
            if operation.name not in DIVISIONS:
                continue
            places = _placed(at, counter)
            (first, _), (by, _) = (self.evaluate(each, places) for each in operation.operands)
            kind = register(operation.result.element)
            found = elementwise(code, operation, [first, by], 0)
            quotient = operation.name == "arith.divsi"
            self.memo[operation.result, places] = Lanes(found, 0 if quotient else 1)
            rest = code.op(f"sub {kind} {first}, {code.op(f'mul {kind} {found}, {by}')}") if quotient else found
            left = self.cast(Lanes(code.op(f"sub {kind} {by}, {rest}")), kind, "i64").base
            left = code.when(code.op(f"icmp slt {kind} {first}, 0"), "i64", "1", left, 0)
            step = code.intrinsic("smin", "i64", step, left)
        return code.intrinsic("smax", "i64", step, "1")

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
                if self.active is not None:
                    nothing = Lanes(str(_identity(sink)))
                    found = [self.choose(self.active, each, nothing, sink.operands[0].element) for each in found]
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


def _placed(index: Index, counter: str) -> Index:
    """An index of a division, where the lanes begin at a counter."""
    return tuple([Lanes(counter, 1) if each is _HERE else each for each in index])


_NUMBERS = {"arith.addf": -0.0, "arith.addi": 0, "arith.ori": 0, "arith.xori": 0, "arith.maximumf": -math.inf}
_NUMBERS |= {"arith.minimumf": math.inf, "arith.maxnumf": math.nan, "arith.minnumf": math.nan, "arith.mulf": 1}


def _identity(operation: Operation) -> str | None:
    """The number that leaves the other one alone, where numbers are combined by one operation."""
    (block,) = operation.regions[0]
    found = _NUMBERS.get(block.operations[0].name)
    if found is None or len(block.operations) != 2 or block.operations[0].operands != block.arguments:
        return None
    return literal(found, register(operation.operands[0].element))
