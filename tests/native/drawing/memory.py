"""Variables of a kernel that is drawn, and the memory that they come from and go to."""

from __future__ import annotations

import math
import random
from collections import Counter
from collections.abc import Callable, Iterable
from itertools import count
from typing import Any

from .kinds import FLOATS, INTEGERS, LENGTH, MOST, NAMES, Shape, Var, bounds, mask_free


class Memory:
    """A kernel that is being written."""

    def __init__(self, seed: int, limit: int = 1024, length: int = 22) -> None:
        self.seed, self.random = seed, random.Random(seed)
        self.limit = limit
        self.lines: list[str] = []
        self.indent = "    "
        self.scope: list[Var] = []
        self.numbers = count()
        self.used: dict[str, tuple[str, str]] = {}  # parameter: kind, dtype
        self.filled: Counter[str] = Counter()
        self.about: list[tuple[str, int, int, float, float]] = []
        self.depth = 0
        self.trips = 1
        r = self.random
        while True:
            rank = r.choice([1, 1, 2, 2, 2, 2, 3])
            self.dims = [
                2 ** r.choice([0, 1, 2, 3, 3, 4, 4, 5, 5, 6, 7, 8, 9, 10, 11, 12][: 16 if rank == 1 else 9])
                for _ in range(rank)
            ]
            if math.prod(self.dims) <= limit:
                break
        dims = self.dims
        self.shapes: list[Shape] = [(), tuple(dims), tuple(dims), tuple(dims)]
        self.shapes += [(d,) for d in dims]
        if rank > 1:
            self.shapes += [tuple(dims[:2]), tuple(reversed(dims)), (math.prod(dims),), (*dims[:-1], 1), (1, *dims[1:])]
        self.ints = {f"n{i}": r.choice([0, 1, 2, 3, 5, 7, 16, 33]) for i in range(3)}
        self.grid = r.choice([(1,), (2,), (3,), (2, 2), (1, 3, 1), (2, 1, 2)])
        self.kinds = r.sample(INTEGERS, 2) + r.sample(FLOATS, 2) + ["i32", "f32", "i1"]
        self.length = length
        self.overlap = r.random() < 0.35
        self.focus = r.choice(["", "", "memory", "flow", "shape", "sums", "products"])
        if self.focus in ("memory", "products"):
            self.kinds = [*r.sample(["f32", "i32", "f16", "bf16", "i64", "i8", "f64"], 2), "i32", "i1"]
            self.shapes = self.shapes[:4]

    # -- lines and variables

    def line(self, text: str) -> None:
        self.lines.append(self.indent + text)

    def new(
        self,
        shape: Shape,
        dtype: str,
        code: str,
        low: float | None = None,
        high: float | None = None,
        whole: bool = True,
        nan: bool = False,
    ) -> Var:
        if low is None or high is None:
            low, high = bounds(dtype)
        if dtype[0] in "iu":
            least, most = bounds(dtype)
            if low < least or high > most:
                low, high = least, most
        name = f"v{next(self.numbers)}"
        self.line(f"{name} = {code}")
        var = Var(name, shape, dtype, low, high, whole, nan)
        self.scope.append(var)
        if dtype in FLOATS and not nan and max(-low, high) > MOST[dtype]:
            return self.fit(var, 64)
        return var

    def typed(self, shape: Shape, dtype: str, code: str, *more: Any, **named: Any) -> Var:
        return self.new(shape, dtype, f"({code}).to(tl.{NAMES[dtype]})", *more, **named)

    def fit(self, x: Var, most: float, whole: bool = False) -> Var:
        """Numbers between -most and most, whole if asked for."""
        if x.dtype[0] in "iu":
            return x
        if x.nan:
            x = self.typed(
                x.shape,
                x.dtype,
                f"tl.where(({x.name} == {x.name}) & (tl.abs({x.name}) < 1000), {x.name}, 0)",
                -1000,
                1000,
                False,
            )
        if whole and not x.whole:
            wide = x if x.dtype in ("f32", "f64") else self.typed(x.shape, "f32", x.name, x.low, x.high, False)
            wide = self.new(x.shape, wide.dtype, f"tl.floor({wide.name})", math.floor(x.low), math.ceil(x.high))
            x = wide if wide.dtype == x.dtype else self.typed(x.shape, x.dtype, wide.name, wide.low, wide.high)
        if max(-x.low, x.high) > most:
            name = f"v{next(self.numbers)}"
            self.line(f"{name} = tl.minimum(tl.maximum({x.name}, -{most}), {most}).to(tl.{NAMES[x.dtype]})")
            x = Var(name, x.shape, x.dtype, max(x.low, -most), min(x.high, most), x.whole)
            self.scope.append(x)
        return x

    # -- operands

    def some(self, where: Callable[[Var], bool]) -> Var | None:
        found = [each for each in self.scope if where(each)]
        return self.random.choice(found[-12:] if self.random.random() < 0.6 else found) if found else None

    def shape(self) -> Shape:
        return self.random.choice(self.shapes)

    def any(self, shape: Shape | None = None, kinds: Iterable[str] | None = None) -> Var:
        kinds = list(kinds or self.kinds)
        if self.random.random() < 0.85:
            found = self.some(lambda v: v.dtype in kinds and (shape is None or v.shape == shape))
            if found is not None:
                return found
        return self.want(
            self.shape() if shape is None else shape, self.random.choice([d for d in self.kinds if d in kinds] or kinds)
        )

    def want(self, shape: Shape, dtype: str) -> Var:
        r = self.random
        same = self.some(lambda v: v.shape == shape and v.dtype == dtype)
        if same is not None and r.random() < 0.75:
            return same
        choice = r.random()
        if choice < 0.25:
            other = self.some(lambda v: v.shape == shape)
            if other is not None:
                return self.cast(other, dtype)
        if choice < 0.5 and shape:
            found = self.broadcast(shape, dtype)
            if found is not None:
                return found
        if choice < 0.9:
            return self.load(shape, dtype)
        return self.constant(shape, dtype)

    def broadcast(self, shape: Shape, dtype: str) -> Var | None:
        def fits(v: Var) -> bool:
            return (
                v.dtype == dtype
                and v.shape != shape
                and (v.shape == () or all(v.shape.count(s) <= shape.count(s) for s in v.shape))
                and len(v.shape) <= len(shape)
            )

        found = self.some(fits)
        if found is None:
            return None
        r, code = self.random, found.name
        if found.shape and len(found.shape) == len(shape):
            if any(a not in (b, 1) for a, b in zip(found.shape, shape)):
                return None
        elif found.shape:
            if len(found.shape) != 1:
                return None
            at = [i for i, s in enumerate(shape) if s == found.shape[0]]
            if not at:
                return None
            place = r.choice(at)
            code += "[" + ", ".join(":" if i == place else "None" for i in range(len(shape))) + "]"
        sizes = ", ".join(map(str, shape)) + ("," if len(shape) == 1 else "")
        code = (
            f"tl.broadcast_to({code}, ({sizes}))"
            if r.random() < 0.7 or found.shape == ()
            else f"{code} + tl.full(({sizes}), 0, tl.{NAMES[dtype]})"
            if dtype in ("i32", "f32")
            else f"tl.broadcast_to({code}, ({sizes}))"
        )
        return self.new(shape, dtype, code, found.low, found.high, found.whole, found.nan)

    def constant(self, shape: Shape, dtype: str) -> Var:
        r = self.random
        if shape and dtype[0] in "iu" and dtype != "i1" and r.random() < 0.6:
            return self.typed(shape, dtype, self.linear(shape), 0, math.prod(shape))
        if dtype == "i1":
            value: Any = r.choice([0, 1])
        elif dtype[0] == "i":
            value = r.choice([0, 1, 2, 3, 7, -1, -2, -5, bounds(dtype)[0], bounds(dtype)[1]])
        elif dtype[0] == "u":
            value = r.choice([0, 1, 2, 3, 7, bounds(dtype)[1] if dtype != "u64" else 9])
        else:
            value = float(r.choice([0, 1, -1, 2, 3, -4]))
        sizes = ", ".join(map(str, shape)) + ("," if len(shape) == 1 else "")
        return self.new(shape, dtype, f"tl.full(({sizes}), {value}, tl.{NAMES[dtype]})", value, value)

    def cast(self, x: Var, dtype: str) -> Var:
        if x.dtype == dtype:
            return x
        name = x.name
        if dtype == "i1":
            return self.new(
                x.shape, dtype, f"{name} != 0" if self.random.random() < 0.5 else f"{name}.to(tl.int1)", 0, 1
            )
        low, high = x.low, x.high
        if x.dtype in FLOATS and dtype[0] in "iu":
            x = self.fit(x, min(bounds(dtype)[1], 1 << 20))
            if dtype[0] == "u":
                x = self.typed(x.shape, x.dtype, f"tl.abs({x.name})", 0, max(-x.low, x.high), x.whole)
            return self.typed(x.shape, dtype, x.name, math.floor(x.low), math.ceil(x.high))
        if dtype in FLOATS:
            most = MOST[dtype]
            if x.dtype in FLOATS:
                if not x.nan:
                    x = self.fit(x, most)
            elif max(-low, high) > most:
                x = self.typed(
                    x.shape, x.dtype, f"{x.name} & {min(bounds(x.dtype)[1], 1023)}", 0, min(bounds(x.dtype)[1], 1023)
                )
            whole = x.whole
            return self.typed(x.shape, dtype, x.name, x.low * 1.01, x.high * 1.01, whole, x.nan)
        return self.typed(x.shape, dtype, x.name, x.low, x.high)

    # -- memory

    def parameter(self, kind: str, dtype: str) -> str:
        name = f"{kind}_{dtype}"
        self.used[name] = kind, dtype
        return name

    def arange(self, shape: Shape, dim: int) -> str:
        code = f"tl.arange(0, {shape[dim]})"
        if len(shape) > 1:
            code += "[" + ", ".join(":" if i == dim else "None" for i in range(len(shape))) + "]"
        return code

    def linear(self, shape: Shape) -> str:
        parts, step = [], 1
        for dim in reversed(range(len(shape))):
            parts.append(self.arange(shape, dim) + (f" * {step}" if step > 1 else ""))
            step *= shape[dim]
        return " + ".join(reversed(parts))

    def index(self, shape: Shape, once: bool, length: int = LENGTH) -> Var:
        """Numbers from 0 up to the length, each `once` at most."""
        r, size = self.random, math.prod(shape)
        if not once and r.random() < 0.25:
            source = self.any(shape, [d for d in self.kinds if d in ("i16", "i32", "i64", "u16", "u32", "u8")])
            if source.dtype in ("i32", "i64", "i16"):
                return self.new(
                    shape, source.dtype, f"{source.name} & {length - 1}", 0, min(length - 1, bounds(source.dtype)[1])
                )
            return self.new(shape, "i32", f"{source.name}.to(tl.int32) & {length - 1}", 0, length - 1)
        order = list(range(len(shape)))
        if r.random() < 0.35:
            r.shuffle(order)
        steps, step = [0] * len(shape), r.choice([1, 1, 1, 1, 1, 2, 3])
        for dim in reversed(order):
            steps[dim] = step
            if not once and r.random() < 0.12:
                steps[dim] = 0
                continue
            step *= shape[dim]
            if r.random() < 0.2:
                step += r.choice([1, 3])
        if sum(s * (d - 1) for s, d in zip(steps, shape)) >= length:
            steps, step = [0] * len(shape), 1
            for dim in reversed(order):
                steps[dim] = step
                step *= shape[dim]
        offset = 0
        for dim in range(len(shape)):
            if r.random() < 0.12:
                offset += steps[dim] * (shape[dim] - 1)
                steps[dim] = -steps[dim]
        parts = [
            f"{self.arange(shape, dim)} * {s}" if s != 1 else self.arange(shape, dim)
            for dim, s in enumerate(steps)
            if shape[dim] > 1 or len(shape) >= 1
        ]
        extent = sum(abs(s) * (d - 1) for s, d in zip(steps, shape))
        for _ in range(r.choice([0, 0, 1, 1, 2])):
            scalar = self.some(lambda v: v.shape == () and v.dtype in ("i32", "i64") and v.low >= 0 and v.high < 64)
            if scalar is None:
                continue
            times = r.choice([1, 2, 8, size])
            if extent + scalar.high * times < length:
                parts.append(f"{scalar.name} * {times}" if times != 1 else scalar.name)
                extent += int(scalar.high) * times
        room = length - 1 - extent
        offset += r.choice([0, 0, r.randrange(0, max(1, min(room, 40)))])
        if offset or not parts:
            parts.append(str(offset))
        code = " + ".join(parts)
        if not shape and all(p.isdigit() for p in parts):
            code = f"pid * 0 + {code}"
        if r.random() < 0.2:
            return self.typed(shape, "i64", code, 0, length - 1)
        return self.new(shape, "i32", code, 0, length - 1)

    def mask(self, shape: Shape) -> Var | None:
        r = self.random
        choice = r.random()
        if choice < 0.45:
            return None
        if not shape:
            return self.cast(self.any((), ["i32", "i1"]), "i1")
        if choice < 0.55:
            return self.new(
                shape,
                "i1",
                f"({self.linear(shape)}) < {r.choice([*self.ints, '3', '0', str(math.prod(shape) // 2 + 1)])}",
                0,
                1,
            )
        if choice < 0.65:
            dim = r.randrange(len(shape))
            code = f"{self.arange(shape, dim)} {r.choice(['<', '>=', '!='])} {r.choice([*self.ints, '1', '2'])}"
            sizes = ", ".join(map(str, shape)) + ("," if len(shape) == 1 else "")
            return self.new(shape, "i1", f"tl.broadcast_to({code}, ({sizes}))", 0, 1)
        if choice < 0.7 and len(shape) > 1:
            rows, columns = (r.choice([*self.ints, more]) for more in "25")
            code = f"({self.arange(shape, 0)} < {rows}) & ({self.arange(shape, 1)} < {columns})"
            sizes = ", ".join(map(str, shape))
            return self.new(shape, "i1", f"tl.broadcast_to({code}, ({sizes}))", 0, 1)
        if choice < 0.75:
            scalar = self.any((), ["i32"])
            sizes = ", ".join(map(str, shape)) + ("," if len(shape) == 1 else "")
            return self.new(shape, "i1", f"tl.broadcast_to({scalar.name} > 1, ({sizes}))", 0, 1)
        return self.cast(self.any(shape), "i1")

    def load(self, shape: Shape, dtype: str, kind: str = "") -> Var:
        r = self.random
        kind = kind or r.choice(["x", "x", "x", "s", "s", "t"] + (["f", "q"] if dtype in FLOATS else []))
        name = self.parameter(kind, dtype)
        at, mask = self.index(shape, False), self.mask(shape)
        more, low, high = "", *self.contents(kind, dtype)
        if mask is not None:
            more = f", mask={mask.name}"
            low, high = min(low, 0), max(high, 0)
            if r.random() < 0.7:
                other = self.same(shape, dtype)
                if other is not None and r.random() < 0.3 and not other.nan and (kind != "f" or other.whole):
                    more += f", other={other.name}"
                    low, high = min(low, other.low), max(high, other.high)
                    if not other.whole:
                        kind = "f"
                else:
                    value = r.choice([0, 1, 2]) if dtype != "i1" else r.choice([0, 1])
                    more += f", other={value}"
                    high = max(high, value)
        return self.new(shape, dtype, f"tl.load({name} + {at.name}{more})", low, high, kind != "f", kind == "q")

    def same(self, shape: Shape, dtype: str) -> Var | None:
        return self.some(lambda v: v.shape == shape and v.dtype == dtype)

    @staticmethod
    def contents(kind: str, dtype: str) -> tuple[float, float]:
        if dtype[0] in "iu":
            return bounds(dtype)
        return (-64, 64) if kind in "st" else (-8, 8)

    def store(self) -> None:
        """To memory that is read again."""
        r = self.random
        x = self.any()
        if r.random() < 0.5:
            x = self.any(tuple(self.dims))
        kind = r.choice("st")
        if x.dtype not in INTEGERS + FLOATS + ("i1",):
            return
        x = self.fit(x, 64, whole=True)
        at, mask = self.index(x.shape, True), self.mask(x.shape)
        more = f", mask={mask.name}" if mask is not None else ""
        self.line(f"tl.store({self.parameter(kind, x.dtype)} + {at.name}, {x.name}{more})")
        if r.random() < 0.5:
            y = self.load(x.shape if r.random() < 0.6 else self.shape(), x.dtype, r.choice("st"))
            if r.random() < 0.5:  # in place, at other places
                z = self.fit(
                    self.typed(
                        y.shape, x.dtype, f"{y.name} + 1" if x.dtype != "i1" else f"{y.name} == 0", y.low, y.high + 1
                    ),
                    64,
                )
                at = self.index(z.shape, True)
                self.line(f"tl.store({self.parameter(kind, z.dtype)} + {at.name}, {z.name})")

    def out(self, x: Var, rtol: float = 0.0, atol: float = 0.0) -> None:
        """To memory that is compared."""
        r = self.random
        kind = "o" if not rtol and not atol else "a"
        room = 1 << max(0, (x.size - 1).bit_length())
        name = self.parameter(kind, x.dtype)
        start = self.filled[name]
        self.filled[name] += room * math.prod(self.grid)
        order = ""
        code = self.linear(x.shape) if x.shape else "0"
        if kind == "o" and r.random() < 0.15 and len(x.shape) == 1:
            code = f"({code} ^ {r.randrange(x.size)})"
        mask = self.mask(x.shape) if kind == "o" and r.random() < 0.3 else None
        more = f", mask={mask.name}" if mask is not None else ""
        self.line(f"tl.store({name} + ({start} + pid * {room} + {code}){order}, {x.name}{more})")
        if kind == "a":
            self.about.append((name, start, self.filled[name], rtol, atol))

    def atomic(self) -> None:
        r = self.random
        shape = self.shape()
        dtype = r.choice(["i32", "i64", "u32", "u64", "f32", "f16", "bf16", "f64"])
        small = dtype in ("f16", "bf16")
        verb = r.choice(
            ["add"] * 3
            + ([] if dtype in FLOATS else ["and", "or", "xor", "xchg", "cas"])
            + ([] if small else ["max", "min"])
        )
        x = self.want(shape, dtype)
        if x.nan:
            x = self.fit(x, 64)
        if dtype in FLOATS:
            x = self.fit(x, 8, whole=True)
        at = self.index(shape, r.random() < 0.5)
        name = self.parameter("c", dtype)
        if verb == "cas":
            y = self.want(shape, dtype)
            code = f"tl.atomic_cas({name} + {at.name}, {x.name}, {y.name})"
        else:
            mask = self.mask(shape)
            more = f", mask={mask.name}" if mask is not None else ""
            code = f"tl.atomic_{verb}({name} + {at.name}, {x.name}{more})"
        if mask_free(code) and r.random() < 0.7:
            self.out(
                self.new(
                    shape,
                    dtype,
                    code,
                    None if dtype in INTEGERS else -1e30,
                    None if dtype in INTEGERS else 1e30,
                    nan=dtype in FLOATS,
                )
            )
        else:
            self.line(code)
