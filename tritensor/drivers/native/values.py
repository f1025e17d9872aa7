"""Values at the lanes of a chunk: one number, an arithmetic progression or a vector."""

from __future__ import annotations

from typing import NamedTuple

from .emit import Code, short, vector

__all__ = ["Lanes", "Vectors", "short", "vector"]


class Lanes(NamedTuple):
    """A value at each lane.

    `stride` is 0 where all lanes have the value `base`; a number, or the name of one, where lane i has base plus i
    times that; None where `base` is a vector.
    """

    base: str
    stride: int | str | None = 0


class Vectors:
    """Arithmetic of `Lanes` that keeps progressions, since addresses are such: consecutive ones need no gather."""

    def __init__(self, fma: bool) -> None:
        self.code = Code(fma)
        self.lanes = 0

    def type(self, kind: str) -> str:
        """LLVM's type of a value at the lanes."""
        return vector(kind, self.lanes)

    def full(self, value: Lanes, kind: str) -> str:
        """The value as a vector; with no lanes, as the scalar that it is."""
        base, stride = value
        if stride is None or not self.lanes:
            return base
        whole = self.code.splat(base, kind, self.lanes)
        if stride == 0:
            return whole
        type = self.type(kind)
        if isinstance(stride, int):
            steps = self._numbers(kind, stride)
        else:
            steps = self.code.op(f"mul {type} {self._numbers(kind, 1)}, {self.code.splat(stride, kind, self.lanes)}")
        return steps if base == "0" else self.code.op(f"add {type} {whole}, {steps}")

    def _numbers(self, kind: str, step: int) -> str:
        return f"<{', '.join(f'{kind} {lane * step}' for lane in range(self.lanes))}>"

    def _fold(self, verb: str, kind: str, x: str, y: str) -> str:
        known = x[0] != "%" and y[0] != "%"
        a, b = (int(x), int(y)) if known else (0, 0)
        if verb == "add":
            if known:
                return str(a + b)
            return y if x == "0" else x if y == "0" else self.code.op(f"add {kind} {x}, {y}")
        if verb == "sub":
            if known:
                return str(a - b)
            return x if y == "0" else self.code.op(f"sub {kind} {x}, {y}")
        if known:
            return str(a * b)
        if "0" in (x, y):
            return "0"
        return y if x == "1" else x if y == "1" else self.code.op(f"mul {kind} {x}, {y}")

    def _stride(self, verb: str, kind: str, x: int | str, y: int | str) -> int | str:
        found = self._fold(verb, kind, str(x), str(y))
        return found if found[0] == "%" else int(found)

    def plus(self, x: Lanes, y: Lanes, kind: str, verb: str = "add") -> Lanes:
        """x + y, or x - y."""
        if x.stride is not None and y.stride is not None:
            return Lanes(self._fold(verb, kind, x.base, y.base), self._stride(verb, kind, x.stride, y.stride))
        return Lanes(self.code.op(f"{verb} {self.type(kind)} {self.full(x, kind)}, {self.full(y, kind)}"), None)

    def times(self, x: Lanes, y: Lanes, kind: str) -> Lanes:
        """x * y."""
        if x.stride != 0:
            x, y = y, x
        if x.stride == 0 and y.stride is not None:
            return Lanes(self._fold("mul", kind, x.base, y.base), self._stride("mul", kind, y.stride, x.base))
        return Lanes(self.code.op(f"mul {self.type(kind)} {self.full(x, kind)}, {self.full(y, kind)}"), None)

    def cast(self, x: Lanes, source: str, kind: str, verb: str = "sext") -> Lanes:
        """An integer of another width; progressions are taken not to overflow when they are sign-extended."""
        if source == kind:
            return x
        verb = "trunc" if int(kind[1:]) < int(source[1:]) else verb
        if x.stride is None:
            return Lanes(self.code.op(f"{verb} {self.type(source)} {x.base} to {self.type(kind)}"), None)
        stride = x.stride if isinstance(x.stride, int) else self.code.op(f"{verb} {source} {x.stride} to {kind}")
        return Lanes(x.base if x.base[0] != "%" else self.code.op(f"{verb} {source} {x.base} to {kind}"), stride)
