"""Operations that take nests of their own: products, scans, histograms and atomic updates of tensors."""

from __future__ import annotations

from contextlib import ExitStack

from .elements import register, rounded, zero
from .facts import Buffer, Write, is_costly, is_lazy
from .nests import Nests
from .parse import Operation, Unknown, Value, number
from .values import Lanes

__all__ = ["Tiles"]


class Tiles(Nests):
    """Operations on whole tensors."""

    def _tt_atomic_rmw(self, operation: Operation) -> None:
        self._atomic(operation, operation.text.split(",")[0].split()[0])

    def _tt_atomic_cas(self, operation: Operation) -> None:
        self._atomic(operation, "cas")

    def settle_before(self, pointer: Value) -> None:
        """Compute the loads that read what is about to be written."""
        self.settle([each for each in self.loads if self.overlap(each.operands[0], pointer)])

    def _atomic(self, operation: Operation, verb: str) -> None:
        """An atomic update, element by element: two lanes may update one address."""
        pointer, *others = operation.operands
        result = operation.result
        self.settle_before(pointer)
        if pointer.shape is None:
            self.scalars[result] = self.update(operation, verb, [self.scalars[each] for each in operation.operands])
            return
        self.keep([each for each in others if any(map(is_costly, self.reach([each])))])
        if not all(map(is_lazy, self.reach(operation.operands))):
            raise Unknown("an atomic update of what is not known")
        self.buffers[result] = self.rows(pointer.shape, register(result.element))
        index = [Lanes("0")] * len(pointer.shape)
        with ExitStack() as stack:
            self.enter(stack, pointer.shape, range(len(pointer.shape)), None, index)
            self.memo = {}
            values = [self.evaluate(each, tuple(index)).base for each in operation.operands]
            self.put(self.buffers[result], tuple(index), Lanes(self.update(operation, verb, values)), result.element)

    def _tt_scan(self, operation: Operation) -> None:
        """A scan: along its axis number by number, across it in lanes."""
        shape, axis = operation.operands[0].sizes, operation.integer("axis")
        self.keep(operation.operands)
        targets = [self.rows(each.sizes, register(each.element)) for each in operation.results]
        last = len(shape) - 1
        self.lanes = min(self.bits // 32, shape[last]) if axis != last and shape[last] > 1 else 0
        index = [Lanes("0")] * len(shape)
        with ExitStack() as stack:
            self.enter(stack, shape, [each for each in range(len(shape)) if each != axis], last, index)
            loop = stack.enter_context(self.code.loop(shape[axis]))
            at = loop.counter
            if operation.integer("reverse", 0):
                at = self.code.op(f"sub i64 {shape[axis] - 1}, {at}")
            index[axis] = Lanes(at)
            place = tuple(index)
            values = [
                self.full(self.get(self.buffers[each], place, each.element), register(each.element))
                for each in operation.operands
            ]
            found = self.carried(loop, operation, values)
            for target, value, result in zip(targets, found, operation.results, strict=True):
                self.put(target, place, Lanes(value, None if self.lanes else 0), result.element)
        self.buffers.update(zip(operation.results, targets, strict=True))

    def _tt_histogram(self, operation: Operation) -> None:
        code, (values, *masks) = self.code, operation.operands
        self.keep(operation.operands)
        (bins,), kind = operation.result.sizes, register(operation.result.element)
        counts = self.buffers[operation.result] = self.rows((bins,), kind)
        with code.loop(bins) as loop:
            self.put(counts, (Lanes(loop.counter),), Lanes("0"), operation.result.element)
        with code.loop(values.count) as loop:
            at = (Lanes(loop.counter),)
            number = self.get(self.buffers[values], at, values.element)
            wide = self.cast(number, register(values.element), "i64", "zext")
            inside = code.op(f"icmp ult i64 {wide.base}, {bins}")
            for mask in masks:
                inside = code.op(f"and i1 {inside}, {self.get(self.buffers[mask], at, 'i1').base}")
            with self.on_condition(inside):
                count = self.get(counts, (wide,), operation.result.element)
                self.put(counts, (wide,), self.plus(count, Lanes("1"), kind), operation.result.element)

    # -- products

    def _tt_dot(self, operation: Operation) -> None:
        """A product of tiles: operands in scratch memory in the type that is summed, sums in registers."""
        *factors, start = operation.operands
        result = operation.result
        kind = register(result.element)
        if kind not in ("float", "double", "i32"):
            raise Unknown(f"a product of {factors[0].element} summed in {result.element}")
        tiles = []
        for each in factors:
            tile = self.buffers.get(each)
            if tile is None or tile.kind != kind or not tile.is_rows:
                tile = self.rows(each.sizes, kind)
                self.emit([Write(each, tile)])
            tiles.append(tile)
        target = self._target(operation, tiles) or self.rows(result.sizes, kind)
        owner = start.owner
        first: Buffer | None = None
        if not isinstance(owner, Operation) or owner.name != "arith.constant" or number(owner) != 0:
            first = self.buffers.get(start)
            if first is None or not first.is_rows:
                first = target
                self.emit([Write(start, target)])
        with ExitStack() as stack:
            batch = [Lanes("0")] * len(result.sizes)
            self.lanes = 0
            self.enter(stack, result.sizes, range(len(batch) - 2), None, batch)
            self._product(tiles[0], tiles[1], first, target, batch[:-2], result.element)
        self.lanes = 0
        self.buffers[result] = target

    def _target(self, operation: Operation, tiles: list[Buffer]) -> Buffer | None:
        """The memory that the loop around carries the product in, if nothing else needs what is in it."""
        carried, argument = self.targets.get(operation.result, (None, None))
        if carried is None or argument is None or carried in tiles or not carried.is_rows:
            return None
        free = not self.needed(argument, {operation})
        own = self.at_own_index([operation.operands[2]], lambda value: self.buffers.get(value) is carried)
        return carried if free and own else None

    def _product(
        self, a: Buffer, b: Buffer, start: Buffer | None, out: Buffer, batch: list[Lanes], element: str
    ) -> None:
        code, kind, (rows, columns), inner = self.code, out.kind, out.shape[-2:], a.shape[-1]
        self.lanes = min(columns, self.bits // (32 if kind == "double" else 16)) if columns > 1 else 0
        # so many sums stay in registers, of which AVX-512 has 32, others 16
        height, type = min(rows, 8 if self.bits > 256 else 4), self.type(kind)

        def place(buffer: Buffer, row: str, column: str) -> str:
            at = self.linear(buffer.shape, (*batch, Lanes(row), Lanes(column)))
            return code.op(f"getelementptr {kind}, ptr {buffer.pointer}, i64 {at.base}")

        with code.loop(columns, self.lanes or 1) as across, code.loop(rows, height) as down:
            lines = [code.op(f"add i64 {down.counter}, {row}") for row in range(height)]
            sums = [code.splat(zero(kind), kind, self.lanes)] * height
            if start is not None:
                sums = [code.op(f"load {type}, ptr {place(start, row, across.counter)}, align 1") for row in lines]
            with code.loop(inner) as along:
                phis = [along.phi(type, each) for each in sums]
                line = code.op(f"load {type}, ptr {place(b, along.counter, across.counter)}, align 1")
                for row, total in zip(lines, phis, strict=True):
                    one = code.op(f"load {kind}, ptr {place(a, row, along.counter)}, align 1")
                    along.next.append(
                        code.multiply_add(kind, code.splat(one, kind, self.lanes), line, total, self.lanes)
                    )
            for row, total in zip(lines, along.next, strict=True):
                value = rounded(code, element, total, self.lanes)
                code.do(f"store {type} {value}, ptr {place(out, row, across.counter)}, align 1")
