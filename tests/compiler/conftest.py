"""Every call of a compiled function is noted, however little it spares, so that repeated calls go the repeated way; and
groups of few elements are groups without native code, too."""

from __future__ import annotations

import pytest

from tritensor.kernels.fused import plans
from tritensor.operators import deferring
from tritensor.operators.deferring import changes


@pytest.fixture(autouse=True)
def always_noted(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if "small_calls" not in request.node.name:
        for module in (deferring, changes):
            monkeypatch.setattr(module, "LEAST", float("-inf"))
        monkeypatch.setattr(plans, "FEW", 0)
