"""Kernels that leave their arrays or assert what does not hold, and launches of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import triton
import triton.language as tl

import tritensor as torch


def floats(count: int, value: float = 0.0) -> torch.Tensor:
    return torch.full((count,), value, device="cuda")


def integers(count: int, value: int = 0) -> torch.Tensor:
    return torch.full((count,), value, device="cuda", dtype=torch.int32)


def places(*changed: int) -> torch.Tensor:
    """0 to 63, the last ones changed."""
    return torch.tensor([*range(64 - len(changed)), *changed], device="cuda", dtype=torch.int32)


@triton.jit
def copying(o, x, n, far):
    i = tl.program_id(0) * 64 + tl.arange(0, 64)
    tl.store(o + i, tl.load(x + i + far, mask=i < n), mask=i < n)


@triton.jit
def without_mask(o, x):
    i = tl.program_id(0) * 64 + tl.arange(0, 64)
    tl.store(o + i, tl.load(x + i))


@triton.jit
def gathering(o, x, at):
    i = tl.arange(0, 64)
    tl.store(o + i, tl.load(x + tl.load(at + i)))


@triton.jit
def scattering(o, x, at):
    i = tl.arange(0, 64)
    tl.store(o + tl.load(at + i), tl.load(x + i))


@triton.jit
def updating(o, x, n):
    i = tl.arange(0, 64)
    tl.atomic_add(o + i, tl.load(x + i), mask=i < n)


@triton.jit
def swapping(o):
    i = tl.arange(0, 64)
    tl.atomic_cas(o + i, i, i + 1)


@triton.jit
def of_numbers(o, x):
    p = tl.program_id(0)
    tl.store(o + p, tl.load(x + p) + 1)


@triton.jit
def of_one_number(o):
    tl.atomic_max(o + tl.program_id(0), 3.0)


@triton.jit
def asserting(o, x, most):
    i = tl.arange(0, 64)
    v = tl.load(x + i)
    tl.device_assert(v < most, "too large")
    tl.store(o + i, v)


@triton.jit
def asserting_where(o, x, most):
    i = tl.arange(0, 64)
    v = tl.load(x + i)
    tl.device_assert(v < most, "too large", mask=i < 20)
    tl.store(o + i, v)


@triton.jit
def looping(o, x, n):
    i = tl.arange(0, 64)
    total = tl.zeros((64,), tl.float32)
    for j in range(n):
        total += tl.load(x + j * 64 + i)
    tl.store(o + i, total)


@triton.jit
def walking(o, x, n):
    i = tl.arange(0, 64)
    total = tl.zeros((64,), tl.float32)
    p = x + i
    for _ in range(n):
        total += tl.load(p)
        p += 64
    tl.store(o + i, total)


@triton.jit
def turning(o, x, step):
    r, c = tl.arange(0, 16)[:, None], tl.arange(0, 16)[None, :]
    tl.store(o + c * 16 + r, tl.load(x + r * step + c) + tl.load(x + c * step + r))


@triton.jit
def storing_twice(o, p, x):
    i = tl.program_id(0) * 64 + tl.arange(0, 64)
    v = tl.load(x + i)
    tl.store(o + i, v)
    tl.store(p + i, v + 1)


@triton.jit
def broadcasting(o, x):
    r, c = tl.arange(0, 16)[:, None], tl.arange(0, 16)[None, :]
    tl.store(o + r * 16 + c, tl.load(x + c) + tl.load(x + r))


@triton.jit
def striding(o, x, s, t):
    i = tl.arange(0, 64)
    tl.store(o + i * s, tl.load(x + i * t))


@triton.jit
def in_a_branch(o, x, n):
    i = tl.arange(0, 64)
    v = tl.load(x + i)
    if tl.program_id(0) == n:
        v += tl.load(x + i + 1)
    tl.store(o + i, v)


Mistake = tuple[Any, tuple[int, ...], Callable[[], tuple[Any, ...]], str]
# the kernel, the grid, its arguments and a part of the message; of what is right, none
MISTAKES: dict[str, Mistake] = {
    "store beyond": (
        copying,
        (2,),
        lambda: (floats(100), floats(128), 128, 0),
        "(1, 0, 0) writes element 100 of argument 0",
    ),
    "load beyond": (
        copying,
        (2,),
        lambda: (floats(128), floats(100), 128, 0),
        "(1, 0, 0) reads element 100 of argument 1",
    ),
    "store one behind": (copying, (1,), lambda: (floats(63), floats(64), 64, 0), "writes element 63 of"),
    "load one behind": (copying, (1,), lambda: (floats(64), floats(63), 64, 0), "reads element 63 of"),
    "one below": (copying, (1,), lambda: (floats(64), floats(64), 64, -1), "reads element -1 of"),
    "far below": (copying, (1,), lambda: (floats(64), floats(64), 64, -(1 << 29)), "reads element -536870912 of"),
    "far beyond": (copying, (1,), lambda: (floats(64), floats(64), 64, 1 << 30), "reads element 1073741824 of"),
    "masked": (copying, (2,), lambda: (floats(100), floats(100), 100, 0), ""),
    "masked but one": (copying, (2,), lambda: (floats(100), floats(100), 101, 0), "reads element 100 of"),
    "beyond a view": (copying, (1,), lambda: (floats(200)[10:50], floats(64), 64, 0), "writes element 40 of"),
    "a view": (copying, (1,), lambda: (floats(64)[1:], floats(65)[1:], 63, 0), ""),
    "an empty array": (copying, (1,), lambda: (floats(64), floats(0), 64, 0), "reads element 0 of"),
    "an empty array, masked": (copying, (1,), lambda: (floats(64), floats(0), 0, 0), ""),
    "many programs": (copying, (9,), lambda: (floats(100), floats(999), 576, 0), "(1, 0, 0) writes element 100 of"),
    "a load without mask": (without_mask, (2,), lambda: (floats(128), floats(100)), "reads element 100 of"),
    "a store without mask": (without_mask, (2,), lambda: (floats(100), floats(128)), "writes element 100 of"),
    "gathering beyond": (gathering, (1,), lambda: (floats(64), floats(64), places(64, 5)), "reads element 64 of"),
    "gathering below": (gathering, (1,), lambda: (floats(64), floats(64), places(-1, 5)), "reads element -1 of"),
    "gathering": (gathering, (1,), lambda: (floats(64), floats(64), places(63, 5)), ""),
    "scattering": (scattering, (1,), lambda: (floats(64), floats(64), places(64)), "writes element 64 of"),
    "an update beyond": (updating, (1,), lambda: (integers(63), integers(64), 64), "updates element 63 of"),
    "an update, masked": (updating, (1,), lambda: (integers(63), integers(64), 63), ""),
    "an update of what is beyond": (updating, (1,), lambda: (integers(64), integers(63), 64), "reads element 63 of"),
    "a swap": (swapping, (1,), lambda: (integers(63),), "updates element 63 of"),
    "a number that is read": (of_numbers, (3,), lambda: (floats(3), floats(2)), "(2, 0, 0) reads element 2 of"),
    "a number that is written": (of_numbers, (3,), lambda: (floats(2), floats(3)), "(2, 0, 0) writes element 2 of"),
    "a number that is updated": (of_one_number, (3,), lambda: (floats(2),), "(2, 0, 0) updates element 2 of"),
    "an assertion": (asserting, (3,), lambda: (floats(64), places(), 50), "too large"),
    "an assertion that holds": (asserting, (3,), lambda: (floats(64), places(), 64), ""),
    "a masked assertion": (asserting_where, (3,), lambda: (floats(64), places(), 10), "too large"),
    "a masked assertion that holds": (asserting_where, (3,), lambda: (floats(64), places(), 20), ""),
    "a loop": (looping, (1,), lambda: (floats(64), floats(500), 10), "reads element 500 of"),
    "a pointer in a loop": (walking, (1,), lambda: (floats(64), floats(500), 10), "reads element 500 of"),
    "rows": (turning, (1,), lambda: (floats(256), floats(255), 16), "reads element 255 of"),
    "columns": (turning, (1,), lambda: (floats(255), floats(256), 16), "writes element 255 of"),
    "rows further apart": (turning, (1,), lambda: (floats(256), floats(16 * 17 - 1), 17), ""),
    "the second store": (storing_twice, (2,), lambda: (floats(128), floats(100), floats(128)), "argument 1 (p)"),
    "what is broadcast": (broadcasting, (1,), lambda: (floats(256), floats(15)), "reads element 15 of"),
    "a stride": (striding, (1,), lambda: (floats(64), floats(126), 1, 2), "reads element 126 of"),
    "a stride that fits": (striding, (1,), lambda: (floats(64), floats(127), 1, 2), ""),
    "a stride of the result": (striding, (1,), lambda: (floats(126), floats(64), 2, 1), "writes element 126 of"),
    "a negative stride": (striding, (1,), lambda: (floats(64), floats(64), 1, -1), "reads element -"),
    "a branch": (in_a_branch, (3,), lambda: (floats(64), floats(64), 2), "(2, 0, 0) reads element 64 of"),
    "a branch not taken": (in_a_branch, (3,), lambda: (floats(64), floats(64), 5), ""),
}
