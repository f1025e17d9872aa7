"""Kernels after the structure of Triton's tutorials, written anew: what people begin with."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
import triton
import triton.language as tl
from triton.language.extra import libdevice

from ..declared import against, half, uniform

Tensor = Any


@triton.jit
def add_kernel(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    at = tl.program_id(axis=0) * BLOCK + tl.arange(0, BLOCK)
    inside = at < n
    tl.store(out_ptr + at, tl.load(x_ptr + at, mask=inside) + tl.load(y_ptr + at, mask=inside), mask=inside)


@against(lambda x, y: x + y, x=(300,), y=(300,))
def vector_addition(x: Tensor, y: Tensor) -> Tensor:
    out = torch.empty_like(x)
    n = out.numel()
    add_kernel[lambda meta: (triton.cdiv(n, meta["BLOCK"]),)](x, y, out, n, BLOCK=128)
    return out


@triton.jit
def softmax_kernel(out_ptr, in_ptr, in_step, out_step, rows, columns, BLOCK: tl.constexpr, num_stages: tl.constexpr):
    first, step = tl.program_id(0), tl.num_programs(0)
    at = tl.arange(0, BLOCK)
    for row in tl.range(first, rows, step, num_stages=num_stages):
        x = tl.load(in_ptr + row * in_step + at, mask=at < columns, other=-float("inf"))
        shifted = tl.exp(x - tl.max(x, axis=0))
        tl.store(out_ptr + row * out_step + at, shifted / tl.sum(shifted, axis=0), mask=at < columns)


@against(lambda x: F.softmax(x, -1), x=(7, 50))
def fused_softmax(x: Tensor) -> Tensor:
    properties = triton.runtime.driver.active.utils.get_device_properties(x.device.index or 0)
    out = torch.empty_like(x)
    rows, columns = x.shape
    steps = x.stride(0), out.stride(0)
    compiled = softmax_kernel.warmup(out, x, *steps, rows, columns, BLOCK=64, num_stages=2, num_warps=4, grid=(1,))
    compiled._init_handles()
    assert compiled.n_regs > 0 and properties["multiprocessor_count"] > 0
    softmax_kernel[(min(3, rows), 1, 1)](out, x, *steps, rows, columns, 64, 2)
    return out


@triton.jit
def leaky(x):
    return tl.where(x >= 0, x, 0.01 * x)


@triton.autotune(
    configs=[
        triton.Config({"BM": 32, "BN": 32, "BK": 16, "GROUP": 2}, num_stages=2, num_warps=4),
        triton.Config({"BM": 16, "BN": 32, "BK": 32, "GROUP": 1}, num_stages=3, num_warps=2),
    ],
    key=["M", "N", "K"],
)
@triton.jit
def matmul_kernel(
    a_ptr, b_ptr, c_ptr, M, N, K, a_row, a_col, b_row, b_col, c_row, c_col,
    BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, GROUP: tl.constexpr, ACTIVATION: tl.constexpr,
):  # fmt: skip
    program = tl.program_id(axis=0)
    down, across = tl.cdiv(M, BM), tl.cdiv(N, BN)
    in_group = GROUP * across
    first = program // in_group * GROUP
    height = min(down - first, GROUP)
    i = first + program % in_group % height
    j = program % in_group // height
    tl.assume(i >= 0)
    rows = (i * BM + tl.arange(0, BM)) % M
    columns = (j * BN + tl.arange(0, BN)) % N
    inner = tl.arange(0, BK)
    a = a_ptr + rows[:, None] * a_row + inner[None, :] * a_col
    b = b_ptr + inner[:, None] * b_row + columns[None, :] * b_col
    total = tl.zeros((BM, BN), dtype=tl.float32)
    for k in range(tl.cdiv(K, BK)):
        left = tl.load(a, mask=inner[None, :] < K - k * BK, other=0.0)
        right = tl.load(b, mask=inner[:, None] < K - k * BK, other=0.0)
        total = tl.dot(left, right, total)
        a += BK * a_col
        b += BK * b_row
    if ACTIVATION == "leaky":
        total = leaky(total)
    rows, columns = i * BM + tl.arange(0, BM), j * BN + tl.arange(0, BN)
    c = c_ptr + c_row * rows[:, None] + c_col * columns[None, :]
    tl.store(c, total.to(tl.float16), mask=(rows[:, None] < M) & (columns[None, :] < N))


@against(lambda a, b: F.leaky_relu(a @ b), tolerance=1e-2, a=half(50, 40), b=half(40, 36))
def matmul(a: Tensor, b: Tensor) -> Tensor:
    (m, k), n = a.shape, b.shape[1]
    c = torch.empty((m, n), device=a.device, dtype=torch.float16)
    matmul_kernel[lambda meta: (triton.cdiv(m, meta["BM"]) * triton.cdiv(n, meta["BN"]),)](
        a,
        b,
        c,
        m,
        n,
        k,
        a.stride(0),
        a.stride(1),
        b.stride(0),
        b.stride(1),
        c.stride(0),
        c.stride(1),
        ACTIVATION="leaky",
    )
    return c


@triton.jit
def seeded_dropout_kernel(x_ptr, out_ptr, n, p, seed, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    kept = tl.rand(seed, at) > p
    x = tl.load(x_ptr + at, mask=at < n)
    tl.store(out_ptr + at, tl.where(kept, x / (1 - p), 0.0), mask=at < n)


@against(lambda x: (x, x.new_tensor(True)), x=uniform(200, low=1.0, high=2.0))
def seeded_dropout(x: Tensor) -> Tensor:
    found, again, other = (torch.empty_like(x) for _ in range(3))
    for out, seed in ((found, 123), (again, 123), (other, 512)):
        seeded_dropout_kernel[(2,)](x, out, x.numel(), 0.5, seed, BLOCK=128)
    assert 60 < int((found == 0).sum()) < 140 and not torch.equal(found, other)
    return torch.where(found == 0, x, found / 2), torch.tensor(float(torch.equal(found, again)), device=x.device)


@triton.jit
def norm_kernel(x_ptr, y_ptr, w_ptr, b_ptr, mean_ptr, scale_ptr, step, n, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    x_ptr += row * step
    y_ptr += row * step
    sums = tl.zeros([BLOCK], dtype=tl.float32)
    for first in range(0, n, BLOCK):
        at = first + tl.arange(0, BLOCK)
        sums += tl.load(x_ptr + at, mask=at < n, other=0.0).to(tl.float32)
    mean = tl.sum(sums, axis=0) / n
    squares = tl.zeros([BLOCK], dtype=tl.float32)
    for first in range(0, n, BLOCK):
        at = first + tl.arange(0, BLOCK)
        x = tl.where(at < n, tl.load(x_ptr + at, mask=at < n, other=0.0).to(tl.float32) - mean, 0.0)
        squares += x * x
    scale = 1 / tl.sqrt(tl.sum(squares, axis=0) / n + eps)
    tl.store(mean_ptr + row, mean)
    tl.store(scale_ptr + row, scale)
    for first in range(0, n, BLOCK):
        at = first + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + at, mask=at < n, other=0.0).to(tl.float32)
        y = (x - mean) * scale * tl.load(w_ptr + at, mask=at < n) + tl.load(b_ptr + at, mask=at < n)
        tl.store(y_ptr + at, y, mask=at < n)


@triton.jit
def norm_gradient_kernel(
    dx_ptr, dy_ptr, dw_ptr, db_ptr, x_ptr, w_ptr, mean_ptr, scale_ptr, lock_ptr, step, n,
    GROUPS: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    inside = at < n
    group = row % GROUPS
    lock_ptr += group
    count_ptr = lock_ptr + GROUPS
    x = tl.load(x_ptr + row * step + at, mask=inside, other=0).to(tl.float32)
    dy = tl.load(dy_ptr + row * step + at, mask=inside, other=0).to(tl.float32)
    w = tl.load(w_ptr + at, mask=inside).to(tl.float32)
    scale = tl.load(scale_ptr + row)
    xhat = tl.where(inside, (x - tl.load(mean_ptr + row)) * scale, 0.0)
    wdy = tl.where(inside, w * dy, 0.0)
    c1, c2 = tl.sum(xhat * wdy, axis=0) / n, tl.sum(wdy, axis=0) / n
    tl.store(dx_ptr + row * step + at, (wdy - (xhat * c1 + c2)) * scale, mask=inside)
    dw, db = dy * xhat, dy
    while tl.atomic_cas(lock_ptr, 0, 1) == 1:
        pass
    if tl.load(count_ptr) == 0:
        tl.atomic_xchg(count_ptr, 1)
    else:
        dw += tl.load(dw_ptr + group * n + at, mask=inside)
        db += tl.load(db_ptr + group * n + at, mask=inside)
    tl.store(dw_ptr + group * n + at, dw, mask=inside)
    tl.store(db_ptr + group * n + at, db, mask=inside)
    tl.debug_barrier()
    tl.atomic_xchg(lock_ptr, 0)


@triton.jit
def norm_sums_kernel(dw_ptr, db_ptr, w_ptr, b_ptr, rows, n, BM: tl.constexpr, BN: tl.constexpr):
    columns = tl.program_id(0) * BN + tl.arange(0, BN)
    dw, db = tl.zeros((BM, BN), dtype=tl.float32), tl.zeros((BM, BN), dtype=tl.float32)
    for first in range(0, rows, BM):
        at = first + tl.arange(0, BM)
        inside = (at[:, None] < rows) & (columns[None, :] < n)
        dw += tl.load(dw_ptr + at[:, None] * n + columns[None, :], mask=inside, other=0.0)
        db += tl.load(db_ptr + at[:, None] * n + columns[None, :], mask=inside, other=0.0)
    tl.store(w_ptr + columns, tl.sum(dw, axis=0), mask=columns < n)
    tl.store(b_ptr + columns, tl.sum(db, axis=0), mask=columns < n)


class _Norm(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, w: Tensor, b: Tensor) -> Tensor:
        y, rows = torch.empty_like(x), x.shape[0]
        mean, scale = (torch.empty(rows, dtype=torch.float32, device=x.device) for _ in range(2))
        norm_kernel[(rows,)](x, y, w, b, mean, scale, x.stride(0), x.shape[1], 1e-5, BLOCK=32, num_warps=2)
        ctx.save_for_backward(x, w, mean, scale)
        return y

    @staticmethod
    def backward(ctx: Any, dy: Tensor) -> Any:
        x, w, mean, scale = ctx.saved_tensors
        rows, n = x.shape
        locks = torch.zeros(2 * 2, dtype=torch.int32, device=x.device)
        partial = torch.zeros((2, 2, n), dtype=torch.float32, device=x.device)
        dx, dw, db = torch.empty_like(x), torch.empty_like(w), torch.empty_like(w)
        norm_gradient_kernel[(rows,)](
            dx, dy, partial[0], partial[1], x, w, mean, scale, locks, x.stride(0), n, GROUPS=2, BLOCK=64, num_warps=2
        )
        norm_sums_kernel[(triton.cdiv(n, 32),)](partial[0], partial[1], dw, db, 2, n, BM=32, BN=32)
        return dx, dw, db


@against(lambda x, w, b: F.layer_norm(x, (50,), w, b, 1e-5), "x w b", x=(6, 50), w=(50,), b=(50,))
def layer_norm(x: Tensor, w: Tensor, b: Tensor) -> Tensor:
    return _Norm.apply(x, w, b)


@triton.jit
def attention_kernel(
    q_ptr, k_ptr, v_ptr, out_ptr, scale, n, D: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, CAUSAL: tl.constexpr
):
    i, head = tl.program_id(0), tl.program_id(1)
    base = head * n * D
    rows, inner = i * BM + tl.arange(0, BM), tl.arange(0, D)
    q = tl.load(q_ptr + base + rows[:, None] * D + inner[None, :], mask=rows[:, None] < n, other=0.0)
    most = tl.zeros([BM], dtype=tl.float32) - float("inf")
    total = tl.zeros([BM], dtype=tl.float32)
    found = tl.zeros([BM, D], dtype=tl.float32)
    end = min((i + 1) * BM, n) if CAUSAL else n
    for first in range(0, end, BN):
        columns = first + tl.arange(0, BN)
        k = tl.load(k_ptr + base + columns[None, :] * D + inner[:, None], mask=columns[None, :] < n, other=0.0)
        v = tl.load(v_ptr + base + columns[:, None] * D + inner[None, :], mask=columns[:, None] < n, other=0.0)
        scores = tl.dot(q, k) * (scale * 1.44269504)
        seen = columns[None, :] < n
        if CAUSAL:
            seen = seen & (rows[:, None] >= columns[None, :])
        scores = tl.where(seen, scores, -float("inf"))
        now = tl.maximum(most, tl.max(scores, 1))
        p = tl.math.exp2(scores - now[:, None])
        shrink = tl.math.exp2(most - now)
        total = total * shrink + tl.sum(p, 1)
        found = tl.dot(p.to(v.dtype), v, found * shrink[:, None])
        most = now
    tl.store(
        out_ptr + base + rows[:, None] * D + inner[None, :],
        (found / total[:, None]).to(tl.float16),
        mask=rows[:, None] < n,
    )


QKV = {"q": half(1, 2, 40, 32), "k": half(1, 2, 40, 32), "v": half(1, 2, 40, 32)}


def _attend(q: Tensor, k: Tensor, v: Tensor, causal: bool) -> Tensor:
    out = torch.empty_like(q)
    attention_kernel[(triton.cdiv(40, 32), 2)](q, k, v, out, 32**-0.5, 40, 32, BM=32, BN=16, CAUSAL=causal)
    return out


@against(lambda q, k, v: F.scaled_dot_product_attention(q, k, v), tolerance=1e-2, **QKV)
def attention(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    return _attend(q, k, v, False)


@against(lambda q, k, v: F.scaled_dot_product_attention(q, k, v, is_causal=True), tolerance=1e-2, **QKV)
def causal_attention(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    return _attend(q, k, v, True)


@triton.jit
def asin_kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y_ptr + at, libdevice.asin(tl.load(x_ptr + at, mask=at < n)), mask=at < n)


@against(lambda x: torch.asin(x), x=uniform(200, low=-1.0))
def external_function(x: Tensor) -> Tensor:
    out = torch.empty_like(x)
    asin_kernel[(2,)](x, out, x.numel(), BLOCK=128)
    return out


@triton.jit
def grouped_matmul_kernel(
    a_ptrs, b_ptrs, c_ptrs, sizes_ptr, steps_ptr, count, PROGRAMS: tl.constexpr,
    BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr,
):  # fmt: skip
    tile, before = tl.program_id(0), 0
    for g in range(count):
        M, N, K = tl.load(sizes_ptr + g * 3), tl.load(sizes_ptr + g * 3 + 1), tl.load(sizes_ptr + g * 3 + 2)
        across = tl.cdiv(N, BN)
        tiles = tl.cdiv(M, BM) * across
        while tile >= before and tile < before + tiles:
            lda, ldb, ldc = tl.load(steps_ptr + g * 3), tl.load(steps_ptr + g * 3 + 1), tl.load(steps_ptr + g * 3 + 2)
            a = tl.load(a_ptrs + g).to(tl.pointer_type(tl.float16))
            b = tl.load(b_ptrs + g).to(tl.pointer_type(tl.float16))
            c = tl.load(c_ptrs + g).to(tl.pointer_type(tl.float16))
            i, j = (tile - before) // across, (tile - before) % across
            rows, columns, inner = i * BM + tl.arange(0, BM), j * BN + tl.arange(0, BN), tl.arange(0, BK)
            total = tl.zeros((BM, BN), dtype=tl.float32)
            for k in range(0, K, BK):
                left = tl.load(a + rows[:, None] * lda + k + inner[None, :])
                total += tl.dot(left, tl.load(b + (k + inner[:, None]) * ldb + columns[None, :]))
            tl.store(c + rows[:, None] * ldc + columns[None, :], total.to(tl.float16))
            tile += PROGRAMS
        before += tiles


@against(
    lambda a, b, c, d: (a @ b, c @ d), tolerance=1e-2, a=half(32, 32), b=half(32, 64), c=half(64, 16), d=half(16, 32)
)
def grouped_matmul(a: Tensor, b: Tensor, c: Tensor, d: Tensor) -> Tensor:
    pairs = [(a, b), (c, d)]
    outs = [torch.empty((x.shape[0], y.shape[1]), device=x.device, dtype=x.dtype) for x, y in pairs]
    numbers = [[x for x, _ in pairs], [y for _, y in pairs], outs]
    pointers = [torch.tensor([each.data_ptr() for each in group], device=a.device) for group in numbers]
    sizes = [n for x, y in pairs for n in (x.shape[0], y.shape[1], x.shape[1])]
    steps = [n for (x, y), out in zip(pairs, outs) for n in (x.stride(0), y.stride(0), out.stride(0))]
    on = {"device": a.device, "dtype": torch.int32}
    grouped_matmul_kernel[(3,)](
        *pointers, torch.tensor(sizes, **on), torch.tensor(steps, **on), 2, PROGRAMS=3, BM=32, BN=32, BK=16
    )
    return tuple(outs)


@triton.jit
def descriptor_matmul_kernel(a_desc, b_desc, c_desc, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    tiles, across = tl.cdiv(M, BM) * tl.cdiv(N, BN), tl.cdiv(N, BN)
    for tile in tl.range(tl.program_id(0), tiles, tl.num_programs(0), flatten=False):
        i, j = tile // across * BM, tile % across * BN
        total = tl.zeros((BM, BN), dtype=tl.float32)
        for k in range(tl.cdiv(K, BK)):
            total = tl.dot(a_desc.load([i, k * BK]), b_desc.load([j, k * BK]).T, total)
        c_desc.store([i, j], total.to(tl.float16))


@against(lambda a, b: a @ b.T, tolerance=1e-2, a=half(96, 48), b=half(40, 48))
def persistent_matmul_by_descriptors(a: Tensor, b: Tensor) -> Tensor:
    from triton.tools.tensor_descriptor import TensorDescriptor

    (m, k), n = a.shape, b.shape[0]
    c = torch.empty((m, n), device=a.device, dtype=torch.float16)
    described = [TensorDescriptor.from_tensor(x, block) for x, block in ((a, [64, 32]), (b, [32, 32]), (c, [64, 32]))]
    descriptor_matmul_kernel[(2,)](*described, m, n, k, BM=64, BN=32, BK=32)
    return c


@triton.jit
def device_descriptor_kernel(in_ptr, out_ptr, M, N, BM: tl.constexpr, BN: tl.constexpr):
    source = tl.make_tensor_descriptor(in_ptr, shape=[M, N], strides=[N, 1], block_shape=[BM, BN])
    target = tl.make_tensor_descriptor(out_ptr, shape=[M, N], strides=[N, 1], block_shape=[BM, BN])
    i, j = tl.program_id(0) * BM, tl.program_id(1) * BN
    target.store([i, j], tl.abs(source.load([i, j])))


@against(lambda x: x.abs(), x=(40, 24))
def descriptors_of_the_device(x: Tensor) -> Tensor:
    triton.set_allocator(lambda size, alignment, stream: torch.empty(size, device=x.device, dtype=torch.int8))
    out = torch.empty_like(x)
    device_descriptor_kernel[(2, 2)](x, out, 40, 24, BM=32, BN=16)
    return out
