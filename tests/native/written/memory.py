"""Kernels that read and write memory in an order that matters."""

from __future__ import annotations

import numpy as np
import triton
import triton.language as tl

import tritensor as torch

from ..drawing.kinds import NUMPY
from ..drawing.running import on_device
from .cases import Tensors, case, numbers, zeros


@triton.jit
def three_stores(o, a, c, N: tl.constexpr):
    i = tl.arange(0, N)
    cell = tl.load(a + i) + tl.load(c + i)
    part = cell * 2
    tl.store(o + i, cell * 3)
    tl.store(c + i, cell * 5)
    tl.store(o + N + i, part)


@triton.jit
def shifted(x, n, N: tl.constexpr):
    i = tl.arange(0, N)
    for j in range(n):
        v = tl.load(x + i)
        w = tl.load(x + i + 1)
        tl.store(x + i + 2, v + w)
        tl.store(x + i, tl.load(x + i + 3) - v)
        tl.store(x + 2 * i, w + j)


@triton.jit
def two_stores(o, x, N: tl.constexpr):
    i = tl.arange(0, N)
    v = tl.load(x + i)
    tl.store(o + i, v)
    tl.store(o + i + 1, v * 10)
    tl.store(o + N - 1 - i, v * 100, mask=i % 3 == 0)
    tl.store(o + i * 2, v + 1000, mask=i < N // 4)
    tl.store(o + 5, 7.0)
    tl.store(o + i, tl.load(o + i) + 0.5, mask=i < 8)


@triton.jit
def rows_and_columns(x, y, N: tl.constexpr):
    r, c = tl.arange(0, N)[:, None], tl.arange(0, N)[None, :]
    a = tl.load(x + r * N + c)
    tl.store(y + c * N + r, a)
    b = tl.load(x + c * N + r)
    tl.store(x + r * N + c, a + b)
    tl.store(y + r * N + c, tl.load(y + c * N + r) + tl.load(x + r * N + c))


@case()
def memory_in_order() -> Tensors:
    found = []
    for n in (16, 512):
        a, c, o = numbers(n), numbers(n, seed=1), zeros(2 * n)
        three_stores[(1,)](o, a, c, N=n)
        found += [o, c]
        x = numbers(2 * n + 8)
        shifted[(2,)](x, 3, N=n)
        found.append(x)
        o = zeros(2 * n)
        two_stores[(1,)](o, x, N=n)
        found.append(o)
        for count in (0, 1):
            x = numbers(2 * n + 8)
            shifted[(1,)](x[count:], count, N=n)
            found.append(x)
    x, y = numbers(32, 32), zeros(32, 32)
    rows_and_columns[(1,)](x, y, N=32)
    z = numbers(32, 32)
    rows_and_columns[(1,)](z, z, N=32)
    w = numbers(2048)
    rows_and_columns[(1,)](w, w[1:], N=32)
    return [*found, x, y, z, w]


@triton.jit
def adding(o, x, y, n, N: tl.constexpr):
    i = tl.program_id(0) * N + tl.arange(0, N)
    within = i < n
    tl.store(o + i, tl.load(x + i, mask=within) + tl.load(y + i, mask=within), mask=within)


@case()
def arrays_that_overlap() -> Tensors:
    found = []
    for out, first, second in ((0, 0, 0), (1, 0, 0), (0, 1, 2), (5, 64, 0), (64, 0, 3)):
        x = numbers(1200)
        adding[(16,)](x[out : out + 1000], x[first : first + 1000], x[second : second + 1000], 1000, N=64)
        found.append(x)
    return found


@triton.jit
def strided(o, x, rows, columns, sx, sy, start, so, R: tl.constexpr, C: tl.constexpr):
    r, c = tl.arange(0, R), tl.arange(0, C)
    within = (r[:, None] < rows) & (c[None, :] < columns)
    v = tl.load(x + start + r[:, None] * sx + c[None, :] * sy, mask=within, other=-1.0)
    tl.store(o + r[:, None] * so + c[None, :], v)
    tl.store(o + R * so + r, tl.sum(v, axis=1))
    tl.store(o + R * so + R + c, tl.max(v, axis=0))


@case(1e-6)
def strides_of_all_kinds() -> Tensors:
    found = []
    for rows, columns, sx, sy, start in (
        (9, 7, 40, 1, 0),
        (16, 32, 1, 16, 0),
        (5, 32, -40, 1, 600),
        (16, 3, 40, -2, 80),
        (16, 32, 0, 1, 5),
        (1, 1, 0, 0, 3),
    ):
        x, o = numbers(1000), zeros(16 * 33 + 48)
        strided[(1,)](o, x, rows, columns, sx, sy, start, 33, R=16, C=32)
        found.append(o)
    return found


@triton.jit
def from_the_middle(o, x, start, step, N: tl.constexpr):
    i = tl.arange(0, N)
    tl.store(o + i, tl.load(x + start - i * step))
    tl.store(o + N + i, tl.load(x + start + (0 - i.to(tl.int64)) * step))
    p = x + start
    for j in range(N // 4):
        tl.store(o + 2 * N + j * 4 + tl.arange(0, 4), tl.load(p - tl.arange(0, 4)))
        p -= 3 * step


@case()
def negative_strides() -> Tensors:
    x, found = numbers(1000), []
    for step in (1, 2, 3):
        found.append(zeros(3 * 64))
        from_the_middle[(1,)](found[-1], x, 400, step, N=64)
    return found


@triton.jit
def tables(o, table, length, N: tl.constexpr):
    row = tl.program_id(0)
    source = tl.load(table + row).to(tl.pointer_type(tl.float32))
    i = tl.arange(0, N)
    n = tl.load(length + row)
    total = tl.zeros((N,), tl.float32)
    for start in range(0, n, N):
        total += tl.load(source + start + i, mask=start + i < n, other=0.0)
    tl.store(o + row * N + i, total)


@case(1e-6)
def pointers_read_from_tables() -> Tensors:
    rows = [numbers(size) for size in (5, 64, 200, 1)]
    table, lengths = (
        torch.tensor([row.data_ptr() for row in rows]).cuda(),
        torch.tensor([5, 64, 200, 0], dtype=torch.int32).cuda(),
    )
    o = zeros(4 * 64)
    tables[(4,)](o, table, lengths, N=64)
    return [o]


@triton.jit
def choosing(o, x, y, n, N: tl.constexpr):
    i = tl.arange(0, N)
    p = tl.where(i % 2 == 0, x + i, x + (N - 1 - i))
    v = tl.load(p)
    q = x
    if n > 2:
        q = y
    r = x if n == 1 else y
    tl.store(o + i, v + tl.load(q + i) * 10 + tl.load(r + i) * 100)


@case()
def pointers_that_are_chosen() -> Tensors:
    found = []
    for n in (1, 2, 3):
        found.append(zeros(32))
        choosing[(1,)](found[-1], numbers(32), numbers(32, seed=1), n, N=32)
    return found


@triton.jit
def atomics(o, c, x, n, N: tl.constexpr, FLOAT: tl.constexpr):
    i = tl.arange(0, N)
    v = tl.load(x + tl.program_id(0) * N + i)
    tl.store(o + tl.program_id(0) * N + i, tl.atomic_add(c + i % 7, v))
    tl.atomic_add(c + 8 + i % 5, v, mask=i < n)
    tl.atomic_add(c + 16, tl.sum(v, axis=0))
    if not FLOAT:
        tl.atomic_and(c + 17, tl.max(v, axis=0) | 3)
        tl.atomic_or(c + 18 + i % 3, v)
        tl.atomic_xor(c + 22 + i % 3, v, mask=i != 2)
        tl.store(o + tl.program_id(0) * N + i, tl.atomic_xchg(c + 26 + i % 4, v))
    tl.atomic_max(c + 32 + i % 4, v)
    tl.atomic_min(c + 36 + i % 4, v, mask=i < n)


@case()
def atomics_of_many_types() -> Tensors:
    found = []
    for dtype in ("i32", "u32", "i64", "u64", "f32", "f64"):
        x = numbers(4 * 64, dtype="i32").to(torch.float32)
        values = (
            np.asarray(x.cpu().numpy()).astype(NUMPY[dtype])
            if dtype[0] != "u"
            else np.abs(np.asarray(x.cpu().numpy())).astype(NUMPY[dtype])
        )
        c, o = zeros(64, dtype=dtype), zeros(4 * 64, dtype=dtype)
        atomics[(4,)](o, c, on_device(values), 50, N=64, FLOAT=dtype[0] == "f")
        found += [c, o]
    return found


@triton.jit
def small_atomics(o, c, x, n, N: tl.constexpr):
    i = tl.arange(0, N)
    v = tl.load(x + tl.program_id(0) * N + i)
    tl.store(o + tl.program_id(0) * N + i, tl.atomic_add(c + i % 7, v))
    tl.atomic_add(c + 8 + i % 5, v, mask=i < n, sem="relaxed")


@case()
def atomics_of_half_precision() -> Tensors:
    found = []
    for dtype in ("f16", "bf16"):
        c, o = zeros(16, dtype=dtype), zeros(4 * 64, dtype=dtype)
        small_atomics[(4,)](o, c, numbers(4 * 64, dtype=dtype), 50, N=64)
        found += [c, o]
    return found


@triton.jit
def locking(o, lock, count, N: tl.constexpr):
    i = tl.arange(0, N)
    while tl.atomic_cas(lock, 0, 1) == 1:
        pass
    tl.store(o + i, tl.load(o + i) * 2 + tl.program_id(0))
    tl.atomic_xchg(lock, 0)
    old = tl.atomic_cas(count + i, i, i * 2)
    tl.store(count + N + i, old)
    if tl.atomic_add(count + 2 * N, 1) == tl.num_programs(0) - 1:
        tl.store(count + 2 * N + 1, 99)


@case()
def locks_and_swaps() -> Tensors:
    o, lock, count = zeros(16), zeros(1, dtype="i32"), zeros(64, dtype="i32")
    locking[(5,)](o, lock, count, N=16)
    return [o, lock, count]


@triton.jit
def late_loads(o, x, y, n, N: tl.constexpr):
    i = tl.arange(0, N)
    a = tl.load(x + i)
    b = tl.load(y + i)
    at = tl.load(x + N + i).to(tl.int32)
    for j in range(n):
        tl.store(x + i, a + b * j)
        tl.store(x + N + i, 0)
        tl.store(o + (at & (N - 1)) * 2, j)
        at += 3
    c = tl.load(y + N + i)
    if n > 1:
        tl.store(y + N + i, c * 2)
        c = c + tl.load(y + N + i)
    else:
        tl.store(y + N + i, a)
    d = tl.load(x + i)
    k = 0
    while tl.sum(d * k, axis=0) < 5 and k < 4:
        tl.store(x + i, d + k)
        k += 1
        d = d + 1
    e = tl.load(y + i)
    s = tl.sum(e, axis=0)
    tl.store(y + i, e + s)
    f = tl.load(y + N + (N - 1 - i))
    tl.atomic_add(y + N + i, f)
    g = tl.cumsum(e, 0)
    tl.store(o + 2 * N + i, a + c + g)
    tl.store(o + 3 * N + i, d + e + f + at)


@triton.jit
def late_products(o, x, n, N: tl.constexpr):
    r, c = tl.arange(0, N)[:, None], tl.arange(0, N)[None, :]
    a = tl.load(x + r * N + c)
    b = tl.load(x + c * N + r)
    tl.store(x + r * N + c, a + 1)
    d = tl.dot(a, b)
    for j in range(n):
        tl.store(x + c * N + r, tl.load(x + r * N + c) - j)
        d = tl.dot(tl.load(x + r * N + c), b, d * 0.5)
        b, a = a, b
    h = tl.histogram(tl.reshape(a, (N * N,)).to(tl.int32) & 15, 16)
    tl.store(o + r * N + c, d + a)
    tl.store(o + N * N + tl.arange(0, 16), h)


@triton.jit
def steps(o, x, n, N: tl.constexpr):
    i = tl.arange(0, N)
    p, q, r = x + i, x + 3 * N - 1 - i, x + (i ^ 1)
    a = i.to(tl.int8) * 3
    b = i.to(tl.uint8)
    c = tl.load(x + i).to(tl.int64)
    s, t = 1, tl.load(x).to(tl.int32)
    total = tl.zeros((N,), tl.float32)
    for j in range(n):
        total += tl.load(p) - tl.load(q) * 2 + tl.load(r)
        p += s
        a += 50
        s += 1
        b -= tl.cast(s, tl.uint8)
        c += t
        t = t * 3 + j
        for k in range(2):
            q -= 1
            c += k
        if j == 1:
            r += 2
    tl.store(o + i, total + tl.load(p) + tl.load(q) + tl.load(r))
    tl.store(o + N + i, a + b.to(tl.float32) * 1000)
    tl.store(o + 2 * N + i, c)


@triton.jit
def reductions(o, p, x, A: tl.constexpr, B: tl.constexpr, C: tl.constexpr):
    a, b, c = tl.arange(0, A)[:, None, None], tl.arange(0, B)[None, :, None], tl.arange(0, C)[None, None, :]
    v = tl.load(x + (a * B + b) * C + c)
    for_each: tl.constexpr = A * B * C
    tl.store(o + (b * C + c), tl.sum(v, axis=0, keep_dims=True))
    tl.store(o + for_each + a * C + c, tl.max(v, axis=1, keep_dims=True) + tl.sum(v, axis=1, keep_dims=True))
    tl.store(o + 2 * for_each + a * B + b, tl.min(v, axis=2, keep_dims=True))
    tl.store(
        o + 3 * for_each + (a * B + b) * C + c,
        v - tl.max(v, axis=1, keep_dims=True) * tl.sum(v, axis=2, keep_dims=True),
    )
    tl.store(p + tl.arange(0, C), tl.argmax(tl.sum(v, axis=0), axis=0))
    tl.store(p + C + tl.arange(0, A), tl.argmin(tl.max(v, axis=2), axis=1))
    tl.store(o + 4 * for_each, tl.sum(v))
    tl.store(o + 4 * for_each + 1, tl.max(tl.sum(tl.min(v, axis=1), axis=1), axis=0))
    tl.store(p + C + A, tl.xor_sum(tl.xor_sum(tl.xor_sum(v.to(tl.int32), axis=0), axis=1), axis=0))


@case()
def loads_before_stores() -> Tensors:
    found = []
    for n in (0, 1, 2, 5):
        for size in (16, 128):
            x, y, o = (numbers(2 * size, dtype="i32", seed=s).float() for s in range(3))
            o = zeros(4 * size)
            late_loads[(1,)](o, x, y, n, N=size)
            z, w = numbers(2 * size + 5, dtype="i32").float(), zeros(4 * size)
            late_loads[(2,)](w, z[:-5], z[5:], n, N=size)
            found += [o, x, y, z, w]
    return found


@case()
def products_before_stores() -> Tensors:
    found = []
    for n in (0, 1, 3):
        x, o = (numbers(256, dtype="i32", scale=1).float() / 64).floor(), zeros(256 + 16)
        late_products[(1,)](o, x, n, N=16)
        found += [o, x]
    return found


@case()
def carried_values_that_grow() -> Tensors:
    found = []
    for n in (0, 1, 2, 6):
        found.append(zeros(3 * 32))
        steps[(1,)](found[-1], numbers(200, dtype="i32").float(), n, N=32)
    return found


@case()
def reductions_of_three_dimensions() -> Tensors:
    found = []
    for a, b, c in ((4, 2, 8), (1, 16, 2), (8, 1, 1), (2, 4, 32), (16, 8, 4)):
        found += [zeros(4 * a * b * c + 2), zeros(a + c + 1, dtype="i32")]
        reductions[(1,)](*found[-2:], numbers(a * b * c, dtype="i32").float(), A=a, B=b, C=c)
    return found


@triton.jit
def one_lane(o, x, AT: tl.constexpr, N: tl.constexpr):
    i = tl.arange(0, N)
    tl.store(o + i, tl.load(x + i).to(o.dtype.element_ty), mask=i == AT)


@case()
def stores_of_one_lane_and_of_fewer_bits() -> Tensors:
    """LLVM 22 makes such a store, where it knows the mask, one of the number before it was cut."""
    found = []
    for wide, narrow in (("i32", "i8"), ("i32", "u16"), ("i64", "i32"), ("f32", "bf16"), ("f32", "e5"), ("f64", "f32")):
        for at in (0, 3, 15):
            o = zeros(18, dtype=narrow)
            one_lane[(1,)](o[:16], numbers(16, dtype=wide, scale=3), AT=at, N=16)
            found.append(o)
    return found


@triton.jit
def rows_of_a_picture(o, x, table, part, count, width, height, start, N: tl.constexpr):
    i = start + tl.program_id(0) * N + tl.arange(0, N)
    column, line = i % width, i // width
    row, picture = line % height, line // height
    on = (i < count) & (i >= 0)
    left = tl.load(x + i - 1, mask=on & (column > 0), other=-3.0)
    above = tl.load(x + i - width, mask=on & (row >= 1), other=0.5)
    right = tl.load(x + i + 1, mask=on & (column + 1 < width) & (i + 1 < count), other=0.0)
    factor = tl.load(table + row, mask=on, other=9.0)
    shift = tl.load(table + 2 * column, mask=on & (2 * column < height), other=0.0)
    found = left + above * factor + right - shift + picture
    tl.store(o + i, found, mask=on)
    tl.store(part + tl.program_id(0), tl.sum(tl.where(on, column + 3 * line, i % 5)))


@triton.jit
def along_rows(o, x, table, count, width, height, N: tl.constexpr):
    i = tl.program_id(0) * N + tl.arange(0, N)
    on = i < count
    factor = tl.load(table + i // width % height, mask=on, other=9.0)
    value = tl.load(x + i // width // height + i % width, mask=on, other=9.0)
    tl.store(o + i, value * factor, mask=on)


@case(1e-6)
def rows_that_end_within_chunks() -> Tensors:
    found: list[torch.Tensor] = []
    for width, height in (
        (1, 4),
        (2, 3),
        (5, 2),
        (7, 7),
        (8, 1),
        (30, 3),
        (32, 2),
        (33, 5),
        (64, 2),
        (100, 3),
        (700, 1),
    ):
        count = 2 * width * height + width // 2
        o, x, table = zeros(count), numbers(count), numbers(max(height, 2 * width))
        for start in (0, -9):
            part = zeros(8, dtype="i32")
            rows_of_a_picture[(-(-(count - start) // 256),)](o, x, table, part, count, width, height, start, N=256)
            found += o.clone(), part
        p = zeros(count)
        along_rows[(-(-count // 256) + 1,)](p, x, table, count, width, height, N=256)
        found.append(p)
    return tuple(found)
