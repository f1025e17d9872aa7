"""Instructions of PTX against exact arithmetic: Python's integers and fractions."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import tritensor as torch
from tritensor.errors import KernelError

from ..needs import needs_triton
from .programs import compute, execute

RNG = np.random.default_rng(15)
EDGES = {
    "i": [0, 1, -1, 2, -2, 7, 31, 32, 33, -(2**31), 2**31 - 1, 12345, -54321],
    "f": [0.0, -0.0, 1.0, -1.0, 1.5, 2.5, 0.1, 3e38, -3e38, 1e-40, -1e-45, 2**-126, math.inf, -math.inf, math.nan],
}


def values(dtype: Any, count: int = 96) -> np.ndarray:
    dtype = np.dtype(dtype)
    if dtype.kind == "f":
        found = RNG.standard_normal(count).astype(dtype) * np.exp2(RNG.integers(-20, 20, count)).astype(dtype)
        found[: len(EDGES["f"])] = np.array(EDGES["f"], np.float64).astype(dtype)
    else:
        found = RNG.integers(0, 256, count * dtype.itemsize, np.uint8).view(dtype).copy()
        found[: len(EDGES["i"])] = np.array(EDGES["i"]).astype(dtype)
    return RNG.permutation(found)


def wrap(value: int, dtype: Any) -> Any:
    width = 8 * np.dtype(dtype).itemsize
    value &= (1 << width) - 1
    return value - (1 << width) if np.dtype(dtype).kind == "i" and value >> (width - 1) else value


def quotient(a: int, b: int) -> int:
    return (abs(a) // abs(b)) * (1 if (a < 0) == (b < 0) else -1) if b else -1


def shift_right(a: int, count: int, width: int = 32) -> int:
    return a >> min(count & 0xFFFFFFFF, 64) if a < 0 or count < width else (0 if count >= width else a >> count)


def field(a: int, start: int, count: int) -> int:
    start, count = start & 255, count & 255
    return ((a & 0xFFFFFFFF) >> start) & ((1 << min(count, 32)) - 1)


def bytes_of(a: int, b: int, selector: int) -> int:
    both = ((b & 0xFFFFFFFF) << 32) | (a & 0xFFFFFFFF)
    picked = 0
    for place in range(4):
        pick = (selector >> 4 * place) & 15
        byte = (both >> 8 * (pick & 7)) & 255
        picked |= (255 if pick & 8 and byte & 128 else 0 if pick & 8 else byte) << 8 * place
    return picked


I32, U32, I64, U64, U16, I16 = np.int32, np.uint32, np.int64, np.uint64, np.uint16, np.int16
INTEGERS: list[tuple[str, tuple[Any, ...], Any, Callable[..., int]]] = [
    ("add.s32", (I32, I32), I32, lambda a, b: a + b),
    ("sub.s64", (I64, I64), I64, lambda a, b: a - b),
    ("mul.lo.s32", (I32, I32), I32, lambda a, b: a * b),
    ("mul.hi.s32", (I32, I32), I32, lambda a, b: a * b >> 32),
    ("mul.hi.u32", (U32, U32), U32, lambda a, b: a * b >> 32),
    ("mul.hi.u64", (U64, U64), U64, lambda a, b: a * b >> 64),
    ("mul.hi.s64", (I64, I64), I64, lambda a, b: a * b >> 64),
    ("mul.wide.s32", (I32, I32), I64, lambda a, b: a * b),
    ("mul.wide.u16", (U16, U16), U32, lambda a, b: a * b),
    ("mad.lo.s32", (I32, I32, I32), I32, lambda a, b, c: a * b + c),
    ("mad.wide.u32", (U32, U32, U64), U64, lambda a, b, c: a * b + c),
    ("min.relu.s32", (I32, I32), I32, lambda a, b: max(min(a, b), 0)),
    ("max.relu.s32", (I32, I32), I32, lambda a, b: max(a, b, 0)),
    ("add.sat.s32", (I32, I32), I32, lambda a, b: max(min(a + b, 2**31 - 1), -(2**31))),
    ("sub.sat.s32", (I32, I32), I32, lambda a, b: max(min(a - b, 2**31 - 1), -(2**31))),
    ("div.s32", (I32, I32), I32, quotient),
    ("div.u64", (U64, U64), U64, quotient),
    ("rem.s32", (I32, I32), I32, lambda a, b: a - quotient(a, b) * b if b else a),
    ("rem.u16", (U16, U16), U16, lambda a, b: a % b if b else a),
    ("abs.s32", (I32,), I32, abs),
    ("neg.s64", (I64,), I64, lambda a: -a),
    ("min.s32", (I32, I32), I32, min),
    ("max.u32", (U32, U32), U32, max),
    ("and.b64", (U64, U64), U64, lambda a, b: a & b),
    ("xor.b16", (U16, U16), U16, lambda a, b: a ^ b),
    ("not.b32", (U32,), U32, lambda a: ~a),
    ("shl.b32", (U32, U32), U32, lambda a, b: a << b if b < 32 else 0),
    ("shr.u32", (U32, U32), U32, shift_right),
    ("shr.s32", (I32, U32), I32, lambda a, b: a >> min(b, 31)),
    ("shr.s16", (I16, U32), I16, lambda a, b: a >> min(b, 15)),
    ("bfe.u32", (U32, U32, U32), U32, field),
    ("popc.b32", (U32,), U32, lambda a: a.bit_count()),
    ("clz.b32", (U32,), U32, lambda a: 32 - a.bit_length()),
    ("clz.b64", (U64,), U32, lambda a: 64 - a.bit_length()),
    ("bfind.u32", (U32,), I32, lambda a: a.bit_length() - 1),
    ("brev.b32", (U32,), U32, lambda a: int(f"{a:032b}"[::-1], 2)),
    ("prmt.b32", (U32, U32, U32), U32, bytes_of),
    ("shf.l.wrap.b32", (U32, U32, U32), U32, lambda a, b, c: (((b << 32) | a) << (c & 31)) >> 32),
    ("shf.r.clamp.b32", (U32, U32, U32), U32, lambda a, b, c: ((b << 32) | a) >> min(c, 32)),
    ("cvt.s64.s32", (I32,), I64, int),
    ("cvt.u16.u32", (U32,), U16, int),
    ("cvt.u32.u64", (U64,), U32, int),
    ("cvt.sat.s16.s32", (I32,), I16, lambda a: max(-(2**15), min(a, 2**15 - 1))),
]


@pytest.mark.parametrize(
    ("name", "kinds", "out", "exact"), INTEGERS, ids=lambda value: value if isinstance(value, str) else ""
)
def test_integers(name: str, kinds: tuple[Any, ...], out: Any, exact: Callable[..., int]) -> None:
    inputs = [values(kind) for kind in kinds]
    for position in range(1, len(inputs)):  # shifts and fields by counts that matter
        if name[:3] in ("shl", "shr", "bfe", "shf") and kinds[position] is U32:
            inputs[position] %= 40
    operands = ", ".join(f"%a{n}" for n in range(len(inputs)))
    found = compute(f"    {name} %out, {operands};", inputs, out)
    expected = [wrap(exact(*map(int, row)), out) for row in zip(*inputs)]
    assert found.tolist() == expected


def test_fields_of_bits_are_inserted_and_looked_up() -> None:
    a, b, c = (values(np.uint32) for _ in range(3))
    start, count = (RNG.integers(0, 34, len(a)).astype(np.uint32) for _ in range(2))
    found = compute("    bfi.b32 %out, %a0, %a1, %a2, %a3;", [a, b, start, count], np.uint32)
    masks = [((1 << int(n)) - 1) << int(s) & 0xFFFFFFFF for s, n in zip(start, count)]
    expected = [int(y) & ~m | (int(x) << int(s)) & m for x, y, s, m in zip(a, b, start, masks)]
    assert found.tolist() == expected
    found = compute("    lop3.b32 %out, %a0, %a1, %a2, 0x96;", [a, b, c], np.uint32)
    assert found.tolist() == (a ^ b ^ c).tolist()


def test_sums_of_several_words_carry() -> None:
    a, b = values(np.uint64), values(np.uint64)
    text = """
    mov.b64 {%r1, %r2}, %a0;
    mov.b64 {%r3, %r4}, %a1;
    add.cc.u32 %r5, %r1, %r3;
    addc.u32 %r6, %r2, %r4;
    mov.b64 %out, {%r5, %r6};"""
    assert (compute(text, [a, b], np.uint64) == a + b).all()
    text = """
    mov.b64 {%r1, %r2}, %a0;
    mov.b64 {%r3, _}, %a1;
    mad.lo.cc.u32 %r5, %r1, %r3, %r2;
    madc.hi.u32 %r6, %r1, %r3, 0;
    mov.b64 %out, {%r5, %r6};"""
    expected = [(int(x) & 0xFFFFFFFF) * (int(y) & 0xFFFFFFFF) + (int(x) >> 32) for x, y in zip(a, b)]
    assert compute(text, [a, b], np.uint64).tolist() == expected


# ---- floats ---------------------------------------------------------------------------------------------------------


def rounded(value: Fraction, dtype: Any, mode: str = "rn") -> float:
    """A fraction as a float32 or a half of the directions of PTX."""
    near = np.float64(value.numerator / value.denominator) if value else np.float64(0)
    near = np.dtype(dtype).type(near)
    for candidate in (
        np.nextafter(near, np.dtype(dtype).type(-np.inf)),
        np.nextafter(near, np.dtype(dtype).type(np.inf)),
    ):
        if abs(Fraction(float(candidate)) - value) < abs(Fraction(float(near)) - value):
            near = candidate
    exact = Fraction(float(near))
    down = mode == "rm" or (mode == "rz" and value > 0)
    if mode != "rn" and down and exact > value:
        near = np.nextafter(near, near.dtype.type(-np.inf))
    if mode != "rn" and not down and exact < value:
        near = np.nextafter(near, near.dtype.type(np.inf))
    return float(near)


@pytest.mark.parametrize("mode", ["rn", "rz", "rm", "rp"])
@pytest.mark.parametrize("name", ["add", "mul", "fma"])
def test_float_arithmetic_rounds_as_it_says(name: str, mode: str) -> None:
    count = 3 if name == "fma" else 2
    inputs = [RNG.standard_normal(256).astype(np.float32) for _ in range(count)]
    inputs[-1][::4] *= np.float32(2.0**-30)  # far apart: the sum is not exact in float64 either
    operands = ", ".join(f"%a{n}" for n in range(count))
    found = compute(f"    {name}.{mode}.f32 %out, {operands};", inputs, np.float32)
    exact = {"add": lambda a, b: a + b, "mul": lambda a, b: a * b, "fma": lambda a, b, c: a * b + c}[name]
    expected = [rounded(exact(*(Fraction(float(x)) for x in row)), np.float32, mode) for row in zip(*inputs)]
    assert found.tolist() == expected


def test_fused_products_of_doubles_are_exact() -> None:
    a, b = RNG.standard_normal(200), RNG.standard_normal(200)
    c = -(a * b) * (1 + RNG.integers(-2, 3, 200) * 2.0**-52)  # all but the error of the product cancels
    found = compute("    fma.rn.f64 %out, %a0, %a1, %a2;", [a, b, c], np.float64)
    exact = [Fraction(x) * Fraction(y) + Fraction(z) for x, y, z in zip(a, b, c)]
    assert found.tolist() == [float(value) for value in exact]


def test_subnormal_numbers_are_flushed_where_it_says_so() -> None:
    a = np.array([1e-40, -1e-40, 2.0**-126, 1.0, -0.0, np.inf, np.nan, -np.inf], np.float32)
    half = np.full(8, 0.5, np.float32)
    found = compute("    mul.ftz.f32 %out, %a0, %a1;", [a, half], np.float32)
    np.testing.assert_array_equal(found, np.array([0, -0.0, 0, 0.5, -0.0, np.inf, np.nan, -np.inf], np.float32))
    assert np.signbit(found[[1, 4]]).all()
    kept = compute("    mul.f32 %out, %a0, %a1;", [a, half], np.float32)
    np.testing.assert_array_equal(kept, a * half)


def test_least_and_greatest_treat_nan_and_zeros_as_a_card_does() -> None:
    a = np.array([np.nan, 1.0, np.nan, 0.0, -0.0, -np.inf], np.float32)
    b = np.array([2.0, np.nan, np.nan, -0.0, 0.0, 3.0], np.float32)
    found = compute("    min.f32 %out, %a0, %a1;", [a, b], np.float32)
    np.testing.assert_array_equal(found, [2, 1, np.nan, -0.0, -0.0, -np.inf])
    assert np.signbit(found[3:5]).all()
    found = compute("    max.NaN.f32 %out, %a0, %a1;", [a, b], np.float32)
    np.testing.assert_array_equal(found, [np.nan, np.nan, np.nan, 0, 0, 3])
    assert not np.signbit(found[3:5]).any()


HALVES = [("f16", np.float16), ("bf16", ml_dtypes.bfloat16)]


@pytest.mark.parametrize(("kind", "dtype"), HALVES, ids=["f16", "bf16"])
def test_halves_round_once(kind: str, dtype: Any) -> None:
    a, b = (RNG.standard_normal(64).astype(dtype) for _ in range(2))
    bits = [a.view(np.uint16), b.view(np.uint16)]
    for name, exact in (("add", lambda x, y: x + y), ("mul", lambda x, y: x * y)):
        found = compute(f"    {name}.{kind} %out, %a0, %a1;", bits, np.uint16).view(dtype)
        expected = exact(a.astype(np.float64), b.astype(np.float64)).astype(dtype)
        assert found.tolist() == expected.tolist()
    packed = [np.stack([x, x[::-1]], -1).reshape(-1).view(np.uint32) for x in bits]
    found = compute(f"    fma.rn.{kind}x2 %out, %a0, %a1, %a1;", packed, np.uint32)
    expected = (a.astype(np.float64) * b.astype(np.float64) + b.astype(np.float64)).astype(dtype)
    assert found.view(np.uint16).view(dtype)[::2].tolist() == expected.tolist()
    found = compute(f"    neg.{kind}x2 %out, %a0;", packed[:1], np.uint32)
    assert (found == packed[0] ^ 0x80008000).all()


def test_conversions_saturate_and_round() -> None:
    a = np.array([0.5, 1.5, -1.5, 2.7, -2.7, 3e9, -3e9, np.nan, np.inf], np.float32)
    cases = {"rni": [0, 2, -2, 3, -3], "rzi": [0, 1, -1, 2, -2], "rmi": [0, 1, -2, 2, -3], "rpi": [1, 2, -1, 3, -2]}
    for mode, expected in cases.items():
        found = compute(f"    cvt.{mode}.s32.f32 %out, %a0;", [a], np.int32)
        assert found.tolist() == [*expected, 2**31 - 1, -(2**31), 0, 2**31 - 1]
    assert compute("    cvt.rzi.u32.f32 %out, %a0;", [a], np.uint32).tolist() == [
        0,
        1,
        0,
        2,
        0,
        3 * 10**9,
        0,
        0,
        2**32 - 1,
    ]
    found = compute("    cvt.sat.f32.f32 %out, %a0;", [a], np.float32)
    assert found.tolist() == [0.5, 1, 0, 1, 0, 1, 0, 0, 1]
    wide = np.array([2**24 + 1, -(2**24) - 3, 2**31 - 1], np.int32)
    assert compute("    cvt.rn.f32.s32 %out, %a0;", [wide], np.float32).tolist() == wide.astype(np.float32).tolist()
    pair = compute("    cvt.rn.bf16x2.f32 %out, %a0, %a1;", [a[:4], a[1:5]], np.uint32).view(np.uint16)
    halves = pair.view(ml_dtypes.bfloat16).astype(np.float32).reshape(-1, 2)
    np.testing.assert_array_equal(halves, np.stack([a[1:5], a[:4]], -1).astype(ml_dtypes.bfloat16).astype(np.float32))
    found = compute("    cvt.rna.tf32.f32 %out, %a0;", [np.array([1 + 2**-11, 1 + 3 * 2**-11], np.float32)], np.float32)
    assert found.tolist() == [1 + 2**-10, 1 + 2**-9]


def test_comparisons_of_floats_know_nan() -> None:
    a = np.array([1.0, 2.0, np.nan, 3.0], np.float32)
    b = np.array([1.0, 1.0, 1.0, np.nan], np.float32)
    cases = {
        "eq": [1, 0, 0, 0],
        "ne": [0, 1, 0, 0],
        "neu": [0, 1, 1, 1],
        "gtu": [0, 1, 1, 1],
        "num": [1, 1, 0, 0],
        "nan": [0, 0, 1, 1],
    }
    for name, expected in cases.items():
        text = f"    setp.{name}.f32 %p1, %a0, %a1;\n    selp.b32 %out, 1, 0, %p1;"
        assert compute(text, [a, b], np.int32).tolist() == expected, name


BOUNDS = {
    "div.full.f32": 2.0**-22,
    "rcp.approx.ftz.f32": 2.0**-23,
    "sqrt.approx.f32": 2.0**-23,
    "ex2.approx.ftz.f32": 2.0**-22,
}


@pytest.mark.parametrize("name", BOUNDS)
def test_approximate_instructions_are_off_within_their_bound(name: str) -> None:
    a, b = (RNG.uniform(0.5, 40, 512).astype(np.float32) for _ in range(2))
    operands = "%a0, %a1" if name.startswith("div") else "%a0"
    text = f"    {name} %out, {operands};"
    exact = {"div": lambda: a.astype(np.float64) / b, "rcp": lambda: 1 / a.astype(np.float64)}
    exact |= {"sqrt": lambda: np.sqrt(a.astype(np.float64)), "ex2": lambda: np.exp2(a.astype(np.float64))}
    wanted = exact[name.split(".")[0]]()
    inputs = [a, b] if "%a1" in operands else [a]
    found, other = compute(text, inputs, np.float32), compute(text, inputs, np.float32, seed=1)
    error = np.abs(found / wanted - 1)
    assert 2.0**-25 < error.max() <= BOUNDS[name] * 1.01 + 2.0**-24
    assert (found != wanted.astype(np.float32)).mean() > 0.3
    assert (found != other).any(), "another seed gives other errors"
    assert (found == compute(text, inputs, np.float32)).all(), "the same seed gives the same"


# ---- between lanes and memory ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("mode", "distance", "limits", "expected"),
    [
        ("bfly", 5, 31, lambda lane: lane ^ 5),
        ("up", 3, 0, lambda lane: lane - 3 if lane >= 3 else lane),
        ("down", 3, 31, lambda lane: lane + 3 if lane < 29 else lane),
        ("idx", 9, 31, lambda lane: 9),
        ("idx", 2, (24 << 8) | 31, lambda lane: (lane & 24) | 2),  # segments of eight
    ],
)
def test_shuffles(mode: str, distance: int, limits: int, expected: Callable[[int], int]) -> None:
    lanes = np.arange(64, dtype=np.uint32)
    found = compute(f"    shfl.sync.{mode}.b32 %out, %a0, {distance}, {limits}, -1;", [lanes], np.uint32)
    assert found.tolist() == [lane // 32 * 32 + expected(lane % 32) for lane in range(64)]
    text = f"    mov.u32 %r1, {distance};\n    shfl.sync.{mode}.b32 %out|%p1, %a0, %r1, {limits}, -1;"
    assert found.tolist() == compute(text, [lanes], np.uint32).tolist()


def test_warps_vote_and_fold() -> None:
    a = RNG.integers(-50, 50, 64).astype(np.int32)
    for name, fold in (("add", np.sum), ("min", np.min), ("max", np.max)):
        found = compute(f"    redux.sync.{name}.s32 %out, %a0, 0xffffffff;", [a], np.int32)
        assert found.tolist() == np.repeat([fold(a[:32]), fold(a[32:])], 32).tolist()
    text = "    setp.gt.s32 %p1, %a0, 0;\n    vote.sync.ballot.b32 %out, %p1, -1;"
    expected = [sum(1 << lane for lane in range(32) if part[lane] > 0) for part in (a[:32], a[32:])]
    assert compute(text, [a], np.uint32).tolist() == np.repeat(expected, 32).tolist()
    text = "    setp.gt.s32 %p1, %a0, 49;\n    vote.sync.any.pred %p2, %p1, -1;\n    selp.b32 %out, 1, 0, %p2;"
    assert compute(text, [a], np.int32).tolist() == np.repeat([(a[:32] > 49).any(), (a[32:] > 49).any()], 32).tolist()


def test_atomics_take_turns() -> None:
    counter, tickets = np.zeros(2, np.uint32), np.zeros(128, np.uint32)
    body = """
    and.b32 %r1, %r0, 1;
    mul.wide.u32 %rd3, %r1, 4;
    add.s64 %rd3, %rd3, %rd1;
    atom.global.gpu.relaxed.add.u32 %r2, [%rd3], 1;
    mov.u32 %r3, %ctaid.x;
    shl.b32 %r3, %r3, 6;
    add.s32 %r3, %r3, %r0;
    mul.wide.u32 %rd4, %r3, 4;
    add.s64 %rd4, %rd4, %rd2;
    st.global.b32 [%rd4], %r2;"""
    execute(body, counter, tickets, threads=64, grid=2)
    assert counter.tolist() == [64, 64]
    assert sorted(tickets[::2].tolist()) == sorted(tickets[1::2].tolist()) == list(range(64))
    body = """
    ld.global.b32 %r1, [%rd1];
    atom.global.cas.b32 %r2, [%rd1], 0, %r0;
    red.global.max.s32 [%rd1+4], %r0;"""
    counter[:] = 0
    execute(body, counter, threads=64)
    assert counter.tolist() == [1, 63]  # thread 0 left it at zero, and the next one took it


def test_atomics_in_shared_memory_and_local_arrays() -> None:
    out = np.zeros(32, np.uint32)
    body = """
    setp.eq.u32 %p1, %r0, 0;
    @%p1 st.shared.b32 [global_smem], 0;
    bar.sync 0;
    atom.shared.add.u32 %r1, [global_smem], 2;
    bar.sync 0;
    ld.shared.b32 %r2, [global_smem];
    .local .align 8 .b8 depot[16];
    mov.b32 %r3, depot;
    st.local.b32 [%r3+8], %r1;
    ld.local.b32 %r4, [%r3+8];
    add.s32 %r4, %r4, %r2;
    mul.wide.u32 %rd2, %r0, 4;
    add.s64 %rd2, %rd2, %rd1;
    st.global.b32 [%rd2], %r4;"""
    execute(body, out, shared=16)
    assert out.tolist() == [64 + 2 * lane for lane in range(32)]


def test_lanes_that_part_meet_again() -> None:
    out = np.zeros(64, np.uint32)
    body = """
    mov.u32 %r1, 0;
    mov.u32 %r2, 0;
$L_loop:
    add.s32 %r1, %r1, 1;
    and.b32 %r3, %r1, 1;
    setp.eq.u32 %p1, %r3, 0;
    @%p1 bra $L_even;
    add.s32 %r2, %r2, 10;
    bra.uni $L_joined;
$L_even:
    add.s32 %r2, %r2, 1;
$L_joined:
    setp.lt.u32 %p2, %r1, %r0;
    @%p2 bra $L_loop;
    bar.sync 0;
    mul.wide.u32 %rd2, %r0, 4;
    add.s64 %rd2, %rd2, %rd1;
    st.global.b32 [%rd2], %r2;"""
    execute(body, out, threads=64)
    turns = [max(lane, 1) for lane in range(64)]
    assert out.tolist() == [10 * ((turn + 1) // 2) + turn // 2 for turn in turns]


def test_an_unknown_instruction_is_named() -> None:
    with pytest.raises(KernelError, match=r"does not know the instruction frobnicate\.b32(?s:.*)at program\.py:7"):
        compute("    frobnicate.b32 %out, %a0;", [np.zeros(32, np.uint32)], np.uint32)


@needs_triton
def test_a_function_is_executed_where_it_is_called() -> None:
    x, y = RNG.uniform(0.1, 5, 64), RNG.standard_normal(64)
    with torch.cuda.simulate(compiled=True):  # which Triton calls a function of NVIDIA's library for
        found = (torch.from_numpy(x).cuda() ** torch.from_numpy(y).cuda()).cpu().numpy()
    np.testing.assert_allclose(found, x**y, rtol=1e-15)
    with pytest.raises(KernelError, match="calls missing, which a simulated device does not have"):
        compute("    call.uni missing;", [np.zeros(32, np.uint32)], np.uint32)


@pytest.mark.parametrize(
    ("test", "accepts"),
    [
        ("finite", math.isfinite),
        ("infinite", math.isinf),
        ("number", lambda x: not math.isnan(x)),
        ("notanumber", math.isnan),
        ("normal", lambda x: math.isfinite(x) and abs(x) >= 2**-126),
        ("subnormal", lambda x: 0 < abs(x) < 2**-126),
    ],
)
def test_properties_of_a_float(test: str, accepts: Callable[[float], bool]) -> None:
    x = values(np.float32)
    found = compute(f"testp.{test}.f32 %p1, %a0; selp.u32 %out, 1, 0, %p1;", [x], U32)
    assert found.tolist() == [int(accepts(float(each))) for each in x]


@pytest.mark.parametrize("text", ["20.", "0.125", "1.5e3", "-2e-1"])
@pytest.mark.parametrize("kind", ["f32", "f64"])
def test_a_float_in_decimals_is_rounded_to_the_type_that_reads_it(text: str, kind: str) -> None:
    dtype = np.float32 if kind == "f32" else np.float64
    x = np.ones(4, dtype)
    assert compute(f"mul.{kind} %out, %a0, {text};", [x], dtype).tolist() == [dtype(text)] * 4


def test_a_register_of_which_one_half_is_undefined() -> None:
    x = np.arange(4, dtype=U32)
    packed = "mov.b32 {%rs1, %rs2}, %a0; mov.b32 %r5, {%rs1, %rs9}; mov.b32 {%rs3, %rs4}, %r5; cvt.u32.u16 %out, %rs3;"
    assert compute(packed, [x], U32).tolist() == x.tolist()
    whole = "mov.b32 %r5, {%rs8, %rs9}; mov.b32 %out, %a0;"
    assert compute(whole, [x], U32).tolist() == x.tolist()


def test_lanes_meet_where_branches_join_wherever_the_blocks_lie() -> None:
    out = np.zeros(32, np.uint32)
    body = """
    mov.u32 %r9, 3;
    setp.lt.u32 %p1, %r0, 16;
$AGAIN:
    @%p1 bra $LOW;
    bra.uni $HIGH;
$LOW:
    add.u32 %r1, %r0, 100;
$JOIN:
    shfl.sync.bfly.b32 %r2, %r1, 16, 31, -1;
    sub.u32 %r9, %r9, 1;
    setp.ne.u32 %p2, %r9, 0;
    @%p2 bra $AGAIN;
    bra.uni $END;
$HIGH:
    add.u32 %r1, %r0, 200;
    bra.uni $JOIN;
$END:
    mul.wide.u32 %rd5, %r0, 4;
    add.s64 %rd5, %rd1, %rd5;
    st.global.b32 [%rd5], %r2;
"""
    execute(body, out)
    assert out.tolist() == [216 + n for n in range(16)] + [100 + n for n in range(16)]


@pytest.mark.parametrize("returns", [False, True])
def test_atomics_of_vectors_and_of_packed_pairs(returns: bool) -> None:
    sums, old = np.zeros(4, np.float32), np.zeros((32, 2), np.float32)
    halves = np.zeros(4, np.float16)
    x = np.array([1.5, -0.25], np.float32)
    add = "atom.global.gpu.acq_rel.add.v2.f32 {%r4, %r5}, [%rd1+8]" if returns else "red.global.add.v2.f32 [%rd1+8]"
    body = f"""
    ld.global.v2.b32 {{%r1, %r2}}, [%rd4];
    {add}, {{%r1, %r2}};
    mov.b32 %r7, 0x3C004000;
    {"atom.global.add.noftz.f16x2 %r8, [%rd3+4], %r7;" if returns else "red.global.add.noftz.f16x2 [%rd3+4], %r7;"}
    mul.wide.u32 %rd5, %r0, 8;
    add.s64 %rd5, %rd2, %rd5;
    {"st.global.v2.b32 [%rd5], {%r4, %r5};" if returns else ""}
"""
    execute(body, sums, old, halves, x)
    assert sums.tolist() == [0, 0, 48, -8]
    assert halves.tolist() == [0, 0, 64, 32]
    assert not returns or old.tolist() == [[1.5 * n, -0.25 * n] for n in range(32)]


def test_relu_of_packed_integers() -> None:
    a, b = np.array([[5, -3]] * 4, np.int16), np.array([[-7, 2]] * 4, np.int16)
    found = compute("max.relu.s16x2 %out, %a0, %a1;", [a.view(U32)[:, 0], b.view(U32)[:, 0]], U32)
    assert found.view(np.int16).reshape(4, 2).tolist() == [[5, 2]] * 4
    found = compute("min.relu.s16x2 %out, %a0, %a1;", [a.view(U32)[:, 0], b.view(U32)[:, 0]], U32)
    assert found.view(np.int16).reshape(4, 2).tolist() == [[0, 0]] * 4
