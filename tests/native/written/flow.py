"""Kernels that loop, branch, return early and take arguments of all kinds."""

from __future__ import annotations

import triton
import triton.language as tl

from .cases import Tensors, case, numbers, zeros


@triton.jit
def twice_or(x, number):
    if number > 2:
        return x
    return x * 2 + number


@triton.jit
def power(x, N: tl.constexpr):
    found = x
    for _ in tl.static_range(N - 1):
        found *= x
    return found


@triton.jit
def leaving(o, x, n, N: tl.constexpr):
    row = tl.program_id(0)
    if row >= n:
        return
    i = tl.arange(0, N)
    v = tl.load(x + row * N + i)
    if tl.sum(v, axis=0) > 0:
        tl.store(o + row * N + i, power(v, 3))
        if row == 1:
            return
    else:
        v = -v
    tl.store(o + row * N + i, twice_or(v, row))


@case(1e-6)
def kernels_that_return_early() -> Tensors:
    o = zeros(6, 32)
    leaving[(6,)](o, numbers(6, 32), 5, N=32)
    return [o]


@triton.jit
def fibonacci(o, x, n, m, N: tl.constexpr):
    i = tl.arange(0, N)
    a, b = tl.load(x + i), tl.load(x + N + i)
    p, q, total = 0, 1, 0.0
    pointers = x + i
    for j in range(n):
        a, b = b, a + b
        p, q = q, p + q
        for k in range(j, m):
            total += k
            if k % 2 == 0:
                a, b = b, a
                pointers += 1
            else:
                a = a - tl.load(pointers)
    k = 0
    while k * k < n + p and k < 9:
        b += a * 0.25
        k += 1
        if k == 3:
            b = tl.where(i > k, a, b)
    tl.store(o + i, a)
    tl.store(o + N + i, b)
    tl.store(o + 2 * N, total + p + q + k)


@case()
def values_that_loops_carry() -> Tensors:
    found = []
    for n, m in ((0, 0), (1, 3), (5, 4), (7, 0)):
        found.append(zeros(2 * 64 + 1))
        fibonacci[(1,)](found[-1], numbers(256, dtype="i32").float(), n, m, N=64)
    return found


@triton.jit
def turned(o, x, n, N: tl.constexpr):
    r, c = tl.arange(0, N)[:, None], tl.arange(0, N)[None, :]
    a = tl.load(x + r * N + c)
    v = tl.load(x + tl.arange(0, N))
    for j in range(n):
        a = tl.trans(a) + j
        b = a + tl.sum(a, axis=0)[None, :]
        a = b - v[:, None]
        v = tl.max(b, axis=1)
        if j == 1:
            a, v = tl.flip(a, 1), tl.sort(v)
    tl.store(o + r * N + c, a)
    tl.store(o + N * N + tl.arange(0, N), v)


@case()
def carried_tensors_that_are_turned() -> Tensors:
    found = []
    for n in (0, 1, 4):
        found.append(zeros(16 * 17))
        turned[(1,)](found[-1], numbers(256, dtype="i32").float(), n, N=16)
    return found


@triton.jit
def of_all_kinds(o, x, none, flag, number, wide, pair, one, N: tl.constexpr, KIND: tl.constexpr, FN: tl.constexpr):
    i = tl.arange(0, N)
    v = FN(tl.load(x + i).to(KIND), one)
    if none is None:
        v += 1
    if flag:
        v += pair[0]
    tl.device_assert(number > 0, "number")
    tl.assume(number > 0)
    tl.static_assert(N > 1)
    place = tl.multiple_of(i, 1) + (wide >> 33) + 1
    tl.debug_barrier()
    tl.store(
        o + tl.max_contiguous(place, 1), v + pair[1][0] * number, cache_modifier=".cg", eviction_policy="evict_last"
    )
    tl.device_assert(v == v, "not a number")


@case(1e-6)
def arguments_of_all_kinds() -> Tensors:
    found = []
    for flag, wide in ((True, 1 << 33), (False, -1 << 33)):
        found.append(zeros(40))
        of_all_kinds[(1,)](
            found[-1], numbers(32), None, flag, 0.75, wide, (3, (4.5,)), 1, N=32, KIND=tl.float32, FN=twice_or
        )
    return found


@triton.jit
def places(o):
    x, y, z = tl.program_id(0), tl.program_id(1), tl.program_id(axis=2)
    nx, ny, nz = tl.num_programs(0), tl.num_programs(1), tl.num_programs(2)
    tl.store(o + (x * ny + y) * nz + z, x * 10000 + y * 100 + z + nx * 1000000)


@case()
def grids_of_three_dimensions() -> Tensors:
    found = []
    for grid in ((3, 4, 5), (7,), (2, 9), (1, 1, 6)):
        found.append(zeros(60, dtype="i32"))
        places[grid](found[-1])
    return found
