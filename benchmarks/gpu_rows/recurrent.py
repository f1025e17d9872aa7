"""Recurrent layers, forward and backward."""

from __future__ import annotations

from collections.abc import Mapping

from benchmarks.cases import Case
from benchmarks.recurrent import LAYERS, exact_lstm, lstm

from .row import SHORT, Row, Shapes, beside_torch


def _row(steps: int, batch: int, units: int, dtype: str) -> Row:
    shapes: Shapes = dict.fromkeys("xg", (steps, batch, units))

    def work(given: Mapping[str, tuple[int, ...]]) -> int:
        (steps, batch, inputs), units = given["x"], given["g"][-1]
        weights = 4 * units * (inputs + units + 2 * (LAYERS - 1) * units)
        return 6 * steps * batch * weights  # a product forward, two backward

    case = Case(
        f"lstm_{units}_{SHORT[dtype]}",
        f"LSTM {LAYERS}x{units}, batch {batch}, {steps} steps, forward and backward, {SHORT[dtype]}",
        "step()",
        dict(shapes),
        {},
        numpy=None,
        prepare=lstm,
        exact=exact_lstm,
        nonfinite=False,
        dtype=dtype,
        scale=0.5,
    )
    small = {"x": (5, 3, 24), "g": (5, 3, 20)}
    note = "cudnn.allow_tf32 on" if dtype == "float32" else ""
    precision = "high" if dtype == "float32" else None
    return Row(case, small, beside_torch(0.75, 1.0), work=work, note=note, precision=precision)


RECURRENT = tuple(_row(100, 64, units, dtype) for units in (256, 1024) for dtype in ("float32", "bfloat16"))
