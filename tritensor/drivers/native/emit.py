"""Writes LLVM instructions for the operations on single elements: on scalars, or on vectors of some lanes.

Values of bfloat16, float16 and float8 are float32 values that the type can hold: each operation on them computes in
float32 and rounds, memory holds the type's own bits.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Iterator
from contextlib import contextmanager

from . import functions
from .parse import Operation, Unknown

__all__ = ["Code", "bits_of", "elementwise", "literal", "memory", "register"]

_REGISTER = {"f16": "float", "bf16": "float", "f8E5M2": "float", "f8E4M3FN": "float", "f32": "float", "f64": "double"}
_MEMORY = {"f16": "half", "bf16": "i16", "f8E5M2": "i8", "f8E4M3FN": "i8", "i1": "i8"}
# of float8: bits of the mantissa, least exponent, largest value, factor between it and the float16 of the same bits
_SMALL = {"f8E5M2": (2, -14, 57344.0, 1.0), "f8E4M3FN": (3, -6, 448.0, 256.0)}


def register(element: str) -> str:
    """LLVM's type of a value."""
    if element[0] == "*":
        return "i64"
    if element[0] == "i" or element in _REGISTER:
        return _REGISTER.get(element, element)
    raise Unknown(f"type {element}")


def memory(element: str) -> str:
    """LLVM's type of a value in memory."""
    return _MEMORY.get(element) or register(element)


def bits_of(element: str) -> int:
    """The size of an element in memory."""
    return (
        64
        if element[0] == "*"
        else 8
        if element == "i1"
        else int("".join(filter(str.isdigit, element.partition("E")[0])))
    )


def literal(value: float, kind: str) -> str:
    """A constant of an LLVM type."""
    if kind in ("float", "double"):
        if kind == "float":
            value = math.copysign(math.inf, value) if abs(value) > 3.4028235677973366e38 else value
            value = struct.unpack("<f", struct.pack("<f", value))[0]
        return f"0x{struct.unpack('<Q', struct.pack('<d', value))[0]:016X}"
    return str(int(value))


class Code:
    """The text of a function and of what its module declares.

    Attributes:
        fma: the target multiplies and adds in one instruction.
        block: the label of the block that is written, for phis.
    """

    def __init__(self, fma: bool = True) -> None:
        self.fma = fma
        self.lines: list[str] = []
        self.declared: dict[str, str] = {}
        self.block = "entry"
        self._count = 0

    def name(self, stem: str = "v") -> str:
        self._count += 1
        return f"%{stem}{self._count}"

    def op(self, text: str) -> str:
        name = self.name()
        self.lines.append(f"  {name} = {text}")
        return name

    def do(self, text: str) -> None:
        self.lines.append("  " + text)

    def declare(self, name: str, text: str) -> None:
        self.declared.setdefault(name, text)

    def intrinsic(self, name: str, kind: str, *operands: str, extra: str = "", lanes: int = 0, result: str = "") -> str:
        """A call of `@llvm.NAME.TYPE` whose operands are all of one type."""
        type = vector(kind, lanes)
        full = f"@llvm.{name}.{f'v{lanes}' if lanes else ''}{short(kind)}"
        more = f", {extra}" if extra else ""
        kinds = ", ".join([type] * len(operands)) + (f", {extra.split()[0]}" if extra else "")
        self.declare(full, f"declare {result or type} {full}({kinds})")
        return self.op(f"call {result or type} {full}({', '.join(f'{type} {value}' for value in operands)}{more})")

    def label(self, name: str) -> None:
        self.lines.append(f"{name[1:]}:")
        self.block = name[1:]

    def branch(self, condition: str, then: str, other: str) -> None:
        self.do(f"br i1 {condition}, label {then}, label {other}")

    def jump(self, target: str) -> None:
        self.do(f"br label {target}")

    @contextmanager
    def loop(self, count: int | str, step: int = 1, start: str = "0") -> Iterator[Loop]:
        """A loop with an i64 counter; what the block adds to `carried` are phis."""
        loop = Loop(self, start)
        loop.enter()
        yield loop
        loop.leave(str(count), step)

    def splat(self, value: str, kind: str, lanes: int) -> str:
        if not lanes:
            return value
        if value[0] != "%":
            return f"splat ({kind} {value})"
        one = self.op(f"insertelement <{lanes} x {kind}> poison, {kind} {value}, i64 0")
        return self.op(
            f"shufflevector <{lanes} x {kind}> {one}, <{lanes} x {kind}> poison, <{lanes} x i32> zeroinitializer"
        )

    def when(self, condition: str, kind: str, then: str, other: str, lanes: int) -> str:
        type = vector(kind, lanes)
        return self.op(f"select {vector('i1', lanes)} {condition}, {type} {then}, {type} {other}")


class Loop:
    """A loop that runs at least once: `counter` and phis whose next values are told before it ends."""

    def __init__(self, code: Code, start: str) -> None:
        self.code, self.start = code, start
        self.counter = code.name("i")
        self.head, self.exit = code.name("head"), code.name("exit")
        self.carried: list[tuple[str, str, str]] = []  # phi, LLVM type, first value
        self.next: list[str] = []

    def enter(self) -> None:
        self.before = self.code.block
        self.code.jump(self.head)
        self.code.label(self.head)
        self.mark = len(self.code.lines)

    def phi(self, kind: str, first: str) -> str:
        name = self.code.name("phi")
        self.carried.append((name, kind, first))
        return name

    def leave(self, count: str, step: int) -> None:
        code = self.code
        following = code.op(f"add nuw nsw i64 {self.counter}, {step}")
        more = code.op(f"icmp ult i64 {following}, {count}")
        phis = [f"  {self.counter} = phi i64 [ {self.start}, %{self.before} ], [ {following}, %{code.block} ]"]
        for (name, kind, first), value in zip(self.carried, self.next, strict=True):
            phis.append(f"  {name} = phi {kind} [ {first}, %{self.before} ], [ {value}, %{code.block} ]")
        code.lines[self.mark : self.mark] = phis
        code.branch(more, self.head, self.exit)
        code.label(self.exit)


def vector(kind: str, lanes: int) -> str:
    return f"<{lanes} x {kind}>" if lanes else kind


def short(kind: str) -> str:
    return {"float": "f32", "double": "f64", "half": "f16"}.get(kind, kind)


# -- memory's bits and values


def from_memory(code: Code, element: str, bits: str, lanes: int) -> str:
    """The value of an element that was loaded as LLVM's type `memory(element)`."""
    if element == "i1":
        return code.op(f"icmp ne {vector('i8', lanes)} {bits}, zeroinitializer" if lanes else f"icmp ne i8 {bits}, 0")
    if element == "f16":
        return code.op(f"fpext {vector('half', lanes)} {bits} to {vector('float', lanes)}")
    if element == "bf16":
        wide = code.op(f"zext {vector('i16', lanes)} {bits} to {vector('i32', lanes)}")
        high = code.op(f"shl {vector('i32', lanes)} {wide}, {code.splat('16', 'i32', lanes)}")
        return code.op(f"bitcast {vector('i32', lanes)} {high} to {vector('float', lanes)}")
    if element not in _SMALL:
        return bits
    mantissa, _, _, factor = _SMALL[element]
    i16 = vector("i16", lanes)

    def number(value: int) -> str:
        return code.splat(str(value), "i16", lanes)

    wide = code.op(f"zext {vector('i8', lanes)} {bits} to {i16}")
    sign = code.op(f"shl {i16} {code.op(f'and {i16} {wide}, {number(128)}')}, {number(8)}")
    low = code.op(f"and {i16} {wide}, {number(127)}")
    rest = code.op(f"shl {i16} {low}, {number(10 - mantissa)}")
    half = code.op(f"bitcast {i16} {code.op(f'or {i16} {sign}, {rest}')} to {vector('half', lanes)}")
    value = code.op(f"fpext {vector('half', lanes)} {half} to {vector('float', lanes)}")
    if factor == 1.0:
        return value
    value = code.op(f"fmul {vector('float', lanes)} {value}, {code.splat(literal(factor, 'float'), 'float', lanes)}")
    nan = code.op(f"icmp eq {i16} {low}, {number(127)}")
    return code.when(nan, "float", code.splat(literal(math.nan, "float"), "float", lanes), value, lanes)


def to_memory(code: Code, element: str, value: str, lanes: int) -> str:
    """The bits of a value as LLVM's type `memory(element)`."""
    if element == "i1":
        return code.op(f"zext {vector('i1', lanes)} {value} to {vector('i8', lanes)}")
    if element == "bf16":
        word = code.op(f"bitcast {vector('float', lanes)} {value} to {vector('i32', lanes)}")
        high = code.op(f"lshr {vector('i32', lanes)} {word}, {code.splat('16', 'i32', lanes)}")
        return code.op(f"trunc {vector('i32', lanes)} {high} to {vector('i16', lanes)}")
    if element in _SMALL:
        mantissa, _, _, factor = _SMALL[element]
        type, i16 = vector("float", lanes), vector("i16", lanes)

        def number(value: int) -> str:
            return code.splat(str(value), "i16", lanes)

        scaled = code.op(f"fmul {type} {value}, {code.splat(literal(1 / factor, 'float'), 'float', lanes)}")
        half = code.op(f"fptrunc {type} {scaled} to {vector('half', lanes)}")
        word = code.op(f"bitcast {vector('half', lanes)} {half} to {i16}")
        sign = code.op(f"and {i16} {code.op(f'lshr {i16} {word}, {number(8)}')}, {number(128)}")
        low = code.op(f"and {i16} {code.op(f'lshr {i16} {word}, {number(10 - mantissa)}')}, {number(127)}")
        nan = code.op(f"fcmp uno {type} {value}, {value}")
        low = code.when(nan, "i16", number(127), low, lanes)
        return code.op(f"trunc {i16} {code.op(f'or {i16} {sign}, {low}')} to {vector('i8', lanes)}")
    if element == "f16":
        return code.op(f"fptrunc {vector('float', lanes)} {value} to {vector('half', lanes)}")
    return value


def rounded(code: Code, element: str, value: str, lanes: int, saturate: bool = False) -> str:
    """A float32 value rounded to the nearest one that `element` can hold."""
    type, i32 = vector("float", lanes), vector("i32", lanes)

    def number(value: int) -> str:
        return code.splat(str(value), "i32", lanes)

    if element == "f16":
        half = code.op(f"fptrunc {type} {value} to {vector('half', lanes)}")
        return code.op(f"fpext {vector('half', lanes)} {half} to {type}")
    if element == "bf16":
        word = code.op(f"bitcast {type} {value} to {i32}")
        odd = code.op(f"and {i32} {code.op(f'lshr {i32} {word}, {number(16)}')}, {number(1)}")
        up = code.op(f"add {i32} {code.op(f'add {i32} {word}, {number(0x7FFF)}')}, {odd}")
        cut = code.op(f"bitcast {i32} {code.op(f'and {i32} {up}, {number(-65536)}')} to {type}")
        nan = code.op(f"fcmp uno {type} {value}, {value}")
        return code.when(nan, "float", code.splat(literal(math.nan, "float"), "float", lanes), cut, lanes)
    if element not in _SMALL:
        return value
    mantissa, least, most, _ = _SMALL[element]
    limit = code.splat(literal(most, "float"), "float", lanes)
    low = code.intrinsic("minnum", "float", code.intrinsic("fabs", "float", value, lanes=lanes), limit, lanes=lanes)
    clipped = code.intrinsic("copysign", "float", low, value, lanes=lanes)
    nan = code.op(f"fcmp uno {type} {value}, {value}")
    value = code.when(nan, "float", value, clipped, lanes)
    word = code.op(f"bitcast {type} {value} to {i32}")
    power = code.op(f"and {i32} {code.op(f'lshr {i32} {word}, {number(23)}')}, {number(255)}")
    power = code.intrinsic("smax", "i32", power, number(127 + least), lanes=lanes)
    power = code.op(f"sub {i32} {power}, {number(mantissa)}")
    step = code.op(f"bitcast {i32} {code.op(f'shl {i32} {power}, {number(23)}')} to {type}")
    back = code.op(f"sub {i32} {number(254)}, {power}")
    inverse = code.op(f"bitcast {i32} {code.op(f'shl {i32} {back}, {number(23)}')} to {type}")
    whole = code.intrinsic("roundeven", "float", code.op(f"fmul {type} {value}, {inverse}"), lanes=lanes)
    return code.when(nan, "float", value, code.op(f"fmul {type} {whole}, {step}"), lanes)


# -- operations

_FLOAT_OPS = {"arith.addf": "fadd", "arith.subf": "fsub", "arith.mulf": "fmul", "arith.divf": "fdiv"}
_FLOAT_OPS |= {"tt.precise_divf": "fdiv"}
_EXTREMES = {
    "arith.maxnumf": "maxnum", "arith.minnumf": "minnum", "arith.maximumf": "maximum", "arith.minimumf": "minimum",
}  # fmt: skip
_INTEGER_OPS = {
    "arith.addi": "add", "arith.subi": "sub", "arith.muli": "mul", "arith.andi": "and", "arith.ori": "or",
    "arith.xori": "xor",
}  # fmt: skip
_INTEGER_EXTREMES = {"arith.maxsi": "smax", "arith.minsi": "smin", "arith.maxui": "umax", "arith.minui": "umin"}
_SHIFTS = {"arith.shli": "shl", "arith.shrsi": "ashr", "arith.shrui": "lshr"}
_DIVISIONS = {"arith.divsi": "sdiv", "arith.remsi": "srem", "arith.divui": "udiv", "arith.remui": "urem"}
_SAME = frozenset(("tt.bitcast", "tt.int_to_ptr", "tt.ptr_to_int", "arith.bitcast"))

#: operations of one element each, which `elementwise` knows
NAMES = frozenset((
    *_FLOAT_OPS, *_EXTREMES, *_INTEGER_OPS, *_INTEGER_EXTREMES, *_SHIFTS, *_DIVISIONS, *_SAME, "arith.cmpi",
    "arith.cmpf", "arith.select", "arith.negf", "arith.extf", "arith.truncf", "tt.fp_to_fp", "arith.sitofp",
    "arith.uitofp", "arith.fptosi", "arith.fptoui", "arith.extsi", "arith.extui", "arith.trunci", "tt.mulhiui",
    "tt.clampf", "tt.precise_sqrt", "tt.extern_elementwise", "arith.remf", "arith.index_cast",
))  # fmt: skip


def is_elementwise(name: str) -> bool:
    """True if each element of the operation's results depends on the same element of its operands alone."""
    return name in NAMES or name.startswith("math.")


def elementwise(code: Code, operation: Operation, values: list[str], lanes: int) -> str:
    """Write one operation; `values` are its operands and the result as names of LLVM."""
    name, types = operation.name, [operand.type.element for operand in operation.operands]
    element = operation.result.element
    kind = register(element)
    type = vector(kind, lanes)
    x = values[0]
    if name in _FLOAT_OPS:
        return rounded(code, element, code.op(f"{_FLOAT_OPS[name]} {type} {x}, {values[1]}"), lanes)
    if name in _INTEGER_OPS:
        return code.op(f"{_INTEGER_OPS[name]} {type} {x}, {values[1]}")
    if name in _EXTREMES:
        return code.intrinsic(_EXTREMES[name], kind, *values, lanes=lanes)
    if name in _INTEGER_EXTREMES:
        return code.intrinsic(_INTEGER_EXTREMES[name], kind, *values, lanes=lanes)
    if name in ("arith.cmpi", "arith.cmpf"):
        predicate = operation.text.split(",")[0].strip()
        verb = "icmp" if name == "arith.cmpi" else "fcmp"
        return code.op(f"{verb} {predicate} {vector(register(types[0]), lanes)} {x}, {values[1]}")
    if name == "arith.select":
        return code.when(x, kind, values[1], values[2], lanes)
    if name in _SHIFTS:
        return _shift(code, _SHIFTS[name], kind, x, values[1], lanes)
    if name in _DIVISIONS:
        return _division(code, _DIVISIONS[name], kind, x, values[1], lanes)
    if name == "arith.negf":
        return code.op(f"fneg {type} {x}")
    if name in ("arith.extsi", "arith.extui", "arith.trunci", "arith.index_cast"):
        source = register(types[0])
        if source == kind:
            return x
        verb = "trunc" if int(kind[1:]) < int(source[1:]) else "zext" if name == "arith.extui" else "sext"
        return code.op(f"{verb} {vector(source, lanes)} {x} to {type}")
    if name in ("arith.extf", "arith.truncf", "tt.fp_to_fp"):
        return _float_cast(code, operation, types[0], element, x, lanes)
    if name in ("arith.sitofp", "arith.uitofp"):
        found = code.op(f"{name[6:]} {vector(register(types[0]), lanes)} {x} to {type}")
        return rounded(code, element, found, lanes)
    if name in ("arith.fptosi", "arith.fptoui"):
        source = register(types[0])
        tag = f"{f'v{lanes}' if lanes else ''}{kind}.{f'v{lanes}' if lanes else ''}{short(source)}"
        full = f"@llvm.{name[6:]}.sat.{tag}"
        code.declare(full, f"declare {type} {full}({vector(source, lanes)})")
        return code.op(f"call {type} {full}({vector(source, lanes)} {x})")
    if name in _SAME:
        return _bitcast(code, types[0], element, x, lanes)
    if name == "tt.mulhiui":
        width = int(kind[1:])
        wide = vector(f"i{2 * width}", lanes)
        parts = [code.op(f"zext {type} {value} to {wide}") for value in values]
        high = code.op(
            f"lshr {wide} {code.op(f'mul {wide} {parts[0]}, {parts[1]}')}, {code.splat(str(width), f'i{2 * width}', lanes)}"
        )
        return code.op(f"trunc {wide} {high} to {type}")
    if name == "tt.clampf":
        low, high = ("maximum", "minimum") if "all" in operation.text.split(":")[0] else ("maxnum", "minnum")
        return code.intrinsic(high, kind, code.intrinsic(low, kind, x, values[1], lanes=lanes), values[2], lanes=lanes)
    return _function(code, operation, types, values, lanes)


def _shift(code: Code, verb: str, kind: str, x: str, by: str, lanes: int) -> str:
    """A shift; by the width and more, LLVM's is undefined, a device's gives 0 or the sign."""
    type, width = vector(kind, lanes), int(kind[1:])
    if by.isdigit() or by.startswith("splat ("):
        number = int(by.removesuffix(")").split()[-1])
        if 0 <= number < width:
            return code.op(f"{verb} {type} {x}, {by}")
    most = code.splat(str(width - 1), kind, lanes)
    inside = code.op(f"icmp ule {type} {by}, {most}")
    shifted = code.op(f"{verb} {type} {x}, {code.intrinsic('umin', kind, by, most, lanes=lanes)}")
    return shifted if verb == "ashr" else code.when(inside, kind, shifted, code.splat("0", kind, lanes), lanes)


def _division(code: Code, verb: str, kind: str, x: str, y: str, lanes: int) -> str:
    """An integer division that cannot trap: by 0 it gives 0, as NumPy does, and the least number by -1 wraps around.

    A processor divides no vectors of integers: up to 32 bits, float64 gives the same quotients, 4 times faster.
    """
    type, width = vector(kind, lanes), int(kind[1:])
    zero, one = code.splat("0", kind, lanes), code.splat("1", kind, lanes)
    known = y.removeprefix("splat (").removesuffix(")").split()[-1]
    constant = int(known) if known.lstrip("-").isdigit() else 0
    if constant > 0:
        return code.op(f"{verb} {type} {x}, {y}")
    missing = code.op(f"icmp eq {type} {y}, {zero}")
    divisor = code.when(missing, kind, one, y, lanes)
    if lanes and width <= 32:
        sign = "s" if verb[0] == "s" else "u"
        wide = vector("double", lanes)
        parts = [code.op(f"{sign}itofp {type} {value} to {wide}") for value in (x, divisor)]
        ratio = code.op(f"fdiv {wide} {parts[0]}, {parts[1]}")
        i64 = vector("i64", lanes)  # the least number by -1 is beyond 32 bits
        quotient = code.op(f"trunc {i64} {code.op(f'fptosi {wide} {ratio} to {i64}')} to {type}")
    elif verb[0] == "s":  # the least number by -1 would trap
        negative = code.op(f"icmp eq {type} {divisor}, {code.splat('-1', kind, lanes)}")
        quotient = code.op(f"sdiv {type} {x}, {code.when(negative, kind, one, divisor, lanes)}")
        quotient = code.when(negative, kind, code.op(f"sub {type} {zero}, {x}"), quotient, lanes)
    else:
        quotient = code.op(f"udiv {type} {x}, {divisor}")
    if verb.endswith("rem"):
        found = code.op(f"sub {type} {x}, {code.op(f'mul {type} {quotient}, {divisor}')}")
    else:
        found = quotient
    return code.when(missing, kind, zero, found, lanes)


def _float_cast(code: Code, operation: Operation, source: str, element: str, x: str, lanes: int) -> str:
    before, after = register(source), register(element)
    if "rtz" in operation.text and bits_of(source) > bits_of(element):
        if (source, element) != ("f32", "bf16"):
            raise Unknown(f"rounding {source} to {element} towards zero")
        word = code.op(f"bitcast {vector('float', lanes)} {x} to {vector('i32', lanes)}")
        cut = code.op(f"and {vector('i32', lanes)} {word}, {code.splat('-65536', 'i32', lanes)}")
        return code.op(f"bitcast {vector('i32', lanes)} {cut} to {vector('float', lanes)}")
    if before != after:
        verb = "fpext" if after == "double" else "fptrunc"
        x = code.op(f"{verb} {vector(before, lanes)} {x} to {vector(after, lanes)}")
    return rounded(code, element, x, lanes) if bits_of(element) < 32 and element != source else x


def _bitcast(code: Code, source: str, element: str, x: str, lanes: int) -> str:
    before, after = register(source), register(element)
    if before == after and source not in _MEMORY and element not in _MEMORY:
        return x
    bits = to_memory(code, source, x, lanes) if source != "i1" else x
    raw, wanted = (memory(source) if source != "i1" else "i1"), (memory(element) if element != "i1" else "i1")
    if raw != wanted:
        bits = code.op(f"bitcast {vector(raw, lanes)} {bits} to {vector(wanted, lanes)}")
    return from_memory(code, element, bits, lanes) if element != "i1" else bits


_INTRINSICS = {
    "math.sqrt": "sqrt", "tt.precise_sqrt": "sqrt", "math.floor": "floor", "math.ceil": "ceil", "math.absf": "fabs",
    "math.trunc": "trunc", "math.roundeven": "roundeven", "math.copysign": "copysign", "math.round": "round",
}  # fmt: skip


def _function(code: Code, operation: Operation, types: list[str], values: list[str], lanes: int) -> str:
    name, element = operation.name, operation.result.element
    kind = register(types[0])
    if name in _INTRINSICS:
        return rounded(code, element, code.intrinsic(_INTRINSICS[name], kind, *values, lanes=lanes), lanes)
    if name == "math.absi":
        return code.intrinsic("abs", kind, values[0], extra="i1 false", lanes=lanes)
    if name == "math.fma":
        if code.fma:
            found = code.intrinsic("fma", kind, *values, lanes=lanes)
        else:  # where the processor has no such instruction, it would be a call for each lane
            type = vector(kind, lanes)
            found = code.op(f"fadd {type} {code.op(f'fmul {type} {values[0]}, {values[1]}')}, {values[2]}")
        return rounded(code, element, found, lanes)
    if name == "math.ctpop":
        return code.intrinsic("ctpop", kind, values[0], lanes=lanes)
    symbol = name
    if name == "tt.extern_elementwise":
        text = operation.text
        symbol = text[text.index('symbol = "') + 10 :].split('"')[0].removeprefix("__nv_")
    found = functions.call(code, symbol, values, kind, lanes)
    if found is None:
        raise Unknown(f"function {symbol}")
    value, result = found
    if result != register(element):
        if element == "i1" and result[0] == "i":
            return code.op(f"icmp ne {vector(result, lanes)} {value}, {code.splat('0', result, lanes)}")
        raise Unknown(f"function {symbol} with a result of type {element}")
    return rounded(code, element, value, lanes)
