"""Reductions, scans, products and other shapes in a kernel that is drawn."""

from __future__ import annotations

import math

from .kinds import EXACT, FLOATS, INTEGERS, Shape, Var, factorings
from .operations import Operations


class Shapes(Operations):
    """A kernel to which operations on whole tensors are added."""

    def reduce(self) -> None:
        r = self.random
        x = self.any(kinds=[d for d in self.kinds if d != "i1"])
        if not x.shape:
            x = self.want(tuple(self.dims), r.choice([d for d in self.kinds if d != "i1"]))
        axis: int | None = r.randrange(len(x.shape))
        verb = r.choice(["sum", "sum", "max", "min", "argmax", "argmin", "xor_sum", "custom", "indices", "pair", "or"])
        if r.random() < 0.15 and verb[:3] != "arg":
            axis = None
        shape = () if axis is None else x.shape[:axis] + x.shape[axis + 1 :]
        if x.nan and verb in ("argmax", "argmin", "indices"):  # depends on the order
            return
        number = x.size if axis is None else x.shape[axis]
        keep = r.random() < 0.2 and axis is not None
        more = f"axis={axis}"
        after = ""
        if keep and axis is not None:
            shape = (*x.shape[:axis], 1, *x.shape[axis + 1 :])
            more += ", keep_dims=True"
        if verb == "sum":
            if x.dtype in FLOATS:
                most = EXACT[x.dtype] / number
                if most < 1 or (x.nan and r.random() < 0.5):
                    x = self.cast(x, "f32")
                    most = EXACT["f32"] / number
                if not x.nan:
                    x = self.fit(x, min(64, max(1, math.floor(most))), whole=True)
                elif not x.whole:
                    return
                high = max(-x.low, x.high) * number
                self.typed(shape, x.dtype, f"tl.sum({x.name}, {more}){after}", -high, high, True, x.nan)
            else:
                kind = x.dtype if r.random() < 0.7 else "i64"
                self.typed(
                    shape,
                    kind,
                    f"tl.sum({x.name}, {more})" if kind == x.dtype else f"tl.sum({x.name}, {more}, dtype=tl.int64)",
                )
        elif verb in ("max", "min"):
            self.typed(shape, x.dtype, f"tl.{verb}({x.name}, {more})", x.low, x.high, x.whole, x.nan)
        elif verb in ("argmax", "argmin"):
            tie = r.choice(["", ", tie_break_left=True"])
            self.typed(shape, "i32", f"tl.{verb}({x.name}, {more}{tie})", 0, number)
        elif verb == "indices" and axis is not None:
            a, b = (f"v{next(self.numbers)}" for _ in range(2))
            self.line(f"{a}, {b} = tl.max({x.name}, {more}, return_indices=True)")
            self.typed(shape, x.dtype, a, x.low, x.high, x.whole, x.nan)
            self.typed(shape, "i32", b, 0, number)
        elif verb == "xor_sum" and x.dtype in INTEGERS:
            self.typed(shape, x.dtype, f"tl.xor_sum({x.name}, {more})")
        elif verb == "or" and x.dtype in ("i32", "u32", "i64", "u64"):
            self.typed(
                shape, x.dtype, f"tl.reduce_or({x.name}, {axis or 0})"
            ) if axis is not None and not keep else None
        elif verb == "custom" and x.dtype in ("i32", "i64", "u32", "u64") and axis is not None and not keep:
            self.typed(shape, x.dtype, f"tl.reduce({x.name}, {axis}, product)")
        elif verb == "pair" and axis is not None and not keep and not x.nan:
            a, b = (f"v{next(self.numbers)}" for _ in range(2))
            if r.random() < 0.5:
                at = self.typed(x.shape, "i32", f"({self.linear(x.shape)}) ^ {r.choice([0, 5])}", 0, max(8, 2 * x.size))
                self.line(f"{a}, {b} = tl.reduce(({x.name}, {at.name}), {axis}, best)")
                self.typed(shape, x.dtype, a, x.low, x.high, x.whole)
                self.typed(shape, "i32", b, 0, max(8, 2 * x.size))
            else:
                y = self.want(x.shape, "i32")
                z = self.want(x.shape, "i64")
                self.line(f"{a}, {b} = tl.reduce(({y.name}, {z.name}), {axis}, both)")
                self.typed(shape, "i32", a)
                self.typed(shape, "i64", b)

    def scan(self) -> None:
        r = self.random
        shape = r.choice([s for s in self.shapes if s])
        axis = r.randrange(len(shape))
        back = ", reverse=True" if r.random() < 0.4 else ""
        verb = r.choice(["cumsum", "cumprod", "affine", "later", "max"])
        if verb == "cumsum":
            x = self.want(shape, r.choice([d for d in self.kinds if d != "i1"]))
            if x.dtype in FLOATS:
                if x.nan:
                    return
                most = EXACT[x.dtype] / shape[axis]
                if most < 1:
                    x, most = self.cast(x, "f32"), EXACT["f32"] / shape[axis]
                x = self.fit(x, min(64, math.floor(most)), whole=True)
                high = max(-x.low, x.high) * shape[axis]
                self.typed(shape, x.dtype, f"tl.cumsum({x.name}, {axis}{back})", -high, high)
            else:
                self.typed(shape, x.dtype, f"tl.cumsum({x.name}, {axis}{back})")
        elif verb == "cumprod":
            x = self.want(shape, r.choice(["i32", "i64"]))
            self.typed(shape, x.dtype, f"tl.cumprod({x.name}, {axis}{back})")
        elif verb == "max":
            x = self.want(shape, r.choice([d for d in self.kinds if d != "i1"]))
            if not x.nan:
                self.typed(
                    shape,
                    x.dtype,
                    f"tl.associative_scan({x.name}, {axis}, tl.standard._elementwise_max{back})",
                    x.low,
                    x.high,
                    x.whole,
                )
        else:
            kind = r.choice(["i32", "i64", "u32"])
            x, y = self.want(shape, kind), self.want(shape, kind if verb == "affine" else "i32")
            a, b = (f"v{next(self.numbers)}" for _ in range(2))
            self.line(f"{a}, {b} = tl.associative_scan(({x.name}, {y.name}), {axis}, {verb}{back})")
            self.typed(shape, kind, a)
            self.typed(shape, y.dtype, b)

    def dot(self) -> None:
        r = self.random
        m, n, k = (r.choice([16, 16, 32]) for _ in range(3))
        kind, out = r.choice(
            [
                ("f16", "f32"),
                ("bf16", "f32"),
                ("f32", "f32"),
                ("f64", "f64"),
                ("i8", "i32"),
                ("f16", "f16"),
                ("e5", "f32"),
            ]
        )
        if kind in ("i8", "e5"):
            k = 32
        batch: Shape = () if r.random() < 0.85 or kind in ("e5", "f64") else (r.choice([2, 4]),)

        def operand(rows: int, columns: int) -> str:
            shape = (*batch, rows, columns)
            turned = not batch and r.random() < 0.35
            if turned:
                shape = (columns, rows)
            wide = "f32" if kind == "e5" else kind
            x = self.want(shape, wide) if r.random() < 0.6 else self.load(shape, wide, "x")
            if wide in INTEGERS:
                pass
            else:
                if x.nan:
                    x = self.fit(x, 8)
                x = self.fit(x, 4, whole=True)
            if kind == "e5":
                y = self.typed(shape, "e5", x.name, x.low, x.high)
                self.scope.remove(y)
                x = y
            return f"tl.trans({x.name})" if turned else x.name

        a, b = operand(m, k), operand(k, n)
        shape = (*batch, m, n)
        more, most = "", 16.0 * k
        if r.random() < 0.5:
            acc = self.want(shape, out)
            if acc.dtype in FLOATS:
                if acc.nan:
                    acc = self.fit(acc, 64)
                acc = self.fit(acc, 64, whole=True)
                most += 64
            more = f", {acc.name}"
        if out == "f16":
            more += ", out_dtype=tl.float16"
        self.typed(shape, out, f"tl.dot({a}, {b}{more})", *((None, None) if out == "i32" else (-most, most)))

    def shaped(self) -> None:
        r = self.random
        x = self.any()
        if not x.shape:
            x = self.want(tuple(self.dims), r.choice(self.kinds))
        verb = r.choice(
            [
                "trans",
                "trans",
                "reshape",
                "ravel",
                "join",
                "split",
                "cat",
                "gather",
                "histogram",
                "sort",
                "flip",
                "interleave",
                "permute",
                "view",
                "topk",
            ]
        )
        low, high, whole, nan = x.low, x.high, x.whole, x.nan
        rank, small = len(x.shape), x.size < self.limit

        def new(shape: Shape, code: str) -> Var:
            return self.new(shape, x.dtype, code, low, high, whole, nan)

        if verb == "trans" and rank == 2:
            new(x.shape[::-1], f"tl.trans({x.name})")
        elif verb in ("permute", "trans") and rank > 1:
            order = r.sample(range(rank), rank)
            new(tuple(x.shape[i] for i in order), f"tl.permute({x.name}, ({', '.join(map(str, order))}))")
        elif verb in ("reshape", "view"):
            shape = r.choice(factorings(x.size, r))
            sizes = ", ".join(map(str, shape)) + ("," if len(shape) == 1 else "")
            new(shape, f"tl.reshape({x.name}, ({sizes}))")
        elif verb == "ravel":
            new((x.size,), f"tl.ravel({x.name})")
        elif verb == "join" and small and rank < 3:
            y = self.want(x.shape, x.dtype)
            low, high, whole, nan = min(low, y.low), max(high, y.high), whole and y.whole, nan or y.nan
            new((*x.shape, 2), f"tl.join({x.name}, {y.name})")
        elif verb == "interleave" and small:
            y = self.want(x.shape, x.dtype)
            low, high, whole, nan = min(low, y.low), max(high, y.high), whole and y.whole, nan or y.nan
            new((*x.shape[:-1], x.shape[-1] * 2), f"tl.interleave({x.name}, {y.name})")
        elif verb == "split":
            if x.shape[-1] != 2:
                if x.size < 4:
                    return
                x = new((x.size // 2, 2), f"tl.reshape({x.name}, ({x.size // 2}, 2))")
            a, b = (f"v{next(self.numbers)}" for _ in range(2))
            self.line(f"{a}, {b} = tl.split({x.name})")
            for name in (a, b):
                self.typed(x.shape[:-1], x.dtype, name, low, high, whole, nan)
        elif verb == "cat" and rank == 1 and small:
            y = self.want(x.shape, x.dtype)
            low, high, whole, nan = min(low, y.low), max(high, y.high), whole and y.whole, nan or y.nan
            y = new((2 * x.shape[0],), f"tl.cat({x.name}, {y.name}, can_reorder=REORDERS)")
            self.scope.remove(y)
            if not nan:
                self.typed(y.shape, x.dtype, f"tl.sort({y.name})", low, high, whole)
        elif verb == "gather":
            axis = r.randrange(rank)
            shape = x.shape
            if r.random() < 0.4:
                shape = (*shape[:axis], r.choice([1, 2, 8, 16]), *shape[axis + 1 :])
            if math.prod(shape) > self.limit:
                return
            at = self.want(shape, "i32")
            at = self.new(at.shape, "i32", f"{at.name} & {x.shape[axis] - 1}", 0, x.shape[axis] - 1)
            new(shape, f"tl.gather({x.name}, {at.name}, {axis})")
        elif verb == "histogram":
            bins = r.choice([2, 8, 16, 64])
            source = self.want((x.size,), "i32")
            if r.random() < 0.8:
                source = self.new(source.shape, "i32", f"{source.name} & {bins - 1}", 0, bins - 1)
                mask = self.mask(source.shape)
                more = f", mask={mask.name}" if mask is not None else ""
                self.new((bins,), "i32", f"tl.histogram({source.name}, {bins}{more})", 0, x.size)
        elif verb in ("sort", "topk") and not nan and x.dtype != "i1" and x.shape[-1] > 1 and x.size <= 512:
            down = r.choice(["", ", descending=True"])
            if verb == "topk" and x.shape[-1] >= 4:
                new((*x.shape[:-1], x.shape[-1] // 2), f"tl.topk({x.name}, {x.shape[-1] // 2})")
            else:
                new(x.shape, f"tl.sort({x.name}{down})")
        elif verb == "flip":
            if x.dtype != "i1":
                axis = r.randrange(rank)
                if x.shape[axis] > 1:
                    new(x.shape, f"tl.flip({x.name}, {axis})")
