"""Rows of a matrix: softmax, layer norm and cross entropy."""

from __future__ import annotations

from collections.abc import Mapping
from math import prod
from types import ModuleType
from typing import Any

import numpy as np

from benchmarks.cases import Case, naive_layer_norm, naive_softmax
from benchmarks.training import Arrays

from .memory import matrix_row
from .row import FLOATS, HALVES, SHORT, Row, beside_torch, of_ceiling


def _softmax(columns: int, dtype: str) -> Row:
    rows = (FLOATS if dtype == "float32" else HALVES) // columns
    return matrix_row(
        f"softmax_{columns}",
        f"softmax {rows}x{columns}",
        "F.softmax(x, dim=1)",
        dtype,
        {"x": (rows, columns)},
        {**of_ceiling(0.88, 0.95), **beside_torch(1.05, 1.2)},
        {"x": (37, columns)},
        "naive(x)",
        names={"naive": naive_softmax},
    )


def _layer_norm(columns: int, dtype: str) -> Row:
    rows = (FLOATS if dtype == "float32" else HALVES) // columns
    return matrix_row(
        f"layer_norm_{columns}",
        f"layer norm {rows}x{columns}",
        "F.layer_norm(x, w.shape, w, b)",
        dtype,
        {"x": (rows, columns), "w": (columns,), "b": (columns,)},
        beside_torch(1.25, 1.5),
        {"x": (37, columns), "w": (columns,), "b": (columns,)},
        "naive(x) * w + b",
        names={"naive": naive_layer_norm},
    )


def _entropy(torch: ModuleType, tensors: Mapping[str, Any]) -> dict[str, object]:
    """`step()` is a loss with its gradient."""
    x = tensors["x"].detach().requires_grad_()
    rows, classes = x.shape
    labels = torch.arange(rows, device=x.device) * 7919 % classes
    loss_of = torch.nn.functional.cross_entropy

    def step() -> Any:
        x.grad = None
        loss_of(x, labels).backward()
        return x.grad

    return {"step": step}


def _exact_entropy(arrays: Arrays) -> np.ndarray:
    x = arrays["x"].astype(np.float64)
    rows, classes = x.shape
    grad = naive_softmax(x)
    grad[np.arange(rows), np.arange(rows) * 7919 % classes] -= 1
    return grad / rows


def _cross_entropy(classes: int, dtype: str) -> Row:
    rows = FLOATS // classes
    short = SHORT[dtype]
    case = Case(
        f"cross_entropy_{classes}_{short}",
        f"cross entropy + backward {rows}x{classes}, {short}",
        "step()",
        {"x": (rows, classes)},
        {},
        numpy=None,
        prepare=_entropy,
        exact=_exact_entropy,
        nonfinite=False,
        dtype=dtype,
    )
    width = 4 if dtype == "float32" else 2
    return Row(
        case,
        {"x": (19, classes)},
        beside_torch(1.8, 2.3),
        note="eager in torch",
        rotate=True,
        moved=lambda shapes: 2 * width * prod(shapes["x"]),
    )


BY_ROW = (
    *[_softmax(columns, "float32") for columns in (1024, 4096, 8192, 32768)],
    *[_softmax(columns, "bfloat16") for columns in (4096, 32768)],
    *[_layer_norm(columns, dtype) for dtype in ("float32", "bfloat16") for columns in (4096, 8192, 16384)],
    *[_cross_entropy(classes, dtype) for dtype in ("float32", "bfloat16") for classes in (32768, 131072)],
)
