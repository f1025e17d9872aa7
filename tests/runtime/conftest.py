"""A device on which calls are repeated, and the calls that are not."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tritensor.operators import Operator
from tritensor.types import devices

from .interpreted_device import Interpreted, interpreted_device


@pytest.fixture
def gpu(monkeypatch: pytest.MonkeyPatch) -> Iterator[Interpreted]:
    with interpreted_device(2) as driver:
        yield driver


@pytest.fixture
def long_ways(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of the operators that have gone the long way."""
    found: list[str] = []
    compute = Operator.compute

    def noted(self: Operator, call: Any) -> Any:
        if call.device is not devices.cpu and not call.outs:
            found.append(self.name)
        return compute(self, call)

    monkeypatch.setattr(Operator, "compute", noted)
    return found
