"""Loops and branches: what they carry, and what is computed before them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from .elements import register
from .facts import Buffer, Write, is_costly, is_lazy
from .parse import Block, Operation, Unknown, Value
from .tiles import Tiles
from .values import Lanes

__all__ = ["WRITES", "Regions"]

WRITES = frozenset(("tt.store", "tt.atomic_rmw", "tt.atomic_cas"))
_AT = (Lanes("0"),)


class Regions(Tiles):
    """Structured control flow."""

    def run(self, block: Block) -> Operation:
        """Write the operations of a block but its last, which is returned."""
        raise NotImplementedError

    def _before(self, operation: Operation, loop: bool) -> None:
        """Compute, before a region, what each round of it would compute, or would read after it has written."""
        inside = list(operation.inside())
        if any(each.name in WRITES for each in inside):
            self.settle(self.loads)
        if loop:
            own = {block for each in (operation, *inside) for region in each.regions for block in region}
            used = [value for each in inside for value in each.operands if value.shape is not None]
            outer = [
                each for each in used if (each.owner if isinstance(each.owner, Block) else each.owner.block) not in own
            ]
            # tensors to which each round adds a number are evaluated in each round, from what they are at first
            starts = [each for each in operation.operands if each.shape is not None]
            self.settle([each for each in self.reach([*outer, *starts]) if is_lazy(each) and is_costly(each)])

    @contextmanager
    def _scope(self) -> Iterator[None]:
        """What is computed within a region is not there behind it."""
        buffers, loads = dict(self.buffers), list(self.loads)
        yield
        self.buffers, self.loads = buffers, loads

    def _scf_for(self, operation: Operation) -> None:
        code = self.code
        (block,) = operation.regions[0]
        low, high, step = (self.scalars[each] for each in operation.operands[:3])
        counter, *arguments = block.arguments
        first, ends = operation.operands[3:], block.operations[-1].operands
        self._before(operation, loop=True)
        adds = [self.added(argument, end) for argument, end in zip(arguments, ends, strict=True)]
        for argument, more, start in zip(arguments, adds, first, strict=True):
            if more is not None:
                self.progressions[argument] = start, "0"
        targets = {
            each: self._carrier(each, end)
            for each, end, more in zip(arguments, ends, adds, strict=True)
            if each.shape and more is None
        }
        self.write(
            [Write(start, targets[each]) for each, start in zip(arguments, first, strict=True) if each in targets]
        )
        kind = register(counter.element)
        before, head, body, after = code.block, code.name("for"), code.name("body"), code.name("done")
        code.jump(head)
        code.label(head)
        mark = len(code.lines)
        phis = {counter: (code.name("phi"), kind, low)}
        for argument, start, more in zip(arguments, first, adds, strict=True):
            if argument not in targets:
                entered = self.scalars[start] if more is None else "0"
                phis[argument] = code.name("phi"), register(argument.element), entered
        verb = "ult" if "unsigned" in operation.text else "slt"
        code.branch(code.op(f"icmp {verb} {kind} {phis[counter][0]}, {high}"), body, after)
        code.label(body)
        outer = self.targets
        with self._scope():
            self._enter(arguments, first, adds, targets, phis)
            self.scalars[counter] = phis[counter][0]
            self.targets = {
                end: (targets[each], each) for each, end in zip(arguments, ends, strict=True) if each in targets
            }
            self.run(block)
            self._carry(
                [Write(end, targets[each]) for each, end in zip(arguments, ends, strict=True) if each in targets]
            )
            following = {counter: code.op(f"add {kind} {phis[counter][0]}, {step}")}
            for argument, end, more in zip(arguments, ends, adds, strict=True):
                if argument in targets:
                    continue
                if more is None:
                    following[argument] = self.scalars[end]
                    continue
                found = self.uniform(more)
                assert found is not None
                name, type, _ = phis[argument]
                by = self.cast(Lanes(found[0]), found[1], type)
                following[argument] = code.op(f"add {type} {name}, {by.base}")
        self.targets = outer
        code.jump(head)
        code.lines[mark:mark] = [
            f"  {name} = phi {type} [ {start}, %{before} ], [ {following[value]}, %{code.block} ]"
            for value, (name, type, start) in phis.items()
        ]
        code.label(after)
        self._enter(
            operation.results,
            first,
            adds,
            {each: targets.get(argument) for each, argument in zip(operation.results, arguments, strict=True)},
            {each: phis.get(argument) for each, argument in zip(operation.results, arguments, strict=True)},
        )

    def _enter(
        self, values: Sequence[Value], first: Sequence[Value], adds: Sequence[Value | None], targets: dict, phis: dict
    ) -> None:
        """Note what values that a loop carries are now."""
        for value, start, more in zip(values, first, adds, strict=True):
            if more is not None:
                self.progressions[value] = start, phis[value][0]
            elif value.shape is None:
                self.scalars[value] = phis[value][0]
            else:
                self.buffers[value] = targets[value]

    def _carrier(self, argument: Value, end: Value) -> Buffer:
        """Memory for a tensor that a loop carries, in the order of dimensions in which it is computed."""
        buffer, owner = self.buffer_for(argument), end.owner
        product = isinstance(owner, Operation) and owner.name == "tt.dot"
        buffer.inner = len(buffer.shape) - 1 if product else self.layout(buffer.shape, [], self.reach([end]))[0]
        return buffer

    def _carry(self, writes: list[Write]) -> None:
        """Write what a round leaves over what it began with; by way of other memory where reading would suffer."""
        writes = [each for each in writes if self.buffers.get(each.value) is not each.buffer]
        targets = {each.buffer for each in writes}
        values = [each.value for each in writes]

        def suspect(value: Value) -> bool:
            buffer = self.buffers.get(value)
            return buffer is not None and (buffer in targets or buffer.shared)

        if len({each.value.shape for each in writes}) > 1 or not self.at_own_index(values, suspect):
            self.keep([each for each in values if self.buffers.get(each) not in targets])
            moved = [Write(each, self.buffer_for(each)) for each in values if suspect(each)]
            self.write(moved)
            self.buffers.update((each.value, each.buffer) for each in moved)
        self.write(writes)

    def _scf_while(self, operation: Operation) -> None:
        code = self.code
        if [len(region) for region in operation.regions] != [1, 1]:
            raise Unknown("a loop with branches within")
        (condition,), (block,) = operation.regions
        self._before(operation, loop=True)
        slots, passed = (
            [self.rows(each.sizes or (1,), register(each.element)) for each in of.arguments]
            for of in (condition, block)
        )
        self._leave(operation.operands, slots)
        head, body, after = code.name("while"), code.name("body"), code.name("done")
        code.jump(head)
        code.label(head)
        if any(each.name in WRITES or "isVolatile" in each.text for each in condition.operations):
            # it waits for another program, which may have failed; LLVM keeps no memory in registers across the call
            code.declare("@sched_yield", "declare i32 @sched_yield()")
            code.op("call i32 @sched_yield()")
            place = code.op("getelementptr i64, ptr %ctx, i64 4")
            self._fail_if(code.op(f"icmp ne i64 {code.op(f'load volatile i64, ptr {place}')}, 0"))
        with self._scope():
            self._arrive(condition.arguments, slots)
            end = self.run(condition)
            self._leave(end.operands[1:], passed)
            code.branch(self.scalars[end.operands[0]], body, after)
        code.label(body)
        with self._scope():
            self._arrive(block.arguments, passed)
            self._leave(self.run(block).operands, slots)
            code.jump(head)
        code.label(after)
        self._arrive(operation.results, passed)

    def _leave(self, values: Sequence[Value], slots: Sequence[Buffer]) -> None:
        """Write numbers and tensors to memory, all of them read before the first is written."""
        self._carry([Write(each, slot) for each, slot in zip(values, slots, strict=True) if each.shape is not None])
        self.lanes = 0
        for each, slot in zip(values, slots, strict=True):
            if each.shape is None:
                self.put(slot, _AT, Lanes(self.scalars[each]), each.element)

    def _arrive(self, values: Sequence[Value], slots: Sequence[Buffer]) -> None:
        """Read numbers from memory, and note where tensors are."""
        self.lanes = 0
        for each, slot in zip(values, slots, strict=True):
            if each.shape is not None:
                self.buffers[each] = slot
                continue
            self.scalars[each] = self.get(slot, _AT, each.element).base
            if each.element[0] == "*":
                self.roots[each] = each
                self.span(each)

    def _scf_if(self, operation: Operation) -> None:
        code = self.code
        if any(len(region) != 1 for region in operation.regions):
            raise Unknown("a branch with branches within")
        self._before(operation, loop=False)
        then, other, after = code.name("then"), code.name("else"), code.name("joined")
        code.branch(self.scalars[operation.operands[0]], then, other if len(operation.regions) > 1 else after)
        # buffers of both branches have one order of dimensions: that of a buffer which is there already
        inner = [len(each.sizes) - 1 for each in operation.results]
        for region in operation.regions:
            for at, value in enumerate(region[0].operations[-1].operands):
                if value in self.buffers:
                    inner[at] = self.buffers[value].innermost
        ways: list[tuple[str, list[list[str]]]] = []
        for label, region in zip((then, other), operation.regions, strict=False):
            code.label(label)
            with self._scope():
                left = [self._left(value, at) for value, at in zip(self.run(region[0]).operands, inner, strict=True)]
            ways.append((code.block, left))
            code.jump(after)
        code.label(after)
        for at, result in enumerate(operation.results):
            kinds = ["ptr" if result.shape is not None else register(result.element), "i64", "i64"]
            joined = [
                code.op(
                    f"phi {kind} "
                    + ", ".join(f"[ {part}, %{block} ]" for part, (block, _) in zip(parts, ways, strict=True))
                )
                for kind, *parts in zip(kinds, *(left[at] for _, left in ways), strict=False)
            ]
            if result.shape is not None:
                kind = register(result.element)
                self.buffers[result] = Buffer(joined[0], result.shape, "i8" if kind == "i1" else kind, inner[at], True)
                continue
            self.scalars[result] = joined[0]
            if len(joined) > 1:
                self.roots[result], self.spans[result] = result, (joined[1], joined[2])

    def _left(self, value: Value, inner: int) -> list[str]:
        """What a branch leaves: a number, with the span of a pointer, or the memory of a tensor."""
        if value.shape is None:
            pointer = value.element[0] == "*"
            return [self.scalars[value], *(self.spans[self.root(value)] if pointer else ())]
        buffer = self.buffers.get(value)
        if buffer is None or buffer.innermost != inner:
            buffer = self.buffer_for(value)
            buffer.inner = inner
            self.write([Write(value, buffer)])
        return [buffer.pointer]
