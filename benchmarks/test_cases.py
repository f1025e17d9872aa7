"""The rows of `python -m benchmarks.compare`, for pytest-benchmark's history and its regression gate."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import Any

import pytest

from benchmarks.cases import Case
from benchmarks.native_cases import ALL_CASES


@pytest.mark.parametrize("case", ALL_CASES, ids=lambda case: case.name)
def test_case(case: Case, device: Any, peer: ModuleType, measured: Callable[..., Any]) -> None:
    statement = case.statement_for(peer)
    if statement is None or (peer.__name__ == "numpy" and str(device) != "cpu"):
        pytest.skip(f"{peer.__name__} has no such case on {device}")
    measured(statement, case.namespace(peer, case.arrays(), str(device)))
