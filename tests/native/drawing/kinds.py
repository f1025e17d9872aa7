"""What kernels that are drawn consist of: dtypes, variables, the functions that they call, and what arrays hold."""

from __future__ import annotations

import math
import random
from dataclasses import dataclass, field
from typing import Any

import ml_dtypes
import numpy as np

import tritensor as torch

Shape = tuple[int, ...]
LENGTH = 1 << 14  # of each array
PROGRAMS = 4  # at most

INTEGERS = ("i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64")
FLOATS = ("f16", "bf16", "f32", "f64")
SMALL = ("e5", "e4")
NAMES = {"i1": "int1", "f16": "float16", "bf16": "bfloat16", "f32": "float32", "f64": "float64", "e5": "float8e5"}
NAMES |= {"e4": "float8e4nv", **{d: d.replace("i", "int").replace("u", "uint") for d in INTEGERS}}
NUMPY: dict[str, Any] = {d: np.dtype(NAMES[d]) for d in (*INTEGERS, "f16", "f32", "f64")}
NUMPY |= {"i1": np.dtype(bool), "bf16": np.dtype(ml_dtypes.bfloat16)}
NUMPY |= {"e5": np.dtype(ml_dtypes.float8_e5m2), "e4": np.dtype(ml_dtypes.float8_e4m3fn)}
OURS = {d: getattr(torch, str(t)) for d, t in NUMPY.items() if d != "i1"} | {"i1": torch.bool}
EXACT = {"f16": 2.0**11, "bf16": 2.0**8, "f32": 2.0**24, "f64": 2.0**53}  # up to which all whole numbers are there
MOST = {"f16": 3e4, "bf16": 1e6, "f32": 1e8, "f64": 1e12}

HEADER = '''"""A kernel drawn from seed {seed}."""

from __future__ import annotations

import triton
import triton.language as tl
from triton.language.extra import libdevice

REORDERS = tl.constexpr(triton.__version__ < "3.9")

@triton.jit
def best(a, i, b, j):
    other = (b > a) | ((b == a) & (j < i))
    return tl.where(other, b, a), tl.where(other, j, i)


@triton.jit
def affine(a, b, c, d):
    return a * c, b * c + d


@triton.jit
def later(a, i, b, j):
    return tl.where(j != 0, b, a), i | j


@triton.jit
def product(a, b):
    return a * b


@triton.jit
def both(a, b, c, d):
    return a + c, tl.maximum(b, d)


@triton.jit
def chosen(x, number):
    if number > 2:
        return x
    if number == 1:
        x = x + x
    return x * 3


@triton.jit
def polynomial(x, y, N: tl.constexpr):
    total = y
    for power in tl.static_range(N):
        total = total * x + power
    return total

'''


@dataclass(eq=False)
class Var:
    """A variable of a kernel: integers lie between `low` and `high`; floats too, and may be whole numbers."""

    name: str
    shape: Shape
    dtype: str
    low: float
    high: float
    whole: bool = True
    nan: bool = False
    fixed: bool = False

    @property
    def size(self) -> int:
        return math.prod(self.shape)


@dataclass
class Program:
    """A kernel's source, and what it is launched with."""

    seed: int
    source: str
    arguments: dict[str, Any]
    grid: tuple[int, ...]
    # array, first and last element, relative and absolute tolerance
    about: list[tuple[str, int, int, float, float]] = field(default_factory=list)


def bounds(dtype: str) -> tuple[int, int]:
    if dtype == "i1":
        return 0, 1
    info = np.iinfo(NUMPY[dtype])
    return int(info.min), int(info.max)


def mask_free(code: str) -> bool:
    """What an atomic operation returns where its mask is off, nobody knows."""
    return "mask=" not in code


def fits(small: Shape, large: Shape) -> bool:
    try:
        return tuple(np.broadcast_shapes(small, large)) == large and (not small or len(small) == len(large))
    except ValueError:
        return False


def factorings(size: int, r: random.Random) -> list[Shape]:
    power = size.bit_length() - 1
    found: list[Shape] = [(size,)]
    for _ in range(3):
        a = r.randint(0, power)
        b = r.randint(0, power - a)
        found += [(1 << a, 1 << (power - a)), (1 << a, 1 << b, 1 << (power - a - b))]
    return found


def contents(values: np.random.Generator, kind: str, dtype: str, length: int) -> np.ndarray:
    if kind in "oa":
        return np.zeros(length, NUMPY[dtype])
    if dtype == "i1":
        return values.random(length) < 0.5
    if dtype in FLOATS:
        if kind == "f":
            return values.uniform(-8, 8, length).astype(NUMPY[dtype])
        found = values.integers(-8, 9, length).astype(np.float64)
        if kind == "q":
            found[::5] = values.choice([np.nan, np.inf, -np.inf, -0.0, 0.0], len(found[::5]))
        return found.astype(NUMPY[dtype])
    least, most = bounds(dtype)
    found = values.integers(max(least, -8), 9, length).astype(NUMPY[dtype])
    wild = values.integers(least, most, length, dtype=NUMPY[dtype], endpoint=True)
    ends = values.choice(np.array([least, most, most - 1, least + 1], NUMPY[dtype]), length)
    which = values.random(length)
    return np.where(which < 0.25, wild, np.where(which < 0.32, ends, found)).astype(NUMPY[dtype])
