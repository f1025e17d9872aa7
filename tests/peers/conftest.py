"""SciPy and scikit-learn take arrays of other libraries when `SCIPY_ARRAY_API` is set before SciPy is imported.

It is set once all tests are collected and if one of this folder is to run, so that the quick tests and a subprocess of
theirs do not see it. No test module imports SciPy while it is collected.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import tritensor
from tritensor import Tensor

from ..needs import needs_triton

HERE = Path(__file__).parent
SIMULATED = pytest.param("cuda:0", marks=needs_triton)


def pytest_collection_finish(session: pytest.Session) -> None:
    if "scipy" not in sys.modules and any(item.path.parent == HERE for item in session.items):
        os.environ["SCIPY_ARRAY_API"] = "1"


@pytest.fixture
def array_api_in_scipy() -> None:
    """For a test of functions that dispatch."""
    pytest.importorskip("scipy")
    if os.environ.get("SCIPY_ARRAY_API") != "1":
        pytest.skip("SciPy was imported before tests/peers could set SCIPY_ARRAY_API=1: set it for the whole run")


@pytest.fixture(params=["cpu", SIMULATED])
def device(request: pytest.FixtureRequest) -> Iterator[str]:
    """The CPU, and a simulated device that exists while the test runs."""
    if request.param == "cpu":
        yield "cpu"
        return
    with tritensor.cuda.simulate():
        yield request.param


def on(device: str, result: Tensor) -> Tensor:
    """The result, after a check that it is a tensor there."""
    assert isinstance(result, Tensor)
    assert str(result.device) == device
    return result
