"""The functions that kernels call, compiled: against NumPy's and SciPy's in float64, in units in the last place."""

from __future__ import annotations

import ctypes
import math
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import pytest

pytest.importorskip("llvmlite")

import llvmlite.binding as llvm

from tritensor.drivers.native import functions, objects

# the references overflow, and turn NaNs into others
pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")

NUMPY = {"float": np.float32, "double": np.float64, "i32": np.int32, "i64": np.int64}
# with and without instructions that multiply and add, and that multiply by powers of 2; vectors of 512 and of 256 bits
TARGETS = ["host", "avx2", "no-fma"]


class Code:
    def __init__(self, fma: bool, scales: bool = False) -> None:
        self.fma, self.scales = fma, scales
        self.lines: list[str] = []
        self.declared: dict[str, str] = {}

    def op(self, text: str) -> str:
        self.lines.append(f"%v{len(self.lines)} = {text}")
        return f"%v{len(self.lines) - 1}"

    def declare(self, name: str, text: str) -> None:
        self.declared.setdefault(name, text)


@cache
def compiled(name: str, kinds: tuple[str, ...], lanes: int = 16, target: str = "host") -> Callable[..., np.ndarray]:
    _, fma, bits = objects.machine(target)
    code, wide, operands = Code(fma, bits > 256), (lambda kind: f"<{lanes} x {kind}>" if lanes else kind), []
    for n, kind in enumerate(kinds):
        at = code.op(f"getelementptr {kind}, ptr %x{n}, i64 %i")
        operands.append(code.op(f"load {wide(kind)}, ptr {at}, align 4"))
    found = functions.call(code, name, operands, kinds[0], lanes)
    assert found is not None
    assert {symbol for symbol in code.declared if code.declared[symbol][:8] == "declare "} <= functions.LIBM
    result, kind = found
    to = code.op(f"getelementptr {kind}, ptr %y, i64 %i")
    parameters = "".join(f"ptr %x{n}, " for n in range(len(kinds)))
    body, rest = "\n".join(code.lines), "\n".join(code.declared.values())
    text = f"""{rest}
define void @f({parameters}ptr %y, i64 %n) {{
entry:
br label %loop
loop:
%i = phi i64 [ 0, %entry ], [ %next, %loop ]
{body}
store {wide(kind)} {result}, ptr {to}, align 4
%next = add i64 %i, {lanes or 1}
%more = icmp ult i64 %next, %n
br i1 %more, label %loop, label %done
done:
ret void
}}"""
    # the process has the C library's functions, by which the engine resolves their names
    engine = llvm.create_mcjit_compiler(
        llvm.parse_assembly(""), llvm.Target.from_default_triple().create_target_machine()
    )
    engine.add_object_file(llvm.ObjectFileRef.from_data(objects.compiled(text, target)))
    engine.finalize_object()
    pointers = [ctypes.c_void_p] * (len(kinds) + 1)
    work = ctypes.CFUNCTYPE(None, *pointers, ctypes.c_int64)(engine.get_function_address("f"))

    def run(*values: Any) -> np.ndarray:
        whole = -(-len(values[0]) // (lanes or 1)) * (lanes or 1)
        given = [np.resize(np.asarray(value).astype(NUMPY[type]), whole) for value, type in zip(values, kinds)]
        out = np.empty(whole, NUMPY[kind])
        work(*[value.ctypes.data for value in given], out.ctypes.data, whole)
        return out[: len(values[0])]

    run.engine = engine  # type: ignore[attr-defined]  # which owns the code
    return run


def samples(count: int, *, seed: int = 0) -> np.ndarray:
    """float32 numbers of all exponents, some of usual sizes, and special ones."""
    generator = np.random.default_rng(seed)
    special = [0, 1, 0.5, 2, 3, 10, np.inf, 1e-45, 1.1754942e-38, 1.1754944e-38, 3.4028235e38, 1e5, 1 - 2**-24]
    special += [88.72283, 88.72284, 103.97, 103.98, 87.4, 128, 149, 150, 149.5, 38.53184, 45.1, 8388608.5, 0.49999997]
    parts = [
        generator.integers(0, 2**32, count, dtype=np.uint32).view(np.float32),
        special,
        np.negative(special),
        [np.nan],
    ]
    parts += [generator.uniform(-limit, limit, count // 5) for limit in (1, 4, 20, 110, 1e5)]
    return np.concatenate([np.asarray(part, np.float32) for part in parts])


def worst(got: np.ndarray, exact: np.ndarray) -> float:
    """The largest error in units in the last place; what is not finite, and the sign of zero, must be the same."""
    rounded = exact.astype(got.dtype)
    np.testing.assert_array_equal(np.where(np.isfinite(rounded), 0, got), np.where(np.isfinite(rounded), 0, rounded))
    zero = (rounded == 0) & (exact == 0)
    np.testing.assert_array_equal(np.signbit(got[zero]), np.signbit(rounded[zero]))
    finite = np.isfinite(rounded)
    size = np.minimum(np.abs(rounded[finite]), np.nextafter(np.finfo(got.dtype).max, 0, dtype=got.dtype))
    unit = np.spacing(size).astype(np.float64)
    return float(np.max(np.abs(got[finite].astype(np.float64) - exact[finite]) / unit))


def of_scipy(name: str) -> Callable[..., Any]:
    return lambda *values: getattr(pytest.importorskip("scipy.special"), name)(*values)


def away(x: np.ndarray) -> np.ndarray:
    return np.copysign(np.where(np.abs(x) < 2**52, np.floor(np.abs(x) + 0.5), np.abs(x)), x)


def turned(x: np.ndarray) -> np.ndarray:
    """x less the nearest multiple of 2."""
    return x - 2 * np.rint(x / 2)


def sine(x: np.ndarray) -> np.ndarray:
    y = np.abs(turned(x))
    return np.sin(np.pi * np.where(y > 0.5, 1 - y, y)) * np.sign(turned(x))


def lesser(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """What is not NaN, and the negative one of two zeros."""
    return np.where((x == 0) & (y == 0), np.where(np.signbit(x), x, y), np.fmin(x, y))


def remainder(x: float, y: float) -> float:
    return math.remainder(x, y) if math.isfinite(x) and y != 0 and not math.isnan(y) else math.nan


CLOSE = ["expm1", "log2", "log10", "tan", "sinh", "cosh", "cbrt", "sqrt"]
INVERSE = ["asin", "acos", "atan", "asinh", "acosh", "atanh"]
ONE: dict[str, tuple[Callable[..., Any], float]] = {
    **{name: (getattr(np, name), 1.1) for name in ("exp", "exp2", "log")},
    **{name: (getattr(np, name), 1.7) for name in ("sin", "cos", "tanh", "log1p")},
    **{name: (getattr(np, name), 0.51) for name in CLOSE},
    **{name: (getattr(np, f"arc{name[1:]}"), 0.51) for name in INVERSE},
    **{name: (getattr(np, name), 0) for name in ("floor", "ceil", "trunc", "rint", "fabs")},
    "exp10": (of_scipy("exp10"), 1.5),
    "erf": (of_scipy("erf"), 1.5),
    "rsqrt": (lambda x: 1 / np.sqrt(x), 1.6),
    "erfc": (of_scipy("erfc"), 1.5),
    "erfcx": (of_scipy("erfcx"), 0.51),
    "rcbrt": (lambda x: 1 / np.cbrt(x), 0.51),
    "normcdf": (of_scipy("ndtr"), 0.51),
    "tgamma": (of_scipy("gamma"), 0.51),
    "round": (away, 0),
    "nearbyint": (np.rint, 0),
    "saturate": (lambda x: np.clip(np.nan_to_num(x, nan=0), 0, 1) + 0.0, 0),
    "fast_exp": (np.exp, 2),
    "fast_cos": (np.cos, 2),
    "sqrt_rn": (np.sqrt, 0.51),
}
TWO: dict[str, tuple[Callable[..., Any], float]] = {
    "pow": (np.power, 0.51),
    "atan2": (np.arctan2, 0.51),
    "hypot": (np.hypot, 0.51),
    "fmod": (np.fmod, 0),
    "fdim": (lambda x, y: np.where(x <= y, 0, x - y), 0.51),
    "copysign": (np.copysign, 0),
    "fast_fdivide": (np.divide, 0.51),
    "remainder": (lambda x, y: np.vectorize(remainder, otypes=["f8"])(x, y), 0),
    "fmin": (lesser, 0),
    "fmax": (lambda x, y: -lesser(-x, -y), 0),
}


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("name", ONE)
@pytest.mark.parametrize("count", [20_000, pytest.param(1_000_000, marks=pytest.mark.thorough)])
def test_float32_function_is_within_its_last_places(name: str, target: str, count: int) -> None:
    x, (reference, limit) = samples(count), ONE[name]
    run = compiled("fsqrt_rn" if name == "sqrt_rn" else name + "f", ("float",), target=target)
    assert worst(run(x), reference(x.astype("f8"))) <= limit


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("name", TWO)
def test_float32_function_of_two_is_within_its_last_places(name: str, target: str) -> None:
    x, y, (reference, limit) = samples(20_000), np.random.default_rng(3).permutation(samples(20_000, seed=1)), TWO[name]
    special = np.array([0, 1, 2, 3, 0.5, np.inf, 1e-45, 3e38, 16777215, np.nan], np.float32)
    special = np.concatenate([special, -special])
    x, y = np.concatenate([x, np.repeat(special, 20)]), np.concatenate([y, np.tile(special, 20)])
    got, exact = (
        compiled(name + "f", ("float", "float"), target=target)(x, y),
        reference(x.astype("f8"), y.astype("f8")),
    )
    assert worst(got, exact) <= limit


@pytest.mark.parametrize(
    ("name", "reference", "limit", "low", "high"),
    [
        ("erfinvf", of_scipy("erfinv"), 0.51, 1e-3, 0.9999),
        ("erfcinvf", of_scipy("erfcinv"), 0.51, 1e-30, 1.99),
        ("normcdfinvf", of_scipy("ndtri"), 0.51, 1e-30, 0.999),
        ("j0f", of_scipy("j0"), 0.6, 0, 50),
        ("y1f", of_scipy("y1"), 0.6, 0.1, 50),
        ("lgammaf", of_scipy("gammaln"), 0.51, 0.1, 90),
        ("lgammaf", of_scipy("gammaln"), 0.51, 1 - 1e-5, 1 + 1e-5),
        ("lgammaf", of_scipy("gammaln"), 0.51, 2 - 1e-5, 2 + 1e-5),
        ("cyl_bessel_i0f", of_scipy("i0"), 0.6, -91, 91),
        ("cyl_bessel_i1f", of_scipy("i1"), 0.6, -91, 91),
        ("sinpif", sine, 0.51, -99, 99),
        ("cospif", lambda x: sine(x + 0.5), 0.51, -99, 99),
        ("tanpif", lambda x: sine(x) / sine(x + 0.5), 0.51, -99, 99),
        ("exp", np.exp, 2, -700, 700),
        ("erfinv", of_scipy("erfinv"), 8, 0, 0.9999),
        ("sinpi", sine, 4, -9, 9),
        ("erfcinv", of_scipy("erfcinv"), 8, 1e-9, 1.99),
        ("normcdf", of_scipy("ndtr"), 64, -8, 8),
        ("tanh", np.tanh, 4, -5, 5),
        ("rcbrt", lambda x: 1 / np.cbrt(x), 8, -9, 9),
        ("rsqrt", lambda x: 1 / np.sqrt(x), 2, 0.1, 9),
    ],
)
def test_other_functions_in_their_usual_range(name: str, reference: Any, limit: float, low: float, high: float) -> None:
    kind = "float" if name[-1] == "f" and name != "normcdf" else "double"
    x = np.random.default_rng(4).uniform(low, high, 2000).astype(NUMPY[kind])
    assert worst(compiled(name, (kind,))(x), reference(x.astype("f8"))) <= limit


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("lanes", [0, 2, 64])
def test_number_of_lanes_changes_nothing(lanes: int, target: str) -> None:
    x, y = samples(500), samples(500, seed=1)
    for name in ("expf", "math.sin", "tanf", "acoshf", "math.erf", "llrintf"):
        one, other = (compiled(name, ("float",), count, target)(x) for count in (16, lanes))
        np.testing.assert_array_equal(one, other)
    for name in ("powf", "nextafterf"):
        one, other = (compiled(name, ("float", "float"), count, target)(x, y) for count in (16, lanes))
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("name", ["sin", "cos", "tan"])
def test_sine_far_from_zero(name: str) -> None:
    x = np.float32(np.ldexp(np.random.default_rng(5).uniform(1, 2, 20_000), np.arange(20_000) % 110 + 17))
    assert worst(compiled(name + "f", ("float",))(x), getattr(np, name)(x.astype("f8"))) <= 0.51


def test_functions_with_integers() -> None:
    x = samples(2000)
    n = np.random.default_rng(6).integers(-300, 300, x.size)
    np.testing.assert_array_equal(compiled("ldexpf", ("float", "i32"))(x, n), np.ldexp(x, n))
    np.testing.assert_array_equal(compiled("scalbn", ("double", "i32"))(x, n), np.ldexp(x.astype("f8"), n))
    small = n // 30
    assert worst(compiled("powif", ("float", "i32"))(x, small), x.astype("f8") ** small) <= 0.51
    jn = pytest.importorskip("scipy.special").jn
    orders, at = np.arange(64) % 5, np.linspace(1, 20, 64, dtype=np.float32)
    np.testing.assert_allclose(compiled("jnf", ("i32", "float"))(orders, at), jn(orders, at.astype("f8")), rtol=1e-5)
    for name, test in {"isnanf": np.isnan, "isinff": np.isinf, "finitef": np.isfinite, "signbitf": np.signbit}.items():
        np.testing.assert_array_equal(compiled(name, ("float",))(x), test(x).astype("i4"))
    finite = x[np.isfinite(x)]
    limited = np.clip(np.rint(finite.astype("f8")), -(2.0**63), 2.0**63 - 1024).astype("i8")
    limited[finite >= 2.0**63] = 2**63 - 1
    for name in ("llrintf", "float2ll_rn"):
        np.testing.assert_array_equal(compiled(name, ("float",))(finite), limited)
    np.testing.assert_array_equal(
        compiled("float2int_rz", ("float",))(np.float32([1.9, -1.9, 3e9, -3e9])), [1, -1, 2**31 - 1, -(2**31)]
    )
    np.testing.assert_array_equal(compiled("uint2float_rn", ("i32",))(np.int32([1, -1])), np.float32([1, 2**32]))
    np.testing.assert_array_equal(compiled("float_as_int", ("float",))(finite), finite.view("i4"))


def test_division_towards_zero() -> None:
    x, y = np.random.default_rng(7).uniform(1, 2, (2, 20_000)).astype(np.float32)
    exact, got = x.astype("f8") / y, compiled("fdiv_rz", ("float", "float"))(x, y).astype("f8")
    assert (got <= exact).all()
    assert (exact - got < np.spacing(got.astype(np.float32))).all()


@pytest.mark.parametrize("kind", ["i32", "i64"])
def test_integer_functions(kind: str) -> None:
    size, more = (32, "") if kind == "i32" else (64, "ll")
    x, y, z = np.random.default_rng(8).integers(-(2**31), 2**31, (3, 1000))
    if kind == "i64":
        x, y = x * 2**31 + y, y * 2**31 + x
    words = [[int(value) % 2**size for value in values] for values in (x, y)]
    one = {
        "popc": lambda u: u.bit_count(),
        "clz": lambda u: size - u.bit_length(),
        "ffs": lambda u: (u & -u).bit_length(),
    }
    for name, reference in one.items():
        np.testing.assert_array_equal(compiled(name + more, (kind,))(x), [reference(value) for value in words[0]])
    flipped = compiled("brev" + more, (kind,))(x)
    assert [int(value) % 2**size for value in flipped] == [int(f"{value:0{size}b}"[::-1], 2) for value in words[0]]
    high = compiled("mulhi" if size == 32 else "mul64hi", (kind, kind))(x, y)
    np.testing.assert_array_equal(high, [int(a) * int(b) >> size for a, b in zip(x, y)])
    high = compiled("umulhi" if size == 32 else "umul64hi", (kind, kind))(x, y)
    assert [int(value) % 2**size for value in high] == [a * b >> size for a, b in zip(*words)]
    np.testing.assert_array_equal(compiled("min", (kind, kind))(x, y), np.minimum(x, y))
    np.testing.assert_array_equal(compiled("llabs" if more else "abs", (kind,))(x), np.abs(x))
    if kind == "i32":
        near, far = x >> 8, y >> 8
        np.testing.assert_array_equal(compiled("mul24", (kind, kind))(near, far), (near * far).astype("i4"))
        got = compiled("sad", (kind, kind, kind))(x, y, z)
        np.testing.assert_array_equal(got, (np.abs(x - y) + z).astype("i4"))
        both = [(b << 32 | a).to_bytes(8, "little") for a, b in zip(*words)]
        chosen = [bytes(data[int(s) >> 4 * n & 7] for n in range(4)) for data, s in zip(both, z)]
        got = compiled("byte_perm", (kind, kind, kind))(x, y, z)
        np.testing.assert_array_equal(got, np.frombuffer(b"".join(chosen), "i4"))


@pytest.mark.parametrize("target", TARGETS)
def test_fma_and_norms(target: str) -> None:
    x, y, z = (np.random.default_rng(9).permutation(samples(2000, seed=n)) for n in range(3))
    wide = [value.astype("f8") for value in (x, y, z)]
    got = compiled("fmaf_rn", ("float",) * 3, target=target)(x, y, z)
    np.testing.assert_array_equal(got, (wide[0] * wide[1] + wide[2]).astype("f4"))
    exact = np.hypot(np.hypot(*wide[:2]), wide[2])
    assert worst(compiled("norm3df", ("float",) * 3, target=target)(x, y, z), exact) <= 0.51
    assert worst(compiled("rnorm3df", ("float",) * 3, target=target)(x, y, z), 1 / exact) <= 0.51


@pytest.mark.parametrize("name", ["unheard_of", "fadd_rz", "double2float_rz", "math.unheard_of", "lrint", "rcp64h"])
def test_unknown_function(name: str) -> None:
    assert functions.call(Code(True), name, ["%x"], "double", 16) is None
