"""One pass over memory: copies, casts, elementwise operators, transposes, sums."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from benchmarks.cases import Case, rounded
from benchmarks.training import Arrays

from .row import FLOATS, HALVES, SHORT, Row, Shapes, Target, of_ceiling

_SIDE, _HALF_SIDE = 1 << 14, (1 << 14, 1 << 15)


def _stream(
    name: str,
    title: str,
    statement: str,
    dtype: str,
    targets: Mapping[str, Target],
    numpy: str | None = "same",
    inputs: str = "x",
    exact: Callable[[Arrays], Any] | None = None,
    cupy: bool = True,
) -> Row:
    """An elementwise operator on contiguous tensors of a gigabyte each."""
    short = SHORT[dtype]
    count = FLOATS if dtype == "float32" else HALVES
    case = Case(
        f"{name}_{short}",
        f"{title}, {short}, 1 GB",
        statement,
        dict.fromkeys(inputs, (count,)),
        {},
        numpy=numpy,
        exact=exact,
        dtype=dtype,
    )
    peers = ("ceiling", "torch", "cupy") if cupy and dtype == "float32" else ("ceiling", "torch")
    return Row(case, dict.fromkeys(inputs, (1_000_003,)), targets, peers=peers, rotate=True)


def matrix_row(
    name: str,
    title: str,
    statement: str,
    dtype: str,
    inputs: Shapes,
    targets: Mapping[str, Target],
    small: Shapes,
    numpy: str | None = "same",
    peers: tuple[str, ...] = ("ceiling", "torch"),
    **options: Any,
) -> Row:
    short = SHORT[dtype]
    case = Case(
        f"{name}_{short}", f"{title}, {short}", statement, dict(inputs), {}, numpy=numpy, dtype=dtype, **options
    )
    return Row(case, small, targets, peers=peers, rotate=True)


def _broadcast(dtype: str, column: bool) -> Row:
    rows, columns = (_SIDE, _SIDE) if dtype == "float32" else _HALF_SIDE
    name = "column" if column else "row"
    inputs = {"x": (rows, columns), "y": (rows, 1) if column else (columns,)}
    small = {"x": (1030, 770), "y": (1030, 1) if column else (770,)}
    peers = ("ceiling", "torch", "cupy") if dtype == "float32" else ("ceiling", "torch")
    return matrix_row(
        f"add_{name}",
        f"x + {name}, {rows}x{columns}",
        "x + y",
        dtype,
        inputs,
        of_ceiling(0.92, 0.96),
        small,
        peers=peers,
    )


def _total(name: str) -> Row:
    row = _stream(name, f"x.{name}(), all", f"x.{name}()", "float32", of_ceiling(0.92, 0.97))
    # positive, since a sum that cancels is all rounding; one number, so which library comes closest is chance
    return replace(row, case=replace(row.case, positive=True, rounding=4 * row.case.rounding))


_TALL = {"x": (_SIDE, _SIDE)}
_SUMS = {"x": (1030, 770)}
MEMORY = (
    *[
        _stream("copy", "x.clone()", "x.clone()", dtype, of_ceiling(0.95, 0.98), "x.copy()", cupy=False)
        for dtype in ("float32", "bfloat16")
    ],
    _stream(
        "cast_to_bf16",
        "x.to(bfloat16)",
        "x.to(lib.bfloat16)",
        "float32",
        of_ceiling(0.95, 0.98),
        None,
        exact=lambda arrays: rounded(arrays["x"], "bfloat16"),
        cupy=False,
    ),
    _stream("cast_to_fp32", "x.float()", "x.float()", "bfloat16", of_ceiling(0.95, 0.98), "x.copy()", cupy=False),
    *[_stream("exp", "exp(x)", "lib.exp(x)", dtype, of_ceiling(0.95, 0.98)) for dtype in ("float32", "bfloat16")],
    *[
        _stream("add", "a + b", "a + b", dtype, of_ceiling(0.95, 0.98), inputs="ab")
        for dtype in ("float32", "bfloat16")
    ],
    *[_broadcast(dtype, column) for dtype in ("float32", "bfloat16") for column in (False, True)],
    *[
        matrix_row(
            "transpose",
            f"x.t().contiguous(), {rows}x{columns}",
            "x.t().contiguous()",
            dtype,
            {"x": (rows, columns)},
            {},
            _SUMS,
            "x.T.copy()",
        )
        for dtype, (rows, columns) in (("float32", (_SIDE, _SIDE)), ("bfloat16", _HALF_SIDE))
    ],
    *[_total(name) for name in ("sum", "max", "mean")],
    matrix_row(
        "sum_rows",
        "x.sum(1), 16384x16384",
        "x.sum(1)",
        "float32",
        _TALL,
        of_ceiling(0.90, 0.95),
        _SUMS,
        peers=("ceiling", "torch", "cupy"),
    ),
    matrix_row(
        "sum_columns",
        "x.sum(0), 16384x16384",
        "x.sum(0)",
        "float32",
        _TALL,
        of_ceiling(0.85, 0.93),
        _SUMS,
        peers=("ceiling", "torch", "cupy"),
    ),
)
