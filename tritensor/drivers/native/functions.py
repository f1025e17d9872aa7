"""Mathematics functions as LLVM instructions: libdevice's, and those of MLIR's math dialect, on lanes of numbers.

Each function becomes a definition in the module, once for each number of lanes. Its formula is Python whose operators
emit instructions, in one of these tables:
- `_SAME`: in the type of the operands, whatever it is.
- `_SINGLE`: of float32 in float32, for what kernels call most. To 1.6 units in the last place.
- `_WIDE`: of float32 in float64. To 1e-9, without care for the rounding, overflow or subnormals of the result.
- `_FULL`: of float64, and of float32 in float64. What has no formula, the C library's function computes for each lane.
"""

# ruff: noqa: D102, D103  a formula's name says what it computes

from __future__ import annotations

import functools
import math
import operator
import re
import struct
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from .emit import Code

__all__ = ["LIBM", "Number", "apply", "call", "where"]

# The functions of the C library that are called.
_NAMES = """acos acosh asin asinh atan atan2 atanh cbrt cos cosh erf erfc exp exp10 exp2 expm1 fma fmod hypot ilogb j0
    j1 jn ldexp lgamma log log10 log1p log2 logb nextafter nextafterf pow remainder sin sinh tan tanh tgamma y0 y1 yn"""
LIBM = frozenset(_NAMES.split())
_FLOATS = {"half": (16, 10), "float": (32, 23), "double": (64, 52)}  # bits, of which of the mantissa
_NUMBERS = {16: "half", 32: "float", 64: "double"}
_INF, _LN2, _PI = math.inf, math.log(2), math.pi


class _Body:
    """The function that is being written: its lines, and the declarations that they need."""

    def __init__(self, lanes: int, fma: bool, scales: bool) -> None:
        self.lanes, self.fma, self.scales = lanes, fma, scales
        self.lines: list[str] = []
        self.needs: dict[str, str] = {}

    def type(self, kind: str) -> str:
        return f"<{self.lanes} x {kind}>" if self.lanes else kind

    def emit(self, kind: str, text: str) -> Any:
        self.lines.append(f"%v{len(self.lines)} = {text}")
        return Number(self, kind, f"%v{len(self.lines) - 1}")


def _operator(floating: str, integer: str = "") -> Any:
    text, kind = "{} {} {}, {}", "i1" if "cmp" in floating else ""
    return lambda x, y: x.body.emit(
        kind or x.kind, text.format(floating if x.floats else integer, x.type, x.name, x.like(y).name)
    )


def _intrinsic(name: str, more: str = "") -> Callable[..., Any]:
    return lambda x, *others: x.call(name, *others, more=more)


class Number:
    """A value in the function that is being written: its lanes are float, double, i1 or integers."""

    def __init__(self, body: _Body, kind: str, name: str) -> None:
        self.body, self.kind, self.name, self.type = body, kind, name, body.type(kind)
        self.floats = kind in _FLOATS
        self.size, self.mantissa = _FLOATS[kind] if self.floats else (int(kind[1:]), 0)

    def like(self, other: Number | float) -> Number:
        """A constant of this value's type."""
        if isinstance(other, Number):
            return other
        number = float(np.float32(other)) if self.kind == "float" else other
        text = f"0x{struct.unpack('<Q', struct.pack('<d', number))[0]:016X}" if self.floats else str(int(other))
        return Number(self.body, self.kind, f"splat ({self.kind} {text})" if self.body.lanes else text)

    def call(self, name: str, *others: Any, result: str = "", more: str = "") -> Any:
        """LLVM's intrinsic of that name; `more` are operands without lanes."""
        lanes, values = f"v{self.body.lanes}" if self.body.lanes else "", [self, *map(self.like, others)]
        kinds = [*dict.fromkeys([result or self.kind, *[value.kind for value in values]])]
        suffix = "".join(f".{lanes}f{_FLOATS[kind][0]}" if kind in _FLOATS else f".{lanes}{kind}" for kind in kinds)
        operands = ", ".join(f"{value.type} {value.name}" for value in values)
        return self.body.emit(kinds[0], f"call {self.body.type(kinds[0])} @llvm.{name}{suffix}({operands}{more})")

    def cast(self, word: str, kind: str) -> Any:
        text = f"{word} {self.type} {self.name} to {self.body.type(kind)}"
        return self if kind == self.kind else self.body.emit(kind, text)

    __add__ = __radd__ = _operator("fadd", "add")
    __sub__, __truediv__ = _operator("fsub", "sub"), _operator("fdiv")
    __mul__ = __rmul__ = _operator("fmul", "mul")
    __and__, __or__, __xor__ = _operator("", "and"), _operator("", "or"), _operator("", "xor")
    __lshift__, __rshift__, shifted = _operator("", "shl"), _operator("", "ashr"), _operator("", "lshr")
    __lt__, __gt__ = _operator("fcmp olt", "icmp slt"), _operator("fcmp ogt", "icmp sgt")
    __le__, equals = _operator("fcmp ole", "icmp sle"), _operator("fcmp oeq", "icmp eq")
    __rsub__, __rtruediv__ = (lambda x, y: x.like(y) - x), (lambda x, y: x.like(y) / x)
    __neg__, __abs__ = (lambda x: -0.0 - x), _intrinsic("fabs")
    bits, number = (lambda x: x.cast("bitcast", f"i{x.size}")), (lambda x: x.cast("bitcast", _NUMBERS[x.size]))
    flag, twice = (lambda x: x.cast("zext", "i32")), (lambda x, how: x.cast(how, f"i{2 * x.size}"))
    low, double = (lambda x: x.cast("trunc", "i32")), (lambda x: x.cast("fpext" if x.floats else "sitofp", "double"))
    # `mad` is x * y + z in one instruction where there is one. Where that matters here, the product is exact.
    sqrt, sign, mad = _intrinsic("sqrt"), _intrinsic("copysign"), _intrinsic("fmuladd")

    # What formulas have in common.
    def poly(x: Number, coefficients: list[float]) -> Any:
        return functools.reduce(lambda sum, term: sum.mad(x, term), coefficients[-2::-1], x.like(coefficients[-1]))

    def clip(x: Number, limit: Number | float) -> Any:
        return where(x < -limit, -limit, where(x > limit, limit, x))

    def exponent(x: Number, base: float = math.e, rest: Number | None = None, scales: bool = False) -> tuple[Any, ...]:
        """n, an integer whose low bits are n (with `scales`, n itself), and r: base**(x + rest) is 2**n base**r."""
        unit, magic = _LN2 / math.log(base), 1.5 * 2.0**x.mantissa
        high = round(unit * 2**15) / 2**15  # so few bits that n * high is exact
        turned = (x * (1 / unit)).call("roundeven") if scales else x.mad(1 / unit, magic)
        n, bits = (turned, turned.cast("fptosi", "i32")) if scales else (turned - magic, turned.bits())
        r = n.mad(-high, x)
        return n, bits, r if unit == high else n.mad(high - unit, r) if rest is None else r + n.mad(high - unit, rest)

    def growth(r: Number, base: float = math.e, less: int = 1) -> Any:
        """base**r - less, of which the power is between 0.7 and 1.42."""
        s, series = r * math.log(base), _fit(lambda r: (np.expm1(r) - r) / r**2, 4 if r.size == 32 else 8, -0.35, 0.35)
        p = (s * s).mad(s.poly(series), s)
        terms = [term * math.log(base) ** n for n, term in enumerate([1, 1, *series])]
        return p if less else r.poly(terms) if r.body.fma else 1 + p

    def scale(bits: Number) -> Any:
        """2**n for an integer whose low bits are n."""
        mantissa, bias = (23, 127) if bits.size == 32 else (52, 1023)
        return ((bits << mantissa) + (bias << mantissa)).number()

    def power(x: Number, less: int = 0) -> Any:
        """e**x - less, where that is moderate: in float64 up to e**200."""
        _, bits, r = (x.clip(200.0) if x.size == 64 else x).exponent()
        scale = bits.scale()
        return scale.mad(r.growth(), scale - less if less else scale)

    def log(x: Number) -> Any:
        """A float64 is not subnormal."""
        half, single = int(np.array(math.sqrt(0.5), f"f{x.size // 8}").view(f"i{x.size // 8}")), x.size == 32
        tiny = x < 2.0**-126
        bits = where(tiny, x * 2.0**25, x).bits() - half
        exponent = bits >> x.mantissa
        f = ((bits & ((1 << x.mantissa) - 1)) + half).number() - 1  # between sqrt(1/2) - 1 and sqrt(2) - 1
        k = exponent.low().cast("sitofp", x.kind) + where(tiny, x.like(-25), 0)  # AVX2 does not convert i64
        series = _fit(lambda f: (np.log1p(f) - f + f * f / 2) / f**3, 7 if single else 14, -0.293, 0.4143)
        w, high = f * f, round(_LN2 * 2**15) / 2**15
        found = k.mad(high, k.mad(_LN2 - high, w.mad(-0.5, f.poly(series) * (w * f))) + f)
        return where(x > 0, where(x < _INF, found, x), where(x.equals(0), x.like(-_INF), math.nan))

    def wave(r: Number, turns: Number) -> Any:
        """The sine of r + turns pi/2 for r between -pi/4 and pi/4."""
        terms, w = range(4 if r.size == 32 else 8), r * r
        sine = [-((-1) ** n) / math.factorial(2 * n + 3) for n in terms]
        cosine = [(-1) ** n / math.factorial(2 * n + 4) for n in terms]
        s, c = (r * w).mad(w.poly(sine), r).sign(r), (w * w).mad(w.poly(cosine), w.mad(-0.5, 1))
        return (where((turns & 1).equals(0), s, c).bits() ^ ((turns & 2) << (r.size - 2))).number()

    # Formulas of float32 in float32.
    def exp(x: Number, base: float = math.e) -> Any:
        unit = _LN2 / math.log(base)
        near = where(x < -151 * unit, -151 * unit, x)
        if x.body.scales:  # to subnormal numbers and infinity as well; of NaN, n is any integer
            _, n, r = where(near > 129 * unit, 129 * unit, near).exponent(base, scales=True)
            return r.growth(base, 0).call("ldexp", n.body.emit("i32", f"freeze {n.type} {n.name}"))
        n, bits, r = near.exponent(base)
        small = n < -125  # the result may be subnormal: it is computed 2**64 times as large
        bits = r.growth(base, 0).bits() + (bits << 23) + where(small, bits.like(64 << 23), 0)
        return where(x < 128 * unit, bits.number() * where(small, n.like(2.0**-64), 1), x + _INF)

    def tanh(x: Number) -> Any:
        a = abs(x).clip(10)
        w = a * a
        near = (a * w).mad(w.poly(_fit(lambda w: (np.tanh(w**0.5) - w**0.5) / w**1.5, 4, 0, 0.31)), a)
        return where(a < 0.55, near, 1 - 2 / ((a + a).power() + 1)).sign(x)

    def erf(x: Number) -> Any:
        a, w = abs(x).clip(4), x * x
        erf, erfc = np.vectorize(math.erf), np.vectorize(math.erfc)
        near = a.mad(w.poly(_fit(lambda w: erf(w**0.5) / w**0.5 - 1, 6, 0, 0.85)), a)
        far = 1 - (a * a.poly(_fit(lambda a: np.log(erfc(a)) / a, 8, 0.92, 4))).power()
        return where(a < 0.92, near, far).sign(x)

    def erfc(x: Number) -> Any:
        """In float32 to 1.4 units: the square, 1 + p, divisor and quotient are each of two words."""
        if not x.body.fma:
            return x.double().wide_erfc().cast("fptrunc", "float")
        slope, middle, scaled = 2 / math.sqrt(_PI), 2.5, np.vectorize(lambda a: math.exp(a * a) * math.erfc(a))
        a = where(abs(x) > 10.2, 10.2, abs(x))
        by, square, above = a.mad(slope, 1), a * a, a + middle
        over = 1 / (above * by)
        inverse, t = over * above, (a - middle) * (over * by)

        def part(t: Any) -> Any:
            a = middle * (1 + t) / (1 - t)
            return (1 + float(np.float32(slope)) * a) * scaled(a) - 0.75

        w = t.poly(_fit(part, 9, -1, 7.7 / 12.7))
        n, bits, r = (-square).exponent(rest=-a.mad(a, -square))
        v = (p := r.growth()).mad(w + 0.75, w)
        top = v + 0.75
        q = top * inverse
        left = (-q).mad(by, top) + (-q).mad(a.mad(slope, 1 - by), v - (top - 0.75))
        small = n < -120  # the result may be subnormal: it is computed 2**64 times as large
        whole = left.mad(inverse, q).bits() + (bits << 23) + where(small, bits.like(64 << 23), 0)
        found = whole.number() * where(small, p.like(2.0**-64), 1)
        return where(x.equals(x), where(x < 0, 2 - found, found), x)

    def sine(x: Number, name: str, shift: int) -> Any:
        turns, r = x.double().quadrant()
        return _unless(abs(x) > 1e5, r.cast("fptrunc", "float").wave(turns.low() + shift), name, x)

    # Formulas in float64, of which those after `erfcinv` are for `_WIDE`.
    def quadrant(x: Number) -> tuple[Any, Any]:
        """An integer whose low bits are the nearest n, and x - n pi/2, of x up to 1e6."""
        turned, high = x.mad(2 / _PI, 1.5 * 2.0**52), round(_PI / 2 * 2**32) / 2**32
        n, low = turned - 1.5 * 2.0**52, _PI / 2 - high + math.sin(_PI) / 2  # the sine is what float64 lacks of pi
        return turned.bits(), n.mad(-low, n.mad(-high, x))

    def half_turns(x: Number) -> tuple[Any, Any]:
        """The sine and the cosine of pi x."""
        y = (x - (x * 0.5).call("roundeven") * 2) * 2
        turned = y + 1.5 * 2.0**52
        r = (y - (turned - 1.5 * 2.0**52)) * (_PI / 2)
        return where(x.equals(0), x, r.wave(turned.bits())), r.wave(turned.bits() + 1)

    def erfcinv(y: Number, rest: Number | None = None) -> Any:
        """Winitzki's formula, and three of Halley's steps. `rest` is 1 - y, to more digits."""
        q = where(y > 1, 2 - y, y)
        a = 1 - q if rest is None else rest
        log = _libm("log", q * (1 + a)) * 0.5
        middle = log + 2 / (_PI * 0.147)
        z = ((middle * middle - log * (2 / 0.147)).sqrt() - middle).call("maxnum", 0).sqrt()
        for _ in range(3):
            off = where(q < 0.5, _libm("erfc", z) - q, a - _libm("erf", z))
            step = off * (math.sqrt(_PI) / 2) / _libm("exp", -(z * z))
            z = z + step / (1 - z * step)
        z = where(q > 0, z, where(q.equals(0), q.like(_INF), math.nan))
        return where(y > 1, -z, z)

    def pow(x: Number, y: Number) -> Any:
        log, half, whole = abs(x).log(), y * 0.5, y.call("trunc").equals(y)
        size = where(log.equals(0), 0, y * log).power()
        size = where(whole & (half.call("trunc").equals(half) ^ True), size.sign(x), size)
        size = where((x < 0) & (x > -_INF) & (whole ^ True), math.nan, size)
        return where(x.equals(1) | y.equals(0), 1, size)

    def atan2(y: Number, x: Number) -> Any:
        a, b = abs(y), abs(x) + 1e-300  # which changes no float32 number but zero
        steep = a > b
        t = where(a.equals(b), 1, where(steep, b, a) / where(steep, a, b))
        t = t * (t * t).poly(_fit(lambda w: np.arctan(w**0.5) / w**0.5, 12, 0, 1))
        t = where(steep, _PI / 2 - t, t)
        return where(x.bits() < 0, _PI - t, t).sign(y)

    def erfcx(x: Number) -> Any:
        a = abs(x)
        series = (1 / (a * a)).poly([1, -1 / 2, 3 / 4, -15 / 8, 105 / 16, -945 / 32])  # to 4e-9 for a > 10
        scaled = np.vectorize(lambda a: math.exp(a * a) * math.erfc(a))
        near = ((a - 3) / (a + 3)).poly(_fit(lambda t: scaled(3 * (1 + t) / (1 - t)), 18, -1, 7.5 / 13.5))
        found = where(a > 10.5, series / (a * math.sqrt(_PI)), near)
        return where(x < 0, 2 * (x * x).power() - found, found)

    def wide_erfc(x: Number) -> Any:
        a = abs(x)
        found = (-(a * a)).power() * a.erfcx()
        return where(x < 0, 2 - found, found)

    def lgamma(x: Number) -> Any:
        """By the recurrence from 2 to 3 up to 7, so that it is exact near its roots; above by Stirling's series."""
        low, high = where(x < 7, x, 7), where(x < 7, 7, x)
        whole = (low + 0.1).call("floor")
        t = low - whole
        product = where(whole < 1, low * (low + 1), where(whole < 2, low, 1))
        for step in range(2, 7):
            product = product * where(whole > step, t + step, 1)
        log, inverse = where(x < 7, product, high).log(), 1 / high
        series = t.poly(_fit(np.vectorize(lambda t: math.lgamma(2 + t) / t), 12, -0.1, 0.9))
        near = t.mad(series, where(whole < 2, -log, log))
        rest = (inverse * inverse).poly([1 / 12, -1 / 360, 1 / 1260]) * inverse + math.log(2 * _PI) / 2
        found = where(x < 7, near, (high - 0.5).mad(log, rest - high))
        return _unless(x < 0, where(x < _INF, found, x * x), "lgamma", x)

    def fmod(x: Number, y: Number) -> Any:
        """Exact while the quotient has less than 29 bits."""
        a, b = abs(x), abs(y)
        rest = (-(a / b).call("trunc")).mad(b, a)
        rest = where(b.equals(_INF) & (a < _INF), a, where(rest < 0, rest + b, rest))
        return _unless((a > b * 2.0**28) & (a < _INF), rest.sign(x), "fmod", x, y)

    def fma(x: Number, y: Number, z: Number) -> Any:
        exact = x.body.fma or x.size == 64
        return x.call("fma", y, z) if exact else (x.double() * y.double() + z.double()).cast("fptrunc", "float")

    def hypot(*values) -> Any:
        root = functools.reduce(lambda total, x: x.mad(x, total), values[1:], values[0] * values[0]).sqrt()
        return functools.reduce(lambda found, x: where(abs(x).equals(_INF), _INF, found), values, root)

    def bessel(x: Number, order: int) -> Any:
        """The mean of cosh(x cos t), or of sinh(x cos t) cos t, over so many t that it is the integral."""
        rule, cosines = _WIDE["sinh" if order else "cosh"], [math.cos((n + 0.5) * _PI / 32) for n in range(16)]
        return functools.reduce(operator.add, [rule(x * c) * (c**order / 16) for c in cosines])

    # Formulas of integers, and between types.
    def byte_perm(x: Number, y: Number, chosen: Number) -> Any:
        both = x.cast("zext", "i64") | (y.cast("zext", "i64") << 32)
        at = [((chosen.shifted(n) & 7) << 3).cast("zext", "i64") for n in (0, 4, 8, 12)]
        return functools.reduce(operator.or_, [(both.shifted(x).low() & 255) << 8 * n for n, x in enumerate(at)])

    def towards_zero(x: Number) -> Any:
        """The float32 of a float64."""
        found = x.cast("fptrunc", "float")
        return (found.bits() - (abs(found.double()) > abs(x)).flag()).number()

    def converted(x: Number, source: str, target: str, mode: str) -> Any:
        sign = "u" if "u" in (source[0], target[0]) else "s"
        if target in _FLOATS:
            return x.cast("fptrunc" if x.floats else f"{sign}itofp", target)
        nearest = x.call({"n": "roundeven", "z": "trunc", "d": "floor", "u": "ceil"}[mode])
        return nearest.call(f"fpto{sign}i.sat", result="i64" if "ll" in target else "i32")


def where(condition: Number, then: Number | float, other: Any) -> Any:
    model = then if isinstance(then, Number) else other
    chosen = f"{model.type} {model.like(then).name}, {model.type} {model.like(other).name}"
    return model.body.emit(model.kind, f"select {condition.type} {condition.name}, {chosen}")


def _fit(function: Callable[[Any], Any], degree: int, low: float, high: float) -> list[float]:
    """The polynomial nearest to a function: by least squares at Chebyshev's nodes."""
    nodes = (low + high) / 2 + (high - low) / 2 * np.cos((np.arange(4 * degree) + 0.5) * (_PI / (4 * degree)))
    return [float(value) for value in np.polynomial.Polynomial.fit(nodes, function(nodes), degree).convert().coef]


def _libm(name: str, *arguments: Any, result: str = "") -> Any:
    """The C library's function for each lane."""
    body, kinds, found = arguments[0].body, [x.kind for x in arguments], "poison"
    result = result or kinds[-1]
    body.needs[name] = f"declare {result} @{name}({', '.join(kinds)})"
    for lane in range(body.lanes or 1):
        at = f"i64 {lane}"
        one = [body.emit(x.kind, f"extractelement {x.type} {x.name}, {at}") if body.lanes else x for x in arguments]
        passed = ", ".join(f"{x.kind} {x.name}" for x in one)
        value = body.emit(result, f"call {result} @{name}({passed})")
        if not body.lanes:
            return value
        found = body.emit(result, f"insertelement {value.type} {found}, {result} {value.name}, {at}").name
    return Number(body, result, found)


def _unless(far: Number, found: Number, name: str, *values: Number) -> Any:
    """What was found, but the C library's result where a condition holds: a branch that is rarely taken."""
    body, some = far.body, far.name
    if body.lanes:
        some = body.emit("i1", f"call i1 @llvm.vector.reduce.or.v{body.lanes}i1({far.type} {far.name})").name
    body.lines += [f"br i1 {some}, label %far, label %near", "far:"]
    body.needs |= _function(name, "double", len(values), body.lanes, body.fma, body.scales)[2]
    passed = ", ".join(f"{x.type} {x.name}" for x in [x.double() for x in values])
    slow = body.emit("double", f"call {body.type('double')} @native.{name}.double.{body.lanes}({passed})")
    slow = where(far, slow.cast("fptrunc", found.kind), found)
    body.lines += ["br label %near", "near:"]
    return body.emit(found.kind, f"phi {found.type} [ {found.name}, %entry ], [ {slow.name}, %far ]")


# without an instruction, float32 is rounded twice, first to float64: about one result in 1e9 is another
_SAME: dict[str, Any] = {name: _intrinsic(name) for name in ("floor", "ceil", "trunc", "round", "sqrt", "copysign")}
_SAME |= {"abs": lambda x: abs(x) if x.floats else x.call("abs", more=", i1 false"), "min": _intrinsic("smin")}
_SAME |= {"max": _intrinsic("smax"), "fmin": _intrinsic("minimumnum"), "fmax": _intrinsic("maximumnum")}
_SAME |= {"rint": _intrinsic("roundeven"), "brev": _intrinsic("bitreverse"), "add": operator.add, "sub": operator.sub}
_SAME |= {"mul": operator.mul, "div": operator.truediv, "fdivide": operator.truediv, "fma": Number.fma}
_SAME |= {"rcp": lambda x: 1 / x, "rsqrt": lambda x: 1 / x.sqrt(), "fdim": lambda x, y: where(x <= y, 0, x - y)}
_SAME |= {"saturate": lambda x: x.call("maxnum", 0).call("minnum", 1), "isnan": lambda x: (x.equals(x) ^ True).flag()}
_SAME |= {"isinf": lambda x: abs(x).equals(_INF).flag(), "finite": lambda x: (abs(x) < _INF).flag()}
_SAME |= {"signbit": lambda x: (x.bits() < 0).flag(), "float_as_int": Number.bits, "int_as_float": Number.number}
_SAME |= {"llrint": lambda x: x.call("roundeven").call("fptosi.sat", result="i64")}
_SAME |= {"llround": lambda x: x.call("round").call("fptosi.sat", result="i64")}
_SAME |= {"popc": lambda x: x.call("ctpop").low(), "clz": lambda x: x.call("ctlz", more=", i1 false").low()}
_SAME |= {"ffs": lambda x: where(x.equals(0), 0, x.call("cttz", more=", i1 false") + 1).low()}
_SAME |= {"mul24": lambda x, y: ((x << 8) >> 8) * ((y << 8) >> 8), "umax": _intrinsic("umax")}
_SAME |= {"umul24": lambda x, y: (x & 0xFFFFFF) * (y & 0xFFFFFF)}
_SAME |= {"mulhi": lambda x, y: (x.twice("sext") * y.twice("sext")).shifted(x.size).cast("trunc", x.kind)}
_SAME |= {"umulhi": lambda x, y: (x.twice("zext") * y.twice("zext")).shifted(x.size).cast("trunc", x.kind)}
_SAME |= {"byte_perm": Number.byte_perm, "sad": lambda x, y, z: x.call("smax", y) - x.call("smin", y) + z}
_SAME |= {"usad": lambda x, y, z: x.call("umax", y) - x.call("umin", y) + z, "umin": _intrinsic("umin")}
_SINGLE: dict[str, Any] = {"log": Number.log, "exp": Number.exp, "exp2": lambda x: x.exp(2)}
_SINGLE |= {"exp10": lambda x: x.exp(10), "tanh": Number.tanh, "erf": Number.erf, "erfc": Number.erfc}
_SINGLE |= {"nextafter": functools.partial(_libm, "nextafterf"), "sin": lambda x: x.sine("sin", 0)}
_SINGLE |= {"cos": lambda x: x.sine("cos", 1)}  # below: with what is lost of x in 1 + x
_SINGLE |= {"log1p": lambda x: ((y := x + 1).log() + where((z := (x - (y - 1)) / y).equals(z), z, 0)).sign(x)}
_WIDE: dict[str, Any] = {"sinh": lambda x: ((e := abs(x).power(1)) + e / (e + 1)).sign(x) * 0.5}
_WIDE |= {"tan": lambda x: _unless(abs(x) > 1e5, (q := x.quadrant())[1].wave(q[0]) / q[1].wave(q[0] + 1), "tan", x)}
_WIDE |= {"lgamma": Number.lgamma, "fmod": Number.fmod, "pow": Number.pow, "atan2": Number.atan2, "erfcx": Number.erfcx}
_WIDE |= {"expm1": lambda x: x.power(1).sign(x), "cosh": lambda x: ((e := abs(x).power()) + 1 / e) * 0.5}
_WIDE |= {"log2": lambda x: x.log() * (1 / _LN2), "log10": lambda x: x.log() * (1 / math.log(10))}
_WIDE |= {"atan": lambda x: x.atan2(x.like(1)), "asin": lambda x: x.atan2(((1 - x) * (1 + x)).sqrt())}
_WIDE |= {"acos": lambda x: ((1 - x) * (1 + x)).sqrt().atan2(x), "powi": lambda x, n: x.pow(n.double())}
_WIDE |= {"normcdf": lambda x: (x * -math.sqrt(0.5)).wide_erfc() * 0.5, "hypot": Number.hypot}
_WIDE |= {"rhypot": lambda *values: 1 / Number.hypot(*values), "cyl_bessel_i0": lambda x: x.bessel(0)}
_WIDE |= {"cyl_bessel_i1": lambda x: x.bessel(1), "ldexp": lambda x, n: x * n.clip(400).cast("sext", "i64").scale()}
_FULL: dict[str, Any] = {"sinpi": lambda x: x.half_turns()[0], "cospi": lambda x: x.half_turns()[1]}
_FULL |= {"tanpi": lambda x: operator.truediv(*x.half_turns()), "rcbrt": lambda x: 1 / _libm("cbrt", x)}
_FULL |= {"erfinv": lambda x: (1 - abs(x)).erfcinv(abs(x)).sign(x), "erfcinv": Number.erfcinv}
_FULL |= {"normcdf": lambda x: _libm("erfc", x * -math.sqrt(0.5)) * 0.5}
_FULL |= {"normcdfinv": lambda x: (x * 2).erfcinv() * -math.sqrt(2), "powi": lambda x, n: _libm("pow", x, n.double())}
_FULL |= {"hypot": lambda *values: functools.reduce(functools.partial(_libm, "hypot"), values)}
_FULL |= {"rhypot": lambda *values: 1 / functools.reduce(functools.partial(_libm, "hypot"), values)}
_FULL |= {**{name: functools.partial(_libm, name) for name in sorted(LIBM - {"hypot", "nextafterf", "fma"})}}
_FULL |= {"ldexp": lambda x, n: _libm("ldexp", x, n, result="double")}
_FULL |= {"ilogb": lambda x: _libm("ilogb", x, result="i32")}
# Other names: the math dialect's, those of other types, and those of functions that are the same here.
_ALIASES = {"fabs": "abs", "absi": "abs", "llabs": "abs", "nearbyint": "rint", "roundeven": "rint"}
_ALIASES |= {"isfinite": "finite", "scalbn": "ldexp", "norm3d": "hypot", "norm4d": "hypot", "rnorm3d": "rhypot"}
_ALIASES |= {"rnorm4d": "rhypot", "mul64hi": "mulhi", "umul64hi": "umulhi", "float_as_uint": "float_as_int"}
_ALIASES |= {"uint_as_float": "int_as_float", "double_as_longlong": "float_as_int"}
_ALIASES |= {"longlong_as_double": "int_as_float"}


def _formula(name: str, element: str) -> tuple[Any, bool] | None:
    """The formula of a function, and whether it takes float64 for float32."""
    if found := re.fullmatch(r"(u?int|u?ll|float|double)2(u?int|u?ll|(?:float|double)(?!_r[zdu]))(?:_r(.))?", name):
        return lambda x: x.converted(found[1], found[2], found[3] or "n"), False
    if found := re.fullmatch(r"f(mul|div|rcp|sqrt)_rz", name):  # exact enough in float64, as sums are not
        return lambda *values: _SAME[found[1]](*[x.double() for x in values]).towards_zero(), False
    name = re.sub(r"^math\.|^fast_|_rn$", "", name)
    stems = [name, name[:-1] if name[-1] in "fd" else name, name.removesuffix("ll"), name[name[0] in "fd" :]]
    for stem in [_ALIASES.get(stem, stem) for stem in stems]:
        for table in (_SAME, _SINGLE, _WIDE, _FULL) if element == "float" else (_SAME, _FULL):
            if stem in table:
                return table[stem], table is _WIDE or table is _FULL
    return None


@functools.cache
def _function(name: str, element: str, count: int, lanes: int, fma: bool, scales: bool) -> Any:
    """The types of a function's operands and of its result, and its definition with what that needs; or None."""
    kinds = [element] * count
    if re.match("ldexp|scalbn|powi", name):
        kinds[1] = "i32"
    elif element == "i32" and re.match("[jy]n", name):
        kinds[1] = element = "float" if name[-1] == "f" else "double"
    if (formula := _formula(name, element)) is None:
        return None
    (rule, wide), body = formula, _Body(lanes, fma, scales)
    return tuple(kinds), *_defined(f"native.{name}.{element}.{lanes}", rule, tuple(kinds), body, wide)


def _defined(
    symbol: str, rule: Callable[..., Number], kinds: tuple[str, ...], body: _Body, wide: bool
) -> tuple[str, dict[str, str]]:
    """The type of a formula's result, and its definition as a function with what that needs.

    `wide`: the formula takes float64 for float32, and its result is rounded.
    """
    values = [Number(body, kind, f"%a{n}") for n, kind in enumerate(kinds)]
    result = rule(*[value.double() if wide and value.kind == "float" else value for value in values])
    result = result.cast("fptrunc", "float") if wide and "float" in kinds and result.kind == "double" else result
    lines = "\n".join(["entry:", *body.lines, f"ret {result.type} {result.name}"])
    header = ", ".join(f"{value.type} {value.name}" for value in values)
    how = "" if wide else "alwaysinline "
    body.needs[symbol] = f"define internal {result.type} @{symbol}({header}) {how}{{\n{lines}\n}}"
    return result.kind, body.needs


_formulas: dict[tuple[str, int, bool, bool], tuple[str, dict[str, str]]] = {}


def apply(code: Code, name: str, rule: Callable[..., Number], kind: str, *operands: str, lanes: int) -> str:
    """The result of a formula of ours for operands of an LLVM type; `name` is the formula's alone."""
    key = name, lanes, code.fma, code.scales
    kinds = (kind,) * len(operands)
    if key not in _formulas:
        _formulas[key] = _defined(f"native.{name}.{lanes}", rule, kinds, _Body(*key[1:]), False)
    return _called(code, operands, kinds, *_formulas[key], lanes)


def _called(
    code: Code, operands: tuple[str, ...], kinds: tuple[str, ...], result: str, needs: dict[str, str], lanes: int
) -> str:
    for symbol, text in needs.items():
        code.declare(symbol, text)
    types = [f"<{lanes} x {kind}>" if lanes else kind for kind in [*kinds, result]]
    passed = ", ".join(f"{type} {operand}" for type, operand in zip(types, operands))
    return code.op(f"call {types[-1]} @{symbol}({passed})")


def call(code: Code, name: str, operands: list[str], element: str, lanes: int) -> tuple[str, str] | None:
    """The name and the LLVM type of a function's result, or None where the function is unknown.

    `name` is libdevice's without `__nv_`, or an operation of the math dialect; `element` the LLVM type of the first
    operand's lanes, of which there are 0 for scalars.
    """
    if (found := _function(name, element, len(operands), lanes, code.fma, code.scales)) is None:
        return None
    kinds, result, needs = found
    return _called(code, tuple(operands), kinds, result, needs, lanes), result
