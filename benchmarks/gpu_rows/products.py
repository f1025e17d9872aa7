"""Matrix products and a linear layer."""

from __future__ import annotations

from collections.abc import Mapping
from math import erf, prod
from types import ModuleType
from typing import Any

import ml_dtypes
import numpy as np

from benchmarks.cases import Case

from .row import SHORT, Row, Target, beside_torch

_LAYOUTS = {
    "nn": ("a @ b", "a @ b"),
    "nt": ("a @ b.t()", "a @ b.T"),
    "tn": ("a.t() @ b", "a.T @ b"),
    "tt": ("a.t() @ b.t()", "a.T @ b.T"),
}


def _product(
    size: int | tuple[int, int, int],
    dtype: str,
    targets: Mapping[str, Target],
    layout: str = "nn",
    label: str = "",
    note: str = "",
    precision: str | None = None,
) -> Row:
    """`a @ b`, cubed or of so many rows, columns and products for each element."""
    statement, numpy = _LAYOUTS[layout]
    rows, cols, depth = (size,) * 3 if isinstance(size, int) else size
    shape = f"{size}" if isinstance(size, int) else f"{rows}x{cols}x{depth}"
    short = label or SHORT[dtype]
    # of a small product of rows and columns that no block size divides
    m, n, k = 200, 216, 184
    small = {"a": (m, k) if layout[0] == "n" else (k, m), "b": (k, n) if layout[1] == "n" else (n, k)}
    lead, last = np.s_[:64], np.s_[:, :64]
    part = {"a": lead if layout[0] == "n" else last, "b": last if layout[1] == "n" else lead, "out": np.s_[:64, :64]}
    case = Case(
        f"matmul_{short}_{shape}" + (f"_{layout}" if layout != "nn" else ""),
        f"{short} {statement}, {shape}" + (" cubed" if isinstance(size, int) else ""),
        statement,
        {
            "a": (rows, depth) if layout[0] == "n" else (depth, rows),
            "b": (depth, cols) if layout[1] == "n" else (cols, depth),
        },
        {},
        numpy=numpy,
        dtype=dtype,
    )
    peers = ("torch", "cupy") if dtype == "float32" and not label else ("torch",)
    return Row(
        case,
        small,
        targets,
        peers=peers,
        part=part,
        precision=precision,
        note=note,
        work=lambda shapes: 2 * prod(shapes["a"]) * shapes["b"]["nt".index(layout[1]) - 1],
    )


def _eighths(library: ModuleType, tensors: Mapping[str, Any]) -> dict[str, object]:
    """Both operands in float8, along the summed dimension, and a scale."""
    a, b = (tensors[name].to(library.float8_e4m3fn) for name in ("a", "b"))
    return {"a8": a, "b8": b.t(), "one": library.ones((), device=a.device)}


def _product_of_eighths(arrays: Mapping[str, np.ndarray]) -> np.ndarray:
    a, b = (arrays[name].astype(ml_dtypes.float8_e4m3fn).astype(np.float64) for name in ("a", "b"))
    return a @ b.T


def _scaled(fast: bool) -> Row:
    statement = f"lib._scaled_mm(a8, b8, one, one, out_dtype=lib.bfloat16, use_fast_accum={fast})"
    case = Case(
        "matmul_fp8_8192" + ("_fast" if fast else ""),
        f"fp8 a @ b.t(), 8192 cubed, {'fast' if fast else 'exact'} sums",
        statement,
        {"a": (8192, 8192), "b": (8192, 8192)},
        {},
        numpy=None,
        prepare=_eighths,
        exact=_product_of_eighths,
        nonfinite=False,
        dtype="bfloat16",
    )
    return Row(
        case,
        {"a": (208, 192), "b": (224, 192)},
        beside_torch(0.9, 1.0),
        part={"a": np.s_[:64], "b": np.s_[:64], "out": np.s_[:64, :64]},
        moved=lambda shapes: prod(shapes["a"]) + prod(shapes["b"]) + 2 * shapes["a"][0] * shapes["b"][0],
        # cards do twice as much in float8 as in bfloat16, whose peak the work is divided by
        work=lambda shapes: prod(shapes["a"]) * shapes["b"][0],
    )


PRODUCTS = (
    *[
        _product(8192, dtype, beside_torch(0.95, 1.0), layout)
        for dtype in ("bfloat16", "float16")
        for layout in _LAYOUTS
    ],
    _product(4096, "bfloat16", beside_torch(0.92, 0.98)),
    _product(2048, "bfloat16", beside_torch(0.85, 0.95)),
    _product(1024, "bfloat16", beside_torch(0.85, 0.95)),
    _product(512, "bfloat16", beside_torch(0.75, 0.90)),
    # few tiles of a long sum
    _product((64, 8192, 8192), "bfloat16", beside_torch(0.85, 0.95)),
    _product((1024, 1024, 8192), "bfloat16", beside_torch(0.85, 0.95)),
    _product((256, 256, 32768), "bfloat16", beside_torch(0.75, 0.90)),
    _scaled(fast=False),
    _scaled(fast=True),
    _product(8192, "float32", beside_torch(1.3, 1.8), note="tf32 off; ours by six products of bfloat16"),
    _product(4096, "float32", beside_torch(1.3, 1.8), note="tf32 off; ours by six products of bfloat16"),
    _product(8192, "float32", beside_torch(0.88, 0.96), label="tf32", note="tf32 on", precision="high"),
)


def _gelu(x: np.ndarray) -> np.ndarray:
    return x * 0.5 * (1 + np.vectorize(erf)(x / np.sqrt(2)))


LINEAR = Row(
    Case(
        "linear_gelu",
        "linear + bias + GELU 8192x4096x4096, bf16",
        "F.gelu(F.linear(x, w, b))",
        {"x": (8192, 4096), "w": (4096, 4096), "b": (4096,)},
        {},
        numpy="gelu(x @ w.T + b)",
        names={"gelu": _gelu},
        dtype="bfloat16",
        scale=0.25,
    ),
    {"x": (120, 136), "w": (104, 136), "b": (104,)},
    beside_torch(1.10, 1.15),
    statements={"tritensor": "F.linear(x, w, b, activation='gelu')"},
    note="ours in one call",
    part={"x": np.s_[:64], "w": np.s_[:64], "b": np.s_[:64], "out": np.s_[:64, :64]},
    work=lambda shapes: 2 * prod(shapes["x"]) * shapes["w"][0],
)
