"""The rows of `python -m benchmarks.gpu`, for pytest-benchmark's history; toys of them on a simulated device."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import Any

import pytest

from benchmarks.gpu_rows import ROWS, START, Row, toy
from benchmarks.sides import Side
from tritensor import drivers


@pytest.mark.parametrize("row", [row for row in ROWS if row.kind != START], ids=lambda row: row.name)
def test_row(row: Row, device: Any, peer: ModuleType, measured: Callable[..., Any]) -> None:
    name = peer.__name__
    if str(device) == "cpu" or name == "numpy":
        pytest.skip("a row of the GPU table")
    if drivers.require().is_simulated:
        if name != "tritensor":
            pytest.skip(f"{name} has no simulated device")
        row = toy(row)
    variants = [variant for variant in row.peers if variant.split()[0] == name]
    case = row.case_for(variants[0] if variants else name)
    side = Side(name, peer, str(device))
    with side.precision(row.precision):
        measured(case.statement, side.filled(case))
    side.release()
