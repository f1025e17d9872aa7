"""Which derived tests of operators made from one text run every time: their kernels are long, half a second each."""

from __future__ import annotations

import pytest

from tritensor.operators import Operator
from tritensor.types import dtypes

QUICK = {
    "test_kernel_matches_reference",
    "test_gradient_matches_finite_difference",
    "test_in_place_equals_out_of_place",
}
COMPILED = ("erfinv",)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The others are slow: other dtypes than float32, second derivatives, layouts, all but one that is compiled."""
    for item in items:
        given = item.callspec.params if isinstance(item, pytest.Function) and hasattr(item, "callspec") else {}
        operator = given.get("operator")
        if not isinstance(operator, Operator) or not getattr(operator, "one_text", False):
            continue
        quick = item.originalname in QUICK and given.get("order", 1) == 1  # type: ignore[attr-defined]
        quick = quick and given.get("dtype", dtypes.float32) is dtypes.float32
        quick |= operator.name in COMPILED and "compile" in item.nodeid and given.get("target", ("cuda", 90))[1] == 90
        if not quick:
            item.add_marker(pytest.mark.slow)
