"""Reads and writes memory: the launch's arrays, whose bounds are checked, and scratch memory."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager

from .elements import bits_of, from_memory, memory, register, rounded, to_memory, zero
from .facts import Buffer
from .masks import Masks
from .parse import Operation, Unknown, Value
from .values import Lanes, short, vector

__all__ = ["Access", "Index"]

Index = tuple[Lanes, ...]


class Access(Masks):
    """Memory accesses at the lanes of a chunk."""

    def __init__(self, function: Operation, fma: bool, apart: bool) -> None:
        super().__init__(function, fma, apart)
        self.spans: dict[Value, tuple[str, str]] = {}  # of pointers that others are computed from
        self.entry: list[str] = []  # instructions before the loop over programs
        self.scratch = 0
        self.looks_up = False  # a pointer's memory is looked for in the table

    # -- scratch memory

    def buffer(self, shape: tuple[int, ...], kind: str) -> Buffer:
        """New scratch memory for a tensor of an LLVM type."""
        kind = "i8" if kind == "i1" else kind
        size = {"float": 4, "double": 8}.get(kind) or int(kind[1:]) // 8
        pointer = self.code.name("buffer")
        self.entry.append(f"  {pointer} = getelementptr i8, ptr %scratch, i64 {self.scratch}")
        self.scratch += -(-size * math.prod(shape) // 64) * 64
        return Buffer(pointer, shape, kind)

    def rows(self, shape: tuple[int, ...], kind: str) -> Buffer:
        """New scratch memory with the last dimension innermost."""
        buffer = self.buffer(shape, kind)
        buffer.inner = len(shape) - 1
        return buffer

    def buffer_for(self, value: Value) -> Buffer:
        """New scratch memory for a value."""
        return self.buffer(value.shape or (1,), register(value.element))

    def linear(self, shape: tuple[int, ...], index: Index, inner: int | None = None) -> Lanes:
        """The number of an element, counted with dimension `inner` innermost."""
        total, step = Lanes("0"), 1
        order = [*range(len(shape))]
        if inner is not None:
            order.append(order.pop(inner))
        for dim in reversed(order):
            total = self.plus(total, self.times(index[dim], Lanes(str(step)), "i64"), "i64")
            step *= shape[dim]
        return total

    def _place(self, buffer: Buffer, at: Lanes) -> str:
        if at.stride in (0, 1):
            return self.code.op(f"getelementptr {buffer.kind}, ptr {buffer.pointer}, i64 {at.base}")
        return self.code.op(
            f"getelementptr {buffer.kind}, ptr {buffer.pointer}, {self.type('i64')} {self.full(at, 'i64')}"
        )

    def get(self, buffer: Buffer, index: Index, element: str) -> Lanes:
        """The elements of a buffer at an index."""
        at, kind = self.linear(buffer.shape, index, buffer.inner), buffer.kind
        place = self._place(buffer, at)
        if at.stride == 0:
            found = Lanes(self.code.op(f"load {kind}, ptr {place}"))
        elif at.stride == 1:
            found = Lanes(self.code.op(f"load {self.type(kind)}, ptr {place}, align 1"), None)
        else:
            found = Lanes(self._gather(kind, place, self.all_on), None)
        lanes = 0 if found.stride == 0 else self.lanes
        return Lanes(from_memory(self.code, "i1", found.base, lanes), found.stride) if element == "i1" else found

    def put(self, buffer: Buffer, index: Index, value: Lanes, element: str) -> None:
        """Write elements to a buffer, as wide as its type is."""
        code, kind, source = self.code, buffer.kind, register(element)
        at = self.linear(buffer.shape, index, buffer.inner)
        lanes = self.lanes if at.stride != 0 else 0
        data = self.full(value, source) if lanes else value.base
        if source != kind:
            verb = {"i1": "zext", "float": "fpext"}.get(source, "sext")
            data = code.op(f"{verb} {vector(source, lanes)} {data} to {vector(kind, lanes)}")
        if at.stride == 1 and self.active is not None:
            self._masked("store", kind, f"ptr align 1 {self._place(buffer, at)}", self.all_on, data)
        elif at.stride in (0, 1):
            code.do(f"store {vector(kind, lanes)} {data}, ptr {self._place(buffer, at)}, align 1")
        else:
            self._scatter(kind, data, self._place(buffer, at), self.all_on)

    def _gather(self, kind: str, places: str, mask: str) -> str:
        return self._masked("gather", kind, f"{self.type('ptr')} align 1 {places}", mask)

    def _scatter(self, kind: str, data: str, places: str, mask: str) -> None:
        self._masked("scatter", kind, f"{self.type('ptr')} align 1 {places}", mask, data)

    def _masked(self, verb: str, kind: str, place: str, mask: str, data: str = "") -> str:
        """A call of one of LLVM's masked loads and stores; lanes that are off are read as 0."""
        code, type, lanes = self.code, self.type(kind), self.lanes
        name = f"@llvm.masked.{verb}.v{lanes}{short(kind)}.{f'v{lanes}' if verb in ('gather', 'scatter') else ''}p0"
        on = f"{self.type('i1')} {mask}"
        if data:
            code.do(f"call void {name}({type} {data}, {place}, {on})")
            return ""
        return code.op(f"call {type} {name}({place}, {on}, {type} zeroinitializer)")

    # -- arrays

    def span(self, value: Value, low: str = "0", high: str = "0") -> None:
        """Note which addresses may be touched through a pointer: those told, or those that the table of memory has."""
        self.looks_up |= high == "0"
        self.spans[value] = self._looked_up(self.scalars[value], low, high)

    def _looked_up(self, address: str, low: str = "0", high: str = "0") -> tuple[str, str]:
        self.code.declare("@span", _SPAN)
        found = self.code.op(f"call {{ i64, i64 }} @span(ptr %ctx, i64 {address}, i64 {low}, i64 {high})")
        ends = [self.code.op(f"extractvalue {{ i64, i64 }} {found}, {at}") for at in (0, 1)]
        return ends[0], ends[1]

    def fetch(self, source: Value, pointer: Lanes, mask: Lanes | None, element: str, other: Lanes | None) -> Lanes:
        """Load; lanes that are masked out have the value `other`, or zero."""
        code, lanes, kind, size = self.code, self.lanes, memory(element), bits_of(element) // 8
        mask = None if mask is not None and mask.base == self.implied else mask
        if pointer.stride != 0 or (mask is not None and mask.stride != 0):
            mask = self.both(mask, self.active)
        self._check(source, pointer, mask, size)
        if pointer.stride == 0:
            address = pointer.base
            if mask is not None:  # where the mask is off, what is always there is read
                address = code.when(self.some(mask), "i64", address, code.op("ptrtoint ptr %args to i64"), 0)
            bits = code.op(f"load {kind}, ptr {code.op(f'inttoptr i64 {address} to ptr')}, align 1")
            found = Lanes(from_memory(code, element, bits, 0))
        else:
            on = self.all_on if mask is None else self.full(mask, "i1")
            if pointer.stride != size:
                places = code.op(f"inttoptr {self.type('i64')} {self.full(pointer, 'i64')} to {self.type('ptr')}")
                bits = self._gather(kind, places, on)
            else:
                place = code.op(f"inttoptr i64 {pointer.base} to ptr")
                if mask is None:
                    bits = code.op(f"load {self.type(kind)}, ptr {place}, align 1")
                else:
                    bits = self._masked("load", kind, f"ptr align 1 {place}", on)
            found = Lanes(from_memory(code, element, bits, lanes), None)
        nothing = zero(register(element))
        other = Lanes(nothing) if other is None else other
        if mask is None or (found.stride is None and other == Lanes(nothing)):
            return found
        return self.choose(mask, found, other, element)

    def deposit(self, source: Value, pointer: Lanes, value: Lanes, mask: Lanes | None, element: str) -> None:
        """Store where the mask is on."""
        code, lanes, kind, size = self.code, self.lanes, memory(element), bits_of(element) // 8
        if any(each is not None and each.stride != 0 for each in (pointer, value, mask)):
            mask = self.both(mask, self.active)
        self._check(source, pointer, mask, size)
        if all(each is None or each.stride == 0 for each in (pointer, value, mask)):
            bits = to_memory(code, element, value.base, 0)
            with self.on_condition(None if mask is None else mask.base):
                code.do(f"store {kind} {bits}, ptr {code.op(f'inttoptr i64 {pointer.base} to ptr')}, align 1")
            return
        bits = to_memory(code, element, self.full(value, register(element)), lanes)
        on = self.all_on if mask is None else self.full(mask, "i1")
        if pointer.stride != size:
            places = code.op(f"inttoptr {self.type('i64')} {self.full(pointer, 'i64')} to {self.type('ptr')}")
            self._scatter(kind, bits, places, on)
            return
        place = code.op(f"inttoptr i64 {pointer.base} to ptr")
        if mask is None:
            code.do(f"store {self.type(kind)} {bits}, ptr {place}, align 1")
        else:
            if kind[0] == "i":
                # LLVM 22 makes a store of truncated integers by a mask that it knows, of one lane, as wide as they were
                always = code.splat(code.op("icmp ne i64 %begin, -1"), "i1", lanes)
                on = code.op(f"and {self.type('i1')} {on}, {always}")
            self._masked("store", kind, f"ptr align 1 {place}", on, bits)

    def update(self, operation: Operation, verb: str, values: list[str]) -> str:
        """An atomic update of one element; returns what was there, or 0 where the mask is off."""
        code, element = self.code, operation.result.element
        pointer, value = values[:2]
        mask = Lanes(values[2]) if len(values) > 2 and verb != "cas" else None
        size, held, kind = bits_of(element) // 8, register(element), memory(element)
        self._check(operation.operands[0], Lanes(pointer), mask, size)
        slot = self.buffer((1,), held).pointer
        code.do(f"store {held} {zero(held)}, ptr {slot}")
        with self.on_condition(None if mask is None else mask.base):
            place = code.op(f"inttoptr i64 {pointer} to ptr")
            if verb == "cas":
                bits = f"i{8 * size}"
                pair = [
                    code.op(f"bitcast {kind} {to_memory(code, element, each, 0)} to {bits}") for each in values[1:3]
                ]
                swap = code.op(f"cmpxchg ptr {place}, {bits} {pair[0]}, {bits} {pair[1]} seq_cst seq_cst, align {size}")
                found = code.op(f"extractvalue {{ {bits}, i1 }} {swap}, 0")
                old = from_memory(code, element, code.op(f"bitcast {bits} {found} to {kind}"), 0)
            elif kind != held:
                old = self._update_half(place, verb, element, value)
            else:
                name = {"exch": "xchg", "inc": "uinc_wrap", "dec": "udec_wrap"}.get(verb, verb)
                old = code.op(f"atomicrmw {name} ptr {place}, {held} {value} seq_cst, align {size}")
            code.do(f"store {held} {old}, ptr {slot}")
        return code.op(f"load {held}, ptr {slot}")

    def _update_half(self, place: str, verb: str, element: str, value: str) -> str:
        """An atomic sum of 16-bit numbers: computed, and tried again when another thread was faster."""
        code, kind = self.code, memory(element)
        if verb != "fadd" or bits_of(element) != 16:
            raise Unknown(f"atomic {verb} of {element}")
        start, again, end = code.name("start"), code.name("again"), code.name("end")
        code.jump(start)
        code.label(start)
        first = code.op(f"load i16, ptr {place}, align 2")
        code.jump(again)
        code.label(again)
        mark, seen = len(code.lines), code.name("seen")
        old = from_memory(code, element, code.op(f"bitcast i16 {seen} to {kind}"), 0)
        new = to_memory(code, element, rounded(code, element, code.op(f"fadd float {old}, {value}"), 0), 0)
        bits = code.op(f"bitcast {kind} {new} to i16")
        swap = code.op(f"cmpxchg ptr {place}, i16 {seen}, i16 {bits} seq_cst seq_cst, align 2")
        found = code.op(f"extractvalue {{ i16, i1 }} {swap}, 0")
        code.lines.insert(mark, f"  {seen} = phi i16 [ {first}, {start} ], [ {found}, {again} ]")
        code.branch(code.op(f"extractvalue {{ i16, i1 }} {swap}, 1"), end, again)
        code.label(end)
        return old

    # -- checks

    @contextmanager
    def on_condition(self, condition: str | None) -> Iterator[None]:
        """Code that runs where a condition holds; with None, always."""
        if condition is None:
            yield
            return
        then, after = self.code.name("then"), self.code.name("after")
        self.code.branch(condition, then, after)
        self.code.label(then)
        yield
        self.code.jump(after)
        self.code.label(after)

    def choose(self, condition: Lanes, x: Lanes, y: Lanes, element: str) -> Lanes:
        """x where a condition holds, y where not."""
        kind = register(element)
        if condition.stride == 0 and x.stride == 0 and y.stride == 0:
            return Lanes(self.code.when(condition.base, kind, x.base, y.base, 0))
        on = self.full(condition, "i1")
        return Lanes(self.code.when(on, kind, self.full(x, kind), self.full(y, kind), self.lanes), None)

    def _fail_if(self, condition: str) -> None:
        going = self.code.name("going")
        self.code.branch(condition, "%failed", going)
        self.code.label(going)

    def fail_unless(self, condition: Lanes) -> None:
        """Stop the kernel unless a condition holds in all lanes."""
        lanes = 0 if condition.stride == 0 else self.lanes
        wrong = self.code.op(f"xor {vector('i1', lanes)} {condition.base}, {self.code.splat('true', 'i1', lanes)}")
        self._fail_if(self.some(Lanes(wrong, condition.stride)))

    def _check(self, source: Value, pointer: Lanes, mask: Lanes | None, size: int) -> None:
        """Stop before an access outside of what its pointer may touch."""
        code, lanes = self.code, self.lanes
        root = self.root(source)
        if root not in self.spans and root.shape is not None:
            self._check_each(pointer, mask, size)
            return
        low, high = self.spans[root]
        first = last = pointer.base
        on = None if mask is None else self.some(mask)
        if pointer.stride == size and (mask is None or mask.stride == 0):
            last = code.op(f"add i64 {first}, {(lanes - 1) * size}")
        elif pointer.stride == size:  # from the first lane that is on to the last
            assert mask is not None
            begin, end = (self.times(Lanes(each), Lanes(str(size)), "i64") for each in self.ends_of(mask))
            first = self.plus(Lanes(first), begin, "i64").base
            last = self.plus(Lanes(last), self.plus(end, Lanes(str(-size)), "i64"), "i64").base
        elif pointer.stride != 0:
            addresses, type = self.full(pointer, "i64"), self.type("i64")
            room = code.splat(code.op(f"sub i64 {high}, {size}"), "i64", lanes)
            below = code.op(f"icmp ult {type} {addresses}, {code.splat(low, 'i64', lanes)}")
            either = code.op(f"or {self.type('i1')} {below}, {code.op(f'icmp ugt {type} {addresses}, {room}')}")
            if mask is not None:
                either = code.op(f"and {self.type('i1')} {either}, {self.full(mask, 'i1')}")
            self._fail_if(self.some(Lanes(either, None)))
            return
        outside = self._outside(first, last, low, high, size)
        self._fail_if(outside if on is None else code.op(f"and i1 {outside}, {on}"))

    def _outside(self, first: str, last: str, low: str, high: str, size: int) -> str:
        above = self.code.op(f"icmp ugt i64 {last}, {self.code.op(f'sub i64 {high}, {size}')}")
        return self.code.op(f"or i1 {self.code.op(f'icmp ult i64 {first}, {low}')}, {above}")

    def _check_each(self, pointer: Lanes, mask: Lanes | None, size: int) -> None:
        """The check of addresses that come from memory, each of which may be in another array."""
        self.looks_up = True
        lanes = 0 if pointer.stride == 0 else self.lanes
        index = (Lanes("0", int(lanes > 0)),)
        held = self.rows((lanes or 1,), "i64"), self.rows((lanes or 1,), "i1")
        self.put(held[0], index, pointer, "i64")
        self.put(held[1], index, Lanes("true") if mask is None else mask if lanes else Lanes(self.some(mask)), "i1")
        with self.code.loop(lanes or 1) as loop:
            at = (Lanes(loop.counter),)
            address, on = self.get(held[0], at, "i64").base, self.get(held[1], at, "i1").base
            outside = self._outside(address, address, *self._looked_up(address), size)
            self._fail_if(self.code.op(f"and i1 {outside}, {on}"))


# Which memory an address is in, by bisection of the table; what is told is taken as it is.
_SPAN = """define internal { i64, i64 } @span(ptr %ctx, i64 %address, i64 %low, i64 %high) {
  %told = icmp ne i64 %high, 0
  br i1 %told, label %known, label %look
known:
  %a = insertvalue { i64, i64 } poison, i64 %low, 0
  %b = insertvalue { i64, i64 } %a, i64 %high, 1
  ret { i64, i64 } %b
look:
  %place = getelementptr i64, ptr %ctx, i64 2
  %number = getelementptr i64, ptr %ctx, i64 3
  %word = load i64, ptr %place
  %table = inttoptr i64 %word to ptr
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
}"""
