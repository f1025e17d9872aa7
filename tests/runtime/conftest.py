"""A device on which calls are repeated, and the calls that are not."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tritensor.operator import Operator

from .interpreted_device import Interpreted, interpreted_device


@pytest.fixture
def gpu(monkeypatch: pytest.MonkeyPatch) -> Iterator[Interpreted]:
    with interpreted_device(2) as driver:
        yield driver


@pytest.fixture
def long_ways(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of the operators that have gone the long way."""
    found: list[str] = []
    execute = Operator.execute_on

    def noted(self: Operator, *args: Any) -> Any:
        found.append(self.name)
        return execute(self, *args)

    monkeypatch.setattr(Operator, "execute_on", noted)
    return found
