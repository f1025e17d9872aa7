"""Kernels that move, cast and compute numbers."""

from __future__ import annotations

import numpy as np
import triton
import triton.language as tl

import tritensor as torch

from ..drawing.kinds import FLOATS, INTEGERS, NUMPY, bounds
from ..drawing.running import on_device
from .cases import Tensors, case, numbers, zeros


@triton.jit
def moving(o, x, n, N: tl.constexpr):
    i = tl.arange(0, N)
    a = tl.load(x + i)
    b = tl.trans(tl.reshape(tl.load(x + (N - 1 - i)), (N // 16, 16)))
    c = tl.where(i % 3 == 0, a, tl.load(x + (i ^ 1)))
    for _ in range(n):
        a, c = c, a
    tl.store(o + i, a)
    tl.store(o + N + tl.arange(0, 16)[:, None] * (N // 16) + tl.arange(0, N // 16)[None, :], b)
    tl.store(o + 2 * N + i, c)


@case()
def moves_of_all_bits() -> Tensors:
    found = []
    for dtype in ("i8", "u8", "i16", "u16", "f16", "bf16", "e5", "e4", "i1", "f32", "f64", "i32", "i64"):
        size = NUMPY[dtype].itemsize
        bits = (
            np.arange(256, dtype=np.uint8)
            if size == 1
            else np.arange(0, 65536, 16, dtype=np.uint16) + np.arange(4096, dtype=np.uint16) % 16
        )
        if size > 2:
            bits = np.random.default_rng(0).integers(0, 256, 256 * size, dtype=np.uint8)
            bits.view(f"u{size}")[:8] = np.array(
                [0x7F800001, 0x7FF00001, 0xFFFFFFFF, 1, 0x80000000, 0x7F800000, 0xFF800000, 2], np.uint32
            )
            bits.view(f"u{size}")[8:10] = np.array([0x7FF0000000000001, 0xFFF8000000000001], np.uint64).astype(
                f"u{size}"
            )
        if dtype == "i1":
            bits = bits % 2
        x = on_device(bits.view(NUMPY[dtype]))
        count = x.numel()
        o = on_device(np.zeros(3 * count, NUMPY[dtype]))
        moving[(1,)](o, x, 3, N=count)
        found.append(o)
    return found


@triton.jit
def casting(
    x, i1, i8, i16, i32, i64, u8, u16, u32, u64, f16, bf16, f32, f64, e5, e4, N: tl.constexpr, SMALL: tl.constexpr
):
    i = tl.arange(0, N)
    v = tl.load(x + i)
    tl.store(i1 + i, v.to(tl.int1))
    tl.store(i8 + i, v.to(tl.int8))
    tl.store(i16 + i, v.to(tl.int16))
    tl.store(i32 + i, v.to(tl.int32))
    tl.store(i64 + i, v.to(tl.int64))
    tl.store(u8 + i, v.to(tl.uint8))
    tl.store(u16 + i, v.to(tl.uint16))
    tl.store(u32 + i, v.to(tl.uint32))
    tl.store(u64 + i, v.to(tl.uint64))
    tl.store(f16 + i, v.to(tl.float16))
    tl.store(bf16 + i, v.to(tl.bfloat16))
    tl.store(f32 + i, v.to(tl.float32))
    tl.store(f64 + i, v.to(tl.float64))
    if SMALL:
        tl.store(e5 + i, v.to(tl.float8e5).to(tl.uint8, bitcast=True))
        tl.store(e4 + i, v.to(tl.float8e4nv).to(tl.uint8, bitcast=True))


def cast_of(values: np.ndarray, small: bool = False) -> Tensors:
    x = on_device(values)
    found = [on_device(np.zeros(len(values), NUMPY[d])) for d in ("i1", *INTEGERS, *FLOATS, "u8", "u8")]
    casting[(1,)](x, *found, N=len(values), SMALL=small)
    return found


@case()
def casts_of_integers() -> Tensors:
    found = []
    for dtype in ("i1", *INTEGERS):
        values = np.random.default_rng(1).integers(
            *bounds(dtype), 64, endpoint=True, dtype=np.uint64 if dtype == "u64" else np.int64
        )
        values[:8] = [
            bounds(dtype)[0],
            bounds(dtype)[1],
            0,
            1,
            min(bounds(dtype)[1], 257),
            min(bounds(dtype)[1], 2049),
            min(bounds(dtype)[1], 65519),
            min(bounds(dtype)[1], (1 << 24) + 1),
        ]
        if dtype not in ("i1", "i8", "u8", "i16"):  # float16 has no larger ones
            values[8:] = np.where(values[8:] > 60000, values[8:] % 60000, values[8:])
            if dtype[0] == "i":
                values[8:] = np.where(values[8:] < -60000, values[8:] % 60000, values[8:])
        found += cast_of(values.astype(NUMPY[dtype]))
    return found


@case()
def casts_of_floats_in_range() -> Tensors:
    found = []
    for dtype in FLOATS:
        values = np.random.default_rng(1).uniform(0, 100, 64)
        values[:8] = [0, -0.0, 0.5, 1.5, 2.5, 0.99, 99.5, 1e-6]
        found += cast_of(values.astype(NUMPY[dtype]), dtype in ("f32", "f16", "bf16"))
    return found


@triton.jit
def narrowing(x, f16, bf16, f32, e5, e4, N: tl.constexpr, SMALL: tl.constexpr):
    i = tl.arange(0, N)
    v = tl.load(x + i)
    tl.store(f16 + i, v.to(tl.float16))
    tl.store(bf16 + i, v.to(tl.bfloat16))
    tl.store(f32 + i, v.to(tl.float32))
    if SMALL:
        tl.store(e5 + i, v.to(tl.float8e5).to(tl.uint8, bitcast=True))
        tl.store(e4 + i, v.to(tl.float8e4nv).to(tl.uint8, bitcast=True))


@case()
def casts_between_floats() -> Tensors:
    """Rounding to the nearest, from numbers between two, from subnormal ones, and beyond the largest."""
    found = []
    for dtype in FLOATS:
        values = np.random.default_rng(2).standard_normal(1024) * 2.0 ** np.random.default_rng(3).integers(
            -30, 17, 1024
        )
        ties = (1 + np.arange(256) * 2.0**-12) * 2.0 ** (np.arange(256) % 34 - 17)
        values[:256] = ties
        values[256:272] = [
            0,
            -0.0,
            np.nan,
            np.inf,
            -np.inf,
            65504,
            65519,
            65520,
            65536,
            3.3e38,
            448,
            464,
            465,
            57344,
            61440,
            61441,
        ]
        with np.errstate(over="ignore"):
            x = on_device(values.astype(NUMPY[dtype]))
        out = [on_device(np.zeros(1024, NUMPY[d])) for d in ("f16", "bf16", "f32", "u8", "u8")]
        narrowing[(1,)](x, *out, N=1024, SMALL=dtype != "f64")
        found += [*out[:3], out[3].view(torch.float8_e5m2), out[4].view(torch.float8_e4m3fn)]  # of NaN, any
    return found


@triton.jit
def widening(x, f16, bf16, f32, N: tl.constexpr, T: tl.constexpr):
    i = tl.arange(0, N)
    v = tl.load(x + i).to(T, bitcast=True)
    tl.store(f16 + i, v.to(tl.float16))
    tl.store(bf16 + i, v.to(tl.bfloat16))
    tl.store(f32 + i, v.to(tl.float32))


@case()
def casts_of_all_float8() -> Tensors:
    found = []
    for dtype in (tl.float8e5, tl.float8e4nv):
        out = [on_device(np.zeros(256, NUMPY[d])) for d in ("f16", "bf16", "f32")]
        widening[(1,)](on_device(np.arange(256, dtype=np.uint8)), *out, N=256, T=dtype)
        found += out
    return found


@case(2.0**-8)
def casts_of_float64_near_a_tie() -> Tensors:
    """Rounded twice, by way of float32, as in what is compiled for a card; the interpreter rounds once."""
    base = 1 + np.arange(64) * 2.0**-11
    x = on_device(np.concatenate([base + 2.0**-40, base - 2.0**-40, base + 2.0**-8 + 2.0**-35, base - 2.0**-35]))
    out = [on_device(np.zeros(256, NUMPY[d])) for d in ("f16", "bf16", "f32", "u8", "u8")]
    narrowing[(1,)](x, *out, N=256, SMALL=False)
    return out


@triton.jit
def integer_arithmetic(o, x, y, N: tl.constexpr):
    i = tl.arange(0, N)
    a, b = tl.load(x + i), tl.load(y + i)
    tl.store(o + i, a // b)
    tl.store(o + N + i, a % b)
    tl.store(o + 2 * N + i, a * b - a)
    tl.store(o + 3 * N + i, tl.minimum(a, b))
    tl.store(o + 4 * N + i, tl.maximum(a, b))
    tl.store(o + 5 * N + i, tl.cdiv(a, 3))
    tl.store(o + 6 * N + i, a // 7)
    tl.store(o + 7 * N + i, a % 8)


@case()
def integers_by_zero_and_below() -> Tensors:
    found = []
    for dtype in INTEGERS:
        least, most = bounds(dtype)
        ends = np.array(
            [least, most, 0, 1, 2, 3, 7, most - 1, *([-1, -2, -3, least + 1] if least else [4, 5, 6, 9])], NUMPY[dtype]
        )
        x, y = (each.reshape(-1)[:144] for each in np.meshgrid(ends, ends))
        fill = np.random.default_rng(0).integers(1, 100, (2, 112)).astype(NUMPY[dtype])
        x, y = np.concatenate([x, fill[0]]), np.concatenate([y, fill[1]])
        o = zeros(8 * 256, dtype=dtype)
        integer_arithmetic[(1,)](o, on_device(x), on_device(y), N=256)
        found.append(o)
    return found


@triton.jit
def shifting(o, x, y, N: tl.constexpr, BITS: tl.constexpr):
    i = tl.arange(0, N)
    a, b = tl.load(x + i), tl.load(y + i)
    tl.store(o + i, (a << b).to(a.dtype))
    tl.store(o + N + i, (a >> b).to(a.dtype))
    tl.store(o + 2 * N + i, a << (BITS - 1))
    tl.store(o + 3 * N + i, a >> 1)
    tl.store(o + 4 * N + i, ~a ^ (a & b) | b)


@case()
def shifts() -> Tensors:
    found = []
    for dtype in INTEGERS:
        least, most = bounds(dtype)
        bits = NUMPY[dtype].itemsize * 8
        x = np.random.default_rng(0).integers(least, most, 64, NUMPY[dtype], endpoint=True)
        o = zeros(5 * 64, dtype=dtype)
        shifting[(1,)](o, on_device(x), on_device((np.arange(64) % bits).astype(NUMPY[dtype])), N=64, BITS=bits)
        found.append(o)
    return found


@triton.jit
def float_arithmetic(o, x, y, N: tl.constexpr, T: tl.constexpr):
    i = tl.arange(0, N)
    a, b = tl.load(x + i), tl.load(y + i)
    tl.store(o + i, (a + b).to(T))
    tl.store(o + N + i, (a - b).to(T))
    tl.store(o + 2 * N + i, (a * b).to(T))
    tl.store(o + 3 * N + i, (a / b).to(T))
    tl.store(o + 4 * N + i, tl.minimum(a, b).to(T))
    tl.store(o + 5 * N + i, tl.maximum(a, b, propagate_nan=tl.PropagateNan.ALL).to(T))
    tl.store(o + 6 * N + i, tl.abs(a).to(T))
    tl.store(o + 7 * N + i, (-a).to(T))
    tl.store(o + 8 * N + i, (a < b).to(T) + (a == b).to(T) * 2 + (a != b).to(T) * 4 + (a >= b).to(T) * 8)
    tl.store(o + 9 * N + i, tl.where(a > 0, a, b))


def special(dtype: str) -> tuple[torch.Tensor, torch.Tensor]:
    info = {"f16": (6e-8, 65504.0), "bf16": (1e-40, 3.3e38), "f32": (1e-45, 3.4e38), "f64": (5e-324, 1.7e308)}[dtype]
    ends = np.array(
        [0.0, -0.0, np.nan, np.inf, -np.inf, 1, -1, info[0], -info[0], info[1], -info[1], 1.5, 3, 0.1, 7, -2.75]
    )
    x, y = (each.reshape(-1) for each in np.meshgrid(ends, ends))
    with np.errstate(all="ignore"):
        return on_device(x.astype(NUMPY[dtype])), on_device(y.astype(NUMPY[dtype]))


@case()
def floats_at_their_ends() -> Tensors:
    found = []
    for dtype in FLOATS:
        o = zeros(10 * 256, dtype=dtype)
        float_arithmetic[(1,)](o, *special(dtype), N=256, T=getattr(tl, NUMPY[dtype].name))
        found.append(o)
    return found


@triton.jit
def rounding(o, x, y, N: tl.constexpr):
    i = tl.arange(0, N)
    a, b = tl.load(x + i), tl.load(y + i)
    tl.store(o + i, tl.floor(a))
    tl.store(o + N + i, tl.ceil(a))
    tl.store(o + 2 * N + i, tl.sqrt(tl.abs(a)))
    tl.store(o + 3 * N + i, a % b)
    tl.store(o + 4 * N + i, tl.clamp(a, -1.0, 1.0))
    tl.store(o + 5 * N + i, tl.clamp(a, -1.0, 1.0, propagate_nan=tl.PropagateNan.ALL))


@case()
def roundings_and_remainders() -> Tensors:
    found = []
    for dtype in ("f32", "f64"):
        o = zeros(6 * 256, dtype=dtype)
        rounding[(1,)](o, *special(dtype), N=256)
        found.append(o)
        o = zeros(6 * 256, dtype=dtype)
        rounding[(1,)](o, numbers(256, dtype=dtype, scale=100), numbers(256, dtype=dtype, seed=1, scale=3), N=256)
        found.append(o)
    return found


@triton.jit
def of_single(o, x, y, N: tl.constexpr):
    i = tl.arange(0, N)
    a, b = tl.load(x + i), tl.load(y + i)
    tl.store(o + i, tl.div_rn(a, b))
    tl.store(o + N + i, tl.sqrt_rn(tl.abs(a)))
    tl.store(o + 2 * N + i, tl.fdiv(a, b, ieee_rounding=True))


@case()
def divisions_and_roots_as_ieee_rounds_them() -> Tensors:
    o = zeros(3 * 256)
    of_single[(1,)](o, numbers(256, scale=100), numbers(256, seed=1), N=256)
    return [o]


@triton.jit
def high_words(o, p, x, y, N: tl.constexpr):
    i = tl.arange(0, N)
    a, b = tl.load(x + i), tl.load(y + i)
    tl.store(o + i, tl.umulhi(a, b))
    tl.store(
        o + N + i, tl.umulhi(a.to(tl.uint32, bitcast=True), b.to(tl.uint32, bitcast=True)).to(tl.int32, bitcast=True)
    )
    tl.store(p + i, tl.umulhi(a.to(tl.int64) * 0x123456789, b.to(tl.int64) * 0x987654321))
    tl.store(p + N + i, tl.umulhi((a.to(tl.int64) * 0x123456789).to(tl.uint64), b.to(tl.uint64)).to(tl.int64))


@case()
def upper_halves_of_products() -> Tensors:
    values = np.random.default_rng(0).integers(-(1 << 31), 1 << 31, (2, 64)).astype(np.int32)
    o, p = zeros(128, dtype="i32"), zeros(128, dtype="i64")
    high_words[(1,)](o, p, on_device(values[0]), on_device(values[1]), N=64)
    return [o, p]


@triton.jit
def random_numbers(o, p, seed, N: tl.constexpr):
    i = tl.program_id(0) * N + tl.arange(0, N)
    a, b, c, d = tl.randint4x(seed, i)
    tl.store(o + i * 5, a)
    tl.store(o + i * 5 + 1, b)
    tl.store(o + i * 5 + 2, c)
    tl.store(o + i * 5 + 3, d)
    tl.store(o + i * 5 + 4, tl.randint(seed, i, n_rounds=6))
    tl.store(p + i, tl.rand(seed, i))
    tl.store(p + 256 + i, tl.rand(seed, i.to(tl.int64) + (1 << 40)))


@case()
def random_numbers_of_philox() -> Tensors:
    found = []
    for seed in (0, 12345, -5, 1 << 40):
        found += [zeros(1280, dtype="i32"), zeros(512)]
        random_numbers[(4,)](*found[-2:], seed, N=64)
    return found


@triton.jit
def normal_numbers(o, seed, N: tl.constexpr):
    i = tl.arange(0, N)
    tl.store(o + i, tl.randn(seed, i))


@case(1e-5)
def random_numbers_of_normal_distribution() -> Tensors:
    o = zeros(1024)
    normal_numbers[(1,)](o, 77, N=1024)
    return [o]
