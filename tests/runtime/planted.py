"""Kernels with a mistake each, in the line that ends in `<- here`, and how they are launched."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import triton
import triton.language as tl

import tritensor as torch


@triton.jit
def tail(out_ptr, x_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i)  # <- here
    tl.store(out_ptr + i, 2 * x, mask=i < n)


@triton.jit
def one_too_far(out_ptr, x_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n)
    tl.store(out_ptr + i, 2 * x, mask=i <= n)  # <- here


@triton.jit
def whole_blocks(out_ptr, x_ptr, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + i, 1.0)  # <- here


@triton.jit
def negative(out_ptr, x_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    before = tl.load(x_ptr + i - 1, mask=i < n)  # <- here
    tl.store(out_ptr + i, before, mask=i < n)


@triton.jit
def overflow(out_ptr, x_ptr, stride, BLOCK: tl.constexpr):
    i = tl.program_id(0) * stride + tl.arange(0, BLOCK)
    tl.store(out_ptr + i, 1.0)  # <- here


@triton.jit
def wider(out_ptr, x_ptr, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    x = tl.load(x_ptr.to(tl.pointer_type(tl.float64)) + i, mask=i < n)  # <- here
    tl.store(out_ptr + i, x.to(tl.float32), mask=i < n)


@triton.jit
def unaligned(out_ptr, x_ptr, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    x = tl.load((x_ptr.to(tl.pointer_type(tl.int8)) + 1).to(tl.pointer_type(tl.float32)) + i)  # <- here
    tl.store(out_ptr + i, x)


@triton.jit
def depth_without_mask(out_ptr, x_ptr, n, BLOCK: tl.constexpr):
    total = 0.0
    for start in range(0, n, BLOCK):
        total += tl.sum(tl.load(x_ptr + start + tl.arange(0, BLOCK)), 0)  # <- here
    tl.store(out_ptr, total)


@triton.jit
def everybody_writes(out_ptr, x_ptr):
    tl.store(out_ptr, tl.program_id(0))  # <- here


@triton.jit
def accumulates(out_ptr, x_ptr, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    total = tl.load(out_ptr) + tl.sum(tl.load(x_ptr + i), 0)
    tl.store(out_ptr, total)  # <- here


@triton.jit
def reads_its_neighbour(out_ptr, x_ptr, BLOCK: tl.constexpr):
    p, i = tl.program_id(0), tl.arange(0, BLOCK)
    tl.store(out_ptr + p * BLOCK + i, tl.load(x_ptr + p * BLOCK + i))
    before = tl.load(out_ptr + (p - 1) * BLOCK + i, mask=p > 0)  # <- here
    tl.store(x_ptr + p * BLOCK + i, before)


@triton.jit
def shifts_in_place(out_ptr, x_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(out_ptr + i + 1, mask=i + 1 < n)  # of the next program, in its last lane
    tl.store(out_ptr + i, x, mask=i + 1 < n)  # <- here


@triton.jit
def relaxed(out_ptr, parts_ptr, count_ptr, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(parts_ptr + tl.program_id(0), 1.0)
    if tl.atomic_add(count_ptr, 1, sem="relaxed") == BLOCK - 1:
        tl.store(out_ptr, tl.sum(tl.load(parts_ptr + i), 0))  # <- here


@triton.jit
def clears_and_adds(out_ptr, x_ptr):
    if tl.program_id(0) == 0:
        tl.store(out_ptr, 0.0)
    tl.atomic_add(out_ptr, 1.0)  # <- here


@triton.jit
def scatters(out_ptr, x_ptr, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(out_ptr + i // 2, i)  # <- here


@triton.jit
def adds_to_nothing(out_ptr, x_ptr, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(out_ptr + i)  # <- here
    tl.store(out_ptr + i, x + 1)


@triton.jit
def adds_atomically_to_nothing(out_ptr, x_ptr):
    tl.atomic_add(out_ptr, 1.0)  # <- here


@triton.jit
def reader(x_ptr, i):
    return tl.load(x_ptr + i)


@triton.jit
def within_a_helper(out_ptr, x_ptr, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    x = reader(out_ptr, i)  # <- here
    tl.store(out_ptr + i, x)


@triton.jit
def columns(out_ptr, x_ptr, rows, cols, stride, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < (rows - 1) * stride + cols)  # <- here
    tl.store(out_ptr + i, x, mask=i < rows * cols)


@triton.jit
def another_axis(out_ptr, x_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n)
    tl.store(out_ptr + i, 2 * x, mask=i < n)  # <- here


@triton.jit
def right(out_ptr, x_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n)
    tl.store(out_ptr + i, 2 * x, mask=i < n)  # <- here


@triton.jit
def forgotten_row(out_ptr, x_ptr, cols, BLOCK: tl.constexpr):
    j = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + tl.program_id(0) * cols + j, mask=j < cols)
    tl.store(out_ptr + tl.program_id(0) * cols + j, x / tl.max(x, 0), mask=j < cols)  # <- here


@triton.jit
def sums(out_ptr, x_ptr, BLOCK: tl.constexpr):
    x = tl.load(x_ptr + tl.arange(0, BLOCK))
    total = tl.sum(x, 0)  # <- here
    tl.store(out_ptr, total)


@triton.jit
def product(out_ptr, a_ptr, b_ptr, depth, N: tl.constexpr, BLOCK: tl.constexpr):
    i, k = tl.arange(0, N), tl.arange(0, BLOCK)
    total = tl.zeros((N, N), tl.float32)
    for start in range(0, depth, BLOCK):
        a = tl.load(a_ptr + i[:, None] * depth + start + k[None, :])  # <- the copy
        b = tl.load(b_ptr + (start + k)[:, None] * N + i[None, :])
        total = tl.dot(a, b, total)  # <- here
    tl.store(out_ptr + i[:, None] * N + i[None, :], total)


class Planted(NamedTuple):
    """A mistake.

    Attributes:
        launch: makes the tensors and launches the kernel.
        words: of the error, or of the warning.
        drop: what is left out of the kernel's PTX.
        modes: where it is found: interpreted, and compiled for a capability.
        mark: how the line ends that is named.
    """

    kernel: Any
    launch: Callable[[Any], object]
    words: str
    drop: str = ""
    modes: tuple[str, ...] = ("interpreted", "8.0", "9.0")
    mark: str = "here"


def vector(n: int = 256, **options: Any) -> Any:
    return torch.arange(float(n), device="cuda", **options)


def nothing(n: int = 256) -> Any:
    return torch.empty(n, device="cuda")


def check(grid: tuple[int, ...], n: int, **constants: Any) -> Callable[[Any], object]:
    """Run `check_kernel` on a vector, of which the kernel computes twice the elements."""

    def run(kernel: Any) -> object:
        x, out = torch.arange(float(n)), torch.empty(n, device="meta")
        return torch.testing.check_kernel(kernel, grid, (out, x, n), capabilities=(None, (8, 0)), **constants)

    return run


def rows(kernel: Any) -> object:
    x = torch.ones(4, 100) * -3.0
    args = torch.empty(4, 100, device="meta"), x, 100
    return torch.testing.check_kernel(kernel, (4,), args, x / x.amax(1, keepdim=True), BLOCK=128)


def multiply(kernel: Any) -> object:
    a, b = (torch.ones(64, 64, device="cuda", dtype=torch.float16) for _ in range(2))
    return kernel[(1,)](torch.empty(64, 64, device="cuda"), a, b, 64, N=64, BLOCK=32)


def narrow(kernel: Any) -> object:
    x = vector(8 * 16).reshape(8, 16)[:, :8]
    return kernel[(1,)](nothing(), x, 8, 8, 16, BLOCK=128)


BOUNDS = r"illegal memory access"
APART = ("8.0", "9.0")
PLANTED = {
    "a tail without its mask": Planted(tail, lambda k: k[(2,)](nothing(), vector(200), 200, BLOCK=128), BOUNDS),
    "a mask that is one too long": Planted(
        one_too_far, lambda k: k[(2,)](nothing(200), vector(200), 200, BLOCK=128), BOUNDS
    ),
    "a grid that is one too large": Planted(whole_blocks, lambda k: k[(3,)](nothing(256), vector(), BLOCK=128), BOUNDS),
    "a grid that is one too small": Planted(right, check((7,), 1000, BLOCK=128), r"nothing wrote element \[896\]"),
    "the number of another axis": Planted(another_axis, check((8,), 1000, BLOCK=128), r"nothing wrote element \[128\]"),
    "a negative index": Planted(negative, lambda k: k[(2,)](nothing(), vector(), 256, BLOCK=128), BOUNDS),
    "an address beyond 32 bits": Planted(
        overflow, lambda k: k[(4,)](nothing(1 << 10), vector(), 0x40000000, BLOCK=128), BOUNDS
    ),
    "a pointer of a wider type": Planted(wider, lambda k: k[(1,)](nothing(), vector(), 256, BLOCK=256), BOUNDS),
    "an address off its alignment": Planted(
        unaligned, lambda k: k[(1,)](nothing(), vector(), BLOCK=128), "misaligned address"
    ),
    "a loop whose last step is not masked": Planted(
        depth_without_mask, lambda k: k[(1,)](nothing(1), vector(200), 200, BLOCK=128), BOUNDS
    ),
    "two programs that store to one address": Planted(
        everybody_writes, lambda k: k[(4,)](nothing(1), vector()), "two programs write different values to one address"
    ),
    "a sum without atomics": Planted(
        accumulates,
        lambda k: k[(2,)](torch.zeros(1, device="cuda"), vector(), BLOCK=128),
        "programs read and change one address without atomics",
    ),
    "a read of another program's output": Planted(
        reads_its_neighbour,
        lambda k: k[(4,)](torch.zeros(512, device="cuda"), vector(512), BLOCK=128),
        "a program reads what another one wrote in the same launch",
    ),
    "a shift in place": Planted(
        shifts_in_place,
        lambda k: k[(4,)](vector(512), vector(), 512, BLOCK=128),
        "a program (writes what another one has read|reads what another one wrote) in the same launch",
    ),
    "a counter that orders nothing": Planted(
        relaxed,
        lambda k: k[(64,)](nothing(1), nothing(64), torch.zeros(1, dtype=torch.int32, device="cuda"), BLOCK=64),
        "a program reads what another one wrote in the same launch",
    ),
    "a sum that one program clears": Planted(
        clears_and_adds,
        lambda k: k[(4,)](vector(1), vector()),
        "an atomic operation updates what another program wrote without one",
    ),
    "two lanes that store to one address": Planted(
        scatters, lambda k: k[(1,)](nothing(), vector(), BLOCK=128), "a program writes different values to one address"
    ),
    "a sum that begins with nothing": Planted(
        adds_to_nothing, lambda k: k[(2,)](nothing(), vector(), BLOCK=128), "memory is read that nothing has written"
    ),
    "an atomic sum that begins with nothing": Planted(
        adds_atomically_to_nothing,
        lambda k: k[(2,)](nothing(1), vector()),
        "memory is updated that nothing has written",
    ),
    "a mistake within a helper": Planted(
        within_a_helper, lambda k: k[(1,)](nothing(), vector(), BLOCK=128), "memory is read that nothing has written"
    ),
    "a stride that leaves the view": Planted(columns, narrow, "memory outside of the view that was passed"),
    "a maximum over what is masked": Planted(forgotten_row, rows, r"element \[0, \d+\] of out_ptr is"),
    "a reduction without its barrier": Planted(
        sums,
        lambda k: k[(1,)](nothing(1), vector(), BLOCK=256),
        "shared memory is read that another thread wrote, with no barrier between",
        r"bar\.sync",
        APART,
    ),
    "a copy that nothing waits for": Planted(
        product,
        multiply,
        "shared memory is read that nothing has written",
        r"cp\.async\.wait_group",
        ("8.0",),
        "the copy",
    ),
    "a product without its fence": Planted(product, multiply, "with no wgmma.fence since", r"wgmma\.fence", ("9.0",)),
    "a product that nothing waits for": Planted(
        product, multiply, "that no wgmma.wait_group waits for", r"wgmma\.wait_group", ("9.0",)
    ),
    "an operand without its fence": Planted(
        product, multiply, "with no fence.proxy.async between", r"fence\.proxy\.async", ("9.0",)
    ),
}


def line_of(planted: Planted) -> int:
    """The line that is marked."""
    lines = enumerate(planted.kernel.raw_src, planted.kernel.starting_line_number)
    (found,) = [number for number, line in lines if line.rstrip().endswith(f"# <- {planted.mark}")]
    return found
