"""Reads the PTX that Triton emits: parameters, declarations, and instructions in basic blocks.

The grammar is that of NVIDIA's "Parallel Thread Execution ISA", as far as it occurs between the first `.entry` and the
first `.section` of one file.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from ...errors import KernelError
from ..lines import place_of


@dataclass(frozen=True, slots=True)
class Register:
    """A register: its number in the register file and its declared type ("pred", "b32", …)."""

    slot: int
    kind: str


@dataclass(frozen=True, slots=True)
class Immediate:
    """A constant: the bits of a float, or an integer that wraps around to the width that reads it."""

    bits: int
    text: str


@dataclass(frozen=True, slots=True)
class Decimal:
    """A float that was written in decimals, as in inline assembly; it is rounded to the type that reads it."""

    value: float


@dataclass(frozen=True, slots=True)
class Name:
    """A variable, a special register, a label, or `_`."""

    text: str


@dataclass(frozen=True, slots=True)
class Vector:
    """Operands in braces, or the two of `%p1|%p2`."""

    parts: tuple[Operand, ...]


@dataclass(frozen=True, slots=True)
class Address:
    """`[base+offset]`; of TMA also the coordinates in braces."""

    base: Operand
    offset: int
    rest: tuple[Operand, ...] = ()


Operand = Register | Immediate | Decimal | Name | Vector | Address


@dataclass(frozen=True, slots=True)
class Instruction:
    """One instruction. `where` indexes `Kernel.lines`; `guard` is the slot of a predicate and whether it is negated."""

    name: str
    parts: tuple[str, ...]
    operands: tuple[Operand, ...]
    guard: tuple[int, bool] | None
    where: int


@dataclass(slots=True, eq=False)
class Block:
    """A basic block: instructions of which only the last may branch, wait or return."""

    instructions: list[Instruction] = field(default_factory=list)
    #: what executes them, made when the block is first entered, and what ends it
    steps: list | None = None
    end: object = None


@dataclass(slots=True, eq=False)
class Kernel:
    """A parsed kernel.

    Attributes:
        parameters: name and size in bytes of each, in order.
        kinds: the type of each register, by slot.
        blocks: the basic blocks in the text's order.
        labels: the number of the block that a label begins.
        lines: source file and line by `Instruction.where`; `callers`: where the function that it is in was called,
            innermost first.
        shared: the offset in shared memory of each declared variable.
        static_shared: bytes of shared memory that are declared with a size; dynamic memory begins behind them.
        local: offset of each variable in local memory; `local_size` bytes a lane.
        constants: the bytes and alignment of initialised global variables.
        threads: the lanes of a block that the kernel was compiled for.
        ranks: the order of basic blocks (`flow.ranks`), made when lanes first part.
        undefined: the kinds of registers, by slot, that may be read though nothing writes them.
    """

    name: str
    parameters: list[tuple[str, int]] = field(default_factory=list)
    kinds: list[str] = field(default_factory=list)
    names: list[str] = field(default_factory=list)
    blocks: list[Block] = field(default_factory=list)
    labels: dict[str, int] = field(default_factory=dict)
    lines: list[tuple[str, int]] = field(default_factory=lambda: [("", 0)])
    callers: dict[int, list[tuple[str, int]]] = field(default_factory=dict)
    shared: dict[str, int] = field(default_factory=dict)
    static_shared: int = 0
    local: dict[str, int] = field(default_factory=dict)
    local_size: int = 0
    constants: dict[str, tuple[int, bytes]] = field(default_factory=dict)
    threads: int = 128
    ranks: list[int] = field(default_factory=list)
    undefined: dict[int, str] = field(default_factory=dict)

    def place(self, where: int) -> str:
        """The source line of an instruction: `kernel.py:91`, or `kernel.py:91 (calls helper.py:5)`."""
        return place_of([self.lines[where], *self.callers.get(where, ())])


def slots_in(operands: Iterable[Operand]) -> list[int]:
    """The registers that operands name."""
    found: list[int] = []
    for operand in operands:
        if isinstance(operand, Register):
            found.append(operand.slot)
        elif isinstance(operand, Vector):
            found += slots_in(operand.parts)
        elif isinstance(operand, Address):
            found += slots_in((operand.base, *operand.rest))
    return found


def reads(i: Instruction) -> list[int]:
    """The registers that an instruction reads, or may."""
    keeps = i.guard is not None or i.parts[0] == "wgmma" or isinstance(i.operands[0] if i.operands else None, Address)
    return ([i.guard[0]] if i.guard else []) + slots_in(i.operands if keeps else i.operands[1:])


_SIZES = {"b8": 1, "u8": 1, "s8": 1, "b16": 2, "u16": 2, "s16": 2, "f16": 2, "b32": 4, "u32": 4, "s32": 4, "f32": 4}
_SIZES |= {"b64": 8, "u64": 8, "s64": 8, "f64": 8, "b128": 16, "pred": 1}
_ENDS = ("bra", "ret", "exit", "bar", "barrier", "trap")
_STATEMENT = re.compile(r"(?:@(!?)(\S+)\s+)?([a-z][\w.:]*)\s*(.*)", re.DOTALL)
_LABEL = re.compile(r"([$\w]+):(?!:)\s*(.*)", re.DOTALL)
_FUNCTION = re.compile(r"^\.func\s*(\([^)]*\))?\s*([\w$]+)\s*(\([^)]*\))[^;{]*\{(.*?)^\}", re.DOTALL | re.MULTILINE)
_CALL = re.compile(r"call(?:\.uni)?\s+(?:\(([^)]*)\)\s*,)?\s*([\w$]+)\s*(?:,\s*\(([^)]*)\))?", re.DOTALL)
_PARAMETER = r"\.param\s+(?:\.align\s+\d+\s+)?\.(\w+)[^,\n\[]*?([\w$]+)(?:\[(\d+)\])?(?=,|\s*$|\s*\n)"
_VARIABLE = re.compile(
    r"\.(global|shared|local|const)\s+(?:\.align\s+(\d+)\s+)?\.(\w+)\s+([\w$.]+)(?:\[(\d*)\])?(?:\s*=\s*(.*))?",
    re.DOTALL,
)


@lru_cache(maxsize=256)
def parse(text: str) -> Kernel:
    """Parse the PTX of one kernel.

    Raises:
        KernelError: there is no `.entry`.
    """
    text = re.sub(r"/\*.*?\*/", "", text, flags=re.DOTALL)
    files = {int(number): path for number, path in re.findall(r'\.file\s+(\d+)\s+"([^"]*)"', text)}
    code = text.split("\n\t.section", 1)[0]
    found = re.search(r"\.entry\s+([\w$]+)\s*\((.*?)\)(.*)", code, re.DOTALL)
    if found is None:
        raise KernelError("the compiled code holds no kernel", "its PTX has no .entry")
    kernel = Kernel(found[1])
    for kind, name, count in re.findall(_PARAMETER, _uncommented(found[2])):
        kernel.parameters.append((name, _SIZES[kind] * int(count or 1)))
    head, _, body = found[3].partition("{")
    threads = re.search(r"\.(?:reqntid|maxntid)\s+(\d+)", head)
    kernel.threads = int(threads[1]) if threads else kernel.threads
    for statement in _uncommented(code[: found.start()]).split(";"):
        _declare(kernel, statement.strip())
    functions = {
        name: (_named(results), _named(inputs), text) for results, name, inputs, text in _FUNCTION.findall(code)
    }
    _Body(kernel, files, functions).read(body)
    kernel.undefined = _undefined(kernel)
    return kernel


def _undefined(kernel: Kernel) -> dict[int, str]:
    """The kind of registers by slot that nothing writes: of the elements that a pair or four has too many, for which
    the compiler sets nothing since what they hold does not matter."""
    written = {slot for block in kernel.blocks for i in block.instructions for slot in slots_in(i.operands[:1])}
    return {slot: kind for slot, kind in enumerate(kernel.kinds) if slot not in written}


def _named(parameters: str) -> list[tuple[str, str]]:
    """Name and type of each parameter."""
    return [(name, kind) for kind, name in re.findall(r"\.param\s+\.(\w+)\s+([\w$]+)", parameters)]


def _uncommented(text: str) -> str:
    return re.sub(r"//[^\n]*", "", text)


def _declare(kernel: Kernel, statement: str) -> None:
    """Give a variable its place."""
    found = _VARIABLE.search(statement)
    if found is None:
        return
    space, align, kind, name, count, initial = found.groups()
    size, align = _SIZES[kind] * int(count or 1), int(align or _SIZES[kind])
    if space == "shared":
        if "[" in statement and not count:
            kernel.shared[name] = -1  # dynamic: where the static ones end
        else:
            kernel.shared[name] = kernel.static_shared = -(-kernel.static_shared // align) * align
            kernel.static_shared += size
    elif space == "local":
        kernel.local[name] = -(-kernel.local_size // align) * align
        kernel.local_size = kernel.local[name] + size
    else:
        values = [int(value, 0) for value in re.findall(r"-?\w+", initial or "")] or [0] * int(count or 1)
        width = _SIZES[kind]
        kernel.constants[name] = align, b"".join((v % (1 << 8 * width)).to_bytes(width, "little") for v in values)


class _Body:
    """Reads the statements of a kernel, with the scopes of inline assembly."""

    def __init__(self, kernel: Kernel, files: dict[int, str], functions: dict[str, Any]) -> None:
        self.kernel, self.files, self.functions = kernel, files, functions
        self.inlined = ""  # follows the labels of a function whose call is being replaced
        self.scopes: list[dict[str, str]] = [{}]  # by name: the type of a register, or "" of a label
        self.opened = 0
        self.slots: dict[str, int] = {}
        self.where = 0
        self.known: dict[str, Operand] = {}
        self.outer: dict[tuple[int, ...], tuple[int, ...] | None] = {}  # by place, where its function was called
        self.calling: list[tuple[str, int]] = []  # the calls of the functions that are being put in their place

    def read(self, text: str) -> None:
        kernel = self.kernel
        kernel.blocks.append(Block())
        self._read(text)
        for name, offset in kernel.shared.items():
            if offset < 0:
                kernel.shared[name] = -(-kernel.static_shared // 16) * 16

    def _read(self, text: str) -> None:
        for statement in self._statements(text):
            if statement.startswith((".reg", ".param")):  # parameters of calls are as good as registers
                kind, names = statement.split(None, 2)[1:]
                for name in names.split(","):
                    self.scopes[-1][name.strip()] = kind[1:]
            elif statement.startswith("."):
                _declare(self.kernel, statement)
            elif found := _CALL.match(statement):
                self._call(*found.groups())
            else:
                self._instruction(statement)

    def _call(self, results: str | None, name: str, inputs: str | None) -> None:
        """Put the statements of a function in the place of its call."""
        if name not in self.functions:
            raise KernelError(f"{self.kernel.name}: calls {name}, which a simulated device does not have")
        returned, parameters, text = self.functions[name]
        given, wanted = (list(map(self._operand, _split(part or ""))) for part in (inputs, results))
        before, self.inlined = self.inlined, f"#{self.opened + 1}"
        self.opened += 1
        self.scopes.append({"": str(self.opened), **dict(parameters), **dict(returned)})
        for (parameter, kind), value in zip(parameters, given, strict=True):
            self._add(f"mov.{kind}", (self._operand(parameter), value))
        where, calling = self.where, self.calling
        self.calling = [self.kernel.lines[where], *self.kernel.callers.get(where, ())]
        self._read(text)
        self.where, self.calling = where, calling
        self._label("$L_returned")
        found = [(kind, self._operand(result)) for result, kind in returned]
        self.scopes.pop()
        self.inlined = before
        for place, (kind, value) in zip(wanted, found, strict=True):
            self._add(f"mov.{kind}", (place, value))

    def _statements(self, text: str) -> Iterator[str]:
        """Statements without their semicolon; scopes, labels and lines are dealt with on the way."""
        waiting, assembly = "", False
        for line in text.split("\n"):
            if "inline asm" in line:
                assembly = "// begin" in line
            rest = line.split("//", 1)[0].strip()
            if rest.split(None, 1)[:1] == [".loc"] and not waiting:
                if not assembly:  # within inline assembly LLVM counts its lines on from the source's
                    self._line(line)
                continue
            while rest:
                if not waiting and rest[0] in "{}":
                    if rest[0] == "{":
                        self.opened += 1
                        self.scopes.append({"": str(self.opened)})
                    elif len(self.scopes) > 1:
                        self.scopes.pop()
                    else:
                        return
                    rest = rest[1:].strip()
                elif not waiting and (label := _LABEL.match(rest)):
                    self._label(label[1])
                    rest = label[2]
                else:
                    part, semicolon, rest = rest.partition(";")
                    waiting += part + " "
                    rest = rest.strip()
                    if semicolon:
                        yield waiting.strip()
                        waiting = ""

    def _line(self, text: str) -> None:
        here, *outer = (
            tuple(map(int, each)) for each in re.findall(r"(?:\.loc|inlined_at)\s+(\d+)\s+(\d+)\s+(\d+)", text)
        )
        # LLVM of Triton 3.6 says it in a comment: `// helper.py:4:12 @[ kernel.py:8:9 ]`
        for name, line in re.findall(r"@\[ (\S+?):(\d+)", text):
            file = next((number for number, path in self.files.items() if os.path.basename(path) == name), 0)
            outer.append((file, int(line), 0))
        self.where = len(self.kernel.lines)
        self.kernel.lines.append((self.files.get(here[0], ""), here[1]))
        self.outer[here] = outer[0] if outer else None
        while outer and (place := self.outer.get(outer[-1])) is not None and len(outer) < 64:
            outer.append(place)
        called = [(self.files.get(file, ""), line) for file, line, _ in outer]
        if called or self.calling:
            self.kernel.callers[self.where] = called + self.calling

    def _label(self, name: str) -> None:
        if self.kernel.blocks[-1].instructions:
            self.kernel.blocks.append(Block())
        self.kernel.labels[self._scoped(name)] = len(self.kernel.blocks) - 1

    def _scoped(self, name: str) -> str:
        """A label's name with the number of the scope it is in: inline assembly repeats its labels."""
        return name + self.inlined if name.startswith("$L") else f"{name}@{self.scopes[-1].get('', '')}"

    def _instruction(self, statement: str) -> None:
        found = _STATEMENT.fullmatch(statement)
        if found is None:
            raise KernelError(f"{self.kernel.name}: PTX that cannot be read", statement)
        negated, guard, name, rest = found.groups()
        parts = tuple(name.split("."))
        operands = tuple(self._operand(text) for text in _split(rest))
        if self.inlined and parts[0] == "ret":
            name, parts, rest = "bra", ("bra",), "$L_returned"
        if parts[0] == "bra":
            operands = (Name(self._scoped(rest.strip())),)
        elif parts[:2] in (("ld", "param"), ("st", "param")) and len(operands) == 2:
            there = operands[parts[0] == "ld"]
            if isinstance(there, Address) and isinstance(there.base, Register):
                operands = (operands[0], there.base) if parts[0] == "ld" else (there.base, operands[1])
                name, parts = f"mov.{parts[-1]}", ("mov", parts[-1])
        predicate = None
        if guard:
            register = self._operand(guard)
            assert isinstance(register, Register)
            predicate = register.slot, negated == "!"
        self._add(name, operands, predicate)
        if parts[0] in _ENDS and name != "bar.warp.sync":
            self.kernel.blocks.append(Block())

    def _add(self, name: str, operands: tuple[Operand, ...], guard: tuple[int, bool] | None = None) -> None:
        instruction = Instruction(name, tuple(name.split(".")), operands, guard, self.where)
        self.kernel.blocks[-1].instructions.append(instruction)

    def _operand(self, text: str) -> Operand:
        # most operands of a kernel repeat; inside of a scope, the same name may be another register
        if len(self.scopes) > 1:
            return self._read_operand(text.strip())
        found = self.known.get(text)
        if found is None:
            found = self.known[text] = self._read_operand(text.strip())
        return found

    def _read_operand(self, text: str) -> Operand:
        if text[0] in "{[":
            inner = text[1:-1].strip()
            if text[0] == "{":
                return Vector(tuple(map(self._operand, _split(inner))))
            first, *rest = _split(inner)
            base, sign, offset = re.fullmatch(r"([^+-]+?)\s*(?:([+-])\s*(\S+))?", first).groups()  # type: ignore[union-attr]
            step = int(offset, 0) * (-1 if sign == "-" else 1) if sign else 0
            return Address(self._operand(base), step, tuple(map(self._operand, rest)))
        if "|" in text:
            return Vector(tuple(map(self._operand, text.split("|"))))
        register = self._register(text)
        if register is not None:
            return register
        if match := re.fullmatch(r"0[fFdD]([0-9a-fA-F]+)", text):
            return Immediate(int(match[1], 16), text)
        if re.fullmatch(r"-?(0[xX][0-9a-fA-F]+|\d+)U?", text):
            return Immediate(int(text.rstrip("U"), 0), text)
        if re.fullmatch(r"-?\d+(\.\d*([eE][+-]?\d+)?|[eE][+-]?\d+)", text):
            return Decimal(float(text))
        return Name(text)

    def _register(self, name: str) -> Register | None:
        for scope in reversed(self.scopes):
            kind = scope.get(name) or self._ranged(scope, name)
            if kind:
                full = f"{name}@{scope.get('', '')}"
                slot = self.slots.setdefault(full, len(self.kernel.kinds))
                if slot == len(self.kernel.kinds):
                    self.kernel.kinds.append(kind)
                    self.kernel.names.append(name)
                return Register(slot, kind)
        return None

    @staticmethod
    def _ranged(scope: dict[str, str], name: str) -> str | None:
        """The type of `%r12` by the declaration of `%r<281>`."""
        prefix = name.rstrip("0123456789")
        if prefix == name:
            return None
        return next((kind for declared, kind in scope.items() if declared.startswith(prefix + "<")), None)


def _split(text: str) -> list[str]:
    """The operands of a list, at its outer commas."""
    parts, depth, start = [], 0, 0
    for at, letter in enumerate(text):
        if letter in "{[(":
            depth += 1
        elif letter in "}])":
            depth -= 1
        elif letter == "," and not depth:
            parts.append(text[start:at])
            start = at + 1
    return [part for part in (*parts, text[start:]) if part.strip()]
