"""Translates a kernel from Triton's TTIR to LLVM's text.

Operations on single numbers are written where they stand. A tensor is not computed where it stands: it is a function of
its index, evaluated for a chunk of some lanes where a *sink* needs it: a store, a reduction, an operand of a product, a
value that a loop carries. Sinks of one shape that do not depend on one another share a nest of loops. Costly values
that a later nest needs as well are written to scratch memory by the first.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from .elements import constant, elementwise, is_elementwise, register, zero
from .evaluation import size_behind
from .facts import Buffer, is_lazy
from .parse import Block, Operation, Unknown, Value, parse
from .regions import WRITES, Regions
from .values import Lanes

__all__ = ["Translated", "Unknown", "translate"]

_GROUPED = ("tt.store", "tt.reduce", "tt.assert")
_ENDS = ("tt.return", "scf.yield", "cf.br", "cf.cond_br", "scf.condition")


@dataclass
class Translated:
    """The text of a kernel, and what a launch needs to know of it.

    Attributes:
        scratch: bytes of scratch memory for each thread.
        looks_up: it reads addresses from memory, and looks them up in the table of memory.
        written: which of its arguments it writes through; None where that is not known.
    """

    name: str
    text: str
    scratch: int
    looks_up: bool
    written: tuple[int, ...] | None


class _Kernel(Regions):
    def translate(self) -> Translated:
        """The kernel as a function over programs."""
        code, blocks = self.code, self.function.regions[0]
        arguments = blocks[0].arguments
        for position, value in enumerate(arguments):
            self.scalars[value] = self._argument(value.element, position)
        for position, value in enumerate(arguments):
            if value.element[0] == "*":
                low, high = (self._word("%args", len(arguments) + 2 * position + end) for end in (0, 1))
                self.span(value, low, high)
        size = code.op("mul i32 %gy, %gz")
        with code.loop("%end", start="%begin") as loop:
            linear = code.op(f"trunc i64 {loop.counter} to i32")
            rest = code.op(f"urem i32 {linear}, {size}")
            x, y, z = (f"udiv i32 {linear}, {size}", f"udiv i32 {rest}, %gz", f"urem i32 {rest}, %gz")
            self._program = code.op(x), code.op(y), code.op(z)
            self._finished = code.name("finished")
            self._flow(blocks)
            code.label(self._finished)
        name = self.function.text
        given = "ptr noalias %args, ptr noalias %ctx, i64 %begin, i64 %end, i32 %gx, i32 %gy, i32 %gz"
        lines = [*code.declared.values(), f"define i32 @{name}({given}) #0 {{", "entry:"]
        lines += ["  %at.scratch = getelementptr i64, ptr %ctx, i64 1", "  %scratch = load ptr, ptr %at.scratch"]
        lines += [*self.entry, *code.lines, "  ret i32 0"]
        lines += ["failed:", f"  store i64 {loop.counter}, ptr %ctx", "  ret i32 1", "}"]
        lines += [f'attributes #0 = {{ nounwind "prefer-vector-width"="{self.bits}" "no-builtins" }}', ""]
        text = "\n".join(lines)
        return Translated(name, text, self.scratch and self.scratch + 256, self.looks_up, self._written(arguments))

    def _written(self, arguments: list[Value]) -> tuple[int, ...] | None:
        writes = [each for each in self.function.inside() if each.name in WRITES]
        roots = {self.root(each.operands[0]) for each in writes}
        return tuple(sorted(each.position for each in roots)) if roots <= {*arguments} else None

    def _word(self, base: str, position: int) -> str:
        return self.code.op(f"load i64, ptr {self.code.op(f'getelementptr i64, ptr {base}, i64 {position}')}")

    def _argument(self, element: str, position: int) -> str:
        code, kind, word = self.code, register(element), self._word("%args", position)
        if kind == "double":
            return code.op(f"bitcast i64 {word} to double")
        if kind == "float" and element != "f32":
            raise Unknown(f"an argument of type {element}")
        narrow = "i32" if kind == "float" else kind
        word = word if narrow == "i64" else code.op(f"trunc i64 {word} to {narrow}")
        return code.op(f"bitcast i32 {word} to float") if kind == "float" else word

    def _flow(self, blocks: list[Block]) -> None:
        """Blocks that branch to later ones: a kernel that returns early."""
        code = self.code
        labels = {block.label: code.name("block") for block in blocks}
        slots = {block.label: [self._slot(each) for each in block.arguments] for block in blocks[1:]}
        settled = set[Value]()
        for block in blocks:
            if block is not blocks[0]:
                code.label(labels[block.label])
                self._arrive(block.arguments, slots[block.label])
            end = self.run(block)
            self.settle(self.loads)
            if block is not blocks[0]:  # what one block computes of another's values is not there in a third
                own = {each for each in self.buffers if getattr(each.owner, "block", each.owner) is block}
                self.buffers = {key: found for key, found in self.buffers.items() if key in settled or key in own}
            settled = set(self.buffers)
            if end.name == "tt.return":
                code.jump(self._finished)
                continue
            values, ways = list(end.operands), list[tuple[str, str, list[Value]]]()
            condition = self.scalars[values.pop(0)] if end.name == "cf.cond_br" else ""
            for part in end.text.split("^")[1:]:
                target = "^" + part.split("(")[0].split(":")[0].strip(" ,")
                ways.append((code.name("way"), target, [values.pop(0) for _ in slots[target]]))
            if condition:
                code.branch(condition, ways[0][0], ways[1][0])
            else:
                code.jump(ways[0][0])
            for way, target, given in ways:
                code.label(way)
                with self._scope():
                    self._leave(given, slots[target])
                code.jump(labels[target])

    def _slot(self, value: Value) -> Buffer:
        return self.rows(value.shape or (1,), register(value.element))

    def run(self, block: Block) -> Operation:
        """Write the operations of a block but its last, which is returned."""
        *operations, end = block.operations
        if end.name not in _ENDS:
            raise Unknown(f"a block that ends with {end.name}")
        for operation in operations:
            self._step(operation)
        self.flush()
        return end

    def _step(self, operation: Operation) -> None:
        name = operation.name
        if name in _GROUPED and operation.operands[0].shape is not None:
            self.join(operation)
            return
        if is_lazy(operation):
            if name == "tt.load":
                stores = [each.operands[0] for each in self.group if each.name == "tt.store"]
                if any(self.overlap(each, operation.operands[0]) for each in stores):
                    self.flush()
                self.loads.append(operation)
            return
        pure = not operation.regions and name not in WRITES and name not in ("tt.load", "tt.assert")
        if not pure or any(value not in self.scalars for value in operation.operands):
            self.flush()
        self.lanes = 0
        method: Callable[[Operation], None] | None = getattr(self, "_" + name.replace(".", "_"), None)
        if method is not None:
            method(operation)
        elif is_elementwise(name):
            values = [self.scalars[value] for value in operation.operands]
            self.scalars[operation.result] = elementwise(self.code, operation, values, 0)
        else:
            raise Unknown(f"operation {name}")
        self.done.add(operation)

    # -- operations on single numbers

    def _tt_get_program_id(self, operation: Operation) -> None:
        self.scalars[operation.result] = self._program["xyz".index(operation.text[0])]

    def _tt_get_num_programs(self, operation: Operation) -> None:
        self.scalars[operation.result] = "%g" + operation.text[0]

    def _arith_constant(self, operation: Operation) -> None:
        self.scalars[operation.result] = constant(operation)

    def _ub_poison(self, operation: Operation) -> None:
        self.scalars[operation.result] = zero(register(operation.result.element))

    def _arith_select(self, operation: Operation) -> None:
        condition, *sides = operation.operands
        on, kind = self.scalars[condition], register(operation.result.element)
        names = [self.scalars[each] for each in sides]
        self.scalars[operation.result] = self.code.when(on, kind, names[0], names[1], 0)
        if operation.result.element[0] == "*":
            pairs = zip(*(self.spans[self.root(each)] for each in sides), strict=True)
            low, high = (self.code.when(on, "i64", x, y, 0) for x, y in pairs)
            self.spans[operation.result] = low, high

    def _tt_int_to_ptr(self, operation: Operation) -> None:
        self.scalars[operation.result] = self.scalars[operation.operands[0]]
        self.span(operation.result)

    def _tt_addptr(self, operation: Operation) -> None:
        pointer, offset = operation.operands
        by = self.cast(Lanes(self.scalars[offset]), register(offset.element), "i64")
        scaled = self.times(by, Lanes(str(size_behind(pointer))), "i64")
        self.scalars[operation.result] = self.plus(Lanes(self.scalars[pointer]), scaled, "i64").base

    def _tt_unsplat(self, operation: Operation) -> None:
        (source,), self.memo = operation.operands, {}
        self.scalars[operation.result] = self.evaluate(source, (Lanes("0"),) * len(source.sizes)).base

    def _tt_load(self, operation: Operation) -> None:
        pointer, mask, other = (*(Lanes(self.scalars[each]) for each in operation.operands), None, None)[:3]
        assert pointer is not None
        result = operation.result
        self.scalars[result] = self.fetch(operation.operands[0], pointer, mask, result.element, other).base
        if result.element[0] == "*":
            self.span(result)

    def _tt_store(self, operation: Operation) -> None:
        self.settle_before(operation.operands[0])
        pointer, value, mask = (*(Lanes(self.scalars[each]) for each in operation.operands), None)[:3]
        assert pointer is not None and value is not None
        self.deposit(operation.operands[0], pointer, value, mask, operation.operands[1].element)

    def _tt_assert(self, operation: Operation) -> None:
        self.fail_unless(Lanes(self.scalars[operation.operands[0]]))

    def _ttg_barrier(self, operation: Operation) -> None:
        """A program is one thread here."""

    _gpu_barrier = _llvm_intr_assume = _ttg_barrier


def translate(ttir: str, fma: bool, bits: int, apart: bool = True) -> Translated:
    """The LLVM text of a kernel's TTIR.

    Args:
        fma: the target multiplies and adds in one instruction.
        bits: of its vector registers.
        apart: arrays that are written overlap no others; the code for any arrays takes loads to scratch memory.

    Raises:
        Unknown: the kernel has an operation that is not translated.
    """
    try:
        return _Kernel(parse(ttir), fma, apart, bits).translate()
    except RecursionError as error:
        raise Unknown("a kernel too deep for this translator") from error
