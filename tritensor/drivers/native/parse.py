"""Reads Triton's intermediate representation (TTIR, as text) into operations, values and regions."""

from __future__ import annotations

import math
import re
import struct
from collections.abc import Iterator
from typing import NamedTuple

__all__ = ["Block", "Operation", "Type", "Unknown", "Value", "parse"]


class Unknown(Exception):
    """A part of a kernel that is not translated to native code; its text says which."""


class Type(NamedTuple):
    """An element type as MLIR writes it ("f32", "i1", "*bf16" for a pointer), and the sizes of a tensor or None."""

    element: str
    shape: tuple[int, ...] | None = None


class Value:
    """A result of an operation or an argument of a block. Names are unique within a region only; objects are unique."""

    __slots__ = ("owner", "position", "type", "users")

    def __init__(self, type: Type, owner: Operation | Block, position: int) -> None:
        self.type, self.owner, self.position = type, owner, position
        self.users: list[Operation] = []

    @property
    def shape(self) -> tuple[int, ...] | None:
        """The sizes of a tensor, or None."""
        return self.type.shape

    @property
    def element(self) -> str:
        """The type of its elements."""
        return self.type.element

    @property
    def sizes(self) -> tuple[int, ...]:
        """The shape of a tensor; of a number, ()."""
        return self.type.shape or ()

    @property
    def count(self) -> int:
        """The number of elements."""
        return math.prod(self.sizes)


class Operation:
    """An operation: its name, its operands, what else its line says, its regions and results."""

    __slots__ = ("block", "name", "number", "operands", "regions", "results", "text")

    def __init__(self, name: str, text: str, block: Block) -> None:
        self.name, self.text, self.block = name, text, block
        self.number = 0  # in the order of the text
        self.operands: list[Value] = []
        self.results: list[Value] = []
        self.regions: list[list[Block]] = []

    def integer(self, attribute: str, default: int | None = None) -> int:
        """The integer of `attribute = 3 : i32`."""
        found = re.search(rf"\b{attribute} = (-?\d+|true|false)", self.text)
        if found is None:
            if default is None:
                raise Unknown(f"{self.name} without {attribute}")
            return default
        return {"true": 1, "false": 0}.get(found[1]) if found[1] in ("true", "false") else int(found[1])  # type: ignore[return-value]

    def integers(self, attribute: str) -> list[int]:
        """The integers of `attribute = array<i32: 1, 0>`."""
        found = re.search(rf"\b{attribute} = array<i32: ([^>]*)>", self.text)
        if found is None:
            raise Unknown(f"{self.name} without {attribute}")
        return [int(each) for each in found[1].split(",")]

    @property
    def result(self) -> Value:
        """The first result."""
        return self.results[0]

    def inside(self) -> Iterator[Operation]:
        """The operations of all its regions, at any depth."""
        for region in self.regions:
            for block in region:
                for operation in block.operations:
                    yield operation
                    yield from operation.inside()


class Block:
    """A sequence of operations with arguments, and the operation whose region it belongs to."""

    __slots__ = ("arguments", "label", "operations", "parent")

    def __init__(self, parent: Operation | None, label: str = "") -> None:
        self.parent, self.label = parent, label
        self.arguments: list[Value] = []
        self.operations: list[Operation] = []


_NAME = re.compile(r"%[\w$.-]+(?:#\d+)?")
_LINE = re.compile(r"(?:(%[^=]*?) = )?\"?([a-z_]+\.[\w.]+)\"?(.*)", re.DOTALL)
_CLOSE = {"(": ")", "<": ">", "[": "]", "{": "}"}


def split(text: str, separator: str = ",") -> list[str]:
    """The parts between separators that stand in no bracket.

    >>> split("tensor<4x!tt.ptr<f32>>, (i32, i1)")
    ['tensor<4x!tt.ptr<f32>>', '(i32, i1)']
    """
    parts, depth, start = [], 0, 0
    for position, letter in enumerate(text):
        if letter in "(<[{":
            depth += 1
        elif letter in ")]}" or (letter == ">" and text[position - 1] != "-"):
            depth -= 1
        elif letter == separator and not depth:
            parts.append(text[start:position].strip())
            start = position + 1
    rest = text[start:].strip()
    return [*parts, rest] if rest else parts


def type_of(text: str) -> Type:
    """A type of MLIR.

    >>> type_of("tensor<4x2x!tt.ptr<f32>>"), type_of("i32")
    (Type(element='*f32', shape=(4, 2)), Type(element='i32', shape=None))
    """
    text = text.strip()
    if text.startswith("tensor<"):
        sizes, _, element = re.fullmatch(r"tensor<((\d+x)*)(.*)>", text, re.DOTALL).groups()  # type: ignore[union-attr]
        return Type(type_of(element).element, tuple(int(size) for size in sizes.split("x")[:-1]))
    if text.startswith("!tt.ptr<"):
        return Type("*" + type_of(split(text[8:-1])[0]).element)
    if not re.fullmatch(r"[a-zA-Z]\w*", text):
        raise Unknown(f"type {text}")
    return Type(text)


class _Reader:
    def __init__(self, text: str) -> None:
        self.lines = [line.strip() for line in text.splitlines() if line.strip()]
        self.at = 0
        self.names: dict[str, Value] = {}
        self.count = 0
        self.functions: dict[str, Operation] = {}

    def read(self) -> Operation:
        found = None
        while self.at < len(self.lines):
            line = self.lines[self.at]
            if line.startswith("tt.func"):
                function = self.function(line)
                found = function if " public " in line else found
            else:
                self.at += 1
        if found is None:
            raise Unknown("no kernel in the text")
        return found

    def function(self, line: str) -> Operation:
        operation = Operation("tt.func", line, Block(None))
        self.at += 1
        name, arguments = re.search(r"@([\w.$-]+)\((.*)\) (?:-> .* )?attributes", line).groups()  # type: ignore[union-attr]
        block = Block(operation)
        saved, self.names = self.names, {}
        self.arguments(block, arguments)
        operation.regions.append(self.region(operation, block))
        self.names = saved
        self.functions[name] = operation
        operation.text = name
        return operation

    def arguments(self, block: Block, text: str) -> None:
        for part in split(text):
            name, kind = part.split(":", 1)
            value = Value(type_of(kind.split(" {")[0]), block, len(block.arguments))
            block.arguments.append(value)
            self.names[name.strip()] = value

    def region(self, parent: Operation, block: Block) -> list[Block]:
        """The blocks up to a line that begins with a closing brace, which is left to the caller."""
        blocks = [block]
        outer, self.names = self.names, dict(self.names)
        while not (line := self.lines[self.at]).startswith("}"):
            if line.startswith("^"):
                label, arguments = re.match(r"(\^\w+)(?:\((.*)\))?:", line).groups()  # type: ignore[union-attr]
                if blocks == [block] and not block.operations and not block.label:
                    block.label = label
                else:
                    blocks.append(Block(parent, label))
                self.arguments(blocks[-1], arguments or "")
                self.at += 1
            else:
                blocks[-1].operations.append(self.operation(line, blocks[-1]))
        self.names = outer
        if parent.name in ("scf.for", "scf.if") and (not block.operations or block.operations[-1].name != "scf.yield"):
            blocks[-1].operations.append(Operation("scf.yield", "", blocks[-1]))  # which is not printed without values
        return blocks

    def operation(self, line: str, block: Block) -> Operation:
        matched = _LINE.match(line)
        if matched is None:
            raise Unknown(f"line {line}")
        names, name, text = matched.groups()
        operation = Operation(name, text.strip(), block)
        self.at += 1
        if text.endswith("{"):
            text = self.regions(operation, text)
        else:
            self.uses(operation, text)
        self.count += 1
        operation.number = self.count
        if names:
            types = self.results(operation, text)
            listed = [part.strip() for part in names.split(",")]
            if len(listed) == 1:
                base, _, number = listed[0].partition(":")
                listed = [f"{base}#{i}" for i in range(int(number))] if number else [base]
                if number:
                    self.names[base] = Value(types[0], operation, 0)
            types = types * len(listed) if len(types) == 1 else types
            for position, (label, type) in enumerate(zip(listed, types, strict=True)):
                self.names[label] = value = Value(type, operation, position)
                operation.results.append(value)
        return operation

    def uses(self, operation: Operation, text: str) -> None:
        for name in _NAME.findall(re.sub(r'"(?:[^"\\]|\\.)*"', '""', text)):
            value = self.names[name]
            operation.operands.append(value)
            value.users.append(operation)

    def regions(self, operation: Operation, text: str) -> str:
        block = Block(operation)
        if operation.name in ("scf.for", "scf.while"):  # (%arg = %init, ...)
            head = re.search(r"(?:iter_args|^\s*)\(([^)]*)\)", text)
            pairs = [part.split("=") for part in split(head[1])] if head else []
            if operation.name == "scf.for":
                counter, rest = text.split("=", 1)
                self.uses(operation, rest.split("iter_args")[0])
                pairs.insert(0, [counter.replace("unsigned", ""), ""])
                kinds = ["i32" if (found := re.search(r" : (i\d+) \{$", text)) is None else found[1]]
            else:
                kinds = []
            for _, init in pairs:
                self.uses(operation, init)
            first = len(operation.operands) - len(pairs) + (operation.name == "scf.for")
            types = [*map(type_of, kinds), *(value.type for value in operation.operands[first:])]
            for (name, _), type in zip(pairs, types, strict=True):
                self.names[name.strip()] = value = Value(type, block, len(block.arguments))
                block.arguments.append(value)
        else:
            self.uses(operation, text)
        operation.regions.append(self.region(operation, block))
        while True:
            line = self.lines[self.at]
            self.at += 1
            if not line.endswith("{"):
                break
            operation.regions.append(self.region(operation, Block(operation)))
        return line if line.startswith("})") else text  # results of the generic form stand behind the regions

    def results(self, operation: Operation, text: str) -> list[Type]:
        name = operation.name
        operands = operation.operands
        if name in ("tt.get_program_id", "tt.get_num_programs"):
            return [Type("i32")]
        if name == "arith.constant" and text.strip() in ("true", "false"):
            return [Type("i1")]
        if name in ("scf.for", "scf.if"):
            found = re.search(r"-> \((.*?)\)\s*(?::|\{)", text)
            return [*map(type_of, split(found[1]))] if found else []
        kinds = text.rsplit(" : ", 1)[-1].removesuffix("{").strip()
        for arrow in (" -> ", " to "):
            if arrow in kinds:
                kinds = kinds.rsplit(arrow, 1)[1].strip()
                return [*map(type_of, split(kinds[1:-1] if kinds.startswith("(") else kinds))]
        parts = split(kinds)
        if name in ("arith.addui_extended", "arith.mulsi_extended", "arith.mului_extended"):
            return [type_of(parts[0]), type_of(parts[-1])]
        type = type_of(parts[0] if name == "tt.addptr" else parts[-1])
        if name in ("arith.cmpi", "arith.cmpf"):
            return [Type("i1", type.shape)]
        if name == "tt.load":
            return [Type(operands[0].element[1:], operands[0].shape)]
        if name == "tt.unsplat":
            return [Type(type.element)]
        return [type]


def parse(text: str) -> Operation:
    """The kernel of a module as a `tt.func` operation; its text is its name.

    Raises:
        Unknown: the text has a part that is not understood, or the kernel calls functions.
    """
    return _Reader(text).read()


_FLOATS = {"f16": ("<e", "<H"), "f32": ("<f", "<I"), "f64": ("<d", "<Q")}


def number(operation: Operation) -> int | float:
    """The number of an `arith.constant`; of a tensor, the one that all its elements are."""
    text = operation.text.rsplit(" : ", 1)[0].strip()
    dense = re.match(r"dense<(.*)>", text)
    text = dense[1] if dense else text
    element = operation.result.element
    if text in ("true", "false"):
        return int(text == "true")
    if text.startswith(('"', "[")):
        raise Unknown("a constant with different elements")
    if element[0] == "i":
        return int(text)
    if not text.startswith("0x"):
        return float(text)
    bits = int(text, 16)
    if element == "bf16":
        element, bits = "f32", bits << 16
    if element not in _FLOATS:
        raise Unknown(f"a constant of type {element}")
    value, word = _FLOATS[element]
    found: float = struct.unpack(value, struct.pack(word, bits))[0]
    return found
