"""Kernels as libraries have them: attention, products, normalisation, scans, sorts."""

from __future__ import annotations

from typing import Any

import numpy as np
import triton
import triton.language as tl

import tritensor as torch

from ..drawing.kinds import NUMPY
from ..drawing.running import on_device
from .cases import REORDERS, Tensors, case, numbers, zeros
from .flow import twice_or


@triton.jit
def attention(o, q, k, v, n, scale, M: tl.constexpr, N: tl.constexpr, D: tl.constexpr, CAUSAL: tl.constexpr):
    start = tl.program_id(0) * M
    rows, d = start + tl.arange(0, M), tl.arange(0, D)
    a = tl.load(q + rows[:, None] * D + d[None, :], mask=rows[:, None] < n, other=0.0)
    most = tl.full((M,), float("-inf"), tl.float32)
    total = tl.zeros((M,), tl.float32)
    acc = tl.zeros((M, D), tl.float32)
    end = tl.minimum(start + M, n) if CAUSAL else n
    for first in range(0, end, N):
        columns = first + tl.arange(0, N)
        b = tl.load(k + columns[None, :] * D + d[:, None], mask=columns[None, :] < n, other=0.0)
        s = tl.dot(a, b) * scale
        s = tl.where((columns[None, :] < n) & ((columns[None, :] <= rows[:, None]) if CAUSAL else True), s, -1.0e30)
        new = tl.maximum(most, tl.max(s, 1))
        p = tl.exp2((s - new[:, None]) * 1.44269504)
        factor = tl.exp2((most - new) * 1.44269504)
        total = total * factor + tl.sum(p, 1)
        acc = acc * factor[:, None]
        w = tl.load(v + columns[:, None] * D + d[None, :], mask=columns[:, None] < n, other=0.0)
        acc = tl.dot(p.to(w.dtype), w, acc)
        most = new
    tl.store(o + rows[:, None] * D + d[None, :], (acc / total[:, None]).to(o.dtype.element_ty), mask=rows[:, None] < n)


@case(2e-3)
def attention_in_half_precision() -> Tensors:
    o, (q, k, v) = zeros(70, 32, dtype="f16"), (numbers(70, 32, dtype="f16", seed=s) for s in range(3))
    attention[(3,)](o, q, k, v, 70, 0.18, M=32, N=16, D=32, CAUSAL=True)
    return [o]


@case(1e-5)
def attention_in_single_precision() -> Tensors:
    found = []
    for n in (70, 16):
        o, (q, k, v) = zeros(n, 16), (numbers(n, 16, seed=s) for s in range(3))
        attention[(-(-n // 32),)](o, q, k, v, n, 0.25, M=32, N=32, D=16, CAUSAL=False)
        found.append(o)
    return found


@triton.jit
def product(
    c,
    a,
    b,
    m,
    n,
    k,
    sam,
    sak,
    sbk,
    sbn,
    M: tl.constexpr,
    N: tl.constexpr,
    K: tl.constexpr,
    G: tl.constexpr,
    ACC: tl.constexpr,
):
    across = tl.cdiv(n, N)
    per = G * across
    group = tl.program_id(0) // per
    height = min(tl.cdiv(m, M) - group * G, G)
    pm = group * G + (tl.program_id(0) % per) % height
    pn = (tl.program_id(0) % per) // height
    i, j, d = pm * M + tl.arange(0, M), pn * N + tl.arange(0, N), tl.arange(0, K)
    pa = a + (i[:, None] % m) * sam + d[None, :] * sak
    pb = b + d[:, None] * sbk + (j[None, :] % n) * sbn
    acc = tl.zeros((M, N), ACC)
    for step in range(tl.cdiv(k, K)):
        x = tl.load(pa, mask=d[None, :] < k - step * K, other=0)
        y = tl.load(pb, mask=d[:, None] < k - step * K, other=0)
        acc = tl.dot(x, y, acc, out_dtype=ACC)
        pa += K * sak
        pb += K * sbk
    tl.store(c + i[:, None] * n + j[None, :], acc.to(c.dtype.element_ty), mask=(i[:, None] < m) & (j[None, :] < n))


def products(dtype: str, acc: Any, out: str, scale: float = 1.0) -> Tensors:
    found = []
    for turned_a, turned_b in ((False, False), (True, False), (False, True), (True, True)):
        m, n, k = 37, 50, 70
        a, b = numbers(m, k, dtype=dtype, scale=scale), numbers(k, n, dtype=dtype, seed=1, scale=scale)
        c = zeros(m, n, dtype=out)
        sa, sb = (1, m) if turned_a else (k, 1), (1, k) if turned_b else (n, 1)
        product[(3 * 4,)](c, a, b, m, n, k, *sa, *sb, M=16, N=16, K=32, G=2, ACC=acc)
        found.append(c)
    return found


@case(1e-4)
def products_of_single_precision() -> Tensors:
    return products("f32", tl.float32, "f32") + products("f64", tl.float64, "f64")


@case(2e-2)
def products_of_half_precision() -> Tensors:
    return (
        products("f16", tl.float32, "f16")
        + products("bf16", tl.float32, "bf16")
        + products("f16", tl.float16, "f16", 0.3)
    )


@case()
def products_of_integers() -> Tensors:
    return products("i8", tl.int32, "i32")


@triton.jit
def normalising(o, mean, rstd, x, w, n, eps, N: tl.constexpr):
    row, i = tl.program_id(0), tl.arange(0, N)
    v = tl.load(x + row * n + i, mask=i < n, other=0.0).to(tl.float32)
    average = tl.sum(v, axis=0) / n
    centred = tl.where(i < n, v - average, 0.0)
    factor = 1 / tl.sqrt(tl.sum(centred * centred, axis=0) / n + eps)
    tl.store(mean + row, average)
    tl.store(rstd + row, factor)
    tl.store(o + row * n + i, centred * factor * tl.load(w + i, mask=i < n), mask=i < n)


@case(1e-5)
def layer_normalisation() -> Tensors:
    found = []
    for n, block in ((100, 128), (1, 1), (3000, 4096)):
        o, mean, rstd = zeros(3, n), zeros(3), zeros(3)
        normalising[(3,)](o, mean, rstd, numbers(3, n), numbers(n, seed=1), n, 1e-5, N=block)
        found += [o, mean, rstd]
    return found


@triton.jit
def welford(a, b, c, d, e, f):
    delta = d - a
    count = c + f
    ratio = tl.where(count == 0, 0.0, f / count)
    return a + delta * ratio, b + e + delta * delta * c * ratio, count


@triton.jit
def moments(o, x, n, N: tl.constexpr):
    i = tl.arange(0, N)
    v = tl.load(x + i, mask=i < n, other=0.0)
    mean, squares, count = tl.reduce((v, tl.zeros_like(v), (i < n).to(tl.float32)), 0, welford)
    tl.store(o, mean)
    tl.store(o + 1, squares / count)
    tl.store(o + 2, count)


@case(1e-5)
def a_reduction_of_three_values() -> Tensors:
    o = zeros(3)
    moments[(1,)](o, numbers(500), 500, N=512)
    return [o]


@triton.jit
def recurrence(a, b, c, d):
    return a * c, b * c + d


@triton.jit
def scanning(o, x, y, R: tl.constexpr, C: tl.constexpr, AXIS: tl.constexpr, BACK: tl.constexpr):
    at = tl.arange(0, R)[:, None] * C + tl.arange(0, C)[None, :]
    a, b = tl.load(x + at), tl.load(y + at)
    p, q = tl.associative_scan((a, b), AXIS, recurrence, reverse=BACK)
    tl.store(o + at, p)
    tl.store(o + R * C + at, q)
    tl.store(o + 2 * R * C + at, tl.cumsum(a, AXIS, reverse=BACK))
    tl.store(o + 3 * R * C + at, tl.cumprod(a, AXIS, reverse=BACK))


@case(1e-4)
def scans_along_each_axis() -> Tensors:
    found = []
    for rows, columns in ((4, 64), (64, 4), (1, 32), (32, 1)):
        for axis in (0, 1):
            found.append(zeros(4 * rows * columns))
            x = numbers(rows, columns).clamp(-1.2, 1.2)
            scanning[(1,)](found[-1], x, numbers(rows, columns, seed=1), R=rows, C=columns, AXIS=axis, BACK=axis == 1)
    return found


@triton.jit
def sorting(o, p, x, R: tl.constexpr, C: tl.constexpr):
    at = tl.arange(0, R)[:, None] * C + tl.arange(0, C)[None, :]
    v = tl.load(x + at)
    tl.store(o + at, tl.sort(v))
    tl.store(o + R * C + at, tl.sort(v, descending=True))
    tl.store(p + tl.arange(0, R), tl.argmax(v, axis=1))
    tl.store(p + R + tl.arange(0, C), tl.argmin(v, axis=0))
    best, where = tl.min(v, axis=1, return_indices=True, return_indices_tie_break_left=True)
    tl.store(p + R + C + tl.arange(0, R), where)
    tl.store(o + 2 * R * C + tl.arange(0, R), best)


@case()
def sorts_and_places_with_ties() -> Tensors:
    found = []
    for dtype in ("f32", "i8", "u16", "f16"):
        o, p = zeros(3 * 8 * 16, dtype=dtype), zeros(128, dtype="i32")
        x = on_device(np.random.default_rng(0).integers(0, 9, (8, 16)).astype(NUMPY[dtype]))
        sorting[(1,)](o, p, x, R=8, C=16)
        found += [o, p]
    return found


@triton.jit
def reshaping(o, x, N: tl.constexpr):
    i = tl.arange(0, N)
    v = tl.load(x + i)
    a = tl.reshape(v, (N // 8, 2, 4))
    b, c = tl.split(tl.permute(a, (0, 2, 1)))
    tl.store(o + i, tl.ravel(tl.join(b + c, b - c)))
    tl.store(o + N + i, tl.interleave(tl.ravel(b), tl.ravel(c)))
    tl.store(o + 2 * N + i, tl.ravel(tl.permute(a, (2, 0, 1))))
    tl.store(o + 3 * N + i, tl.cat(tl.ravel(c), tl.ravel(b), can_reorder=REORDERS))
    tl.store(o + 4 * N + i, tl.flip(tl.gather(v, (i * 5 + 3) % N, 0)))
    tl.store(o + 5 * N + tl.arange(0, 16), tl.histogram(v.to(tl.int32) & 15, 16, mask=i % 3 != 0).to(v.dtype))


@case()
def shapes() -> Tensors:
    found = []
    for dtype in ("f32", "i8", "bf16", "i64"):
        found.append(zeros(6 * 64, dtype=dtype))
        reshaping[(1,)](found[-1], on_device((np.arange(64) % 50).astype(NUMPY[dtype])), N=64)
    return found


@triton.jit
def tiled(o, x, rows, columns, R: tl.constexpr, C: tl.constexpr):
    source = tl.make_tensor_descriptor(x, [rows, columns], [columns, 1], [R, C])
    target = tl.make_tensor_descriptor(o, [rows, columns], [columns, 1], [R, C])
    r, c = tl.program_id(0) * R, tl.program_id(1) * C
    target.store([r, c], source.load([r, c]) * 2 + source.load([r + 1, c]))


@case()
def descriptors_made_in_the_kernel() -> Tensors:
    x, o = numbers(50, 36), zeros(50, 36)
    tiled[(4, 3)](o, x, 50, 36, R=16, C=16)
    return [o]


@triton.jit
def large(o, x, N: tl.constexpr):
    i = tl.arange(0, N)
    v = tl.load(x + i)
    tl.store(o + i, tl.cumsum(v, 0) + tl.max(v, axis=0))
    tl.store(o + N + tl.arange(0, N // 64), tl.sum(tl.reshape(v, (64, N // 64)), axis=0))


@case()
def large_blocks() -> Tensors:
    o = zeros(8192 + 128)
    large[(1,)](o, numbers(8192, dtype="i32").float(), N=8192)
    return [o]


@triton.jit(noinline=True)
def apart(x, y):
    return x * y + 1


@triton.jit
def not_inlined(o, x, y, N: tl.constexpr):
    i = tl.arange(0, N)
    tl.store(o + i, apart(tl.load(x + i), tl.load(y + i)))


@triton.jit
def called_in_a_loop(o, x, y, N: tl.constexpr):
    i = tl.arange(0, N)
    v = tl.load(x + i)
    for j in range(4):
        v = twice_or(v, j) + tl.load(y + i)
    tl.store(o + i, v)


@triton.jit
def printing(o, x, y, N: tl.constexpr):
    i = tl.arange(0, N)
    if N < 2:
        tl.device_print("x", tl.load(x + i))
    tl.store(o + i, tl.load(x + i) + tl.load(y + i))


@triton.jit
def returns_within(o, x, y, N: tl.constexpr):
    i = tl.arange(0, N)
    for j in range(3):
        if j == tl.program_id(0):
            tl.store(o + i, tl.load(x + i) + j)
        while j > 5:
            j -= 1
    tl.store(o + i, tl.load(o + i) + tl.load(y + i))


@case()
def functions_of_other_kinds() -> Tensors:
    x, y = numbers(64, dtype="i32").float(), numbers(64, dtype="i32", seed=1).float()
    found = []
    for each in (printing, returns_within):
        found.append(zeros(64))
        each[(1,)](found[-1], x, y, N=64)
    return found


def _tried(kernel: Any) -> Tensors:
    o = zeros(64)
    kernel[(1,)](o, numbers(64, dtype="i32").float(), numbers(64, dtype="i32", seed=1).float(), N=64)
    return [o]


@case()
def functions_that_are_not_inlined() -> Tensors:
    return _tried(not_inlined)


@case()
def functions_with_branches_in_loops() -> Tensors:
    return _tried(called_in_a_loop)


@triton.jit
def small_products(o, a, b, N: tl.constexpr, K: tl.constexpr):
    n, k = tl.arange(0, N), tl.arange(0, K)
    x, y = tl.load(a + n[:, None] * K + k[None, :]), tl.load(b + k[:, None] * N + n[None, :])
    tl.store(o + n[:, None] * N + n[None, :], tl.dot(x, y))


@case(1e-5)
def products_of_float8() -> Tensors:
    found = []
    for dtype in (torch.float8_e5m2, torch.float8_e4m3fn):
        a, b = (numbers(32 * 64, seed=s).to(dtype) for s in range(2))
        found.append(zeros(32, 32))
        small_products[(1,)](found[-1], a, b, N=32, K=64)
    return found
