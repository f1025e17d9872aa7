"""Writes the text of LLVM's functions: instructions, labels and loops."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["Code", "Loop", "short", "vector"]


class Code:
    """The text of a function and of what its module declares.

    Attributes:
        fma: the target multiplies and adds in one instruction.
        scales: it multiplies by a power of 2 in one instruction, as processors with AVX-512 do.
        block: the label of the block that is written, for phis.
    """

    def __init__(self, fma: bool = True, scales: bool = False) -> None:
        self.fma, self.scales = fma, scales
        self.lines: list[str] = []
        self.declared: dict[str, str] = {}
        self.block = "entry"
        self._count = 0

    def name(self, stem: str = "v") -> str:
        """A new name."""
        self._count += 1
        return f"%{stem}{self._count}"

    def op(self, text: str) -> str:
        """Write an instruction; returns the name of its result."""
        name = self.name()
        self.lines.append(f"  {name} = {text}")
        return name

    def do(self, text: str) -> None:
        """Write an instruction without a result."""
        self.lines.append("  " + text)

    def declare(self, name: str, text: str) -> None:
        """Add what the module needs, once; LLVM knows its intrinsics."""
        self.declared.setdefault(name, text)

    def intrinsic(self, name: str, kind: str, *operands: str, lanes: int = 0) -> str:
        """A call of `@llvm.NAME.TYPE`, whose operands and result are of one type."""
        type = vector(kind, lanes)
        passed = ", ".join(f"{type} {value}" for value in operands)
        return self.op(f"call {type} @llvm.{name}.{f'v{lanes}' if lanes else ''}{short(kind)}({passed})")

    def label(self, name: str) -> None:
        """Begin a block."""
        self.lines.append(f"{name[1:]}:")
        self.block = name[1:]

    def branch(self, condition: str, then: str, other: str) -> None:
        """End a block by going to one of two."""
        self.do(f"br i1 {condition}, label {then}, label {other}")

    def jump(self, target: str) -> None:
        """End a block by going to another."""
        self.do(f"br label {target}")

    @contextmanager
    def loop(self, count: int | str, step: int = 1, start: str = "0") -> Iterator[Loop]:
        """A loop with an i64 counter that runs at least once."""
        loop = Loop(self, start, step)
        loop.enter()
        yield loop
        loop.leave(str(count))

    def multiply_add(self, kind: str, x: str, y: str, z: str, lanes: int) -> str:
        """x * y + z, in one instruction where there is one."""
        if kind[0] != "i" and self.fma:
            return self.intrinsic("fma", kind, x, y, z, lanes=lanes)
        type, mark = vector(kind, lanes), "" if kind[0] == "i" else "f"
        return self.op(f"{mark}add {type} {self.op(f'{mark}mul {type} {x}, {y}')}, {z}")

    def splat(self, value: str, kind: str, lanes: int) -> str:
        """A number in all lanes."""
        if not lanes:
            return value
        if value[0] != "%":
            return f"splat ({kind} {value})"
        one = self.op(f"insertelement <{lanes} x {kind}> poison, {kind} {value}, i64 0")
        return self.op(
            f"shufflevector <{lanes} x {kind}> {one}, <{lanes} x {kind}> poison, <{lanes} x i32> zeroinitializer"
        )

    def when(self, condition: str, kind: str, then: str, other: str, lanes: int) -> str:
        """One of two values, by a condition."""
        type = vector(kind, lanes)
        return self.op(f"select {vector('i1', lanes)} {condition}, {type} {then}, {type} {other}")


class Loop:
    """A loop: its counter, what is added to that, and the values that it carries."""

    def __init__(self, code: Code, start: str, step: int | str) -> None:
        self.code, self.start, self.step = code, start, step
        self.counter = code.name("i")
        self.head, self.exit = code.name("head"), code.name("exit")
        self.carried: list[tuple[str, str, str]] = []  # phi, LLVM type, first value
        self.next: list[str] = []

    def enter(self) -> None:
        """Begin the block of the loop."""
        self.before = self.code.block
        self.code.jump(self.head)
        self.code.label(self.head)
        self.mark = len(self.code.lines)

    def phi(self, kind: str, first: str) -> str:
        """A value that the loop carries, from its first one; `next` gets what it is in the next round."""
        name = self.code.name("phi")
        self.carried.append((name, kind, first))
        return name

    def leave(self, count: str) -> None:
        """End the loop when the counter reaches a number."""
        code = self.code
        following = code.op(f"add nuw nsw i64 {self.counter}, {self.step}")
        more = code.op(f"icmp ult i64 {following}, {count}")
        phis = [f"  {self.counter} = phi i64 [ {self.start}, %{self.before} ], [ {following}, %{code.block} ]"]
        for (name, kind, first), value in zip(self.carried, self.next, strict=True):
            phis.append(f"  {name} = phi {kind} [ {first}, %{self.before} ], [ {value}, %{code.block} ]")
        code.lines[self.mark : self.mark] = phis
        code.branch(more, self.head, self.exit)
        code.label(self.exit)


def vector(kind: str, lanes: int) -> str:
    """LLVM's type of so many lanes, or of a scalar."""
    return f"<{lanes} x {kind}>" if lanes else kind


def short(kind: str) -> str:
    """A type's name in those of intrinsics."""
    return {"float": "f32", "double": "f64", "half": "f16"}.get(kind, kind)
