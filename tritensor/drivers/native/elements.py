"""Writes operations of single elements: on scalars, or on vectors of some lanes.

Values of bfloat16, float16 and float8 are float32 values that the type can hold: each operation on them computes in
float32 and rounds. Memory holds the type's own bits.
"""

from __future__ import annotations

import math
import re
import struct
from functools import partial
from typing import Any

from . import functions
from .emit import Code, short, vector
from .functions import Number, apply, where
from .parse import Block, Operation, Unknown, Value, number

__all__ = ["bits_of", "constant", "elementwise", "from_memory", "is_elementwise", "literal", "memory", "register"]
__all__ += ["rounded", "to_memory", "zero"]

_REGISTER = {"f16": "float", "bf16": "float", "f8E5M2": "float", "f8E4M3FN": "float", "f32": "float", "f64": "double"}
_MEMORY = {"f16": "half", "bf16": "i16", "f8E5M2": "i8", "f8E4M3FN": "i8", "i1": "i8"}
# of float8: bits of the mantissa, least exponent, largest value, factor between it and the float16 of the same bits
_SMALL = {"f8E5M2": (2, -14, 57344.0, 1.0), "f8E4M3FN": (3, -6, 448.0, 256.0)}


def register(element: str) -> str:
    """LLVM's type of a value."""
    found = "i64" if element[0] == "*" else _REGISTER.get(element, element if element[0] == "i" else "")
    if not found:
        raise Unknown(f"type {element}")
    return found


def memory(element: str) -> str:
    """LLVM's type of a value in memory."""
    return _MEMORY.get(element) or register(element)


def bits_of(element: str) -> int:
    """The size of an element in memory."""
    found = re.match(r"[a-z]*(\d+)", element)
    return 64 if found is None else max(int(found[1]), 8)


def literal(value: float, kind: str) -> str:
    """A constant of an LLVM type."""
    if kind[0] == "i":
        return str(int(value))
    if kind == "float" and math.isfinite(value):
        value = struct.unpack("<f", struct.pack("<f", value))[0]
    return f"0x{struct.unpack('<Q', struct.pack('<d', value))[0]:016X}"


def zero(kind: str) -> str:
    """The constant 0 of an LLVM type."""
    return literal(0, kind)


def constant(operation: Operation) -> str:
    """The constant of an `arith.constant`."""
    return literal(number(operation), register(operation.result.element))


# -- memory's bits and values, as formulas


def _of_float8(element: str, x: Number) -> Number:
    mantissa, _, _, factor = _SMALL[element]
    wide = x.cast("zext", "i16")
    low = wide & 127
    value = (((wide & 128) << 8) | (low << (10 - mantissa))).number().cast("fpext", "float")
    return value if factor == 1 else where(low.equals(127), math.nan, value * factor)


def _to_float8(element: str, x: Number) -> Number:
    mantissa, _, _, factor = _SMALL[element]
    half = (x * (1 / factor)).cast("fptrunc", "half").bits()
    low = where(x.equals(x), half.shifted(10 - mantissa) & 127, 127)
    return ((half.shifted(8) & 128) | low).cast("trunc", "i8")


def _round_float8(element: str, x: Number) -> Number:
    mantissa, least, most, _ = _SMALL[element]
    near = abs(x).call("minnum", most).sign(x)
    power = (near.bits().shifted(23) & 255).call("smax", 127 + least) - mantissa
    whole = (near * ((254 - power) << 23).number()).call("roundeven")
    return where(x.equals(x), whole * (power << 23).number(), x)


def _round_bfloat16(x: Number) -> Number:
    """Adds 0x7FFF and the last bit that stays. AVX-512 has what is subtracted for it in one instruction."""
    return where(x.equals(x), _near_bfloat16(x), math.nan)


def _near_bfloat16(x: Number) -> Number:
    bits = x.bits()
    found: Number = ((bits - (((bits.shifted(16) ^ -1) & 1) | -32768)) & -65536).number()
    return found


_FROM: dict[str, Any] = {each: partial(_of_float8, each) for each in _SMALL}
_FROM |= {"bf16": lambda x: (x.cast("zext", "i32") << 16).number(), "f16": lambda x: x.cast("fpext", "float")}
_FROM |= {"i1": lambda x: x.equals(0) ^ True}
_TO: dict[str, Any] = {each: partial(_to_float8, each) for each in _SMALL}
_TO |= {"bf16": lambda x: x.bits().shifted(16).cast("trunc", "i16"), "f16": lambda x: x.cast("fptrunc", "half")}
_TO |= {"i1": lambda x: x.cast("zext", "i8")}
_ROUND: dict[str, Any] = {each: partial(_round_float8, each) for each in _SMALL}
_ROUND |= {"bf16": _round_bfloat16, "f16": lambda x: x.cast("fptrunc", "half").cast("fpext", "float")}


def _convert(table: dict[str, Any], way: str, code: Code, element: str, value: str, kind: str, lanes: int) -> str:
    if element not in table:
        return value
    return apply(code, f"{way}.{element}", table[element], kind, value, lanes=lanes)


def from_memory(code: Code, element: str, bits: str, lanes: int) -> str:
    """The value of an element that was loaded as LLVM's type `memory(element)`."""
    return _convert(_FROM, "from", code, element, bits, memory(element), lanes)


def to_memory(code: Code, element: str, value: str, lanes: int) -> str:
    """The bits of a value as LLVM's type `memory(element)`."""
    return _convert(_TO, "to", code, element, value, register(element), lanes)


def rounded(code: Code, element: str, value: str, lanes: int, tame: bool = False) -> str:
    """A float32 value rounded to the nearest one that `element` can hold; `tame`: it can hold the bits of NaNs."""
    if tame and element == "bf16":
        return apply(code, "near.bf16", _near_bfloat16, "float", value, lanes=lanes)
    return _convert(_ROUND, "round", code, element, value, "float", lanes)


# -- operations

_FLOATING = {"addf": "fadd", "subf": "fsub", "mulf": "fmul", "divf": "fdiv", "precise_divf": "fdiv"}
_INTEGER = {"addi": "add", "subi": "sub", "muli": "mul", "andi": "and", "ori": "or", "xori": "xor"}
_EXTREMES = {"maxnumf": "maxnum", "minnumf": "minnum", "maximumf": "maximum", "minimumf": "minimum"}
_EXTREMES |= {"maxsi": "smax", "minsi": "smin", "maxui": "umax", "minui": "umin"}
_SHIFTS = {"shli": "shl", "shrsi": "ashr", "shrui": "lshr"}
_DIVISIONS = {"divsi": "sdiv", "remsi": "srem", "divui": "udiv", "remui": "urem"}
_SAME = ("bitcast", "int_to_ptr", "ptr_to_int")
_WIDTHS = {"extsi": "sext", "extui": "zext", "index_cast": "sext", "trunci": "trunc"}
_FLOAT_CASTS = ("extf", "truncf", "fp_to_fp")
_NUMBER_CASTS = ("sitofp", "uitofp", "fptosi", "fptoui")
_OTHERS = ("cmpi", "cmpf", "select", "negf", "mulhiui", "clampf", "precise_sqrt", "extern_elementwise", "remf")
_KNOWN = {*_FLOATING, *_INTEGER, *_EXTREMES, *_SHIFTS, *_DIVISIONS, *_SAME, *_WIDTHS, *_FLOAT_CASTS, *_NUMBER_CASTS}
_KNOWN |= {*_OTHERS}
_SYMBOLS = {"remf": "fmod", "mulhiui": "umulhi", "precise_sqrt": "math.sqrt"}


def is_elementwise(name: str) -> bool:
    """True if each element of the operation's result depends on the same element of its operands alone."""
    dialect, _, stem = name.partition(".")
    return dialect == "math" or (dialect in ("arith", "tt") and stem in _KNOWN)


def elementwise(code: Code, operation: Operation, values: list[str], lanes: int) -> str:
    """Write one operation; `values` are its operands, and the result is the name of its own."""
    name = operation.name.partition(".")[2]
    source, element = operation.operands[0].element, operation.result.element
    before, kind = register(source), register(element)
    from_type, type = vector(before, lanes), vector(kind, lanes)
    x = values[0]
    if name in _INTEGER:
        return code.op(f"{_INTEGER[name]} {type} {x}, {values[1]}")
    if name in _FLOATING:
        return rounded(code, element, code.op(f"{_FLOATING[name]} {type} {x}, {values[1]}"), lanes, tame=True)
    if name in _EXTREMES:
        return code.intrinsic(_EXTREMES[name], kind, *values, lanes=lanes)
    if name in ("cmpi", "cmpf"):
        return code.op(f"{name[3]}cmp {operation.text.split(',')[0]} {from_type} {x}, {values[1]}")
    if name == "select":
        return code.when(x, kind, values[1], values[2], lanes)
    if name == "negf":
        return code.op(f"fneg {type} {x}")
    if name in _SHIFTS or name in _DIVISIONS:
        verb = _SHIFTS.get(name) or _DIVISIONS[name]
        by = re.search(r"(\d+)\)?$", values[1]) if values[1][0] != "%" else None
        known = (
            by is not None
            and "-" not in values[1]
            and (int(by[1]) < int(kind[1:]) if name in _SHIFTS else int(by[1]) > 0)
        )
        if known:
            return code.op(f"{verb} {type} {x}, {values[1]}")
        rule = partial(_shifted if name in _SHIFTS else _divided, verb)
        return apply(code, f"{verb}.{kind}", rule, kind, x, values[1], lanes=lanes)
    if name in _WIDTHS:
        verb = "trunc" if int(kind[1:]) < int(before[1:]) else _WIDTHS[name]
        return x if before == kind else code.op(f"{verb} {from_type} {x} to {type}")
    if name in _FLOAT_CASTS:
        return _float_cast(code, operation, source, element, x, lanes)
    if name in _NUMBER_CASTS:
        if name[0] != "f":
            return rounded(code, element, code.op(f"{name} {from_type} {x} to {type}"), lanes)
        mark = f"v{lanes}" if lanes else ""
        return code.op(f"call {type} @llvm.{name}.sat.{mark}{kind}.{mark}{short(before)}({from_type} {x})")
    if name in _SAME:
        return _bitcast(code, source, element, x, lanes)
    if name == "clampf":
        low, high = ("maximum", "minimum") if "propagateNan = all" in operation.text else ("maxnum", "minnum")
        return code.intrinsic(high, kind, code.intrinsic(low, kind, x, values[1], lanes=lanes), values[2], lanes=lanes)
    return _function(code, operation, before, values, lanes)


def _shifted(verb: str, x: Number, by: Number) -> Number:
    """By the width and more, LLVM's shift is undefined; a device's gives 0, or the sign."""
    within = by.call("umin", x.size - 1)
    found: Number = x.body.emit(x.kind, f"{verb} {x.type} {x.name}, {within.name}")
    return found if verb == "ashr" else where(within.equals(by), found, 0)


def _divided(verb: str, x: Number, y: Number) -> Number:
    """A division that cannot trap: by 0 it gives 0, as NumPy does, and the least number by -1 wraps around.

    A processor divides no vectors of integers: up to 32 bits, float64 gives the same quotients, 4 times faster.
    """
    missing = y.equals(0)
    divisor = where(missing, 1, y)
    if x.body.lanes and x.size <= 32:
        ratio = x.cast(f"{verb[0]}itofp", "double") / divisor.cast(f"{verb[0]}itofp", "double")
        quotient = ratio.cast("fptosi", "i64").cast("trunc", x.kind)  # the least number by -1 is beyond 32 bits
    elif verb[0] == "s":  # the least number by -1 would trap
        negative = divisor.equals(-1)
        safe = where(negative, 1, divisor)
        quotient = where(negative, 0 - x, x.body.emit(x.kind, f"sdiv {x.type} {x.name}, {safe.name}"))
    else:
        quotient = x.body.emit(x.kind, f"udiv {x.type} {x.name}, {divisor.name}")
    return where(missing, 0, x - quotient * divisor if verb.endswith("rem") else quotient)


def _float_cast(code: Code, operation: Operation, source: str, element: str, x: str, lanes: int) -> str:
    before, after = register(source), register(element)
    narrower = bits_of(source) > bits_of(element)
    if "rounding = rtz" in operation.text and narrower:
        if (source, element) != ("f32", "bf16"):
            raise Unknown(f"rounding {source} to {element} towards zero")
        return apply(code, "cut.bf16", lambda x: (x.bits() & -65536).number(), "float", x, lanes=lanes)
    if before == "double" and bits_of(element) < 32:
        x = apply(code, "odd", _to_odd, "double", x, lanes=lanes)
    elif before != after:
        verb = "fpext" if after == "double" else "fptrunc"
        x = code.op(f"{verb} {vector(before, lanes)} {x} to {vector(after, lanes)}")
    return x if source == element else rounded(code, element, x, lanes, _is_tame(operation.operands[0]))


def _is_tame(value: Value) -> bool:
    """Arithmetic of bfloat16 numbers and constants: NaNs, which are quiet then, have no bits beside theirs."""
    owner = value.owner
    if isinstance(owner, Block) or owner.name[6:] not in _FLOATING or value.element != "f32":
        return False
    makers = [each.owner for each in owner.operands if isinstance(each.owner, Operation)]
    held = [each.operands[0].element if each.name == "arith.extf" else each.name for each in makers]
    return len(held) == 2 and {*held} <= {"bf16", "arith.constant"}


def _to_odd(x: Number) -> Number:
    """A float64 as float32, with the last bit set where it is none: a second rounding, to fewer bits, is then right."""
    near = x.cast("fptrunc", "float")
    back = near.double()
    bits = near.bits() - (abs(back) > abs(x)).flag()
    return where(back.equals(x), near, (bits | 1).number())


def _bitcast(code: Code, source: str, element: str, x: str, lanes: int) -> str:
    raw, wanted = ("i1" if each == "i1" else memory(each) for each in (source, element))
    bits = x if source == "i1" else to_memory(code, source, x, lanes)
    if raw != wanted:
        bits = code.op(f"bitcast {vector(raw, lanes)} {bits} to {vector(wanted, lanes)}")
    return bits if element == "i1" else from_memory(code, element, bits, lanes)


def _function(code: Code, operation: Operation, kind: str, values: list[str], lanes: int) -> str:
    name, element = operation.name.partition(".")[2], operation.result.element
    symbol = _SYMBOLS.get(name, operation.name)
    if name == "extern_elementwise":
        symbol = operation.text.split('symbol = "', 1)[1].split('"')[0].removeprefix("__nv_")
    found = functions.call(code, symbol, values, kind, lanes)
    if found is None:
        raise Unknown(f"function {symbol}")
    value, result = found
    if element == "i1" and result != "i1":
        return code.op(f"icmp ne {vector(result, lanes)} {value}, {code.splat('0', result, lanes)}")
    if result != register(element):
        raise Unknown(f"function {symbol} with a result of type {element}")
    return rounded(code, element, value, lanes)
