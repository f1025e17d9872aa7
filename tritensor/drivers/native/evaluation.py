"""Evaluates tensors at the lanes of a chunk, by the index of its first element."""

from __future__ import annotations

from .access import Access, Index
from .elements import bits_of, constant, elementwise, register, zero
from .facts import Sink
from .parse import Block, Operation, Unknown, Value
from .values import Lanes, vector

__all__ = ["DIVISIONS", "Evaluation"]

DIVISIONS = ("arith.divsi", "arith.remsi")


class Evaluation(Access):
    """The value of a tensor as a function of an index."""

    def __init__(self, function: Operation, fma: bool, apart: bool) -> None:
        super().__init__(function, fma, apart)
        self.memo: dict[tuple[Value, Index], Lanes] = {}
        # while what is done once for a row is looked for: the divisions of consecutive numbers by one number, and loads
        # from one address, in order
        self.divisions: list[tuple[Operation, Index]] | None = None

    def evaluate(self, value: Value, index: Index) -> Lanes:
        """The value of a tensor at an index; the memo is cleared where a nest begins its innermost block."""
        key = value, index
        if key not in self.memo:
            self.memo[key] = self._find(value, index)
        return self.memo[key]

    def _find(self, value: Value, index: Index) -> Lanes:
        if value in self.scalars:
            return Lanes(self.scalars[value])
        if value in self.buffers:
            return self.get(self.buffers[value], index, value.element)
        if value in self.progressions:
            first, total = self.progressions[value]
            by = (
                self.times(Lanes(total), Lanes(str(size_behind(value))), "i64")
                if value.element[0] == "*"
                else Lanes(total)
            )
            return self.plus(self.evaluate(first, index), by, register(value.element))
        operation = value.owner
        if isinstance(operation, Block):
            raise Unknown("a tensor that is the argument of a block")
        method = getattr(self, "_at_" + operation.name.replace(".", "_"), None)
        if method is not None:
            found: Lanes = method(operation, value, index)
            return found
        if (term := self._term(operation, index)) is not None:
            return term
        values = [self.evaluate(each, index) for each in operation.operands]
        if self.divisions is not None and operation.name in DIVISIONS and values[0].stride == 1:
            if self.uniform(operation.operands[1]) is not None:
                self.divisions.append((operation, index))
                return Lanes("0", int(operation.name == "arith.remsi"))
        return self._computed(operation, values)

    def _term(self, operation: Operation, index: Index) -> Lanes | None:
        """A constant and a product that nothing else needs, rounded once: a step of a polynomial, as on a GPU.

        A layer norm with gelu takes 0.87 of the time so. Sums of two products keep their roundings: equal ones cancel.
        """
        code, minus = self.code, operation.name == "arith.subf"
        if not code.fma or not (minus or operation.name == "arith.addf"):
            return None
        for product, other in (operation.operands, operation.operands[::-1]):
            owner, constant, kind = product.owner, self.uniform(other), register(product.element)
            if constant is None or constant[0][0] == "%" or isinstance(owner, Block) or owner.name != "arith.mulf":
                continue
            if len(product.users) == 1 and product not in self.buffers and product.element in ("f32", "f64"):
                values = [self.evaluate(each, index) for each in owner.operands]
                lanes = self.lanes if any(value.stride != 0 for value in values) else 0
                x, y = (self.full(value, kind) if lanes else value.base for value in values)
                z = code.splat(constant[0], kind, lanes)
                if minus and product is operation.operands[0]:
                    z = code.op(f"fneg {vector(kind, lanes)} {z}")
                elif minus:
                    x = code.op(f"fneg {vector(kind, lanes)} {x}")
                return Lanes(code.multiply_add(kind, x, y, z, lanes), None if lanes else 0)
        return None

    def _at_tt_make_range(self, operation: Operation, value: Value, index: Index) -> Lanes:
        return self.plus(self.cast(index[0], "i64", "i32"), Lanes(str(operation.integer("start"))), "i32")

    def _at_arith_constant(self, operation: Operation, value: Value, index: Index) -> Lanes:
        return Lanes(constant(operation))

    def _at_ub_poison(self, operation: Operation, value: Value, index: Index) -> Lanes:
        return Lanes(zero(register(value.element)))

    def _at_tt_splat(self, operation: Operation, value: Value, index: Index) -> Lanes:
        return Lanes(self.scalars[operation.operands[0]])

    def _at_tt_broadcast(self, operation: Operation, value: Value, index: Index) -> Lanes:
        (source,) = operation.operands
        return self.evaluate(
            source, tuple(Lanes("0") if size == 1 else at for size, at in zip(source.sizes, index, strict=True))
        )

    def _at_tt_expand_dims(self, operation: Operation, value: Value, index: Index) -> Lanes:
        axis = operation.integer("axis")
        return self.evaluate(operation.operands[0], index[:axis] + index[axis + 1 :])

    def _at_tt_trans(self, operation: Operation, value: Value, index: Index) -> Lanes:
        order = operation.integers("order")
        return self.evaluate(operation.operands[0], tuple(index[order.index(each)] for each in range(len(order))))

    def _at_tt_reshape(self, operation: Operation, value: Value, index: Index) -> Lanes:
        """Sizes are powers of two, and chunks begin at multiples of theirs."""
        (source,), shape = operation.operands, value.sizes
        if [size for size in shape if size > 1] == [size for size in source.sizes if size > 1]:
            rest = iter([at for size, at in zip(shape, index, strict=True) if size > 1])
            return self.evaluate(source, tuple(next(rest) if size > 1 else Lanes("0") for size in source.sizes))
        linear, found, step = self.linear(shape, index), list[Lanes](), 1
        for size in reversed(source.sizes):
            found.insert(0, self._digit(linear, step, size))
            step *= size
        return self.evaluate(source, tuple(found))

    def _digit(self, linear: Lanes, step: int, size: int) -> Lanes:
        """linear // step % size."""
        code, reach = self.code, 0
        shift, mask = str(step.bit_length() - 1), str(size - 1)
        if size == 1:
            return Lanes("0")
        if isinstance(linear.stride, int):
            reach = linear.stride * self.lanes  # the lanes of a chunk stay within a block of this size
            if step == 1 and reach and size >= reach:
                return Lanes(code.op(f"and i64 {linear.base}, {mask}"), linear.stride)
        if linear.stride == 0 or 0 < reach <= step:
            return Lanes(code.op(f"and i64 {code.op(f'lshr i64 {linear.base}, {shift}')}, {mask}"))
        type, lanes = self.type("i64"), self.lanes
        moved = code.op(f"lshr {type} {self.full(linear, 'i64')}, {code.splat(shift, 'i64', lanes)}")
        return Lanes(code.op(f"and {type} {moved}, {code.splat(mask, 'i64', lanes)}"), None)

    def _at_tt_load(self, operation: Operation, value: Value, index: Index) -> Lanes:
        pointer, mask, other = (*(self.evaluate(each, index) for each in operation.operands), None, None)[:3]
        assert pointer is not None
        if self.divisions is not None and pointer.stride == 0 and (mask is None or mask.base == self.implied):
            self.divisions.append((operation, index))
        return self.fetch(operation.operands[0], pointer, mask, value.element, other)

    def _at_tt_addptr(self, operation: Operation, value: Value, index: Index) -> Lanes:
        pointer, offset = operation.operands
        by = self.cast(self.evaluate(offset, index), register(offset.element), "i64")
        return self.plus(self.evaluate(pointer, index), self.times(by, Lanes(str(size_behind(value))), "i64"), "i64")

    def _at_tt_gather(self, operation: Operation, value: Value, index: Index) -> Lanes:
        (source, places), axis = operation.operands, operation.integer("axis")
        at = self.cast(self.evaluate(places, index), register(places.element), "i64")
        if source not in self.buffers:
            raise Unknown("a gather from a tensor that is not in memory")
        return self.get(self.buffers[source], (*index[:axis], at, *index[axis + 1 :]), value.element)

    def _at_tt_join(self, operation: Operation, value: Value, index: Index) -> Lanes:
        x, y = (self.evaluate(each, index[:-1]) for each in operation.operands)
        return self.choose(self._compare("eq", index[-1], "0"), x, y, value.element)

    def _at_tt_split(self, operation: Operation, value: Value, index: Index) -> Lanes:
        return self.evaluate(operation.operands[0], (*index, Lanes(str(value.position))))

    def _at_tt_cat(self, operation: Operation, value: Value, index: Index) -> Lanes:
        x, y = operation.operands
        size = x.sizes[0]
        first = self._compare("ult", index[0], str(size))
        beyond = self.plus(index[0], Lanes(str(size)), "i64", "sub")
        # either is evaluated for all lanes, at an index that it has
        within = [self._bounded("umin", index[0], size - 1), self._bounded("smax", beyond, 0)]
        left, right = (self.evaluate(each, (at, *index[1:])) for each, at in zip((x, y), within, strict=True))
        return self.choose(first, left, right, value.element)

    def _bounded(self, verb: str, x: Lanes, bound: int) -> Lanes:
        lanes = 0 if x.stride == 0 else self.lanes
        whole = x.base if x.stride == 0 else self.full(x, "i64")
        found = self.code.intrinsic(verb, "i64", whole, self.code.splat(str(bound), "i64", lanes), lanes=lanes)
        return Lanes(found, None if lanes else 0)

    def _compare(self, predicate: str, x: Lanes, number: str) -> Lanes:
        if x.stride == 0:
            return Lanes(self.code.op(f"icmp {predicate} i64 {x.base}, {number}"))
        other = self.code.splat(number, "i64", self.lanes)
        return Lanes(self.code.op(f"icmp {predicate} {self.type('i64')} {self.full(x, 'i64')}, {other}"), None)

    def _computed(self, operation: Operation, values: list[Lanes]) -> Lanes:
        """An operation on single elements; one on numbers that all lanes share is done once."""
        name, kind = operation.name, register(operation.result.element)
        if all(value.stride == 0 for value in values):
            return Lanes(elementwise(self.code, operation, [value.base for value in values], 0))
        if name == "arith.andi" and kind == "i1":
            return self.both(values[0], values[1]) or values[0]
        if name == "arith.cmpi":
            source = register(operation.operands[0].element)
            if found := self.compared(operation.text.split(",")[0], values[0], values[1], source):
                return found
        if kind[0] == "i" and kind != "i1":
            source = register(operation.operands[0].element)
            if name in ("arith.addi", "arith.subi"):
                return self.plus(values[0], values[1], kind, name[6:9])
            if name == "arith.muli":
                return self.times(values[0], values[1], kind)
            if name in ("arith.extsi", "arith.trunci") and source != "i1":
                return self.cast(values[0], source, kind)
            if name in ("tt.bitcast", "tt.int_to_ptr", "tt.ptr_to_int") and kind == source:
                return values[0]
        names = [
            self.full(value, register(each.element)) for value, each in zip(values, operation.operands, strict=True)
        ]
        return Lanes(elementwise(self.code, operation, names, self.lanes), None)


def size_behind(pointer: Value) -> int:
    """The bytes of what a pointer points at."""
    return bits_of(pointer.element[1:]) // 8


def shape_of(sink: Sink) -> tuple[int, ...]:
    """The shape of the nest that a sink needs."""
    return (sink.value if not isinstance(sink, Operation) else sink.operands[0]).sizes
