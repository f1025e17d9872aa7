"""Loops and branches of a kernel that is drawn, and all of it: its source and its arguments."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from .kinds import FLOATS, HEADER, LENGTH, NAMES, Program, Shape, Var, bounds, contents
from .shapes import Shapes


class Drawing(Shapes):
    """A kernel that is being written."""

    # -- flow

    @contextmanager
    def block(self, header: str) -> Iterator[None]:
        self.line(header)
        scope, indent = list(self.scope), self.indent
        self.indent += "    "
        self.depth += 1
        before = len(self.lines)
        yield
        if len(self.lines) == before:
            self.line("pass")
        self.depth -= 1
        self.scope, self.indent = scope, indent

    def carried(self) -> list[Var]:
        """Variables that the next block assigns: their numbers stay within limits."""
        found: list[Var] = []
        for _ in range(self.random.choice([1, 2, 2, 3, 4])):
            x = self.any()
            if self.random.random() < 0.4:
                x = self.any(tuple(self.dims))
            if x.nan:
                continue
            x = self.fit(x, 64, whole=True)
            name = f"c{next(self.numbers)}"
            # Triton's compiler mistakes values that one carried value yields another of, and that begin alike
            code = x.name
            if any(v.shape == x.shape and v.dtype == x.dtype for v in found):
                more = next(self.numbers) % 50
                code = f"{code} ^ (pid < {more})" if x.dtype == "i1" else f"({code} + {more}).to(tl.{NAMES[x.dtype]})"
                if x.dtype in FLOATS:
                    x = self.fit(self.new(x.shape, x.dtype, code, x.low, x.high + 50, x.whole), 64, whole=True)
                    code = x.name
            self.line(f"{name} = ({code}).to(tl.{NAMES[x.dtype]})")
            low, high = bounds(x.dtype) if x.dtype[0] in "iu" else (-64, 64)
            var = Var(name, x.shape, x.dtype, low, high, True)
            self.scope.append(var)
            found.append(var)
        return found

    def assign(self, targets: list[Var]) -> None:
        """Assign variables anew, from one another, too."""
        r = self.random
        pairs = []
        for target in targets:
            if r.random() < 0.15:
                continue
            like = [v for v in targets if v is not target and v.shape == target.shape and v.dtype == target.dtype]
            if like and r.random() < 0.3:
                pairs.append((target, r.choice(like)))
                continue
            recent = [v for v in self.scope[-8:] if v.shape == target.shape and not v.nan]
            x = r.choice(recent) if recent and r.random() < 0.7 else self.want(target.shape, target.dtype)
            if x.nan:
                continue
            x = self.cast(x, target.dtype)
            if r.random() < 0.5 and target.dtype != "i1":
                x = self.typed(
                    x.shape,
                    x.dtype,
                    f"{target.name} {r.choice('+-')} {x.name}",
                    *((None, None) if x.dtype[0] in "iu" else (x.low - 64, x.high + 64)),
                    whole=x.whole,
                )
            pairs.append((target, self.fit(x, 64, whole=True)))
        if not pairs:
            return
        if r.random() < 0.5:
            self.line(
                ", ".join(t.name for t, _ in pairs)
                + " = "
                + ", ".join(f"{v.name}.to(tl.{NAMES[t.dtype]})" for t, v in pairs)
            )
        else:
            for target, value in pairs:
                self.line(f"{target.name} = {value.name}.to(tl.{NAMES[target.dtype]})")

    def loop(self) -> None:
        r = self.random
        carried = self.carried()
        walk = self.pointers() if r.random() < 0.3 else None
        name, trips = self.range()
        if self.trips * trips > 24:
            return
        self.trips *= max(1, trips)
        counter = f"i{next(self.numbers)}"
        with self.block(f"for {counter} in {name}:"):
            self.new((), "i32", f"{counter} + pid * 0", 0, 40)
            if walk is not None:
                pointer, step, shape, kind, name = walk
                self.new(shape, kind, f"tl.load({pointer})", *self.contents(name[0], kind), whole=name[0] != "f")
            self.statements(r.choice([1, 2, 4, 6]))
            self.assign(carried)
            if walk is not None:
                self.line(f"{pointer} += {step}")
        self.trips //= max(1, trips)
        if walk is not None and r.random() < 0.5:
            self.new(shape, kind, f"tl.load({pointer})", *self.contents(name[0], kind), whole=True)

    def pointers(self) -> tuple[str, str, Shape, str, str]:
        r = self.random
        shape, kind = self.shape(), r.choice(self.kinds)
        name = self.parameter(r.choice("xs"), kind)
        at = self.index(shape, False, LENGTH // 2)
        pointer = f"p{next(self.numbers)}"
        self.line(f"{pointer} = {name} + {at.name}")
        step = r.choice(["1", "16", "n1", "pid + 1", "n0 * 8", str(math.prod(shape))])
        if step == str(math.prod(shape)) and math.prod(shape) > 128:
            step = "64"
        return pointer, step, shape, kind, name

    def range(self) -> tuple[str, int]:
        r = self.random
        n, value = r.choice(list(self.ints.items()))
        value = min(value, 6)
        number = r.choice([2, 3])
        return r.choice(
            [
                (f"range({number})", number),
                (f"range(0, {n} & 3)", value & 3) if value > 3 else (f"range({n})", value),
                (f"range(pid, {number + 2})", number + 2),
                (f"range(0, {2 * number}, 2)", number),
                (f"range({number}, 0, -1)", number),
                (f"tl.range(0, {number}, num_stages=2)", number),
                (f"tl.static_range({number})", number),
                ("range(0, 0 * pid)", 1),
                (f"tl.range(0, {number} + pid, loop_unroll_factor=2)", number + 3),
                ("tl.range(n0 & 3, flatten=True)", 3),
            ]
        )

    def while_loop(self) -> None:
        r = self.random
        if self.trips > 6:
            return
        carried = self.carried()
        number = f"k{next(self.numbers)}"
        self.line(f"{number} = pid * 0")
        condition = f"{number} < {r.choice(['3', '2', '(n0 & 3)', '(pid + 1)'])}"
        scalar = [v for v in carried if v.shape == () and v.dtype == "i32"]
        if scalar and r.random() < 0.6:
            condition = f"({condition}) & ({scalar[0].name} != 3)"
        tensors = [v for v in carried if v.shape and v.dtype in ("i32", "f32")]
        if tensors and r.random() < 0.4:
            condition = f"({condition}) & (tl.max(tl.ravel({tensors[0].name}), axis=0) > -3)"
        self.trips *= 4
        with self.block(f"while {condition}:"):
            self.statements(r.choice([1, 2, 4]))
            self.assign(carried)
            self.line(f"{number} += 1")
        self.trips //= 4

    def branch(self) -> None:
        r = self.random
        carried = self.carried()
        x = self.any((), ["i32", "i1", "f32"])
        condition = (
            r.choice([f"{x.name} > 0", f"{x.name} == {x.name}", "pid == 0", "n0 > 2", "pid % 2 == 1"])
            if x.dtype != "i1"
            else x.name
        )
        with self.block(f"if {condition}:"):
            self.statements(r.choice([0, 1, 2, 4]))
            self.assign(carried)
        if r.random() < 0.7:
            with self.block("else:"):
                self.statements(r.choice([0, 1, 2, 4]))
                self.assign(carried)

    def leave(self) -> None:
        if self.depth == 0 and self.random.random() < 0.4:
            with self.block(f"if pid == {self.random.choice([0, 1, 2])}:"):
                self.line("return")

    # -- all of it

    def statements(self, number: int) -> None:
        r = self.random
        table: list[tuple[Callable[[], None], float]] = [
            (self.binary, 5),
            (self.compare, 1),
            (self.where, 2),
            (self.unary, 1.5),
            (self.extreme, 1.5),
            (self.special, 1.5),
            (self.function, 0.5),
            (self.reduce, 3),
            (self.scan, 1),
            (self.dot, 0.35),
            (self.shaped, 3),
            (self.store, 3),
            (self.atomic, 0.7),
            (lambda: self.out(self.any()), 2),
        ]
        more = {
            "memory": (self.store,),
            "flow": (self.loop, self.while_loop, self.branch),
            "shape": (self.shaped,),
            "sums": (self.reduce, self.scan),
            "products": (self.dot, self.dot, self.dot, self.loop),
        }
        if self.depth < 2:
            table += [(self.loop, 2), (self.while_loop, 0.7), (self.branch, 1.6), (self.leave, 0.2)]
        for each in more.get(self.focus, ()):
            if self.depth < 2 or each in (self.store, self.shaped, self.reduce, self.scan, self.dot):
                table.append((each, 5 if self.focus != "products" else 2))
        for _ in range(number):
            r.choices([each for each, _ in table], [weight for _, weight in table])[0]()

    def draw(self) -> Program:
        r = self.random
        self.line("pid = tl.program_id(0) * tl.num_programs(1) + tl.program_id(1)")
        self.line("pid = pid * tl.num_programs(2) + tl.program_id(2)")
        self.scope.append(Var("pid", (), "i32", 0, 3))
        for name, value in self.ints.items():
            self.new((), "i32", f"{name} + pid * 0", value, value)
        for _ in range(3):
            self.load(self.shape(), r.choice(self.kinds))
        self.statements(r.randrange(self.length // 2, self.length))
        for var in self.scope[4:]:
            if r.random() < 0.4 or var.name[0] == "c":
                self.out(var)
        names = sorted(self.used)
        parameters = ", ".join([*names, *self.ints])
        source = (
            HEADER.format(seed=self.seed) + f"\n@triton.jit\ndef kernel({parameters}):\n" + "\n".join(self.lines) + "\n"
        )
        values = np.random.default_rng(self.seed)
        arguments: dict[str, Any] = {}
        for name in names:
            kind, dtype = self.used[name]
            length = max(self.filled[name], 1) if kind in "oa" else LENGTH
            arguments[name] = contents(values, kind, dtype, length)
        arguments |= self.ints
        if self.overlap:
            arguments["overlap"] = r.choice([0, 1, 5, 100])
        return Program(self.seed, source, arguments, self.grid, self.about)


def draw(seed: int, limit: int = 1024, length: int = 22) -> Program:
    return Drawing(seed, limit, length).draw()
