"""`pytest benchmarks [--devices cpu,cuda] [--peers tritensor,numpy,torch]`: the cases under pytest-benchmark.

The `device` fixture is that of tritensor's pytest plugin, as for the tests. Peers that are not installed, or that have
no such device, are left out.
"""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Callable
from functools import partial
from types import ModuleType
from typing import Any

import pytest

import tritensor

PEERS = ("tritensor", "numpy", "torch")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--peers", default="tritensor", help="libraries to measure, of tritensor,numpy,torch (tritensor)")


def pytest_configure(config: pytest.Config) -> None:
    # NumPy's products too: it is imported already, so environment variables cannot limit it any more.
    config.add_cleanup(partial(tritensor.set_num_threads, tritensor.get_num_threads()))
    tritensor.set_num_threads(1)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "peer" in metafunc.fixturenames:
        wanted = metafunc.config.getoption("--peers").split(",")
        unknown = set(wanted) - set(PEERS)
        if unknown:
            raise pytest.UsageError(f"--peers: {', '.join(sorted(unknown))} is none of {', '.join(PEERS)}")
        metafunc.parametrize("peer", wanted, indirect=True)


@pytest.fixture
def peer(request: pytest.FixtureRequest) -> ModuleType:
    """The library to measure."""
    if importlib.util.find_spec(request.param) is None:
        pytest.skip(f"{request.param} is not installed")
    library = importlib.import_module(request.param)
    if request.param == "torch":
        library.set_num_threads(1)
    return library


@pytest.fixture
def measured(benchmark: Any, device: Any, peer: ModuleType) -> Callable[[str, dict[str, object]], Any]:
    """`measured(statement, names)` times the statement until the device has done it."""

    def measure(statement: str, names: dict[str, object]) -> Any:
        code = compile(statement, statement, "eval")
        if str(device) == "cpu":
            return benchmark(eval, code, names)
        synchronize: Callable[[], None] = peer.cuda.synchronize

        def run() -> None:
            eval(code, names)
            synchronize()

        return benchmark(run)

    return measure
