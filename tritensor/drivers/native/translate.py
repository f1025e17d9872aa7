"""Translates a kernel from Triton's TTIR to LLVM's text.

Operations on single numbers are written where they stand. A tensor is not computed where it stands: it is a function of
its index, evaluated for a chunk of some lanes where a *sink* needs it: a store, a reduction, an operand of a product, a
value that a loop carries. Sinks of one shape that do not depend on one another share a loop nest. Costly values that a
later nest needs as well are written to scratch memory by the first.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from . import functions
from .emit import (
    Code,
    bits_of,
    elementwise,
    from_memory,
    is_elementwise,
    literal,
    memory,
    register,
    rounded,
    to_memory,
    vector,
)
from .parse import Block, Operation, Type, Unknown, Value, constant, parse
from .values import Lanes, Vectors

__all__ = ["Translated", "Unknown", "translate"]

Index = tuple[Lanes, ...]


@dataclass
class Translated:
    """The text of a kernel, and what a launch needs to know of it.

    Attributes:
        scratch: bytes of scratch memory for each thread.
        libm: the functions of the C library that it calls.
    """

    name: str
    text: str
    scratch: int
    libm: tuple[str, ...]


@dataclass(eq=False)
class Buffer:
    """Scratch memory that holds a tensor: dimension `inner` innermost, which the first write decides, or the last."""

    pointer: str
    shape: tuple[int, ...]
    kind: str
    inner: int | None = None
    #: it may be the memory of another buffer: of the branch that was taken
    shared: bool = False


@dataclass
class Write:
    """A sink: a value that is written to a buffer."""

    value: Value
    buffer: Buffer


Sink = Operation | Write

_VIEWS = ("tt.splat", "tt.broadcast", "tt.expand_dims", "tt.trans", "tt.reshape", "tt.addptr", "tt.bitcast")
_LAZY = frozenset(
    (*_VIEWS, "tt.make_range", "tt.load", "arith.constant", "tt.join", "tt.split", "tt.cat", "tt.gather", "ub.poison")
)
_COSTLY = frozenset((
    "tt.load", "arith.divf", "tt.precise_divf", "arith.divsi", "arith.remsi", "arith.divui", "arith.remui", "tt.gather",
    "tt.extern_elementwise", "tt.precise_sqrt", "arith.remf",
))  # fmt: skip
_GROUPED = frozenset(("tt.store", "tt.reduce", "tt.assert"))
_WRITES = frozenset(("tt.store", "tt.atomic_rmw", "tt.atomic_cas"))
_ENDS = frozenset(("tt.return", "scf.yield", "cf.br", "cf.cond_br", "scf.condition"))


def is_lazy(operation: Operation) -> bool:
    """True if the operation is evaluated where its results are needed."""
    return (
        bool(operation.results)
        and operation.result.shape is not None
        and (operation.name in _LAZY or is_elementwise(operation.name))
    )


def is_costly(operation: Operation) -> bool:
    """True if reading a value back from the first cache takes less time than computing it again."""
    return operation.name in _COSTLY or (operation.name.startswith("math.") and operation.name != "math.absf")


class _Kernel(Vectors):
    def __init__(self, function: Operation, fma: bool, bits: int, checked: bool, apart: bool) -> None:
        super().__init__(Code(fma))
        self.function, self.bits, self.checked, self.apart = function, bits, checked, apart
        self.scalars: dict[Value, str] = {}
        self.buffers: dict[Value, Buffer] = {}
        # carried tensors that each iteration adds one number to: the first value, and the sum so far
        self.progressions: dict[Value, tuple[Value, str]] = {}
        self.spans: dict[Value, tuple[str, str]] = {}  # of pointers that others are computed from
        self.roots: dict[Value, Value] = {}
        self.loads: list[Operation] = []  # that stand before the current operation
        self.group: list[Operation] = []
        self.done: set[Operation] = set()
        self.memo: dict[tuple[Value, Index], Lanes] = {}
        self.targets: dict[Value, tuple[Buffer, Value]] = {}  # of values that a loop carries on
        self.scratch = 0
        self.slopes: dict[tuple[Value, int], int | None] = {}

    # -- the function

    def translate(self) -> Translated:
        code, name = self.code, self.function.text
        blocks = self.function.regions[0]
        arguments = blocks[0].arguments
        numbers: list[tuple[Value, str]] = []
        for position, value in enumerate(arguments):
            word = self._word("%args", position)
            kind = register(value.element)
            if kind == "float":
                if value.element != "f32":
                    raise Unknown(f"an argument of type {value.element}")
                word = code.op(f"bitcast i32 {code.op(f'trunc i64 {word} to i32')} to float")
            elif kind == "double":
                word = code.op(f"bitcast i64 {word} to double")
            elif kind != "i64":
                word = code.op(f"trunc i64 {word} to {kind}")
            self.scalars[value] = word
            if value.element[0] == "*":
                numbers.append((value, str(len(arguments) + 2 * position)))
        self.context_scratch = code.op(f"inttoptr i64 {self._word('%ctx', 1)} to ptr")
        for value, at in numbers:
            low, high = self._word("%args", int(at)), self._word("%args", int(at) + 1)
            self._span(value, self.scalars[value], (low, high))
        size = code.op("mul i32 %gy, %gz")
        with code.loop("%end", start="%begin") as loop:
            self.program = loop.counter
            linear = code.op(f"trunc i64 {loop.counter} to i32")
            rest = code.op(f"urem i32 {linear}, {size}")
            self.place = (
                code.op(f"udiv i32 {linear}, {size}"),
                code.op(f"udiv i32 {rest}, %gz"),
                code.op(f"urem i32 {rest}, %gz"),
            )
            self.finished = code.name("finished")
            self._flow(blocks)
            code.label(self.finished)
        code.do("ret i32 0")
        code.lines.append("failed:")
        code.do(f"store i64 {self.program}, ptr %ctx")
        code.do("ret i32 1")
        head = f"define i32 @{name}(ptr noalias %args, ptr noalias %ctx, i64 %begin, i64 %end, i32 %gx, i32 %gy, i32 %gz) #0 {{\nentry:"
        attributes = f'attributes #0 = {{ nounwind "prefer-vector-width"="{self.bits}" "no-builtins" }}'
        declared = "\n".join(code.declared.values())
        text = "\n".join([declared, head, *code.lines, "}", attributes, ""])
        return Translated(name, text, self.scratch, tuple(sorted(n for n in functions.LIBM if f"@{n}(" in text)))

    def _word(self, base: str, position: int) -> str:
        return self.code.op(f"load i64, ptr {self.code.op(f'getelementptr i64, ptr {base}, i64 {position}')}")

    def _span(self, value: Value, address: str, known: tuple[str, str] | None = None) -> None:
        """Note which addresses may be touched through a pointer: what is told, or what the table of memory says."""
        if not self.checked:
            return
        code = self.code
        code.declare("@span", _SPAN)
        if known is None:
            found = code.op(f"call {{ i64, i64 }} @span(ptr %ctx, i64 {address}, i64 0, i64 0)")
        else:
            found = code.op(f"call {{ i64, i64 }} @span(ptr %ctx, i64 {address}, i64 {known[0]}, i64 {known[1]})")
        self.spans[value] = (
            code.op(f"extractvalue {{ i64, i64 }} {found}, 0"), code.op(f"extractvalue {{ i64, i64 }} {found}, 1"),
        )  # fmt: skip

    def _flow(self, blocks: list[Block]) -> None:
        """Blocks that branch to later ones: a kernel that returns early."""
        code = self.code
        labels = {block.label: code.name("block") for block in blocks}
        slots: dict[Value, str] = {}
        for block in blocks[1:]:
            for value in block.arguments:
                if value.shape is None:
                    slots[value] = self._slot(register(value.element))
                else:
                    self.buffers[value] = self._buffer(value.shape, register(value.element))
        by_label = {block.label: block for block in blocks}
        for block in blocks:
            if block is not blocks[0]:
                code.label(labels[block.label])
                for value in block.arguments:
                    if value in slots:
                        self.scalars[value] = code.op(f"load {register(value.element)}, ptr {slots[value]}")
                        if value.element[0] == "*":
                            self._span(value, self.scalars[value])
            end = self._run(block)
            if end.name == "tt.return":
                code.jump(self.finished)
                continue
            self._settle(self.loads)
            values = list(end.operands)
            condition = self.scalars[values.pop(0)] if end.name == "cf.cond_br" else ""
            ways = []
            for part in end.text.split("^")[1:]:
                target = by_label["^" + part.split("(")[0].split(":")[0].strip().rstrip(",")]
                given, values = values[: len(target.arguments)], values[len(target.arguments) :]
                way = code.name("way")
                ways.append((way, target, given))
            if condition:
                code.branch(condition, ways[0][0], ways[1][0])
            else:
                code.jump(ways[0][0])
            for way, target, given in ways:
                code.label(way)
                for argument, value in zip(target.arguments, given, strict=True):
                    if argument in slots:
                        code.do(f"store {register(value.element)} {self.scalars[value]}, ptr {slots[argument]}")
                    else:
                        self._write([Write(value, self.buffers[argument])])
                code.jump(labels[target.label])

    def _slot(self, kind: str) -> str:
        pointer = self._buffer((1,), kind).pointer
        return pointer

    def _run(self, block: Block) -> Operation:
        """Write the operations of a block but its last, which is returned."""
        for operation in block.operations:
            if operation.name in _ENDS:
                self._flush()
                return operation
            self._step(operation)
        raise Unknown(f"a block that ends with {block.operations[-1].name if block.operations else 0}")

    def _step(self, operation: Operation) -> None:
        name = operation.name
        if name in _GROUPED and operation.operands[0].shape is not None:
            self._join(operation)
            return
        if is_lazy(operation):
            if name == "tt.load":
                root = self._root(operation.operands[0])
                if any(
                    self._overlap(root, self._root(each.operands[0])) for each in self.group if each.name == "tt.store"
                ):
                    self._flush()
                self.loads.append(operation)
            return
        pure = not operation.regions and name not in _WRITES and name not in ("tt.load", "tt.assert")
        if not pure or any(value.shape is not None or value not in self.scalars for value in operation.operands):
            self._flush()
        self.lanes = 0
        method: Callable[[Operation], None] | None = getattr(self, "_" + name.replace(".", "_"), None)
        if method is not None:
            method(operation)
        elif is_elementwise(name):
            self._scalar(operation)
        else:
            raise Unknown(f"operation {name}")
        self.done.add(operation)

    def _scalar(self, operation: Operation) -> None:
        values = [self.scalars[value] for value in operation.operands]
        result = operation.result
        self.scalars[result] = elementwise(self.code, operation, values, 0)
        if result.element[0] == "*":
            if operation.name == "arith.select":
                low, high = zip(*(self.spans.get(self._root(value), ("0", "0")) for value in operation.operands[1:]))
                if self.checked:
                    pick = [self.code.when(values[0], "i64", *each, 0) for each in (low, high)]
                    self.spans[result] = pick[0], pick[1]
                self.roots[result] = result
            elif operation.name == "tt.int_to_ptr":
                self._span(result, self.scalars[result])

    # -- what is needed, and what overlaps

    def _root(self, value: Value) -> Value:
        """The pointer that a pointer is computed from."""
        found = self.roots.get(value)
        if found is None:
            found = self.roots[value] = self._find_root(value)
        return found

    def _find_root(self, value: Value) -> Value:
        owner = value.owner
        if isinstance(owner, Block):
            if value in self.progressions:
                return self._root(self.progressions[value][0])
            parent = owner.parent
            if parent is not None and parent.name in ("scf.for", "scf.while"):
                first = 2 if parent.name == "scf.for" else 0
                return self._root(parent.operands[first + value.position])
            return value
        if owner.name in _VIEWS:
            return self._root(owner.operands[0])
        if owner.name == "scf.for":
            return self._root(owner.operands[3 + value.position])
        if owner.name == "arith.select" and value.shape is not None:
            a, b = map(self._root, owner.operands[1:])
            if a is not b:
                raise Unknown("a choice between pointers of two arguments")
            return a
        if owner.name == "tt.int_to_ptr" and value.shape is None or owner.name in ("tt.load", "arith.select", "scf.if"):
            return value
        raise Unknown(f"pointers made by {owner.name}")

    def _overlap(self, x: Value, y: Value) -> bool:
        """True if memory of two roots may be the same: that of two arguments is not, in code for arrays apart."""
        apart = self.apart and all(
            isinstance(each.owner, Block) and each.owner.parent is self.function for each in (x, y)
        )
        return x is y or not apart

    def _needed(self, value: Value, without: set[Operation], memo: dict[Value, bool] | None = None) -> bool:
        """True if an operation that is not written yet, and not among `without`, uses a value, directly or not."""
        memo = {} if memo is None else memo
        if value not in memo:
            memo[value] = False
            for user in value.users:
                if user in self.done or user in without:
                    continue
                if not is_lazy(user) or any(self._needed(result, without, memo) for result in user.results):
                    memo[value] = True
                    break
        return memo[value]

    def _reach(self, values: Iterable[Value]) -> dict[Operation, None]:
        """The operations that evaluating values would evaluate, in order."""
        found: dict[Operation, None] = {}
        seen: set[Value] = set()

        def visit(value: Value) -> None:
            if value in seen:
                return
            seen.add(value)
            if value in self.buffers or value in self.scalars:
                return
            if value in self.progressions:
                visit(self.progressions[value][0])
                return
            owner = value.owner
            if isinstance(owner, Operation):
                if is_lazy(owner):
                    for operand in owner.operands:
                        visit(operand)
                found[owner] = None

        for value in values:
            visit(value)
        return found

    # -- groups of sinks

    @staticmethod
    def _of(sink: Sink) -> list[Value]:
        return [sink.value] if isinstance(sink, Write) else sink.operands

    def _join(self, operation: Operation) -> None:
        if self.group:
            first = self.group[0]
            reduces = [each for each in (*self.group, operation) if each.name == "tt.reduce"]
            axes = {each.integer("axis") for each in reduces}
            reach = self._reach(operation.operands)
            apart = operation.operands[0].shape == first.operands[0].shape and len(axes) < 2
            if apart and operation.name == "tt.store":
                pointer = operation.operands[0]
                apart = not any(
                    each.name == "tt.store" and each.operands[0] is not pointer
                    and self._overlap(self._root(each.operands[0]), self._root(pointer))
                    for each in self.group
                )  # fmt: skip
            if not apart or any(each in reach for each in self.group):
                self._flush()
        self.group.append(operation)

    def _flush(self) -> None:
        if self.group:
            group, self.group = self.group, []
            self._emit(list(group))
            self.done.update(group)

    def _settle(self, operations: Iterable[Operation], without: set[Operation] = frozenset()) -> None:  # type: ignore[assignment]
        """Compute values now that are needed later: by a nest for each shape."""
        values = [each.result for each in operations if each.result not in self.buffers]
        self._write([Write(value, self._for(value)) for value in values if self._needed(value, without)])

    def _write(self, writes: list[Write]) -> None:
        """Write values to buffers."""
        while writes:
            shape = writes[0].value.shape
            together = [each for each in writes if each.value.shape == shape]
            writes = [each for each in writes if each.value.shape != shape]
            self._emit(list(together))
            for each in together:
                self.buffers.setdefault(each.value, each.buffer)

    def _settled(self, value: Value) -> Buffer:
        """A buffer that holds a value."""
        if value not in self.buffers:
            self._write([Write(value, self._for(value))])
        return self.buffers[value]

    def _buffer(self, shape: tuple[int, ...], kind: str) -> Buffer:
        kind = "i8" if kind == "i1" else kind
        size = {"float": 4, "double": 8}.get(kind) or int(kind[1:]) // 8
        pointer = self.code.name("buffer")
        self.code.do(f"{pointer} = getelementptr i8, ptr {self.context_scratch}, i64 {self.scratch}")
        self.scratch += -(-size * math.prod(shape) // 64) * 64
        return Buffer(pointer, shape, kind)

    def _for(self, value: Value) -> Buffer:
        return self._buffer(value.shape or (1,), register(value.element))

    def _hazards(self, sinks: list[Sink], reach: dict[Operation, None]) -> list[Operation]:
        """Loads whose memory the group's stores might change before it is read, or again."""
        stores = [each for each in sinks if isinstance(each, Operation) and each.name == "tt.store"]
        if not stores:
            return []
        written = {each.operands[0]: self._root(each.operands[0]) for each in stores}
        without = {*reach, *stores}
        found = []
        for load in self.loads:
            if load.result in self.buffers:
                continue
            pointer = load.operands[0]
            root = self._root(pointer)
            if not any(self._overlap(root, other) for other in written.values()):
                continue
            alone = all(not self._overlap(root, other) for each, other in written.items() if each is not pointer)
            if load in reach and pointer in written and alone and self._is_plain(load, sinks):
                continue  # each chunk reads what it writes
            if load in reach or self._needed(load.result, without):
                found.append(load)
        return found

    def _is_plain(self, load: Operation, sinks: list[Sink]) -> bool:
        """True if the group reads a load's elements at its own index only."""
        plain: dict[Value, bool] = {}

        def visit(value: Value, same: bool) -> None:
            plain[value] = plain.get(value, True) and same
            owner = value.owner
            if isinstance(owner, Operation) and is_lazy(owner) and value not in self.buffers:
                for operand in owner.operands:
                    visit(operand, same and (is_elementwise(owner.name) or owner.name in ("tt.addptr", "tt.load")))

        if len(list(sinks)) > 8:
            return False
        for sink in sinks:
            for value in self._of(sink):
                visit(value, not isinstance(sink, Operation) or sink.name != "tt.reduce")
        return plain.get(load.result, False) and not self._needed(
            load.result,
            {*self._reach([v for s in sinks for v in self._of(s)]), *(s for s in sinks if isinstance(s, Operation))},
        )

    def _emit(self, sinks: list[Sink]) -> None:
        """Write the loop nest of a group."""
        shape = self._of(sinks[0])[0].shape
        assert shape is not None
        needs = [value for sink in sinks for value in self._of(sink)]
        reach = self._reach(needs)
        hazards = self._hazards(sinks, reach)
        size = math.prod(shape)
        narrow = [
            each for each in reach if is_costly(each) and is_lazy(each) and math.prod(each.result.shape or ()) < size
        ]
        before = [each.result for each in dict.fromkeys([*hazards, *narrow])]
        if before:
            self._write([Write(value, self._for(value)) for value in before])
            reach = self._reach(needs)
        for each in reach:
            if not is_lazy(each):
                raise Unknown(f"operation {each.name}")
        without = {*reach, *(each for each in sinks if isinstance(each, Operation))}
        memo: dict[Value, bool] = {}
        told = {each.value for each in sinks if isinstance(each, Write)}
        kept = [
            Write(each.result, self._for(each.result))
            for each in reach
            if is_costly(each) and each.result.shape == shape and each.result not in told
            and self._needed(each.result, without, memo)
        ]  # fmt: skip
        sinks = [*kept, *sinks]
        reduces = [each for each in sinks if isinstance(each, Operation) and each.name == "tt.reduce"]
        axis = reduces[0].integer("axis") if reduces else None
        dim, lanes = self._layout(shape, sinks, reach)
        for sink in sinks:
            if isinstance(sink, Write) and sink.buffer.inner is None:
                sink.buffer.inner = dim
        inner = dim if axis is None or axis == dim else axis
        order = [each for each in range(len(shape)) if each not in (dim, inner)]
        if inner != dim and dim is not None:
            order.append(dim)
        outer = self.lanes
        self.lanes = lanes
        index: list[Lanes] = [Lanes("0")] * len(shape)

        def nest(dims: list[int]) -> None:
            if not dims:
                self._innermost(sinks, reduces, shape, index, inner, dim)
                return
            first, *rest = dims
            step = lanes if first == dim else 1
            if shape[first] == step or not step:
                index[first] = Lanes("0", int(first == dim and lanes > 0))
                nest(rest)
            else:
                with self.code.loop(shape[first], step) as loop:
                    index[first] = Lanes(loop.counter, int(first == dim and lanes > 0))
                    nest(rest)

        nest(order)
        self.lanes = outer
        self.memo = {}
        for each in kept:
            self.buffers[each.value] = each.buffer

    def _layout(
        self, shape: tuple[int, ...], sinks: list[Sink], reach: dict[Operation, None]
    ) -> tuple[int | None, int]:
        """The dimension along which lanes lie, and their number; the one along which most accesses are consecutive."""
        most = self.bits // 16
        pointers, buffers = [], [each.buffer for each in sinks if isinstance(each, Write)]
        for each in (*reach, *sinks):
            if isinstance(each, Operation):
                pointers += each.operands[:1] if each.name in ("tt.load", "tt.store") else []
                buffers += [self.buffers[value] for value in each.operands if value in self.buffers]
        best, score = None, 0.0
        for dim, size in enumerate(shape):
            if size < 2:
                continue
            points = 0.01 if dim == len(shape) - 1 else 0.0
            for pointer in pointers:
                if pointer.shape == shape:
                    slope = self._slope(pointer, dim)
                    points += 1.0 if slope == 1 else 0.3 if slope == 0 else 0.1
            for buffer in buffers:
                if buffer.shape == shape and buffer.inner is not None:
                    points += 0.5 if dim == buffer.inner else 0.1
            points *= min(size, most) / most
            if points > score:
                best, score = dim, points
        return best, 0 if best is None else min(most, shape[best])

    def _slope(self, value: Value, dim: int) -> int | None:
        """By how many elements a pointer or an integer grows along a dimension; None if that is not known."""
        key = value, dim
        if key not in self.slopes:
            self.slopes[key] = None
            self.slopes[key] = self._find_slope(value, dim)
        return self.slopes[key]

    def _find_slope(self, value: Value, dim: int) -> int | None:
        if value in self.progressions:
            return self._slope(self.progressions[value][0], dim)
        owner = value.owner
        if value.shape is None:
            return 0
        if isinstance(owner, Block) or value in self.buffers:
            return None
        name, operands = owner.name, owner.operands
        if value.shape[dim] == 1 or name in ("tt.splat", "arith.constant"):
            return 0
        if name == "tt.make_range":
            return 1
        if name == "tt.broadcast":
            assert operands[0].shape is not None
            return 0 if operands[0].shape[dim] == 1 else self._slope(operands[0], dim)
        if name == "tt.expand_dims":
            return self._slope(operands[0], dim - (dim > owner.integer("axis")))
        if name == "tt.trans":
            return self._slope(operands[0], _order(owner)[dim])
        if name in ("tt.addptr", "arith.addi", "arith.subi"):
            x, y = (self._slope(each, dim) for each in operands)
            return None if x is None or y is None else x - y if name == "arith.subi" else x + y
        if name == "arith.muli":
            x, y = (self._slope(each, dim) for each in operands)
            if x == 0 and y == 0:
                return 0
            for slope, other in ((x, operands[1]), (y, operands[0])):
                factor = other.owner
                if slope is not None and isinstance(factor, Operation) and factor.name == "arith.constant":
                    return slope * int(constant(factor))
            return None
        if name in ("arith.extsi", "arith.extui", "arith.trunci", "tt.bitcast", "tt.ptr_to_int", "tt.int_to_ptr"):
            return self._slope(operands[0], dim)
        slopes = [self._slope(each, dim) for each in operands]
        return 0 if is_elementwise(name) and all(slope == 0 for slope in slopes) else None

    def _innermost(
        self,
        sinks: list[Sink],
        reduces: list[Operation],
        shape: tuple[int, ...],
        index: list[Lanes],
        inner: int | None,
        dim: int | None,
    ) -> None:
        """The innermost loop of a nest, which carries the reductions, and what follows it."""
        code, lanes = self.code, self.lanes
        step = lanes if inner == dim and lanes else 1
        trips = 1 if inner is None else shape[inner] // step
        sums: dict[Operation, list[str]] = {}

        def body(loop: object | None) -> None:
            self.memo = {}
            at = tuple(index)
            for sink in sinks:
                if isinstance(sink, Write):
                    self._put(sink.buffer, at, self._eval(sink.value, at), sink.value.element)
                elif sink.name == "tt.store":
                    self._store(sink, at)
                elif sink.name == "tt.assert":
                    self._fail_unless(self._eval(sink.operands[0], at))
                else:
                    values = [self.full(self._eval(each, at), register(each.element)) for each in sink.operands]
                    sums[sink] = values if loop is None else self._accumulate(loop, sink, values)

        if trips == 1:
            if inner is not None:
                index[inner] = Lanes("0", int(inner == dim and lanes > 0))
            body(None)
        else:
            assert inner is not None
            with code.loop(shape[inner], step) as loop:
                index[inner] = Lanes(loop.counter, int(inner == dim and lanes > 0))
                body(loop)
        for reduce in reduces:
            values = sums[reduce]
            width = lanes
            if inner == dim and lanes:
                values, width = self._fold_lanes(reduce, values, lanes), 0
            assert inner is not None or shape.count(1) == len(shape)
            rest = tuple(each for at, each in enumerate(index) if at != reduce.integer("axis"))
            for result, value in zip(reduce.results, values, strict=True):
                if result.shape is None:
                    self.scalars[result] = value
                    continue
                if result not in self.buffers:
                    self.buffers[result] = self._for(result)
                    axis = reduce.integer("axis")
                    if dim not in (None, axis):
                        self.buffers[result].inner = dim - (dim > axis)
                kept, self.lanes = self.lanes, width
                self._put(self.buffers[result], rest, Lanes(value, None if width else 0), result.element)
                self.lanes = kept

    def _accumulate(self, loop: object, reduce: Operation, values: list[str]) -> list[str]:
        """Combine with what the loop has carried: from the identity, or in its first round with nothing."""
        code, lanes = self.code, self.lanes
        kinds = [register(each.element) for each in reduce.operands]
        identity = _identity(reduce)
        first = "zeroinitializer" if lanes else ""
        phis = []
        for kind in kinds:
            start = (
                code.splat(identity, kind, lanes)
                if identity
                else first or ("0" if kind[0] == "i" else literal(0, kind))
            )
            phis.append(loop.phi(vector(kind, lanes), start))  # type: ignore[attr-defined]
        found = self._region(reduce, [*phis, *values], lanes)
        if not identity:
            fresh = code.op(f"icmp eq i64 {loop.counter}, {loop.start}")  # type: ignore[attr-defined]
            found = [
                code.op(f"select i1 {fresh}, {vector(kind, lanes)} {value}, {vector(kind, lanes)} {combined}")
                for kind, value, combined in zip(kinds, values, found, strict=True)
            ]
        loop.next.extend(found)  # type: ignore[attr-defined]
        return found

    def _fold_lanes(self, reduce: Operation, values: list[str], lanes: int) -> list[str]:
        """Combine the lanes of vectors, halves with halves."""
        code = self.code
        kinds = [register(each.element) for each in reduce.operands]
        while lanes > 1:
            half = lanes // 2
            sides = [
                code.op(
                    f"shufflevector <{lanes} x {kind}> {value}, <{lanes} x {kind}> poison, "
                    f"<{half} x i32> <{', '.join(f'i32 {start + lane}' for lane in range(half))}>"
                )
                for start in (0, half)
                for kind, value in zip(kinds, values, strict=True)
            ]
            if half == 1:
                sides = [
                    code.op(f"extractelement <1 x {kind}> {side}, i64 0")
                    for kind, side in zip(kinds * 2, sides, strict=True)
                ]
            values = self._region(reduce, sides, half if half > 1 else 0)
            lanes = half
        return values

    def _region(self, operation: Operation, values: list[str], lanes: int) -> list[str]:
        """The results of a combination's region for its arguments."""
        (block,) = operation.regions[0]
        known: dict[Value, str] = dict(zip(block.arguments, values, strict=True))
        kept, self.lanes = self.lanes, lanes
        for each in block.operations:
            if each.name.endswith(".return"):
                self.lanes = kept
                return [self._known(known, value) for value in each.operands]
            if each.name == "arith.constant":
                known[each.result] = self.code.splat(self._literal(each), register(each.result.element), lanes)
            elif is_elementwise(each.name):
                known[each.result] = elementwise(
                    self.code, each, [self._known(known, value) for value in each.operands], lanes
                )
            else:
                raise Unknown(f"{each.name} in a reduction")
        raise Unknown("a reduction without a result")

    def _known(self, known: dict[Value, str], value: Value) -> str:
        if value not in known:
            return self.code.splat(self.scalars[value], register(value.element), self.lanes)
        return known[value]

    # -- evaluation at a chunk

    def _eval(self, value: Value, index: Index) -> Lanes:
        key = value, index
        found = self.memo.get(key)
        if found is None:
            found = self.memo[key] = self._evaluate(value, index)
        return found

    def _evaluate(self, value: Value, index: Index) -> Lanes:
        if value in self.scalars:
            return Lanes(self.scalars[value])
        if value in self.buffers:
            return self._get(self.buffers[value], index, value.element)
        if value in self.progressions:
            first, total = self.progressions[value]
            kind = register(value.element)
            by = (
                Lanes(total)
                if kind != "i64" or value.element[0] != "*"
                else self.times(Lanes(total), Lanes(str(_size(value))), "i64")
            )
            return self.plus(self._eval(first, index), by, kind)
        operation = value.owner
        if isinstance(operation, Block):
            raise Unknown("a tensor that is the argument of a block")
        name, operands = operation.name, operation.operands
        if name == "tt.make_range":
            at = self.cast(index[0], "i64", "i32")
            return self.plus(at, Lanes(str(operation.integer("start"))), "i32")
        if name == "arith.constant":
            return Lanes(self._literal(operation))
        if name == "ub.poison":
            return Lanes("0" if register(value.element)[0] == "i" else literal(0, register(value.element)))
        if name == "tt.splat":
            return Lanes(self.scalars[operands[0]])
        if name == "tt.broadcast":
            sizes = operands[0].shape or ()
            return self._eval(operands[0], tuple(Lanes("0") if size == 1 else at for size, at in zip(sizes, index)))
        if name == "tt.expand_dims":
            axis = operation.integer("axis")
            return self._eval(operands[0], index[:axis] + index[axis + 1 :])
        if name == "tt.trans":
            order = _order(operation)
            return self._eval(operands[0], tuple(index[order.index(each)] for each in range(len(order))))
        if name == "tt.reshape":
            return self._eval(operands[0], self._reshaped(value.shape or (), operands[0].shape or (), index))
        if name == "tt.load":
            return self._load(operation, index)
        if name == "tt.addptr":
            offset = self.cast(self._eval(operands[1], index), register(operands[1].element), "i64")
            return self.plus(self._eval(operands[0], index), self.times(offset, Lanes(str(_size(value))), "i64"), "i64")
        if name == "tt.gather":
            axis, kind = operation.integer("axis"), register(operands[1].element)
            at = self.cast(self._eval(operands[1], index), kind, "i64")
            return self._get(self._gathered(operands[0]), (*index[:axis], at, *index[axis + 1 :]), value.element)
        if name == "tt.join":
            x, y = (self._eval(each, index[:-1]) for each in operands)
            return self._choose(self._compare("eq", index[-1], Lanes("0"), "i64"), x, y, value.element)
        if name == "tt.split":
            return self._eval(operands[0], (*index, Lanes(str(value.position))))
        if name == "tt.cat":
            assert operands[0].shape is not None
            size = Lanes(str(operands[0].shape[0]))
            first = self._compare("ult", index[0], size, "i64")
            at = Lanes(
                self.code.intrinsic(
                    "umin",
                    "i64",
                    self.full(index[0], "i64"),
                    self.code.splat(str(int(size.base) - 1), "i64", self.lanes),
                    lanes=self.lanes,
                ),
                None if self.lanes else 0,
            )
            other = self.plus(index[0], size, "i64", "sub")
            other = Lanes(
                self.code.intrinsic(
                    "smax", "i64", self.full(other, "i64"), self.code.splat("0", "i64", self.lanes), lanes=self.lanes
                ),
                None if self.lanes else 0,
            )
            return self._choose(
                first,
                self._eval(operands[0], (at, *index[1:])),
                self._eval(operands[1], (other, *index[1:])),
                value.element,
            )
        return self._computed(operation, [self._eval(each, index) for each in operands])

    def _gathered(self, value: Value) -> Buffer:
        if value not in self.buffers:
            raise Unknown("a gather from a tensor that is not in memory")
        return self.buffers[value]

    def _literal(self, operation: Operation) -> str:
        return literal(constant(operation), register(operation.result.element))

    def _computed(self, operation: Operation, values: list[Lanes]) -> Lanes:
        """An operation on single elements; one on numbers that all lanes share is done once."""
        name, kind = operation.name, register(operation.result.element)
        if all(value.stride == 0 for value in values):
            return Lanes(elementwise(self.code, operation, [value.base for value in values], 0))
        if kind[0] == "i" and kind != "i1":
            if name in ("arith.addi", "arith.subi"):
                return self.plus(values[0], values[1], kind, name[6:9])
            if name == "arith.muli":
                return self.times(values[0], values[1], kind)
            source = register(operation.operands[0].element)
            if name in ("arith.extsi", "arith.trunci") and source != "i1" and values[0].stride is not None:
                return self.cast(values[0], source, kind)
            if (
                name in ("tt.bitcast", "tt.int_to_ptr", "tt.ptr_to_int")
                and kind == source
                and operation.operands[0].element[0] in "i*"
            ):
                return values[0]
        names = [
            self.full(value, register(each.element)) for value, each in zip(values, operation.operands, strict=True)
        ]
        return Lanes(elementwise(self.code, operation, names, self.lanes), None)

    def _compare(self, predicate: str, x: Lanes, y: Lanes, kind: str) -> Lanes:
        if x.stride == 0 and y.stride == 0:
            return Lanes(self.code.op(f"icmp {predicate} {kind} {x.base}, {y.base}"))
        type = vector(kind, self.lanes)
        return Lanes(self.code.op(f"icmp {predicate} {type} {self.full(x, kind)}, {self.full(y, kind)}"), None)

    def _choose(self, condition: Lanes, x: Lanes, y: Lanes, element: str) -> Lanes:
        kind = register(element)
        if condition.stride == 0 and x.stride == 0 and y.stride == 0:
            return Lanes(self.code.when(condition.base, kind, x.base, y.base, 0))
        return Lanes(
            self.code.when(self.full(condition, "i1"), kind, self.full(x, kind), self.full(y, kind), self.lanes), None
        )

    def _linear(self, shape: tuple[int, ...], index: Index, inner: int | None = None) -> Lanes:
        total, step = Lanes("0"), 1
        order = [*range(len(shape))]
        if inner is not None:
            order.append(order.pop(inner))
        for dim in reversed(order):
            total = self.plus(total, self.times(index[dim], Lanes(str(step)), "i64"), "i64")
            step *= shape[dim]
        return total

    def _reshaped(self, shape: tuple[int, ...], source: tuple[int, ...], index: Index) -> Index:
        """The index in a tensor of another shape; sizes are powers of two, and chunks begin at multiples of theirs."""
        if [size for size in shape if size > 1] == [size for size in source if size > 1]:
            rest = iter([at for size, at in zip(shape, index) if size > 1])
            return tuple(next(rest) if size > 1 else Lanes("0") for size in source)
        linear = self._linear(shape, index)
        found, step = [], 1
        for size in reversed(source):
            found.append(self._digit(linear, step, size))
            step *= size
        return tuple(reversed(found))

    def _digit(self, linear: Lanes, step: int, size: int) -> Lanes:
        shift, mask = str(step.bit_length() - 1), str(size - 1)
        if size == 1:
            return Lanes("0")
        code, lanes = self.code, self.lanes
        whole = linear.stride == 0
        if not whole and isinstance(linear.stride, int) and linear.stride > 0:
            reach = linear.stride * lanes  # the lanes of a chunk stay within a block of this size
            if step >= reach:
                whole = True
            elif step == 1 and size >= reach:
                base = (
                    code.op(f"and i64 {linear.base}, {mask}")
                    if linear.base[0] == "%"
                    else str(int(linear.base) & size - 1)
                )
                return Lanes(base, linear.stride)
        if whole:
            return Lanes(code.op(f"and i64 {code.op(f'lshr i64 {linear.base}, {shift}')}, {mask}"))
        moved = code.op(f"lshr {vector('i64', lanes)} {self.full(linear, 'i64')}, {code.splat(shift, 'i64', lanes)}")
        return Lanes(code.op(f"and {vector('i64', lanes)} {moved}, {code.splat(mask, 'i64', lanes)}"), None)

    # -- buffers

    def _get(self, buffer: Buffer, index: Index, element: str) -> Lanes:
        at, kind = self._linear(buffer.shape, index, buffer.inner), buffer.kind
        if at.stride == 0:
            value = Lanes(self.code.op(f"load {kind}, ptr {self._at(buffer, at.base)}"))
        elif at.stride == 1:
            value = Lanes(
                self.code.op(f"load {vector(kind, self.lanes)}, ptr {self._at(buffer, at.base)}, align 4"), None
            )
        else:
            pointers = self.code.op(
                f"getelementptr {kind}, ptr {buffer.pointer}, {vector('i64', self.lanes)} {self.full(at, 'i64')}"
            )
            value = Lanes(self._gather(kind, pointers, self.code.splat("true", "i1", self.lanes)), None)
        if element == "i1":
            lanes = 0 if value.stride == 0 else self.lanes
            return Lanes(from_memory(self.code, "i1", value.base, lanes), value.stride)
        return value

    def _put(self, buffer: Buffer, index: Index, value: Lanes, element: str) -> None:
        code, at, kind = self.code, self._linear(buffer.shape, index, buffer.inner), buffer.kind
        source = register(element)
        lanes = self.lanes if at.stride != 0 else 0
        data = self.full(value, source) if lanes else value.base
        if source != kind:
            verb = {"i1": "zext", "float": "fpext"}.get(source, "sext")
            data = code.op(f"{verb} {vector(source, lanes)} {data} to {vector(kind, lanes)}")
        if at.stride in (0, 1):
            code.do(
                f"store {vector(kind, lanes)} {data}, ptr {self._at(buffer, at.base)}, align {1 if kind == 'i8' else 4 if kind != 'i16' else 2}"
            )
        else:
            pointers = code.op(
                f"getelementptr {kind}, ptr {buffer.pointer}, {vector('i64', lanes)} {self.full(at, 'i64')}"
            )
            self._scatter(kind, data, pointers, code.splat("true", "i1", lanes))

    def _at(self, buffer: Buffer, position: str) -> str:
        return self.code.op(f"getelementptr {buffer.kind}, ptr {buffer.pointer}, i64 {position}")

    def _gather(self, kind: str, pointers: str, mask: str) -> str:
        code, lanes = self.code, self.lanes
        name = f"@llvm.masked.gather.v{lanes}{_short(kind)}.v{lanes}p0"
        type = vector(kind, lanes)
        code.declare(name, f"declare {type} {name}(<{lanes} x ptr>, <{lanes} x i1>, {type})")
        return code.op(
            f"call {type} {name}(<{lanes} x ptr> align 1 {pointers}, <{lanes} x i1> {mask}, {type} zeroinitializer)"
        )

    def _scatter(self, kind: str, data: str, pointers: str, mask: str) -> None:
        code, lanes = self.code, self.lanes
        name = f"@llvm.masked.scatter.v{lanes}{_short(kind)}.v{lanes}p0"
        type = vector(kind, lanes)
        code.declare(name, f"declare void {name}({type}, <{lanes} x ptr>, <{lanes} x i1>)")
        code.do(f"call void {name}({type} {data}, <{lanes} x ptr> align 1 {pointers}, <{lanes} x i1> {mask})")

    # -- memory

    def _load(self, operation: Operation, index: Index) -> Lanes:
        values = [self._eval(each, index) for each in operation.operands]
        element = operation.result.element
        pointer, mask, other = (*values, None, None)[:3]
        found = self._fetch(operation.operands[0], pointer, mask, element, other)
        return found

    def _fetch(self, source: Value, pointer: Lanes, mask: Lanes | None, element: str, other: Lanes | None) -> Lanes:
        """Load; lanes that are masked out have the value `other`, or zero."""
        code, lanes, kind, size = self.code, self.lanes, memory(element), bits_of(element) // 8
        self._check(source, pointer, mask, size)
        if pointer.stride == 0:
            address = pointer.base
            if mask is not None:  # by a mask that is off, what is always there is read
                on = mask.base if mask.stride == 0 else self._any(mask)
                address = code.when(on, "i64", address, code.op("ptrtoint ptr %args to i64"), 0)
            bits = code.op(f"load {kind}, ptr {code.op(f'inttoptr i64 {address} to ptr')}, align 1")
            found = Lanes(from_memory(code, element, bits, 0))
        else:
            on = code.splat("true", "i1", lanes) if mask is None else self.full(mask, "i1")
            type = vector(kind, lanes)
            if pointer.stride == size:
                place = code.op(f"inttoptr i64 {pointer.base} to ptr")
                if mask is None:
                    bits = code.op(f"load {type}, ptr {place}, align 1")
                else:
                    name = f"@llvm.masked.load.v{lanes}{_short(kind)}.p0"
                    code.declare(name, f"declare {type} {name}(ptr, <{lanes} x i1>, {type})")
                    bits = code.op(
                        f"call {type} {name}(ptr align 1 {place}, <{lanes} x i1> {on}, {type} zeroinitializer)"
                    )
            else:
                places = code.op(
                    f"inttoptr {vector('i64', lanes)} {self.full(pointer, 'i64')} to {vector('ptr', lanes)}"
                )
                bits = self._gather(kind, places, on)
            found = Lanes(from_memory(code, element, bits, lanes), None)
        if mask is None:
            return found
        if other is None:
            zero = "0" if register(element)[0] == "i" else literal(0, register(element))
            if found.stride is None:
                return found  # zero already
            other = Lanes(zero)
        elif found.stride is None and other.stride == 0 and other.base in ("0", "0x0000000000000000"):
            return found
        return self._choose(mask, found, other, element)

    def _any(self, mask: Lanes) -> str:
        name = f"@llvm.vector.reduce.or.v{self.lanes}i1"
        self.code.declare(name, f"declare i1 {name}(<{self.lanes} x i1>)")
        return self.code.op(f"call i1 {name}(<{self.lanes} x i1> {self.full(mask, 'i1')})")

    def _store(self, operation: Operation, index: Index) -> None:
        values = [self._eval(each, index) for each in operation.operands]
        pointer, value, mask = (*values, None)[:3]
        assert pointer is not None and value is not None
        self._deposit(operation.operands[0], pointer, value, mask, operation.operands[1].element)

    def _deposit(self, source: Value, pointer: Lanes, value: Lanes, mask: Lanes | None, element: str) -> None:
        code, lanes = self.code, self.lanes
        kind, size, held = memory(element), bits_of(element) // 8, register(element)
        self._check(source, pointer, mask, size)
        if pointer.stride == 0 and (not lanes or (value.stride == 0 and (mask is None or mask.stride == 0))):
            bits = to_memory(code, element, value.base, 0)
            with self._if(None if mask is None else mask.base):
                code.do(f"store {kind} {bits}, ptr {code.op(f'inttoptr i64 {pointer.base} to ptr')}, align 1")
            return
        bits = to_memory(code, element, self.full(value, held), lanes)
        on = code.splat("true", "i1", lanes) if mask is None else self.full(mask, "i1")
        type = vector(kind, lanes)
        if pointer.stride == size:
            place = code.op(f"inttoptr i64 {pointer.base} to ptr")
            if mask is None:
                code.do(f"store {type} {bits}, ptr {place}, align 1")
            else:
                name = f"@llvm.masked.store.v{lanes}{_short(kind)}.p0"
                code.declare(name, f"declare void {name}({type}, ptr, <{lanes} x i1>)")
                code.do(f"call void {name}({type} {bits}, ptr align 1 {place}, <{lanes} x i1> {on})")
        else:
            places = code.op(f"inttoptr {vector('i64', lanes)} {self.full(pointer, 'i64')} to {vector('ptr', lanes)}")
            self._scatter(kind, bits, places, on)

    @contextmanager
    def _if(self, condition: str | None) -> Iterator[None]:
        if condition is None:
            yield
            return
        then, after = self.code.name("then"), self.code.name("after")
        self.code.branch(condition, then, after)
        self.code.label(then)
        yield
        self.code.jump(after)
        self.code.label(after)

    def _fail_if(self, condition: str) -> None:
        going = self.code.name("going")
        self.code.branch(condition, "%failed", going)
        self.code.label(going)

    def _fail_unless(self, condition: Lanes) -> None:
        if condition.stride is None:
            wrong = self.code.op(
                f"xor {vector('i1', self.lanes)} {condition.base}, {self.code.splat('true', 'i1', self.lanes)}"
            )
            self._fail_if(self._any(Lanes(wrong, None)))
        else:
            self._fail_if(self.code.op(f"xor i1 {condition.base}, true"))

    def _check(self, source: Value, pointer: Lanes, mask: Lanes | None, size: int) -> None:
        """Stop before an access outside of what its pointer may touch."""
        if not self.checked:
            return
        code, lanes = self.code, self.lanes
        low, high = self.spans[self._root(source)]
        if pointer.stride == 0 or (pointer.stride == size and (mask is None or mask.stride == 0)):
            first = pointer.base
            last = first if pointer.stride == 0 else code.op(f"add i64 {first}, {(lanes - 1) * size}")
            outside = self._outside(first, last, low, high, size)
            if mask is not None:
                on = mask.base if mask.stride == 0 else self._any(mask)
                outside = code.op(f"and i1 {outside}, {on}")
        elif pointer.stride == size:  # from the first lane that is on to the last
            assert mask is not None
            bits = code.op(f"bitcast <{lanes} x i1> {self.full(mask, 'i1')} to i{lanes}")
            some = code.op(f"icmp ne i{lanes} {bits}, 0")
            ends = []
            for name in ("cttz", "ctlz"):
                full = f"@llvm.{name}.i{lanes}"
                code.declare(full, f"declare i{lanes} {full}(i{lanes}, i1)")
                found = code.op(f"call i{lanes} {full}(i{lanes} {bits}, i1 false)")
                ends.append(
                    found if lanes == 64 else code.op(f"{'zext' if lanes < 64 else 'trunc'} i{lanes} {found} to i64")
                )
            first = code.op(f"add i64 {pointer.base}, {code.op(f'mul i64 {ends[0]}, {size}')}")
            back = code.op(f"mul i64 {code.op(f'sub i64 {lanes - 1}, {ends[1]}')}, {size}")
            last = code.op(f"add i64 {pointer.base}, {back}")
            outside = code.op(f"and i1 {self._outside(first, last, low, high, size)}, {some}")
        else:
            type = vector("i64", lanes)
            addresses = self.full(pointer, "i64")
            room = code.op(f"sub i64 {high}, {size}")
            below = code.op(f"icmp ult {type} {addresses}, {code.splat(low, 'i64', lanes)}")
            above = code.op(f"icmp ugt {type} {addresses}, {code.splat(room, 'i64', lanes)}")
            either = code.op(f"or {vector('i1', lanes)} {below}, {above}")
            if mask is not None:
                either = code.op(f"and {vector('i1', lanes)} {either}, {self.full(mask, 'i1')}")
            outside = self._any(Lanes(either, None))
        self._fail_if(outside)

    def _outside(self, first: str, last: str, low: str, high: str, size: int) -> str:
        code = self.code
        below = code.op(f"icmp ult i64 {first}, {low}")
        above = code.op(f"icmp ugt i64 {last}, {code.op(f'sub i64 {high}, {size}')}")
        return code.op(f"or i1 {below}, {above}")

    # -- operations on single numbers, and those that take a nest of their own

    def _tt_get_program_id(self, operation: Operation) -> None:
        self.scalars[operation.result] = self.place["xyz".index(operation.text.split(":")[0].strip()[0])]

    def _tt_get_num_programs(self, operation: Operation) -> None:
        self.scalars[operation.result] = "%g" + operation.text.split(":")[0].strip()[0]

    def _arith_constant(self, operation: Operation) -> None:
        self.scalars[operation.result] = self._literal(operation)

    def _ub_poison(self, operation: Operation) -> None:
        kind = register(operation.result.element)
        self.scalars[operation.result] = "0" if kind[0] == "i" else literal(0, kind)

    def _tt_addptr(self, operation: Operation) -> None:
        pointer, offset = operation.operands
        by = self.cast(Lanes(self.scalars[offset]), register(offset.element), "i64")
        scaled = self.times(by, Lanes(str(_size(pointer))), "i64")
        self.scalars[operation.result] = self.plus(Lanes(self.scalars[pointer]), scaled, "i64").base

    def _tt_unsplat(self, operation: Operation) -> None:
        self.memo = {}
        source = operation.operands[0]
        self.scalars[operation.result] = self._eval(source, (Lanes("0"),) * len(source.shape or ())).base

    def _tt_load(self, operation: Operation) -> None:
        values = [Lanes(self.scalars[each]) for each in operation.operands]
        pointer, mask, other = (*values, None, None)[:3]
        assert pointer is not None
        result = operation.result
        self.scalars[result] = self._fetch(operation.operands[0], pointer, mask, result.element, other).base
        if result.element[0] == "*":
            self._span(result, self.scalars[result])

    def _tt_store(self, operation: Operation) -> None:
        self._clear(operation)
        values = [Lanes(self.scalars[each]) for each in operation.operands]
        pointer, value, mask = (*values, None)[:3]
        assert pointer is not None and value is not None
        self._deposit(operation.operands[0], pointer, value, mask, operation.operands[1].element)

    def _ttg_barrier(self, operation: Operation) -> None:
        """A program is one thread here."""

    _gpu_barrier = _ttg_barrier

    def _tt_assert(self, operation: Operation) -> None:
        self._fail_unless(Lanes(self.scalars[operation.operands[0]]))

    def _clear(self, operation: Operation) -> None:
        """Compute what loads before a write to memory that they may read."""
        root = self._root(operation.operands[0])
        self._settle([each for each in self.loads if self._overlap(self._root(each.operands[0]), root)])

    def _tt_atomic_rmw(self, operation: Operation) -> None:
        words = operation.text.split(",")[0].split()
        self._atomic(operation, words[0])

    def _tt_atomic_cas(self, operation: Operation) -> None:
        self._atomic(operation, "cas")

    def _atomic(self, operation: Operation, verb: str) -> None:
        """An atomic update, element by element: two lanes may update one address."""
        self._clear(operation)
        pointer = operation.operands[0]
        result = operation.result
        if pointer.shape is None:
            values = [self.scalars[each] for each in operation.operands]
            self.scalars[result] = self._update(operation, verb, values)
            return
        self._write(
            [
                Write(each, self._for(each))
                for each in operation.operands[1:]
                if each not in self.buffers and any(map(is_costly, self._reach([each])))
            ]
        )
        buffer = self.buffers[result] = self._for(result)
        reach = self._reach(operation.operands)
        if any(not is_lazy(each) for each in reach):
            raise Unknown("an atomic update of what is not known")

        def nest(sizes: tuple[int, ...], index: Index) -> None:
            if sizes:
                with self.code.loop(sizes[0]) as loop:
                    nest(sizes[1:], (*index, Lanes(loop.counter)))
                return
            self.memo = {}
            values = [self._eval(each, index).base for each in operation.operands]
            self._put(buffer, index, Lanes(self._update(operation, verb, values)), result.element)

        self.lanes = 0
        nest(pointer.shape, ())

    def _update(self, operation: Operation, verb: str, values: list[str]) -> str:
        code, element = self.code, operation.result.element
        pointer, value = values[:2]
        mask = Lanes(values[2]) if len(values) > 2 and verb != "cas" else None
        size, held, kind = bits_of(element) // 8, register(element), memory(element)
        self._check(operation.operands[0], Lanes(pointer), mask, size)
        slot = self._slot(held)
        code.do(f"store {held} {'0' if held[0] == 'i' else literal(0, held)}, ptr {slot}")
        with self._if(None if mask is None else mask.base):
            place = code.op(f"inttoptr i64 {pointer} to ptr")
            if verb == "cas":
                bits = f"i{8 * size}"
                pair = [
                    code.op(f"bitcast {kind} {to_memory(code, element, each, 0)} to {bits}") for each in values[1:3]
                ]
                swap = code.op(f"cmpxchg ptr {place}, {bits} {pair[0]}, {bits} {pair[1]} seq_cst seq_cst, align {size}")
                old = code.op(f"bitcast {bits} {code.op(f'extractvalue {{ {bits}, i1 }} {swap}, 0')} to {kind}")
                old = from_memory(code, element, old, 0)
            elif kind != held:
                old = self._update_small(place, verb, element, value)
            else:
                name = {"exch": "xchg", "fadd": "fadd", "inc": "uinc_wrap", "dec": "udec_wrap"}.get(verb, verb)
                if name not in (
                    "add",
                    "and",
                    "or",
                    "xor",
                    "max",
                    "min",
                    "umax",
                    "umin",
                    "xchg",
                    "fadd",
                    "uinc_wrap",
                    "udec_wrap",
                ):
                    raise Unknown(f"atomic {verb}")
                old = code.op(f"atomicrmw {name} ptr {place}, {held} {value} seq_cst, align {size}")
            code.do(f"store {held} {old}, ptr {slot}")
        return code.op(f"load {held}, ptr {slot}")

    def _update_small(self, place: str, verb: str, element: str, value: str) -> str:
        """An atomic sum of 16-bit numbers: computed, and tried again when another thread was faster."""
        code = self.code
        if verb != "fadd" or bits_of(element) != 16:
            raise Unknown(f"atomic {verb} of {element}")
        start, again, end = code.name("start"), code.name("again"), code.name("end")
        code.jump(start)
        code.label(start)
        first = code.op(f"load i16, ptr {place}, align 2")
        code.jump(again)
        code.label(again)
        mark = len(code.lines)
        seen = code.name("seen")
        old = from_memory(code, element, code.op(f"bitcast i16 {seen} to {memory(element)}"), 0)
        new = to_memory(code, element, rounded(code, element, code.op(f"fadd float {old}, {value}"), 0), 0)
        swap = code.op(
            f"cmpxchg ptr {place}, i16 {seen}, i16 {code.op(f'bitcast {memory(element)} {new} to i16')} seq_cst seq_cst, align 2"
        )
        found = code.op(f"extractvalue {{ i16, i1 }} {swap}, 0")
        code.lines.insert(mark, f"  {seen} = phi i16 [ {first}, {start} ], [ {found}, {again} ]")
        code.branch(code.op(f"extractvalue {{ i16, i1 }} {swap}, 1"), end, again)
        code.label(end)
        return old

    def _tt_scan(self, operation: Operation) -> None:
        """A scan: along its axis number by number, across it in lanes."""
        shape, axis = operation.operands[0].shape, operation.integer("axis")
        assert shape is not None
        sources = [self._settled(each) for each in operation.operands]
        targets = [self._for(each) for each in operation.results]
        last = len(shape) - 1
        lanes = min(self.bits // 32, shape[last]) if axis != last and shape[last] > 1 else 0
        kinds = [register(each.element) for each in operation.operands]
        backwards = operation.integer("reverse", 0)
        code = self.code

        def nest(dims: list[int], index: list[Lanes]) -> None:
            if dims:
                step = lanes if dims[0] == last and lanes else 1
                with code.loop(shape[dims[0]], step) as loop:
                    index[dims[0]] = Lanes(loop.counter, int(step > 1))
                    nest(dims[1:], index)
                return
            with code.loop(shape[axis]) as loop:
                at = code.op(f"sub i64 {shape[axis] - 1}, {loop.counter}") if backwards else loop.counter
                index[axis] = Lanes(at)
                place = tuple(index)
                values = [
                    self.full(self._get(each, place, value.element), kind)
                    for each, value, kind in zip(sources, operation.operands, kinds)
                ]
                found = self._accumulate(loop, operation, values)
                for target, value, result in zip(targets, found, operation.results, strict=True):
                    self._put(target, place, Lanes(value, None if lanes else 0), result.element)

        self.lanes = lanes
        nest([each for each in range(len(shape)) if each != axis], [Lanes("0")] * len(shape))
        self.lanes = 0
        self.buffers.update(zip(operation.results, targets))

    def _tt_histogram(self, operation: Operation) -> None:
        values, mask = (*operation.operands, None)[:2]
        assert values is not None
        code, source = self.code, self._settled(values)
        on = None if mask is None else self._settled(mask)
        bins = operation.result.shape or (1,)
        buffer = self.buffers[operation.result] = self._for(operation.result)
        kind = register(operation.result.element)
        with code.loop(bins[0]) as loop:
            code.do(f"store {kind} 0, ptr {self._at(buffer, loop.counter)}")
        with code.loop(math.prod(source.shape)) as loop:
            at = (Lanes(loop.counter),)
            number = self._get(source, at, values.element)
            wide = self.cast(number, register(values.element), "i64", "zext").base
            inside = code.op(f"icmp ult i64 {wide}, {bins[0]}")
            if on is not None:
                inside = code.op(f"and i1 {inside}, {self._get(on, at, 'i1').base}")
            with self._if(inside):
                place = self._at(buffer, wide)
                count = code.op(f"load {kind}, ptr {place}")
                code.do(f"store {kind} {code.op(f'add {kind} {count}, 1')}, ptr {place}")

    def _tt_dot(self, operation: Operation) -> None:
        """A product of tiles: operands as tiles of the type that is summed, sums in registers."""
        a, b, c = operation.operands
        result = operation.result
        shape, inner = result.shape, (a.shape or ())[-1]
        assert shape is not None
        kind = register(result.element)
        if kind not in ("float", "double", "i32"):
            raise Unknown(f"a product of {a.element} summed in {result.element}")
        tiles = []
        for each in (a, b):
            if each in self.buffers and self.buffers[each].kind == kind and self._is_rows(self.buffers[each]):
                tiles.append(self.buffers[each])
            else:
                tile = self._rows(each.shape or (), kind)
                self._emit([Write(each, tile)])
                tiles.append(tile)
        target = None
        if result in self.targets:
            carried, argument = self.targets[result]
            if not self._needed(argument, {operation}) and carried not in tiles and self._in_place([c], {carried}):
                target = carried if self._is_rows(carried) else None
        target = target or self._rows(shape, kind)
        zero = not self._reach([c]) and c not in self.buffers
        owner = c.owner
        zero = isinstance(owner, Operation) and owner.name == "arith.constant" and constant(owner) == 0
        start = None if zero else self.buffers.get(c)
        if not zero and (start is None or not self._is_rows(start)):
            start = target
            self._emit([Write(c, target)])
        self._product(tiles[0], tiles[1], start, target, kind, inner, result.element)
        self.buffers[result] = target

    def _rows(self, shape: tuple[int, ...], kind: str) -> Buffer:
        buffer = self._buffer(shape, kind)
        buffer.inner = len(shape) - 1
        return buffer

    @staticmethod
    def _is_rows(buffer: Buffer) -> bool:
        return buffer.inner in (None, len(buffer.shape) - 1)

    def _product(
        self, a: Buffer, b: Buffer, start: Buffer | None, out: Buffer, kind: str, inner: int, element: str
    ) -> None:
        code, (rows, columns) = self.code, out.shape[-2:]
        lanes = min(columns, self.bits // (32 if kind == "double" else 16)) if columns > 1 else 0
        height = min(rows, 8 if self.bits > 256 else 4)
        width = lanes or 1
        type = vector(kind, lanes)
        self.lanes = lanes

        def place(buffer: Buffer, batch: list[str], row: str, column: str, stride: int) -> str:
            at = Lanes("0")
            for index, size in zip(batch, buffer.shape[:-2]):
                at = self.plus(self.times(at, Lanes(str(size)), "i64"), Lanes(index), "i64")
            at = self.plus(self.times(at, Lanes(str(buffer.shape[-2])), "i64"), Lanes(row), "i64")
            return self._at(buffer, self.plus(self.times(at, Lanes(str(stride)), "i64"), Lanes(column), "i64").base)

        def tile(batch: list[str]) -> None:
            with code.loop(columns, width) as across, code.loop(rows, height) as down:
                numbers = [code.op(f"add i64 {down.counter}, {row}") for row in range(height)]
                sums = []
                for row in numbers:
                    if start is None:
                        sums.append("zeroinitializer" if lanes else "0" if kind == "i32" else literal(0, kind))
                    else:
                        sums.append(
                            code.op(f"load {type}, ptr {place(start, batch, row, across.counter, columns)}, align 4")
                        )
                with code.loop(inner) as along:
                    phis = [along.phi(type, each) for each in sums]
                    line = code.op(
                        f"load {type}, ptr {place(b, batch, along.counter, across.counter, columns)}, align 4"
                    )
                    for row, total in zip(numbers, phis, strict=True):
                        one = code.op(f"load {kind}, ptr {place(a, batch, row, along.counter, inner)}, align 4")
                        factor = code.splat(one, kind, lanes)
                        if kind == "i32":
                            along.next.append(code.op(f"add {type} {total}, {code.op(f'mul {type} {factor}, {line}')}"))
                        elif code.fma:
                            along.next.append(code.intrinsic("fma", kind, factor, line, total, lanes=lanes))
                        else:
                            along.next.append(
                                code.op(f"fadd {type} {total}, {code.op(f'fmul {type} {factor}, {line}')}")
                            )
                for row, total in zip(numbers, along.next, strict=True):
                    code.do(
                        f"store {type} {rounded(code, element, total, lanes)}, ptr {place(out, batch, row, across.counter, columns)}, align 4"
                    )

        def nest(sizes: tuple[int, ...], batch: list[str]) -> None:
            if sizes:
                with code.loop(sizes[0]) as loop:
                    nest(sizes[1:], [*batch, loop.counter])
            else:
                tile(batch)

        nest(out.shape[:-2], [])
        self.lanes = 0

    # -- loops and branches

    def _before(self, operation: Operation, loop: bool) -> None:
        """Compute, before a region, what would be computed in each round of it, or read after it has written."""
        inside = list(operation.inside())
        if any(each.name in _WRITES for each in inside):
            self._settle(self.loads)
        if loop:
            own = {*inside, operation}
            used = {value for each in inside for value in each.operands}
            used = {
                value
                for value in used
                if value.shape is not None and not (isinstance(value.owner, Operation) and value.owner in own)
            }
            reach = self._reach(
                value for value in used if not (isinstance(value.owner, Block) and value.owner.parent in own)
            )
            # carried values that add up are evaluated anew in each round, from their first values
            starts = self._reach(
                [each for each in operation.operands if each.shape is not None and each.element[0] in "*i"]
            )
            self._settle([each for each in {**reach, **starts} if is_lazy(each) and is_costly(each)])

    @contextmanager
    def _scope(self) -> Iterator[None]:
        """What is computed within a region is not there behind it."""
        buffers, loads = dict(self.buffers), list(self.loads)
        yield
        self.buffers, self.loads = {**buffers, **{key: self.buffers[key] for key in buffers}}, loads

    def _uniform(self, value: Value) -> tuple[str, str] | None:
        """The number that all elements of a tensor are, and its type, if that is known."""
        if value.shape is None:
            return (self.scalars[value], register(value.element)) if value in self.scalars else None
        owner = value.owner
        if isinstance(owner, Block):
            return None
        if owner.name == "arith.constant":
            return self._literal(owner), register(value.element)
        if owner.name in ("tt.splat", "tt.broadcast", "tt.expand_dims", "tt.reshape"):
            return self._uniform(owner.operands[0])
        return None

    def _adds(self, argument: Value, value: Value) -> Value | None:
        """What a round adds to a carried tensor, if it adds one number to all its elements."""
        owner = value.owner
        if argument.shape is None or isinstance(owner, Block) or owner.name not in ("tt.addptr", "arith.addi"):
            return None
        x, y = owner.operands
        if owner.name == "arith.addi" and y is argument:
            x, y = y, x
        return y if x is argument and self._may_be_uniform(y) else None

    def _may_be_uniform(self, value: Value) -> bool:
        owner = value.owner
        if isinstance(owner, Block):
            return False
        if owner.name in ("tt.broadcast", "tt.expand_dims", "tt.reshape"):
            return self._may_be_uniform(owner.operands[0])
        return owner.name in ("arith.constant", "tt.splat")

    def _in_place(self, values: list[Value], targets: set[Buffer]) -> bool:
        """True if computing values chunk by chunk reads the targets at the index that it writes only."""
        seen: set[tuple[Value, bool]] = set()

        def visit(value: Value, same: bool) -> bool:
            if (value, same) in seen:
                return True
            seen.add((value, same))
            if value in self.buffers:
                buffer = self.buffers[value]
                return same or not (buffer in targets or buffer.shared)
            if value in self.progressions:
                return visit(self.progressions[value][0], same)
            owner = value.owner
            if isinstance(owner, Block) or value in self.scalars or not is_lazy(owner):
                return True
            same = same and (is_elementwise(owner.name) or owner.name in ("tt.load", "tt.addptr"))
            return all(visit(each, same) for each in owner.operands)

        return all(visit(value, True) for value in values)

    def _scf_for(self, operation: Operation) -> None:
        code = self.code
        (block,) = operation.regions[0]
        low, high, step = (self.scalars[each] for each in operation.operands[:3])
        counter, *arguments = block.arguments
        first = operation.operands[3:]
        ends = block.operations[-1].operands
        self._before(operation, loop=True)
        adds = [self._adds(argument, end) for argument, end in zip(arguments, ends, strict=True)]
        tensors = [i for i, each in enumerate(arguments) if each.shape is not None and adds[i] is None]
        for i, argument in enumerate(arguments):
            if adds[i] is not None:
                self.progressions[argument] = (first[i], "0")
        targets = {i: self._for(arguments[i]) for i in tensors}
        for i, target in targets.items():
            end = ends[i].owner
            if isinstance(end, Operation) and end.name == "tt.dot":
                target.inner = len(target.shape) - 1
            else:
                target.inner = self._layout(target.shape, [], self._reach([ends[i]]))[0]
        self._copy([(first[i], targets[i]) for i in tensors])
        kind = register(counter.element)
        before, head, body, after = code.block, code.name("for"), code.name("body"), code.name("done")
        code.jump(head)
        code.label(head)
        mark = len(code.lines)
        phis: dict[Value, tuple[str, str, str]] = {counter: (code.name("phi"), kind, low)}
        for i, argument in enumerate(arguments):
            if adds[i] is not None:
                width = "i64" if argument.element[0] == "*" else register(argument.element)
                phis[argument] = (code.name("phi"), width, "0")
            elif argument.shape is None:
                phis[argument] = (code.name("phi"), register(argument.element), self.scalars[first[i]])
        verb = "ult" if "unsigned" in operation.text else "slt"
        code.branch(code.op(f"icmp {verb} {kind} {phis[counter][0]}, {high}"), body, after)
        code.label(body)
        outer = self.targets
        with self._scope():
            for i, argument in enumerate(arguments):
                if adds[i] is not None:
                    self.progressions[argument] = (first[i], phis[argument][0])
                elif argument.shape is None:
                    self.scalars[argument] = phis[argument][0]
                else:
                    self.buffers[argument] = targets[i]
            self.scalars[counter] = phis[counter][0]
            self.targets = {ends[i]: (targets[i], arguments[i]) for i in tensors}
            self._run(block)
            self._carry([(ends[i], targets[i]) for i in tensors if ends[i] is not arguments[i]])
            following = {counter: code.op(f"add {kind} {phis[counter][0]}, {step}")}
            for i, argument in enumerate(arguments):
                more = adds[i]
                if more is not None:
                    found = self._uniform(more)
                    assert found is not None
                    by = self.cast(Lanes(found[0]), found[1], phis[argument][1])
                    following[argument] = code.op(f"add {phis[argument][1]} {phis[argument][0]}, {by.base}")
                elif argument.shape is None:
                    following[argument] = self.scalars[ends[i]]
        self.targets = outer
        code.jump(head)
        code.lines[mark:mark] = [
            f"  {name} = phi {type} [ {start}, %{before} ], [ {following[value]}, %{code.block} ]"
            for value, (name, type, start) in phis.items()
        ]
        code.label(after)
        for i, (argument, result) in enumerate(zip(arguments, operation.results, strict=True)):
            if adds[i] is not None:
                self.progressions[result] = (first[i], phis[argument][0])
            elif argument.shape is None:
                self.scalars[result] = phis[argument][0]
            else:
                self.buffers[result] = targets[i]

    def _copy(self, pairs: list[tuple[Value, Buffer]]) -> None:
        """Write values to buffers that stay theirs only for now."""
        while pairs:
            shape = pairs[0][0].shape
            self._emit([Write(value, buffer) for value, buffer in pairs if value.shape == shape])
            pairs = [each for each in pairs if each[0].shape != shape]

    def _carry(self, pairs: list[tuple[Value, Buffer]]) -> None:
        """Write what a round leaves over what it began with; by way of other memory where reading would suffer."""
        pairs = [(value, target) for value, target in pairs if self.buffers.get(value) is not target]
        if not pairs:
            return
        targets = {target for _, target in pairs}
        if len({value.shape for value, _ in pairs}) > 1 or not self._in_place([value for value, _ in pairs], targets):
            self._write([Write(value, self._for(value)) for value, _ in pairs if value not in self.buffers])
        self._copy(pairs)

    def _scf_while(self, operation: Operation) -> None:
        code = self.code
        if len(operation.regions) != 2 or len(operation.regions[0]) + len(operation.regions[1]) != 2:
            raise Unknown("a loop with branches within")
        (condition,), (block,) = operation.regions
        self._before(operation, loop=True)
        slots = [self._for(each) for each in condition.arguments]

        def move(values: list[Value], targets: list[Buffer]) -> None:
            """Write values to targets, all of them read before the first is written."""
            fresh = [(value, target) for value, target in zip(values, targets, strict=True) if value.shape is not None]
            self._write([Write(value, self._for(value)) for value, _ in fresh if value not in self.buffers])
            moved = [
                (value, self._for(value))
                for value, target in fresh
                if self.buffers[value] in targets and self.buffers[value] is not target
            ]
            self._copy(moved)
            for value, buffer in moved:
                self.buffers[value] = buffer
            for value, target in zip(values, targets, strict=True):
                if value.shape is None:
                    self._put(target, (Lanes("0"),), Lanes(self.scalars[value]), value.element)
            self._copy([(value, target) for value, target in fresh if self.buffers[value] is not target])

        def enter(values: list[Value], sources: list[Buffer]) -> None:
            for value, source in zip(values, sources, strict=True):
                if value.shape is None:
                    self.scalars[value] = self._get(source, (Lanes("0"),), value.element).base
                    if value.element[0] == "*":
                        self._span(value, self.scalars[value])
                        self.roots[value] = value
                else:
                    self.buffers[value] = source

        move(operation.operands, slots)
        head, body, after = code.name("while"), code.name("body"), code.name("done")
        code.jump(head)
        code.label(head)
        with self._scope():
            enter(condition.arguments, slots)
            end = self._run(condition)
            passed = [self._for(each) for each in block.arguments]
            move(end.operands[1:], passed)
            code.branch(self.scalars[end.operands[0]], body, after)
        code.label(body)
        with self._scope():
            enter(block.arguments, passed)
            end = self._run(block)
            move(end.operands, slots)
            code.jump(head)
        code.label(after)
        enter(operation.results, passed)

    def _scf_if(self, operation: Operation) -> None:
        code = self.code
        self._before(operation, loop=False)
        condition = self.scalars[operation.operands[0]]
        then, other, after = code.name("then"), code.name("else"), code.name("joined")
        two = len(operation.regions) > 1
        code.branch(condition, then, other if two else after)
        ways: list[tuple[str, list[tuple[str, ...]]]] = []
        # buffers of both branches have one order of dimensions: that of a buffer which is there already
        inner: list[int | None] = [None] * len(operation.results)
        for region in operation.regions:
            for i, value in enumerate(region[0].operations[-1].operands):
                if value in self.buffers:
                    inner[i] = self.buffers[value].inner
        for label, region in zip((then, other), operation.regions):
            code.label(label)
            with self._scope():
                if len(region) != 1:
                    raise Unknown("a branch with branches within")
                end = self._run(region[0])
                ends = end.operands
                left: list[tuple[str, ...]] = []
                for i, value in enumerate(ends):
                    if value.shape is not None:
                        last = len(value.shape) - 1
                        wanted = last if inner[i] is None else inner[i]
                        buffer = self.buffers.get(value)
                        if buffer is None or (last if buffer.inner is None else buffer.inner) != wanted:
                            buffer = self._for(value)
                            buffer.inner = wanted
                            self._emit([Write(value, buffer)])
                        left.append((buffer.pointer,))
                    elif value.element[0] == "*" and self.checked:
                        left.append((self.scalars[value], *self.spans[self._root(value)]))
                    else:
                        left.append((self.scalars[value],))
            ways.append((code.block, left))
            code.jump(after)
        code.label(after)
        for i, result in enumerate(operation.results):
            kind = "ptr" if result.shape is not None else register(result.element)
            joined = [
                code.op(
                    f"phi {kind if at == 0 else 'i64'} "
                    + ", ".join(f"[ {left[i][at]}, %{block} ]" for block, left in ways)
                )
                for at in range(len(ways[0][1][i]))
            ]
            if result.shape is not None:
                self.buffers[result] = Buffer(joined[0], result.shape, _kind(result), inner[i], shared=True)
                continue
            self.scalars[result] = joined[0]
            if len(joined) > 1:
                self.spans[result] = joined[1], joined[2]
                self.roots[result] = result


def _kind(value: Value) -> str:
    kind = register(value.element)
    return "i8" if kind == "i1" else kind


def _short(kind: str) -> str:
    return {"float": "f32", "double": "f64", "half": "f16"}.get(kind, kind)


def _size(pointer: Value) -> int:
    return bits_of(pointer.element[1:]) // 8


def _order(operation: Operation) -> list[int]:
    text = operation.text
    return [int(each) for each in text[text.index("array<i32:") + 10 :].split(">")[0].split(",")]


_NUMBERS = {"arith.addf": "-0.0", "arith.addi": "0", "arith.ori": "0", "arith.xori": "0", "arith.maximumf": "-inf"}
_NUMBERS |= {
    "arith.minimumf": "inf",
    "arith.maxnumf": "nan",
    "arith.minnumf": "nan",
    "arith.mulf": "1",
    "arith.muli": "1",
}


def _identity(operation: Operation) -> str | None:
    """The number that a combination of two numbers leaves the other alone with, where it is one operation."""
    (block,) = operation.regions[0]
    if len(block.operations) != 2 or len(block.arguments) != 2 or block.operations[0].operands != block.arguments:
        return None
    found = _NUMBERS.get(block.operations[0].name)
    return None if found is None else literal(float(found), register(operation.operands[0].element))


# Which memory an address is in, by bisection of the table; what is told is taken as it is.
_SPAN = """define internal { i64, i64 } @span(ptr %ctx, i64 %address, i64 %low, i64 %high) {
entry:
  %told = icmp ne i64 %high, 0
  %place = getelementptr i64, ptr %ctx, i64 2
  %number = getelementptr i64, ptr %ctx, i64 3
  br i1 %told, label %known, label %look
look:
  %table_word = load i64, ptr %place
  %table = inttoptr i64 %table_word to ptr
  %count = load i64, ptr %number
  br label %step
step:
  %from = phi i64 [ 0, %look ], [ %from2, %next ]
  %to = phi i64 [ %count, %look ], [ %to2, %next ]
  %more = icmp ult i64 %from, %to
  br i1 %more, label %next, label %out
next:
  %sum = add i64 %from, %to
  %middle = lshr i64 %sum, 1
  %at = getelementptr { i64, i64 }, ptr %table, i64 %middle
  %start = load i64, ptr %at
  %right = icmp ule i64 %start, %address
  %up = add i64 %middle, 1
  %from2 = select i1 %right, i64 %up, i64 %from
  %to2 = select i1 %right, i64 %to, i64 %middle
  br label %step
out:
  %none = icmp eq i64 %from, 0
  br i1 %none, label %nowhere, label %found
found:
  %back = sub i64 %from, 1
  %pair = getelementptr { i64, i64 }, ptr %table, i64 %back
  %value = load { i64, i64 }, ptr %pair
  ret { i64, i64 } %value
nowhere:
  ret { i64, i64 } { i64 -1, i64 -1 }
known:
  %a = insertvalue { i64, i64 } poison, i64 %low, 0
  %b = insertvalue { i64, i64 } %a, i64 %high, 1
  ret { i64, i64 } %b
}"""


def translate(ttir: str, fma: bool, bits: int, checked: bool = True, apart: bool = True) -> Translated:
    """The LLVM text of a kernel's TTIR.

    Args:
        fma: the target multiplies and adds in one instruction.
        bits: of its vector registers.
        checked: accesses outside of what their pointer may touch stop the kernel.
        apart: arrays that are passed do not overlap; the code for any others takes loads to scratch memory.

    Raises:
        Unknown: the kernel has an operation that is not translated.
    """
    try:
        return _Kernel(parse(ttir), fma, bits, checked, apart).translate()
    except RecursionError as error:
        raise Unknown("a kernel too deep for this translator") from error
