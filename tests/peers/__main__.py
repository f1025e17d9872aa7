"""Run the tests that scikit-learn and SciPy have for the array API, on tensors.

    python -m tests.peers sklearn
    python -m tests.peers scipy stats signal
    TRITENSOR_SIMULATE_CUDA=1 python -m tests.peers sklearn --device cuda:0 linear_model

They are those that the installed libraries run on other namespaces. What SciPy's tests ask of a namespace beyond the
standard (float16, logspace, words of other libraries' messages) fails.
"""

from __future__ import annotations

import argparse
import importlib
import os
import sys
from typing import Any

os.environ["SCIPY_ARRAY_API"] = "1"  # before SciPy is imported

import pytest

import tritensor as torch
from tritensor import array_api as xp

MODULES = {
    "sklearn": "calibration decomposition linear_model metrics mixture model_selection preprocessing tests utils",
    "scipy": "cluster differentiate fft integrate interpolate linalg ndimage optimize signal spatial special stats",
}


class OnTensors:
    """A plugin of pytest: the tests that are parametrized by namespaces get this one, and the others do not run."""

    def __init__(self, library: str, device: str) -> None:
        self.device = device
        getattr(self, library)()

    def sklearn(self) -> None:
        found = importlib.import_module("sklearn.utils._array_api")
        dtypes = ("float64", "float32") if self.device == "cpu" else ("float32",)
        found.yield_namespace_device_dtype_combinations = lambda *_, **__: [
            ("tritensor", None, each) for each in dtypes
        ]
        for name in ("_testing", "estimator_checks"):
            module = importlib.import_module(f"sklearn.utils.{name}")
            usual = module._array_api_for_tests
            module._array_api_for_tests = lambda space, *rest, usual=usual, **named: (
                (xp, torch.device(self.device)) if space == "tritensor" else usual(space, *rest, **named)
            )

    def scipy(self) -> None:
        torch.set_default_dtype(torch.float64)
        torch.set_default_device(self.device)
        found: Any = importlib.import_module("scipy.conftest")
        found.xp_known_backends.add(xp.__name__)
        if self.device != "cpu":
            found.xp_skip_cpu_only_backends.add(xp.__name__)
        marker = found.xp._fixture_function_marker
        object.__setattr__(marker, "params", (pytest.param(xp, id="tritensor"),))

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        items[:] = [item for item in items if "tritensor" in item.name]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("library", choices=MODULES)
    parser.add_argument("modules", nargs="*", help="some of the library's, in place of all with such tests")
    parser.add_argument("--device", default="cpu")
    arguments = parser.parse_args()
    modules = arguments.modules or MODULES[arguments.library].split()
    options = ["-c", os.devnull, "-p", "no:cacheprovider", "-q", "-n0", "-W", "ignore", "--tb=line", "--pyargs"]
    plugin = OnTensors(arguments.library, arguments.device)
    return int(pytest.main([*options, *(f"{arguments.library}.{module}" for module in modules)], [plugin]))


if __name__ == "__main__":
    sys.exit(main())
