"""Operations of single elements in a kernel that is drawn."""

from __future__ import annotations

import math

import numpy as np

from .kinds import EXACT, FLOATS, LENGTH, NAMES, NUMPY, SMALL, Var, bounds, fits
from .memory import Memory


class Operations(Memory):
    """A kernel to which operations are added."""

    # -- operations

    def binary(self) -> None:
        r = self.random
        x = self.any()
        y = self.partner(x)
        shape = tuple(np.broadcast_shapes(x.shape, y.shape))
        if x.dtype == "i1":
            self.new(shape, "i1", f"{x.name} {r.choice('&|^')} {y.name}", 0, 1)
            return
        if x.dtype[0] in "iu":
            verb = r.choice(["+", "-", "*", "&", "|", "^", "//", "%", "<<", ">>", "+", "*"])
            bits = NUMPY[x.dtype].itemsize * 8
            right = y.name
            low = high = None
            if verb in ("//", "%"):  # by another value than itself
                right = f"({y.name} & {r.choice([1, 3, 7])})" if r.random() < 0.5 else f"({y.name} | 1)"
            if verb in ("<<", ">>"):
                right = f"({y.name} & {bits - 1})" if r.random() < 0.7 else str(r.randrange(bits))
            elif verb in ("//", "%") and r.random() < 0.6:
                right = str(r.choice([1, 2, 3, 7, 16, *([-1, -2, -3] if x.dtype[0] == "i" else [])]))
            elif verb == "&" and r.random() < 0.7:
                right = str(r.choice([1, 3, 7, 15, 63]))
                low, high = 0, int(right)
            elif verb in "+-*":
                ends = [
                    int(a) * int(b) if verb == "*" else int(a) + int(b) if verb == "+" else int(a) - int(b)
                    for a in (x.low, x.high)
                    for b in (y.low, y.high)
                ]
                low, high = min(ends), max(ends)
            self.typed(shape, x.dtype, f"{x.name} {verb} {right}", low, high)
            return
        whole, nan = x.whole and y.whole, x.nan or y.nan
        verb = r.choice("+-*+-*/%")
        if verb in "/%":
            if nan:
                return
            self.typed(
                shape,
                x.dtype,
                f"{x.name} {verb} (tl.abs({y.name}) + 1)",
                -max(-x.low, x.high, 1) * 1.01,
                max(-x.low, x.high, 1) * 1.01,
                False,
            )
            return
        pairs = [(a, b) for a in (x.low, x.high) for b in (y.low, y.high)]
        most = max(abs(a * b if verb == "*" else a + b if verb == "+" else a - b) for a, b in pairs) * 1.01
        self.typed(shape, x.dtype, f"{x.name} {verb} {y.name}", -most, most, whole and most <= EXACT[x.dtype], nan)

    def partner(self, x: Var) -> Var:
        """Another operand of the type, of a shape that fits."""
        if self.random.random() < 0.35:
            found = self.some(lambda v: v.dtype == x.dtype and v is not x and fits(v.shape, x.shape))
            if found is not None:
                return found
        return self.want(x.shape, x.dtype)

    def compare(self) -> None:
        x = self.any(kinds=[d for d in self.kinds if d != "i1"])
        y = self.partner(x)
        shape = tuple(np.broadcast_shapes(x.shape, y.shape))
        self.new(shape, "i1", f"{x.name} {self.random.choice(['<', '<=', '>', '>=', '==', '!='])} {y.name}", 0, 1)

    def where(self) -> None:
        x = self.any()
        y = self.partner(x)
        shape = tuple(np.broadcast_shapes(x.shape, y.shape))
        c = self.cast(self.any(shape), "i1")
        self.typed(
            shape,
            x.dtype,
            f"tl.where({c.name}, {x.name}, {y.name})",
            min(x.low, y.low),
            max(x.high, y.high),
            x.whole and y.whole,
            x.nan or y.nan,
        )

    def unary(self) -> None:
        r = self.random
        x = self.any(kinds=[d for d in self.kinds if d != "i1"])
        most = max(-x.low, x.high)
        if x.dtype[0] in "iu":
            code = r.choice([f"-{x.name}", f"~{x.name}", f"tl.abs({x.name})"])
            if x.dtype[0] == "u" and code[0] == "-":
                code = f"~{x.name}"
            self.typed(x.shape, x.dtype, code)
        else:
            verb = r.choice(["-", "abs", "floor", "ceil", "sqrt"])
            if verb == "-":
                self.typed(x.shape, x.dtype, f"-{x.name}", -x.high, -x.low, x.whole, x.nan)
            elif verb == "abs":
                self.typed(x.shape, x.dtype, f"tl.abs({x.name})", 0, most, x.whole, x.nan)
            elif x.dtype in ("f32", "f64"):
                if verb == "sqrt":
                    if not x.nan:
                        self.typed(
                            x.shape,
                            x.dtype,
                            f"tl.sqrt_rn(tl.abs({x.name}))"
                            if x.dtype == "f32" and r.random() < 0.5
                            else f"tl.sqrt(tl.abs({x.name}))",
                            0,
                            max(most, 1),
                            False,
                        )
                else:
                    self.typed(x.shape, x.dtype, f"tl.{verb}({x.name})", x.low - 1, x.high + 1, True, x.nan)

    def extreme(self) -> None:
        r = self.random
        x = self.any(kinds=[d for d in self.kinds if d != "i1"])
        y = self.partner(x)
        shape = tuple(np.broadcast_shapes(x.shape, y.shape))
        more = r.choice(["", ", propagate_nan=tl.PropagateNan.ALL"]) if x.dtype in FLOATS else ""
        low, high, whole, nan = min(x.low, y.low), max(x.high, y.high), x.whole and y.whole, x.nan or y.nan
        if x.dtype in ("f32", "f64", "f16") and r.random() < 0.3 and not nan:
            least = self.want(x.shape, x.dtype)
            if not least.nan and x.shape == shape:
                top = self.typed(x.shape, x.dtype, f"{least.name} + 4", least.low + 4, least.high + 4, least.whole)
                self.typed(
                    shape,
                    x.dtype,
                    f"tl.clamp({x.name}, {least.name}, {top.name}{more})",
                    min(x.low, least.low),
                    max(x.high, top.high),
                    False,
                    x.nan,
                )
                return
        self.typed(
            shape, x.dtype, f"tl.{r.choice(['minimum', 'maximum'])}({x.name}, {y.name}{more})", low, high, whole, nan
        )

    def special(self) -> None:
        """Functions that need something of their own."""
        r = self.random
        verb = r.choice(
            ["umulhi", "fma", "chosen", "polynomial", "rand", "bitcast", "cdiv", "swizzle", "pointers", "float8"]
        )
        if verb == "umulhi":
            kind = r.choice(["i32", "u32", "i64", "u64"])
            x = self.want(self.shape(), kind)
            y = self.want(x.shape, kind)
            self.typed(x.shape, kind, f"tl.umulhi({x.name}, {y.name})")
        elif verb == "fma":
            kind = r.choice(["f32", "f64"])
            x, y, z = (self.want(tuple(self.dims), kind) for _ in range(3))
            if not (x.nan or y.nan or z.nan) and x.whole and y.whole and z.whole:
                most = max(-x.low, x.high) * max(-y.low, y.high) + max(-z.low, z.high)
                if most <= EXACT[kind]:
                    self.new(x.shape, kind, f"tl.fma({x.name}, {y.name}, {z.name})", -most, most)
        elif verb == "chosen":
            if self.depth:  # not inlined within a loop, and so not translated
                return
            x = self.any(kinds=[d for d in self.kinds if d != "i1"])
            number = self.any((), ["i32"])
            if not x.nan:
                x = self.fit(x, 64)
            self.typed(
                x.shape,
                x.dtype,
                f"chosen({x.name}, {number.name})",
                *((None, None) if x.dtype[0] in "iu" else (-192.0, 192.0)),
                whole=x.whole and x.dtype != "bf16",
                nan=x.nan,
            )
        elif verb == "polynomial":
            x = self.any(kinds=["i32"] + [d for d in self.kinds if d in ("i64", "u32", "u64")])
            y = self.want(x.shape, x.dtype)
            self.typed(x.shape, x.dtype, f"polynomial({x.name}, {y.name}, {r.choice([1, 3])})")
        elif verb == "rand":
            x = self.any(self.shape(), ["i32"])
            if not x.shape:
                return
            which = r.choice(["randint", "rand", "randn", "randint4x"])
            seed = r.choice(["n0", "1234", "n1 + 3"])
            if which == "randint":
                self.typed(x.shape, "i32", f"tl.randint({seed}, {x.name})")
            elif which == "rand":
                self.new(x.shape, "f32", f"tl.rand({seed}, {x.name})", 0, 1, False)
            elif which == "randn":
                y = self.new(x.shape, "f32", f"tl.randn({seed}, {x.name})", -9, 9, False)
                self.scope.remove(y)
                self.out(y, 1e-5, 1e-5)
            else:
                names = [f"v{next(self.numbers)}" for _ in range(4)]
                self.line(f"{', '.join(names)} = tl.randint4x({seed}, {x.name})")
                for name in names[1:]:
                    self.typed(x.shape, "i32", name)
        elif verb == "bitcast":
            one, two = r.choice(
                [
                    ("i32", "f32"),
                    ("u32", "f32"),
                    ("i64", "f64"),
                    ("i16", "f16"),
                    ("i16", "bf16"),
                    ("u8", "i8"),
                    ("i64", "u64"),
                ]
            )
            if r.random() < 0.5:
                one, two = two, one
            x = self.want(self.shape(), one)
            if x.nan:
                return
            low, high = bounds(two) if two[0] in "iu" else (-math.inf, math.inf)
            y = self.new(x.shape, two, f"{x.name}.to(tl.{NAMES[two]}, bitcast=True)", low, high, False, True)
            if two in FLOATS:
                self.scope.remove(y)
                y = self.typed(y.shape, two, f"tl.where(tl.abs({y.name}) < 100, {y.name}, 0)", -100, 100, False)
        elif verb == "cdiv":
            x = self.any(self.shape(), ["i32"])
            self.typed(x.shape, "i32", f"tl.cdiv({x.name}, {r.choice([2, 3, 16])})")
        elif verb == "swizzle":
            a, b = (f"v{next(self.numbers)}" for _ in range(2))
            self.line(f"{a}, {b} = tl.swizzle2d(pid, 0, {r.choice([4, 5])}, {r.choice([2, 3])}, {r.choice([1, 2])})")
            self.typed((), "i32", a, -64, 64)
            self.typed((), "i32", b, -64, 64)
        elif verb == "pointers":
            shape, kind = self.shape(), r.choice(self.kinds)
            name = self.parameter("x", kind)
            at, other, c = self.index(shape, False), self.index(shape, False), self.cast(self.any(shape), "i1")
            there, here = (self.typed(shape, "i64", each.name, 0, LENGTH).name for each in (at, other))
            self.new(
                shape,
                kind,
                f"tl.load(tl.where({c.name}, {name} + {there}, {name} + {here}))",
                *self.contents("x", kind),
            )
        else:
            small = r.choice(SMALL)
            x = self.any(kinds=[d for d in self.kinds if d in ("f16", "bf16", "f32")])
            if x.nan or x.dtype not in FLOATS:
                return
            x = self.fit(x, 64)
            y = self.typed(x.shape, small, x.name, -64, 64, x.whole)
            self.scope.remove(y)
            self.out(self.new(x.shape, "u8", f"{y.name}.to(tl.uint8, bitcast=True)"))  # float8 arrays are not native
            self.typed(x.shape, x.dtype, y.name, -64, 64, x.whole)

    def function(self) -> None:
        """A function whose last bits are its own affair."""
        r = self.random
        kind = r.choice(["f32", "f32", "f64"])
        x = self.want(self.shape(), kind)
        if x.nan:
            return
        if x.dtype != kind:
            x = self.cast(x, kind)
        x = self.fit(x, 20)
        code = r.choice(
            [
                "tl.exp({0})",
                "tl.exp2({0})",
                "tl.log(tl.abs({0}) + 1)",
                "tl.log2(tl.abs({0}) + 1)",
                "tl.sin({0})",
                "tl.cos({0})",
                "tl.erf({0})",
                "tl.rsqrt(tl.abs({0}) + 1)",
                "tl.sigmoid({0})",
                "libdevice.tanh({0})",
                "libdevice.atan2({0}, {0} + 1)",
                "libdevice.pow(tl.abs({0}) + 1, 1.5)",
            ]
        )
        if "pow" in code:
            code = "libdevice.pow(tl.abs({0}) + 1, {0} * 0.25)"
        kept = list(self.scope)
        y = self.typed(x.shape, kind, code.format(x.name), -1e6, 1e6, False)
        z = y
        if x.shape and r.random() < 0.3:
            axis = r.randrange(len(x.shape))
            shape = x.shape[:axis] + x.shape[axis + 1 :]
            name = f"v{next(self.numbers)}"
            self.line(f"{name} = tl.sum(tl.sigmoid({x.name}), axis={axis})")
            z = Var(name, shape, kind, -1e9, 1e9, False)
        self.scope = kept
        self.out(z, 2e-5 if kind == "f32" else 1e-10, 2e-5 if kind == "f32" else 1e-10)
